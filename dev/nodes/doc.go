// Package nodes simulates the machines of a cluster on a real control plane: for
// the local cluster, the demo, the integration tests and the benchmarks.
//
// A Machine is a Node object, a Bottlerocket host (dev/hostsim) that serves its
// Update API on a unix socket, and something in the place of its kubelet, which
// has two parts:
//
//   - kwok, one process a machine. It renews the node's Lease, writes the
//     node's status now and then, and runs the pods of ordinary workloads:
//     they become ready, and go when they are deleted. One process a machine
//     and not one for all, because a machine must be able to lose its power
//     alone, without a trace in the API: its kwok is killed, and heartbeats and
//     answers to deletions end together. It costs some 7 MiB each.
//   - Go code in here for the pods of one namespace, the operator's. For each
//     pod that the scheduler puts on the machine a real process runs, with a
//     token that the API server issued for that very pod, with the pod's other
//     volumes as files, and with a status that tells what the process does.
//     kwok's stages leave this namespace alone.
//
// What a boot changes (boot ID, OS image, Ready) is written here as well: a
// kubelet writes it in one patch, and kwok can't.
//
// What it promises:
//
//   - A power cut kills every process of the machine at once and leaves the
//     node in the API as it was; the controller manager finds out by itself.
//   - A pod of the operator's namespace is Ready only while its process runs and
//     answers its readiness probe.
//   - Nothing outlives the program (dev/process), and nothing leaves loopback.
//
// What it doesn't do: init containers, more than one container a pod, liveness
// probes, and resolving Services; whoever makes the command of a pod puts in
// addresses that exist.
//
// It imports the standard library, pkg/errors, client-go and its companions,
// and of this repository dev/controlplane, dev/hostsim and dev/process only.
package nodes
