package port_test

import (
	"net"
	"strconv"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/port"
)

// A port that is kept is taken by nothing that asks for any, and can be listened on again and again.
func TestReserve(t *testing.T) {
	kept := map[string]bool{}
	for range 1000 {
		p, err := port.Reserve(0)
		assert.NilError(t, err)
		defer p.Release()
		assert.Assert(t, !kept[p.Address()], "%s is kept twice", p.Address())
		kept[p.Address()] = true
	}
	for range 20000 {
		l, err := net.Listen("tcp", net.JoinHostPort(port.Loopback, "0"))
		assert.NilError(t, err)
		assert.Assert(t, !kept[l.Addr().String()], "%s is kept, and was given away", l.Addr())
		assert.NilError(t, l.Close())
	}
	for address := range kept {
		for range 2 {
			l, err := net.Listen("tcp", address)
			assert.NilError(t, err)
			c, err := net.Dial("tcp", address)
			assert.NilError(t, err)
			assert.Assert(t, !kept[c.LocalAddr().String()], "%s is kept, and a connection has it", c.LocalAddr())
			assert.NilError(t, c.Close())
			assert.NilError(t, l.Close())
		}
	}
}

// A port is had by its number while nothing listens on it, also right after it was given up.
func TestReserveByNumber(t *testing.T) {
	first, err := port.Reserve(0)
	assert.NilError(t, err)
	first.Release()
	for range 2 {
		p, err := port.Reserve(first.Number())
		assert.NilError(t, err)
		assert.Equal(t, p.Number(), first.Number())
		l, err := net.Listen("tcp", p.Address())
		assert.NilError(t, err)
		p.Release()
		_, err = port.Reserve(first.Number())
		assert.ErrorIs(t, err, port.ErrTaken)
		assert.ErrorContains(t, err, strconv.Itoa(first.Number()))
		assert.NilError(t, l.Close())
	}
}
