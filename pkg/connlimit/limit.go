package connlimit

import (
	"maps"
	"net/netip"
	"slices"
)

// Limit is a most of connections. Above it the address that has most of them loses its oldest one, and of several such
// addresses the one whose oldest came first: neither many connections of one address nor some that do nothing keep
// others out. It isn't safe for concurrent use.
type Limit[C comparable] struct {
	most int
	// open are in the order in which they came.
	open []entry[C]
	// of counts them by address.
	of map[string]int
}

type entry[C comparable] struct {
	address string
	conn    C
}

// New returns a limit of at least 1.
func New[C comparable](most int) *Limit[C] { return &Limit[C]{most: most, of: map[string]int{}} }

// Add counts a connection. Where that is one too many it returns the one that has to go, which isn't counted any more.
func (l *Limit[C]) Add(address string, conn C) (over C, full bool) {
	l.open = append(l.open, entry[C]{address, conn})
	l.of[address]++
	if len(l.open) <= l.most {
		return over, false
	}
	heaviest := slices.Max(slices.Collect(maps.Values(l.of)))
	i := slices.IndexFunc(l.open, func(e entry[C]) bool { return l.of[e.address] == heaviest })
	over = l.open[i].conn
	l.remove(i)
	return over, true
}

// Remove takes a connection out of the count, and reports whether it was in it.
func (l *Limit[C]) Remove(conn C) bool {
	i := slices.IndexFunc(l.open, func(e entry[C]) bool { return e.conn == conn })
	if i < 0 {
		return false
	}
	l.remove(i)
	return true
}

func (l *Limit[C]) remove(i int) {
	address := l.open[i].address
	l.open = slices.Delete(l.open, i, i+1)
	if l.of[address]--; l.of[address] == 0 {
		delete(l.of, address)
	}
}

// Len is how many are counted.
func (l *Limit[C]) Len() int { return len(l.open) }

// Source returns what strangers are told apart by: an address, of IPv6 the network that a host has to itself. What is no
// address and port is its own source.
func Source(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	address := at.Addr().Unmap().WithZone("")
	if network, err := address.Prefix(64); err == nil && address.Is6() {
		return network.String()
	}
	return address.String()
}
