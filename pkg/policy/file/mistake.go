package file

import (
	"fmt"
	"slices"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Mistake is one thing that is wrong with a policy file.
type Mistake struct {
	// Line is where, from 1; 0: nowhere in particular.
	Line int
	// Says names the field with its path, such as groups[1].drain.timeout, what is wrong with it, and the remedy. It is
	// one line.
	Says string
}

func (m Mistake) String() string {
	if m.Line == 0 {
		return m.Says
	}
	return fmt.Sprintf("line %d: %s", m.Line, m.Says)
}

// Mistakes are all that are wrong with a policy file, by their lines; as an error there is at least one.
type Mistakes []Mistake

const (
	// maxListed is how many mistakes anybody would correct at once.
	maxListed = 20
	// maxSays is for values that are quoted, and maxFirst leaves room in a node's message for what stands around it.
	maxSays, maxFirst = 400, 160
)

// Error is one line: the first mistake, and how many more there are.
func (m Mistakes) Error() string {
	if len(m) == 1 {
		return m[0].String()
	}
	return marker.Clip(m[0].String(), maxFirst) + m.more(1)
}

// Lines are an error of Decode at length: the mistakes, each in one line, and if they are very many at the end how many
// more there are.
func Lines(err error) []string {
	var m Mistakes
	if !errors.As(err, &m) {
		return []string{err.Error()}
	}
	var lines []string
	for _, one := range m[:min(len(m), maxListed)] {
		lines = append(lines, one.String())
	}
	if len(m) > maxListed {
		lines = append(lines, "..."+m.more(maxListed))
	}
	return lines
}

func (m Mistakes) more(told int) string {
	if len(m) == told+1 {
		return " (and 1 more mistake)"
	}
	return fmt.Sprintf(" (and %d more mistakes)", len(m)-told)
}

func (m *Mistakes) add(line int, format string, values ...any) {
	*m = append(*m, Mistake{Line: line, Says: marker.Clip(fmt.Sprintf(format, values...), maxSays)})
}

// err is the error of those mistakes; nil if there are none.
func (m Mistakes) err() error {
	if len(m) == 0 {
		return nil
	}
	slices.SortStableFunc(m, func(a, b Mistake) int { return a.Line - b.Line })
	return m
}
