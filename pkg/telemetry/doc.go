// Package telemetry is what the operator shows of itself: the names of log fields, the logger, the
// version, and the HTTP server with metrics and probes.
//
// It is for the loops (controller, agent, authorizer) and the commands. It may import the standard
// library, github.com/pkg/errors, logrus, prometheus's client and klog, and of the operator
// pkg/plain and pkg/connlimit alone.
// What is measured belongs to the packages that measure: each registers its own metrics.
//
// It promises that nothing it serves can be held open without limit, and that it has no global state
// but Version and, once RedirectKlog was called, klog's.
package telemetry
