// Package plugin is the kubectl plugin: it shows what the operator does with the nodes, what it is about to do and why
// not more, and writes what is a person's to write.
//
// It decides nothing. `plan` prints the leader's own plan, asked for through the API server; all other commands read
// and write Kubernetes objects. `status`, `plan` and `history` write nothing. `clean` is for an operator that is gone,
// and undoes by the record on each node what was done to it. `check` reads a snapshot of the cluster, which
// pkg/preflight judges; `support-bundle` writes what is needed to find a fault to a file, without secrets.
//
// It imports what shows and changes objects, pkg/kube, the values of the pure packages, preflight, and
// planner/lifecycle to undo what was done to one node: never the planner, and no part of the operator that runs in the
// cluster.
package plugin
