package policy

import (
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

// SlotCapacity is the most slots that there can ever be, which keeps the list of holders small. It is what
// `unlimited` means.
const SlotCapacity = 1000

// Limit is how many nodes may be in some state at once: a number, a share of those that it is about, or no limit.
// The zero value is 0: none.
type Limit struct {
	n    int
	kind limitKind
}

type limitKind uint8

const (
	limitCount limitKind = iota
	limitPercent
	limitNone
)

// Unlimited is no limit.
var Unlimited = Limit{kind: limitNone}

// Count is a limit of n nodes; one below 0 is 0.
func Count(n int) Limit { return Limit{n: max(n, 0)} }

// Percent is a limit of n in a hundred, 0 to 100.
func Percent(n int) Limit { return Limit{n: min(max(n, 0), 100), kind: limitPercent} }

// ParseLimit reads a number, a percentage such as `25%`, or `unlimited`.
func ParseLimit(s string) (Limit, error) {
	if s == "unlimited" {
		return Unlimited, nil
	}
	digits, percent := strings.CutSuffix(s, "%")
	n, err := strconv.Atoi(digits)
	switch {
	case err != nil || n < 0 || strings.HasPrefix(digits, "+"):
		return Limit{}, errors.Errorf("%q is no limit: give a number, a percentage such as 25%%, or unlimited", s)
	case percent && n > 100:
		return Limit{}, errors.Errorf("%q is more than all: give 0%% to 100%%", s)
	case percent:
		return Percent(n), nil
	}
	return Count(n), nil
}

// Of is the limit for that many nodes. A share rounds down, but is 1 at least unless it is 0%.
func (l Limit) Of(nodes int) int {
	switch l.kind {
	case limitNone:
		return SlotCapacity
	case limitPercent:
		if l.n == 0 {
			return 0
		}
		return min(max(nodes*l.n/100, 1), SlotCapacity)
	default:
		return min(l.n, SlotCapacity)
	}
}

// None reports whether the limit allows no node.
func (l Limit) None() bool { return l.kind != limitNone && l.n == 0 }

func (l Limit) String() string {
	switch l.kind {
	case limitNone:
		return "unlimited"
	case limitPercent:
		return strconv.Itoa(l.n) + "%"
	default:
		return strconv.Itoa(l.n)
	}
}
