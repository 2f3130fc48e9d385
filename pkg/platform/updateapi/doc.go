// Package updateapi talks to a Bottlerocket host over the unix socket of its API server, as a
// platform.Host.
//
// It may import the standard library, github.com/pkg/errors, pkg/intent, pkg/marker and pkg/platform.
//
// It promises that no request outlives its timeout, the reading of the body included, that no answer
// is read beyond a bound, and that an answer which isn't understood in full is an error and never a
// guess: the agent acts on what this package reports. Unknown fields are ignored, since hosts get newer
// than the operator. Nothing that a host sends makes it panic.
package updateapi
