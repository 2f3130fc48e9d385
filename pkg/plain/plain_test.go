package plain_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostile"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

// What is said honestly is shown as it is, in any script, on each way out.
func TestHonest(t *testing.T) {
	for _, word := range []string{"", "a", "Größe: ½ µs", "维护窗口", "обновление", "تحديث", "アップデート", "😀 ❤️ 👍🏽", "e\u0301", "\ufffd", "a <b> & \"c\" \\n"} {
		assert.Equal(t, plain.Line(word, 1024), word)
		// Nearly all that is shown is so.
		assert.Equal(t, testing.AllocsPerRun(1, func() { plain.Line(word, len(word)) }), 0.0, "%q is copied", word)
		var text, out bytes.Buffer
		_, err := plain.Text(&text).Write([]byte(word + "\n\tx\n"))
		assert.NilError(t, err)
		assert.Equal(t, text.String(), word+"\n\tx\n")
		_, err = plain.JSON(&out).Write([]byte(word + "\n"))
		assert.NilError(t, err)
		assert.Equal(t, out.String(), word+"\n")
	}
}

// What is too long is cut between characters, and what is shown instead of the end is within the limit too.
func TestLimit(t *testing.T) {
	for _, c := range []struct {
		s     string
		limit int
		want  string
	}{
		{" a\u3000b\u00a0\tc ", 10, "a b c"},
		{"ab ", 2, "ab"},
		{"ab ", 3, "ab"},
		{"äöü", 5, "ä..."},
		{"äöüß", 6, "ä..."},
		{"äöü", 4, "..."},
		{"abcd", 3, "..."},
		{"abcd", 2, ".."},
		{"abcd", 0, ""},
		{"abcd", -1, ""},
		{"", -1, ""},
	} {
		assert.Equal(t, plain.Line(c.s, c.limit), c.want, "%q, %d", c.s, c.limit)
	}
}

// Each way out has its own sign for what can't be printed, and tells its caller that all was written, or what is wrong.
func TestWaysOut(t *testing.T) {
	for _, c := range []struct{ given, text, json string }{
		{"\u00a0", " ", `\u00a0`},
		{"\x00", "?", `\u0000`},
		{"\uffff", "?", `\uffff`},
		{"\U000e0001", "?", `\udb40\udc01`},
		{"\xff", "?", "?"},
	} {
		var text, out bytes.Buffer
		for _, w := range []io.Writer{plain.Text(&text), plain.JSON(&out)} {
			n, err := w.Write([]byte(c.given))
			assert.NilError(t, err)
			assert.Equal(t, n, len(c.given))
		}
		assert.Equal(t, text.String(), c.text)
		assert.Equal(t, out.String(), c.json)
	}
	n, err := plain.Text(full{}).Write([]byte("a"))
	assert.ErrorIs(t, err, io.ErrShortWrite)
	assert.Equal(t, n, 0)
}

// full is a writer that takes nothing any more.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// TestAttackTerminal: no word gets past a line, or past a way out.
func TestAttackTerminal(t *testing.T) {
	for name, word := range hostile.Words() {
		t.Run(name, func(t *testing.T) {
			line := plain.Line(word, 1024)
			assert.NilError(t, hostile.Obeyed(line))
			assert.Assert(t, !strings.Contains(line, "\n") && line != word)
			for size := 1; size < 5; size++ {
				// Also in parts of characters.
				var out bytes.Buffer
				w := plain.Text(&out)
				for rest := []byte(strings.ReplaceAll(word, "\n", " ")); len(rest) > 0; rest = rest[min(size, len(rest)):] {
					_, err := w.Write(rest[:min(size, len(rest))])
					assert.NilError(t, err)
				}
				assert.NilError(t, hostile.Obeyed(strings.ReplaceAll(strings.ReplaceAll(out.String(), "x", ""), "9", "")))
			}
		})
	}
}

// TestAttackJSON: JSON is shown without a word's effect, and is read as the same value.
func TestAttackJSON(t *testing.T) {
	for name, word := range hostile.Words() {
		t.Run(name, func(t *testing.T) {
			body, err := json.Marshal(map[string]string{word: word})
			assert.NilError(t, err)
			var out bytes.Buffer
			_, err = plain.JSON(&out).Write(body)
			assert.NilError(t, err)
			for _, r := range out.String() {
				assert.Assert(t, unicode.IsPrint(r), "%q", out.String())
			}
			var was, is map[string]string
			assert.NilError(t, json.Unmarshal(body, &was))
			assert.NilError(t, json.Unmarshal(out.Bytes(), &is))
			assert.DeepEqual(t, is, was)
		})
	}
}

// FuzzLine: whatever is said comes out as one short printable line, and that again as it is.
func FuzzLine(f *testing.F) {
	for _, word := range hostile.Words() {
		f.Add(word, 256)
	}
	f.Add("a  b ", 4)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = (limit%400 + 400) % 400
		got := plain.Line(s, limit)
		assert.Assert(t, len(got) <= limit && utf8.ValidString(got), "%q", got)
		for _, r := range got {
			assert.Assert(t, unicode.IsPrint(r), "%q", got)
		}
		assert.Equal(t, plain.Line(got, limit), got)
	})
}
