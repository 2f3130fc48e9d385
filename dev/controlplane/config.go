package controlplane

import (
	"context"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Config says what to run.
type Config struct {
	// Binaries is the answer of Build.
	Binaries Binaries
	// Dir takes keys, data and logs. Empty takes a new folder in the cache,
	// which Stop removes; a folder that is given stays.
	Dir string
	// Port is the API server's on 127.0.0.1; 0 is any that is free.
	Port int
	// AuthorityDir keeps the certificate authority, with its key, for the next cluster that is started with it, so that
	// a kubeconfig outlives its cluster. Empty makes an authority for this cluster alone.
	AuthorityDir string

	// ControllerManager and Scheduler run those programs too. Without the
	// controller manager no service accounts are made, so the API server then
	// runs without ServiceAccount admission.
	ControllerManager bool
	Scheduler         bool
	// NodeMonitorGracePeriod is how long a silent node stays Ready; zero is the
	// controller manager's default.
	NodeMonitorGracePeriod time.Duration

	// AuditLog writes every request to a file: user, verb, object, response
	// code.
	AuditLog bool
	// AuditPolicy says what the audit log holds, in the API server's own format; empty is what AuditLog
	// says.
	AuditPolicy string
	// NoWatchList makes the server refuse streaming lists, as many a server in
	// use does.
	NoWatchList bool
	// FeatureGates go to the API server, controller manager and scheduler.
	FeatureGates map[string]bool
	// Network is where the programs run; nil is the caller's own network, and loopback in it.
	Network *Network
	// APIServerFlags are added to the API server's own; a later flag wins.
	APIServerFlags []string
}

// Network is one that real nodes reach the API server in. The caller made it.
type Network struct {
	// Enter is put before a program's own command line, to run it in there.
	Enter []string
	// Address is that of the API server.
	Address net.IP
	// Dial reaches it from where the caller is.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// featureGates is the value of the flag for one program, empty for none.
func featureGates(gates map[string]bool) []string {
	if len(gates) == 0 {
		return nil
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(gates)) {
		list = append(list, name+"="+strconv.FormatBool(gates[name]))
	}
	return []string{"--feature-gates=" + strings.Join(list, ",")}
}

// serverGates are the gates of the API server, which alone knows WatchList as a
// feature that it offers.
func (c Config) serverGates() map[string]bool {
	gates := maps.Clone(c.FeatureGates)
	if c.NoWatchList {
		if gates == nil {
			gates = map[string]bool{}
		}
		gates["WatchList"] = false
	}
	return gates
}
