package chaos

import (
	"testing"

	"gotest.tools/v3/assert"
)

// A server that was killed in the middle of a line leaves its head, and the next one goes on behind it.
func TestTornLines(t *testing.T) {
	whole := `{"kind":"Event","stage":"ResponseComplete","verb":"get","objectRef":{"name":"a"}}`
	log := parseLog([]byte(whole + "\n" +
		`{"kind":"Event","stage":"ResponseComplete","verb":"patch","requ` + whole + "\n" +
		`{"kind":"Event","stage":"Resp` + "\n" +
		`{"kind":"Event","stage":"ResponseStarted","verb":"watch"}` + "\n" +
		whole + "\n" + whole[:20]))
	assert.Equal(t, log.Torn, 2)
	assert.Equal(t, len(log.Entries), 3)
	for _, e := range log.Entries {
		assert.Equal(t, e.Verb, "get")
		assert.Equal(t, e.Object.Name, "a")
	}
}
