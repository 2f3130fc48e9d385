package plain

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Instead stands where something was that can't be printed.
const Instead = '?'

// cut stands at the end of what was shortened.
const cut = "..."

// Line makes s one printable line of at most limit bytes, cut between characters. White space of any kind and length is
// one blank, and none at the ends. A limit below 3 leaves nothing of what is too long.
func Line(s string, limit int) string {
	if len(s) <= limit && isLine(s) {
		return s
	}
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, string(Instead))), " ")
	s = strings.Map(printable, s)
	if len(s) <= limit {
		return s
	}
	end := max(limit-len(cut), 0)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + cut[:min(len(cut), max(limit, 0))]
}

// isLine reports whether Line leaves s as it is, whatever its length; most of what is shown is so.
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

// printable is the character that is shown for r.
func printable(r rune) rune {
	switch {
	case unicode.IsPrint(r):
		return r
	case unicode.Is(unicode.Zs, r):
		return ' '
	}
	return Instead
}
