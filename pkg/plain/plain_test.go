package plain_test

import (
	"bytes"
	"encoding/json"
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
		var text, out bytes.Buffer
		_, err := plain.Text(&text).Write([]byte(word + "\n\tx\n"))
		assert.NilError(t, err)
		assert.Equal(t, text.String(), word+"\n\tx\n")
		_, err = plain.JSON(&out).Write([]byte(word + "\n"))
		assert.NilError(t, err)
		assert.Equal(t, out.String(), word+"\n")
	}
	assert.Equal(t, plain.Line(" a\u3000b\u00a0\tc ", 10), "a b c")
	assert.Equal(t, plain.Line("äöü", 5), "ä...")
}

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
