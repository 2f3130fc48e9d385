// Package simcluster runs the whole product on a real control plane (dev/controlplane) with simulated machines
// (dev/nodesim), without containers and without root; dev/realcluster has real nodes, and dev/sim no Kubernetes at all.
// What update-operator.yaml describes is applied with kubectl, its pods are scheduled, and each runs as the
// real program with the arguments and the environment that its pod has in the API. Shorter times stand there
// too; only addresses and paths of this machine are added. A pod that wants anything else of them, or another
// image, doesn't start, and its status says why.
//
// It is for the demo, for a cluster to play with (cmd, see docs/local-cluster.md), for integration tests and benchmarks. It imports the
// packages of dev and client-go; no package of the product but marker and kube. It promises that nothing of it
// outlives Stop, or the process, however that ends.
package simcluster
