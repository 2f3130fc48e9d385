package file

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// text is a policy as it is written, of which parts are replaced and everything else stays to the byte.
type text struct {
	content string
	// starts are where its lines begin.
	starts []int
	edits  []edit
}

// edit puts something in the place of what stands from one offset to another.
type edit struct {
	from, to int
	with     string
}

// newText finds the lines as the YAML decoder counts them.
func newText(content string) *text {
	t := &text{content: content, starts: []int{0}}
	if strings.HasPrefix(content, "\ufeff") {
		t.starts[0] = len("\ufeff")
	}
	for i, c := range content {
		switch c {
		case '\r':
			if strings.HasPrefix(content[i+1:], "\n") {
				continue
			}
		case '\n', '\u0085', '\u2028', '\u2029':
		default:
			continue
		}
		t.starts = append(t.starts, i+utf8.RuneLen(c))
	}
	return t
}

// offset is where a node begins; -1 if it isn't there.
func (t *text) offset(n *yaml.Node) int {
	if n.Line < 1 || n.Line > len(t.starts) {
		return -1
	}
	at := t.starts[n.Line-1]
	for range n.Column - 1 {
		_, size := utf8.DecodeRuneInString(t.content[at:])
		if size == 0 {
			return -1
		}
		at += size
	}
	return at
}

// scalar returns from where to where a value stands, with its quotes; false for one that is written in any other way
// than as one plain or quoted word.
func (t *text) scalar(n *yaml.Node) (from, to int, ok bool) {
	from = t.offset(n)
	if from < 0 || n.Kind != yaml.ScalarNode {
		return 0, 0, false
	}
	rest := t.content[from:]
	switch n.Style {
	case 0:
		return from, from + len(n.Value), n.Value != "" && strings.HasPrefix(rest, n.Value)
	case yaml.SingleQuotedStyle:
		quoted := "'" + strings.ReplaceAll(n.Value, "'", "''") + "'"
		return from, from + len(quoted), strings.HasPrefix(rest, quoted)
	case yaml.DoubleQuotedStyle:
		// One with an escape isn't this word.
		quoted := `"` + n.Value + `"`
		return from, from + len(quoted), strings.HasPrefix(rest, quoted) && !strings.Contains(n.Value, `\`)
	}
	return 0, 0, false
}

// colon is right behind the colon of a key; false if it isn't on the key's line.
func (t *text) colon(key *yaml.Node) (at int, ok bool) {
	_, to, ok := t.scalar(key)
	if !ok {
		return 0, false
	}
	rest := strings.TrimLeft(t.content[to:], " \t")
	return len(t.content) - len(rest) + 1, strings.HasPrefix(rest, ":")
}

// line returns where the line of an offset begins, where it ends, and where the next one begins.
func (t *text) line(at int) (from, to, next int) {
	i, found := slices.BinarySearch(t.starts, at)
	if !found {
		i--
	}
	i = max(i, 0)
	from, next = t.starts[i], len(t.content)
	if i+1 < len(t.starts) {
		next = t.starts[i+1]
	}
	return from, from + len(strings.TrimRight(t.content[from:next], "\r\n\u0085\u2028\u2029")), next
}

// ending is how lines end here.
func (t *text) ending() string {
	if at := strings.IndexByte(t.content, '\n'); at > 0 && t.content[at-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

func (t *text) put(from, to int, with string) { t.edits = append(t.edits, edit{from, to, with}) }

// putLines puts lines behind the one of an offset.
func (t *text) putLines(at int, lines []string) {
	_, to, next := t.line(at)
	with := t.ending() + strings.Join(lines, t.ending())
	if to == next {
		// The last line has no ending, and the last one has none then.
		t.put(to, to, with)
		return
	}
	t.put(next, next, strings.TrimPrefix(with, t.ending())+t.ending())
}

// alone reports whether a line has nothing but blanks before an offset, and nothing but blanks and a comment behind
// another one. It returns the comment.
func (t *text) alone(from, to int) (comment string, ok bool) {
	begins, ends, _ := t.line(from)
	_, last, _ := t.line(to)
	comment = strings.Trim(t.content[to:max(last, to)], " \t")
	return comment, last == ends && strings.Trim(t.content[begins:from], " \t") == "" && (comment == "" || strings.HasPrefix(comment, "#"))
}

// dropLine takes out the line of an offset.
func (t *text) dropLine(at int) {
	from, _, next := t.line(at)
	t.put(from, next, "")
}

// edited returns the text with all edits.
func (t *text) edited() string {
	slices.SortStableFunc(t.edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	var b strings.Builder
	at := 0
	for _, e := range t.edits {
		if e.from < at {
			// Two edits of one place: the result isn't the one that is wanted, and the caller sees that.
			continue
		}
		b.WriteString(t.content[at:e.from] + e.with)
		at = e.to
	}
	return b.String() + t.content[at:]
}
