package preflight

import (
	"fmt"
	"strings"
)

// named is how many objects a message names.
const named = 5

// list names the first of objects, and counts the others.
func list(names []string) string {
	if len(names) <= named {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:named], ", "), len(names)-named)
}

// count writes a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// of describes which of something: "2 nodes: a, b".
func of(names []string, noun string) string { return count(len(names), noun) + ": " + list(names) }
