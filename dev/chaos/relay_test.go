package chaos

import (
	"io"
	"net"
	"testing"
	"time"

	"gotest.tools/v3/assert"
)

func TestCutNetwork(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	assert.NilError(t, err)
	defer echo.Close()
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c) }()
		}
	}()
	n := &network{to: func() string { return echo.Addr().String() }, relays: map[string]*relay{}}
	defer n.close()
	address, err := n.address("a")
	assert.NilError(t, err)
	again, err := n.address("a")
	assert.NilError(t, err)
	assert.Equal(t, address, again)
	r, err := n.of("a")
	assert.NilError(t, err)

	stands, err := net.Dial("tcp", address)
	assert.NilError(t, err)
	defer stands.Close()
	says := func(c net.Conn, word string, within time.Duration) error {
		if _, err := io.WriteString(c, word); err != nil {
			return err
		}
		return hears(c, word, within)
	}
	assert.NilError(t, says(stands, "before", time.Minute))

	frozen, mend := r.cut()
	assert.Equal(t, frozen, 1)
	assert.ErrorContains(t, says(stands, "during", 200*time.Millisecond), "timeout")
	// The system takes the connection; no server answers on it.
	fresh, err := net.Dial("tcp", address)
	if err == nil {
		defer fresh.Close()
		assert.Assert(t, says(fresh, "hello", time.Minute) != nil)
	}
	assert.Equal(t, mend(), 1)
	assert.NilError(t, hears(stands, "during", time.Minute), "what was frozen comes through")
	after, err := net.Dial("tcp", address)
	assert.NilError(t, err)
	defer after.Close()
	assert.NilError(t, says(after, "after", time.Minute))

	_, mend = r.cut()
	r.close()
	mend()
}

func hears(c net.Conn, word string, within time.Duration) error {
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	got := make([]byte, len(word))
	_, err := io.ReadFull(c, got)
	return err
}
