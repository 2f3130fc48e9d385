package controlplane

import (
	"math/rand/v2"
	"net"
	"strconv"

	"github.com/pkg/errors"
)

// Ports are drawn from below the range that systems take for outgoing
// connections: the API server must find its port free again after an outage.
const (
	firstPort = 20000
	lastPort  = 29999
	portTries = 100
)

// freePort finds a loopback port that nobody listens on. Somebody else may take
// it before it is used, so its user must be ready to try another one.
func freePort() (int, error) {
	for range portTries {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
		if err != nil {
			continue
		}
		l.Close()
		return port, nil
	}
	return 0, errors.Errorf("no free port among %d to %d on %s", firstPort, lastPort, loopback)
}
