package port

import (
	"syscall"

	"github.com/pkg/errors"
)

// Reserve keeps a port: the one of that number or, for 0, one that is free. It returns ErrTaken if something listens on
// the one that was asked for.
//
// What keeps it is a socket that is bound and never listens. Linux gives its port to no socket that asks for any, and to
// one that asks for it by number if both allow the reuse of addresses, which Go's listeners do.
func Reserve(number int) (*Port, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Wrap(err, "making a socket")
	}
	bound, err := bind(fd, number)
	if err != nil {
		_ = syscall.Close(fd)
		return nil, err
	}
	return &Port{number: bound, release: func() { _ = syscall.Close(fd) }}, nil
}

func bind(fd, number int) (int, error) {
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return 0, errors.Wrap(err, "allowing the reuse of a socket's address")
	}
	err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: number})
	if errors.Is(err, syscall.EADDRINUSE) && number != 0 {
		return 0, errors.WithMessagef(ErrTaken, "port %d of %s", number, Loopback)
	}
	if err != nil {
		return 0, errors.Wrapf(err, "finding port %d of %s", number, Loopback)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		return 0, errors.Wrap(err, "reading a socket's address")
	}
	address, ok := name.(*syscall.SockaddrInet4)
	if !ok {
		return 0, errors.Errorf("a socket of %s has the address %v", Loopback, name)
	}
	return address.Port, nil
}
