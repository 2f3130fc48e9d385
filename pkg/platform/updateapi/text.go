package updateapi

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLine bounds what is passed on of a host's words, in bytes: they end up in logs and in marks on a
// Node.
const maxLine = 200

// printable is s in at most maxLine bytes of valid UTF-8, with a question mark for each rune that
// can't be printed.
func printable(s string) string {
	if len(s) > maxLine {
		s = s[:maxLine]
		// The cut may have gone through a rune.
		for i := 0; i < utf8.UTFMax-1 && !utf8.ValidString(s); i++ {
			s = s[:len(s)-1]
		}
	}
	out := strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
	return out
}

// firstLine is the first line of s that isn't blank, made printable.
func firstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			return printable(line)
		}
	}
	return ""
}
