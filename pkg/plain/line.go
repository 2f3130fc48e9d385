package plain

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Replacement replaces each character that can't be printed.
const Replacement = '?'

// ellipsis ends a shortened line.
const ellipsis = "..."

// Line returns s as one printable line of at most limit bytes, cut between characters. White space of any kind and
// length becomes one blank, and none at the ends. With a limit below 3, nothing is left of a longer text.
func Line(s string, limit int) string {
	if len(s) <= limit && isLine(s) {
		return s
	}
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, string(Replacement))), " ")
	s = strings.Map(printable, s)
	if len(s) <= limit {
		return s
	}
	end := max(limit-len(ellipsis), 0)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + ellipsis[:min(len(ellipsis), max(limit, 0))]
}

// isLine reports whether Line leaves s as it is, whatever its length. Most texts are so, and need no copy.
func isLine(s string) bool {
	before := ' '
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)) || !unicode.IsPrint(r) || r == ' ' && before == ' ' {
			return false
		}
		before = r
	}
	return s == "" || before != ' '
}

// printable returns the character that is shown for r.
func printable(r rune) rune {
	switch {
	case unicode.IsPrint(r):
		return r
	case unicode.Is(unicode.Zs, r):
		return ' '
	}
	return Replacement
}
