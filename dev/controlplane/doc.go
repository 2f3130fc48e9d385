// Package controlplane builds and runs a real Kubernetes control plane on this
// machine, without nodes: etcd, kube-apiserver and, if asked,
// kube-controller-manager and kube-scheduler. dev/simcluster adds simulated
// nodes to it, dev/realcluster real ones. The folder programs holds no code, but
// the versions that all of it is built from. Build makes the programs of a real node and Prometheus too, from the
// modules beside the packages that run them.
//
// It promises:
//
//   - No container engine, no image and no downloaded program: everything is
//     built from the Go modules pinned in programs into the user's cache
//     folder, once, also when several processes ask at the same time. A changed
//     pin, version or Go release builds again.
//   - All traffic stays on loopback and in unix sockets, or in a network that the caller made. Every connection to
//     the API server is TLS with a certificate authority made for this one
//     cluster, or for those of one folder; every user has a client certificate; RBAC, the Node authorizer
//     and NodeRestriction are on, as in a real cluster.
//   - No process outlives the program that started it (see dev/process), and
//     its files live in the cache folder, where the next start removes what a
//     killed program left behind.
//
// It imports the standard library, pkg/errors, client-go and its companions,
// dev/port, dev/process and nothing else of this repository.
package controlplane
