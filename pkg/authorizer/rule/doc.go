// Package rule decides which reports are written on a Node, as a value.
//
// It is for what writes reports: the proxy, for agents, and the runner, which judges its own writes by the same
// rule. It promises S4 together with them: Judge gets the Node as it was just read, and the write that it allows
// carries that Node's resourceVersion. The list of reasons is that of all refusals of the proxy, since its metric
// has all of them.
//
// It is pure: it imports marker, plain and the standard library's data types.
package rule
