//go:build !linux

package port

import (
	"net"

	"github.com/pkg/errors"
)

// Reserve finds a port that is free. This system can't keep it for another program: something else may take it
// before the program does.
func Reserve() (*Port, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(Loopback, "0"))
	if err != nil {
		return nil, errors.Wrapf(err, "finding a free port of %s", Loopback)
	}
	number := l.Addr().(*net.TCPAddr).Port
	return &Port{number: number, release: func() {}}, errors.Wrap(l.Close(), "giving a port up")
}
