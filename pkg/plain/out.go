package plain

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns a writer to w for text. It keeps newlines and tabs, and replaces all else that can't be printed. A
// character must be in one Write, or its parts are replaced. It is safe for concurrent use if w is.
func Text(w io.Writer) io.Writer { return out{w, appendText} }

// JSON returns a writer to w for JSON, like Text. It escapes what can't be printed, so that a program reads the same
// value, and replaces what isn't UTF-8, which JSON can't hold.
func JSON(w io.Writer) io.Writer { return out{w, appendJSON} }

// out is a writer that converts each character.
type out struct {
	to    io.Writer
	write func(into []byte, r rune) []byte
}

// Write implements io.Writer. It returns the length of p, not of what it wrote.
func (o out) Write(p []byte) (int, error) {
	plain := make([]byte, 0, len(p))
	for rest := p; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 {
			r = -1
		}
		plain = o.write(plain, r)
		rest = rest[size:]
	}
	if _, err := o.to.Write(plain); err != nil {
		return 0, err
	}
	return len(p), nil
}

// appendText and appendJSON take -1 for what isn't UTF-8.
func appendText(into []byte, r rune) []byte {
	if r != '\n' && r != '\t' {
		r = printable(r)
	}
	return utf8.AppendRune(into, r)
}

func appendJSON(into []byte, r rune) []byte {
	switch {
	case r == '\n' || r == '\t' || unicode.IsPrint(r):
		return utf8.AppendRune(into, r)
	case r < 0:
		return append(into, Replacement)
	case r > 0xffff:
		high, low := utf16.EncodeRune(r)
		return fmt.Appendf(into, `\u%04x\u%04x`, high, low)
	}
	return fmt.Appendf(into, `\u%04x`, r)
}
