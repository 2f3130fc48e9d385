// Package nodesim simulates machines, kubelets included, on a real control plane,
// in real time. dev/simcluster runs the whole product on them; the hosts inside
// are those of dev/hostsim, and dev/realcluster has real kubelets instead.
//
// A Machine is a Node object, a Bottlerocket host (dev/hostsim) that serves its
// Update API on a unix socket, and a kubelet that is simulated:
//
//   - After a boot it reports the boot ID, the OS image and Ready in one patch.
//     From then on it renews the node's Lease.
//   - For each pod of one namespace, the operator's, that is bound to the machine
//     a real process runs, with a token that the API server issued for that very
//     pod, with the pod's other volumes as files, and with a status that tells
//     what the process does.
//   - All other pods become ready as soon as they are seen, and go when they are
//     deleted. No process runs for them.
//
// One watch shows it all pods that are bound to the machine, at whatever moment
// around a boot, so none is missed.
//
// What it promises:
//
//   - A power cut kills every process of the machine at once and leaves the
//     node in the API as it was; the controller manager finds out by itself.
//   - A pod of the operator's namespace is Ready only while its process runs and
//     answers its readiness probe.
//   - Nothing outlives the program (dev/process), and nothing leaves loopback.
//
// What it doesn't do: init containers, more than one container a pod, variables
// from ConfigMaps and Secrets, liveness probes, and resolving Services; what makes
// the command of a pod puts in addresses that exist.
//
// It imports the standard library, pkg/errors, client-go and its companions,
// and of this repository dev/controlplane, dev/hostsim and dev/process only.
package nodesim
