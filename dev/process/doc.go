// Package process runs child processes that never outlive their parent.
//
// Everything that development starts (etcd, kube-apiserver, the operator's own
// programs on simulated machines) is started here, so that one promise holds
// everywhere: when the parent ends, however it ends, kill -9 included, its
// children are gone with it.
//
// On Linux the kernel keeps that promise through the parent-death signal. That
// signal is bound to the thread which forked, not to the process, so all
// children are forked by one goroutine that is locked to its thread and never
// ends. On other systems children are only ended by Stop and Kill.
//
// Each child leads a process group of its own: an interrupt typed on the
// terminal reaches the parent alone, and the parent decides the order in which
// things go down.
//
// It imports the standard library and pkg/errors only.
package process
