package marker

import (
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
)

// Every key has exactly one writer, is under the prefix, and is explained.
func TestTable(t *testing.T) {
	seen, answers := map[Key]bool{}, 0
	for _, e := range Table() {
		assert.Assert(t, !seen[e.Key], "%s stands there twice", e.Key)
		seen[e.Key] = true
		if slices.Contains(AnswerKeys(), e.Key) {
			answers++
			assert.Equal(t, e.Writer, WriterAgent)
		}
		assert.Assert(t, strings.HasPrefix(string(e.Key), Prefix), e.Key)
		assert.Assert(t, e.Meaning != "", e.Key)
		owners := 0
		for _, w := range []Writer{WriterUser, WriterController, WriterAgent} {
			if Owns(w, string(e.Key)) {
				owners++
				assert.Equal(t, w, e.Writer)
			}
		}
		if e.Kind == KindAnnotation {
			assert.Equal(t, owners, 1, "%s", e.Key)
		} else {
			assert.Equal(t, owners, 0, "no component has the label %s among its annotations", e.Key)
		}
	}
	assert.Equal(t, answers, 4, "an answer has an id, a state, a reason and a message")
	assert.Equal(t, len(Keys(WriterUser))+len(Keys(WriterController))+len(Keys(WriterAgent))+3, len(Table()))
	assert.Assert(t, !Owns(WriterController, "example.com/x"))
}

// What builds on other nodes, autoscalers and the admission policies know by heart.
func TestWire(t *testing.T) {
	assert.Equal(t, Protocol, 4)
	assert.DeepEqual(t, AutoscalerMarks(), []string{"cluster-autoscaler.kubernetes.io/scale-down-disabled", "karpenter.sh/do-not-disrupt"})
}

// Encode and EncodeReport write nothing but what their writer owns.
func TestEncodersWriteTheirOwn(t *testing.T) {
	m := decode(t, disrupted())
	for k := range Encode(m) {
		assert.Assert(t, Owns(WriterController, string(k)), k)
	}
	for k := range EncodeReport(m.Report) {
		assert.Assert(t, Owns(WriterAgent, string(k)), k)
	}
}
