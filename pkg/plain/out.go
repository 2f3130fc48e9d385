package plain

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns a writer to w for text whose layout is newlines, tabs and blanks. All else that can't be printed is
// replaced. A character is to be written at once, or its parts are replaced. It may be used as w may, also by several at
// a time.
func Text(w io.Writer) io.Writer { return out{w, appendText} }

// JSON returns a writer to w for JSON. What can't be printed is escaped, so that a program reads the same value as
// without, but what isn't UTF-8, which JSON can't hold. Otherwise it is as Text.
func JSON(w io.Writer) io.Writer { return out{w, appendJSON} }

// out lets characters through one by one.
type out struct {
	to    io.Writer
	write func(into []byte, r rune) []byte
}

// Write is for io.Writer. It returns the length of what was given, not of what came out.
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
		return append(into, Instead)
	case r > 0xffff:
		high, low := utf16.EncodeRune(r)
		return fmt.Appendf(into, `\u%04x\u%04x`, high, low)
	}
	return fmt.Appendf(into, `\u%04x`, r)
}
