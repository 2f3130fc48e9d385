package connlimit

import (
	"maps"
	"net/netip"
	"slices"
)

// Limit is the largest number of open connections. Above it the address with the most connections loses its oldest one;
// among several such addresses, the one whose oldest connection is the oldest. So neither many connections from one
// address nor idle ones keep other clients out. It isn't safe for concurrent use.
type Limit[C comparable] struct {
	max int
	// open is in the order of arrival.
	open []entry[C]
	// perAddress counts the open connections.
	perAddress map[string]int
}

type entry[C comparable] struct {
	address string
	conn    C
}

// New returns a limit of max connections, which must be at least 1.
func New[C comparable](max int) *Limit[C] { return &Limit[C]{max: max, perAddress: map[string]int{}} }

// Add counts a connection. If that exceeds the limit, it returns the connection to close, which no longer counts.
func (l *Limit[C]) Add(address string, conn C) (over C, full bool) {
	l.open = append(l.open, entry[C]{address, conn})
	l.perAddress[address]++
	if len(l.open) <= l.max {
		return over, false
	}
	heaviest := slices.Max(slices.Collect(maps.Values(l.perAddress)))
	i := slices.IndexFunc(l.open, func(e entry[C]) bool { return l.perAddress[e.address] == heaviest })
	over = l.open[i].conn
	l.remove(i)
	return over, true
}

// Remove stops counting a connection, and reports whether it was counted.
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
	if l.perAddress[address]--; l.perAddress[address] == 0 {
		delete(l.perAddress, address)
	}
}

// Len returns how many connections are counted.
func (l *Limit[C]) Len() int { return len(l.open) }

// Source returns what identifies an unauthenticated client: its IPv4 address, or the /64 network of its IPv6 address,
// since one host can use all of that network. It returns what is no address with a port unchanged.
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
