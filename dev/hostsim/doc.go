// Package hostsim simulates Bottlerocket hosts as the operator sees them, and nothing of Kubernetes: the
// Update API behind /run/api.sock, the two partition sets and the boot loader under it, and the update
// repository that the hosts share. All that has nodes has these hosts in them: dev/sim on a virtual clock,
// dev/nodesim with simulated kubelets, dev/realcluster with real ones.
//
// It may import the standard
// library, github.com/pkg/errors and the version parser of apimachinery; never a package of the
// operator, so that a mistake over there can't hide itself in here.
//
// What it promises:
//
//   - Host holds every state transition. It has no goroutine and never waits: a started command has an
//     end time, and its effects are applied at the first look after the injected clock passed it. A
//     look is any method of Host. NextEvent tells a simulation how far it may step.
//   - The same inputs at the same times give the same answers, boot IDs included.
//   - Handle gives the statuses, bodies and content types of the Update API byte for byte. Server puts
//     them on a unix socket, Transport hands them to an http.Client without one.
//   - A fault is data (Fault) that can be switched on and off at any time.
//
// What a command finds is decided when it starts, as updog reads configuration, metadata and waves
// before anything else; only its effects wait for the end. So a prepare chooses its version again when
// it starts, and what it writes can differ from what the dispatcher records as staged.
package hostsim
