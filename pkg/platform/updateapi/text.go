package updateapi

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

// maxLine bounds what is passed on of a host's answers, in bytes: it ends up in logs and in annotations.
const maxLine = 200

// printable returns s as one printable line of at most maxLine bytes.
func printable(s string) string { return plain.Line(s, maxLine) }

const (
	// gap replaces what oneLine leaves out, between a head of headLen bytes and as much of the tail as fits.
	gap     = " ... "
	headLen = 60
)

// oneLine returns s as one printable line of at most maxLine bytes: its beginning, where the host's programs print what
// they tried, and its end, where they print the cause.
func oneLine(s string) string {
	s = plain.Line(s, math.MaxInt)
	if len(s) > maxLine {
		tail := cutAfter(s, len(s)-(maxLine-headLen-len(gap)))
		s = strings.TrimRight(cutBefore(s, headLen), " ") + gap + strings.TrimLeft(tail, " ")
	}
	return s
}

// cutBefore returns s up to at most byte i, cut between characters.
func cutBefore(s string, i int) string {
	for ; i > 0 && !utf8.RuneStart(s[i]); i-- {
	}
	return s[:i]
}

// cutAfter returns s from at least byte i on, cut between characters.
func cutAfter(s string, i int) string {
	for ; i < len(s) && !utf8.RuneStart(s[i]); i++ {
	}
	return s[i:]
}
