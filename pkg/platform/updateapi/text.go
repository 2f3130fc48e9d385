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

const (
	// gap stands for what oneLine leaves out, between a head of headLen bytes and as much of the tail as fits.
	gap     = " ... "
	headLen = 60
)

// oneLine is all of s in one printable line of at most maxLine bytes: its beginning, which says what was tried, and its
// end, where the cause stands in what the host's programs print.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	if len(s) > maxLine {
		s = strings.TrimRight(cutBefore(s, headLen), " ") + gap + strings.TrimLeft(cutAfter(s, len(s)-(maxLine-headLen-len(gap))), " ")
	}
	return printable(s)
}

// cutBefore is s up to at most byte i, and cutAfter s from at least byte i on, cut between characters.
func cutBefore(s string, i int) string {
	for ; i > 0 && !utf8.RuneStart(s[i]); i-- {
	}
	return s[:i]
}

func cutAfter(s string, i int) string {
	for ; i < len(s) && !utf8.RuneStart(s[i]); i++ {
	}
	return s[i:]
}
