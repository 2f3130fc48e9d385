// Package telemetry has the names of log fields, the logger, the version, and the HTTP server for metrics and probes.
//
// It is for the loops (controller, agent, authorizer) and the commands. It may import the standard library,
// github.com/pkg/errors, logrus, Prometheus' client and klog, and of the operator only pkg/plain and pkg/connlimit.
// Each package registers its own metrics.
//
// It promises that no client can hold its server's connections and answers without limit, and that its only global
// state is the build and, after RedirectKlog, klog's logger.
package telemetry
