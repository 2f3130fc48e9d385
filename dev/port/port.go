package port

import (
	"net"
	"strconv"

	"github.com/pkg/errors"
)

// Loopback is the address that all ports are of.
const Loopback = "127.0.0.1"

// ErrTaken is the answer when a port is asked for by number on which something listens.
var ErrTaken = errors.New("something else listens there")

// Port is kept from Reserve to Release. Only a program that is told its number listens on it.
type Port struct {
	number  int
	release func()
}

// Number is the port's number.
func (p *Port) Number() int { return p.number }

// Address is where a program listens, and where it is found.
func (p *Port) Address() string { return net.JoinHostPort(Loopback, strconv.Itoa(p.number)) }

// Release gives the port up.
func (p *Port) Release() { p.release() }
