package file

import (
	"fmt"
	"slices"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Mistake is one mistake in a policy file.
type Mistake struct {
	// Line is the line of the file, from 1; 0 if it is none in particular.
	Line int
	// Says is one line: the field with its path, such as groups[1].drain.timeout, the mistake, and the remedy.
	Says string
}

func (m Mistake) String() string {
	if m.Line == 0 {
		return m.Says
	}
	return fmt.Sprintf("line %d: %s", m.Line, m.Says)
}

// Mistakes are the mistakes in a policy file, sorted by line; as an error there is at least one.
type Mistakes []Mistake

const (
	// maxListed is the number of mistakes that Lines lists.
	maxListed = 20
	// maxSays limits a mistake, which may quote long values, in bytes; maxFirst limits the first one in Error, so that a
	// node's message has room for it.
	maxSays, maxFirst = 400, 160
)

// Error returns one line: the first mistake, and the number of others.
func (m Mistakes) Error() string {
	if len(m) == 1 {
		return m[0].String()
	}
	return marker.Clip(m[0].String(), maxFirst) + m.more(1)
}

// Lines returns the mistakes of an error of Decode, one per line. After the first 20, the last line has the number of
// others.
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

func (m Mistakes) more(listed int) string {
	if len(m) == listed+1 {
		return " (and 1 more mistake)"
	}
	return fmt.Sprintf(" (and %d more mistakes)", len(m)-listed)
}

func (m *Mistakes) add(line int, format string, values ...any) {
	*m = append(*m, Mistake{Line: line, Says: marker.Clip(fmt.Sprintf(format, values...), maxSays)})
}

// err returns the sorted mistakes; nil if there are none.
func (m Mistakes) err() error {
	if len(m) == 0 {
		return nil
	}
	slices.SortStableFunc(m, func(a, b Mistake) int { return a.Line - b.Line })
	return m
}
