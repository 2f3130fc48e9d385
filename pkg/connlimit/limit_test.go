package connlimit_test

import (
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/connlimit"
)

// TestLimit: the address with most connections loses its oldest one; of equal ones the oldest of all goes.
func TestLimit(t *testing.T) {
	for _, tc := range []struct{ name, came, gone string }{
		{"as many as may be", "abc", ""},
		{"one address too often", "baaa", "1"},
		{"one that came before the many", "abbb", "1"},
		{"one that comes after the many", "aaab", "0"},
		{"each once", "abcd", "0"},
		{"two equally often", "abab", "0"},
		{"again and again", "aaaabab", "0123"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, gone := connlimit.New[int](3), ""
			for i, address := range tc.came {
				if over, full := l.Add(string(address), i); full {
					gone += string(rune('0' + over))
					assert.Assert(t, !l.Remove(over), "it isn't counted any more")
				}
			}
			assert.Equal(t, gone, tc.gone)
			assert.Equal(t, l.Len(), 3)
		})
	}
}

func TestLimitRemove(t *testing.T) {
	l := connlimit.New[string](1)
	_, full := l.Add("a", "1")
	assert.Assert(t, !full)
	assert.Assert(t, l.Remove("1"))
	assert.Assert(t, !l.Remove("1"))
	_, full = l.Add("b", "2")
	assert.Assert(t, !full)
}

func TestSource(t *testing.T) {
	for remote, want := range map[string]string{
		"10.0.0.1:5": "10.0.0.1", "[::ffff:10.0.0.1]:5": "10.0.0.1", "[fe80::1%eth0]:5": "fe80::/64",
		"[2001:db8:1:2:3:4:5:6]:5": "2001:db8:1:2::/64", "pipe": "pipe",
	} {
		assert.Equal(t, connlimit.Source(remote), want)
	}
}
