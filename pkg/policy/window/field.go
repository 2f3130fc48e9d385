package window

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

// field is what one field of a schedule may say.
type field struct {
	name     string
	min, max int
	// names of the values from min on.
	names []string
}

var fields = [5]field{
	{name: "minute", min: 0, max: 59},
	{name: "hour", min: 0, max: 23},
	{name: "day of month", min: 1, max: 31},
	{name: "month", min: 1, max: 12, names: []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{name: "day of week", min: 0, max: 6, names: []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

func (f field) all() uint64 { return upTo(f.max) &^ upTo(f.min-1) }

// parse returns the values as bits, and if the field is restricted: it has no *.
func (f field) parse(text string) (set uint64, restricted bool, err error) {
	restricted = true
	for part := range strings.SplitSeq(text, ",") {
		values, star, err := f.part(part)
		if err != nil {
			return 0, false, err
		}
		set |= values
		restricted = restricted && !star
	}
	return set, restricted, nil
}

// part reads one entry of a list.
func (f field) part(text string) (set uint64, star bool, err error) {
	span, stepText, stepped := strings.Cut(text, "/")
	step := 1
	if stepped {
		if step, err = number(stepText); err != nil {
			return 0, false, errors.Wrapf(err, "%q: the step", text)
		}
		if step == 0 {
			return 0, false, errors.Errorf("%q: the step is 0: give 1 or more", text)
		}
	}
	lowText, highText, ranged := strings.Cut(span, "-")
	low, high := f.min, f.max
	if star = span == "*" || span == "?"; !star {
		if low, err = f.value(lowText); err != nil {
			return 0, false, err
		}
		switch {
		case ranged:
			if high, err = f.value(highText); err != nil {
				return 0, false, err
			}
		case !stepped:
			high = low
		}
	}
	if low > high {
		return 0, false, errors.Errorf("%q begins after its end: give two ranges", text)
	}
	for v := low; v <= high; v += step {
		set |= 1 << v
	}
	// Every second day isn't every day.
	return set, star && step == 1, nil
}

func (f field) value(text string) (int, error) {
	if i := slices.Index(f.names, strings.ToLower(text)); i >= 0 {
		return f.min + i, nil
	}
	v, err := number(text)
	switch {
	case err != nil && f.names != nil:
		return 0, errors.Errorf("%q is no number and no name: give %d to %d or %s to %s", text, f.min, f.max, f.names[0], f.names[len(f.names)-1])
	case err != nil:
		return 0, err
	case v == 7 && f.max == 6:
		return 0, errors.New("7 is no day of the week: Sunday is 0")
	case v < f.min || v > f.max:
		return 0, errors.Errorf("%s is out of range: give %d to %d", text, f.min, f.max)
	}
	return v, nil
}

// number reads digits alone, without a sign.
func number(text string) (int, error) {
	v, err := strconv.ParseUint(text, 10, 31)
	if errors.Is(err, strconv.ErrRange) {
		return 0, errors.Errorf("%s is too large", text)
	}
	if err != nil {
		return 0, errors.Errorf("%q is no number: give one such as 5, a range such as 1-5, * or a list of those", text)
	}
	return int(v), nil
}
