package realcluster

import (
	"context"
	"net"
	"os"
	"runtime"

	"github.com/pkg/errors"
	"golang.org/x/sys/unix"
)

// dial connects to an address of the namespace: a socket belongs to the network that its thread was in
// when it was made.
func (n *network) dial(ctx context.Context, proto, address string) (net.Conn, error) {
	theirs, err := os.Open(n.path)
	if err != nil {
		return nil, errors.Wrap(err, "opening the cluster's network")
	}
	defer theirs.Close()
	runtime.LockOSThread()
	ours, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return nil, errors.Wrap(err, "opening our own network")
	}
	defer ours.Close()
	if err := unix.Setns(int(theirs.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return nil, errors.Wrap(err, "entering the cluster's network")
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, proto, address)
	// A thread that can't come back stays locked: it ends with its goroutine and is never used again.
	if back := unix.Setns(int(ours.Fd()), unix.CLONE_NEWNET); back == nil {
		runtime.UnlockOSThread()
	}
	return conn, err
}
