// Package bench measures what the operator costs and how fast it is, with the real programs against the
// real kube-apiserver wherever that is what counts. `make bench` runs it.
//
// Figures are printed as metrics of Go benchmarks, and no time and hardly a size fails anything: machines
// differ. What is wrong whatever the machine fails: a request at rest that should not be, bytes that an
// agent gets for another node, a node that isn't updated, a report that isn't written; and, since
// memory differs little between machines, a proxy that takes more of it for its agents than it may.
//
// It holds benchmarks alone; nothing imports it. It imports the packages of dev, client-go, and of the
// product what the benchmarks call in their own process. Memory and input are read from /proc, so all but
// those of single functions run on Linux only.
package bench
