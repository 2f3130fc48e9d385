// Package kindcluster runs the cluster of the end-to-end tests with docker and kind: one node for the control
// plane and some workers, containers each. The hosts behind the workers' /run/api.sock are simulated in the
// calling process (dev/hostsim); a reboot that is asked of one is a kill of its worker's container, and a boot
// a start of it with a new boot ID and the os-release of what the host booted.
//
// It was written where no container engine was, and has never run.
//
// Each worker sees a folder of the caller's as /bottlerocket: the host's socket is in there, and what a boot
// changes, so that all of it is there before the container starts. etc/boot.sh puts it into its places before
// each start of the kubelet.
//
// It promises:
//
//   - The caller's own kubeconfig and other kind clusters are left alone.
//   - Stop removes all but what kind keeps for next time: its node image and its network, both docker's. What is
//     left of a program that was killed, containers and a folder in the cache, is removed by the next start.
//     There is one such cluster at a time.
//
// It needs Linux, and docker's engine on this very machine and as root: a socket leads nowhere through a virtual
// machine's shared folder, and a kernel that runs an engine without root lets nobody cover a file in /proc. The
// kind must have a node image of Kubernetes 1.31 or newer. The caller needn't be root.
//
// What it lacks beside dev/realcluster: an audit log, a stop of the API server, and a way to the pods' addresses.
// Two workers that are off together may come back with each other's address; kind takes care of that.
//
// It imports dev/controlplane for the cache and the go command, dev/hostsim, dev/image and dev/process,
// client-go, pkg/errors, and nothing else of this repository.
package kindcluster
