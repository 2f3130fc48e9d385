// Package e2e tests the whole product on real nodes: update-operator.yaml as it stands but for patch.yaml,
// in the operator's own image, on the kubelets and containers of dev/realcluster.
//
// Simulated nodes show that the protocol is right (dev/sim, dev/simcluster). Only real ones show what is
// wrong with the manifest, the image, the mounts, the tokens and the Service, and what a reboot does to
// the operator's own pods.
//
// The examples of docs/plans run as they stand on nodes of Debian, which join for one test each; the images that they
// name, and what they call on a host, are stand-ins (the folder plans, and realcluster.System).
//
// It has tests only. They need what the cluster needs and fail without it, so `make test` leaves them
// out; `make e2e` runs them all, and `make e2e SHORT=1` one rollout, one power cut and one plan.
//
// It may import everything in dev, and of the operator what a client of it needs to know: pkg/marker,
// pkg/fleet, pkg/intent, pkg/kube, pkg/policy, and pkg/controller for the name of its Lease.
package e2e
