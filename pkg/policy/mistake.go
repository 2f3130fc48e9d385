package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Mistake is one thing that is wrong with settings.
type Mistake struct {
	// Field is where, as the policy file writes it: groups[1].drain.timeout.
	Field string
	// Says follows the name of the field: what is wrong, and the remedy.
	Says string
	// Beside are other fields that it rests on: without what they say it would be none.
	Beside []string
}

func (m Mistake) Error() string { return m.Field + " " + m.Says }

// within is the mistake as the one of a group, or of another part.
func (m Mistake) within(part string) Mistake {
	beside := make([]string, len(m.Beside))
	for i, b := range m.Beside {
		beside[i] = part + "." + b
	}
	return Mistake{Field: part + "." + m.Field, Says: m.Says, Beside: beside}
}

type mistakes []Mistake

func (m *mistakes) add(field, format string, values ...any) {
	*m = append(*m, Mistake{Field: field, Says: marker.Clip(fmt.Sprintf(format, values...), maxSays)})
}

// about adds what is wrong with a part, if anything is; the error begins with the name of the field.
func (m *mistakes) about(part string, err error) {
	if err != nil {
		field, says, _ := strings.Cut(err.Error(), " ")
		m.add(part+"."+field, "%s", says)
	}
}

// maxSays is how long a mistake may be, in bytes, whatever value it quotes.
const maxSays = 400

// beside names what the last mistake rests on too.
func (m *mistakes) beside(fields ...string) { (*m)[len(*m)-1].Beside = fields }

// Nearest returns the known word that was probably meant; empty if none is near. Up to a third of the letters may be
// wrong, left out, too many or in the place of a neighbour, and capitals don't count.
func Nearest(word string, known []string) string {
	nearest, least := "", 1+min(len(word)/3, 4)
	for _, k := range known {
		if d := len(k) - len(word); k == "" || d >= least || -d >= least {
			continue
		}
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < least {
			nearest, least = k, d
		}
	}
	return nearest
}

// distance counts the changes of single bytes, and the exchanges of two neighbours, that make one word another.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	var before []int
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			change := 1
			if a[i] == b[j] {
				change = 0
			}
			next[j+1] = min(row[j]+change, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}

// Suggestion returns the end of a message that names the known word that was probably meant; empty if none is near.
func Suggestion(word string, known []string) string {
	if n := Nearest(word, known); n != "" && !slices.Contains(known, word) {
		return "; the nearest is " + n
	}
	return ""
}
