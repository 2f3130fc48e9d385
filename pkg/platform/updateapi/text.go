package updateapi

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

// maxLine bounds what is passed on of a host's words, in bytes: they end up in logs and in marks on a
// Node.
const maxLine = 200

// printable is s in one printable line of at most maxLine bytes.
func printable(s string) string { return plain.Line(s, maxLine) }

const (
	// gap stands for what oneLine leaves out, between a head of headLen bytes and as much of the tail as fits.
	gap     = " ... "
	headLen = 60
)

// oneLine is all of s in one printable line of at most maxLine bytes: its beginning, which says what was tried, and its
// end, where the cause stands in what the host's programs print.
func oneLine(s string) string {
	s = plain.Line(s, math.MaxInt)
	if len(s) > maxLine {
		s = strings.TrimRight(cutBefore(s, headLen), " ") + gap + strings.TrimLeft(cutAfter(s, len(s)-(maxLine-headLen-len(gap))), " ")
	}
	return s
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
