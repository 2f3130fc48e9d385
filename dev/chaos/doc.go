// Package chaos lets a fleet be updated on a simcluster, a real control plane with simulated machines, while everything that can fail does, and
// judges what happened by the API server's audit log alone.
//
// It has three parts that know little of each other. A plan is a sequence of faults drawn from a seed
// (plan.go). The run (run.go) starts the whole product with simulated machines, releases versions one
// after the other for as long as faults strike, and then waits for rest. The judge (judge.go) reads the
// audit log and says which of the promises were broken; it asks neither the operator nor
// the cluster.
//
// What a seed fixes is which faults strike, in which order, what they hit and with which pauses. It can't fix
// what the processes do meanwhile: they run in real time, so the same seed meets another moment of the
// rollout each time. A run that found something is evidence by its log, not by being repeatable.
//
// The log has holes, as an API server that is killed can't say what it was about to write, and one whose
// store went away doesn't know what became of a write. A hole shows by itself: a patch was made on a
// version of the object that the log doesn't know, or an answer holds what no request in the log
// brought. The judge puts in the change that no request made, takes whichever reading of it is kinder to
// the operator, and calls a hole that no outage explains a violation of the log itself.
//
// It imports the packages of dev and client-go; of the product only the vocabulary, marker and fleet.
package chaos
