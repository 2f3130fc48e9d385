//go:build !linux

package port

import (
	"net"
	"strconv"
	"syscall"

	"github.com/pkg/errors"
)

// Reserve finds a port: the one of that number or, for 0, one that is free. It returns ErrTaken if something listens on
// the one that was asked for. This system can't keep it for another program: something else may take it before the
// program does.
func Reserve(number int) (*Port, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(Loopback, strconv.Itoa(number)))
	if errors.Is(err, syscall.EADDRINUSE) && number != 0 {
		return nil, errors.WithMessagef(ErrTaken, "port %d of %s", number, Loopback)
	}
	if err != nil {
		return nil, errors.Wrapf(err, "finding port %d of %s", number, Loopback)
	}
	return &Port{number: l.Addr().(*net.TCPAddr).Port, release: func() {}}, errors.Wrap(l.Close(), "giving a port up")
}
