// Package updateapi is the platform.Host for Bottlerocket, by the unix socket of its API server (docs/host-api.md).
//
// It may import the standard library, github.com/pkg/errors, pkg/agent/next, pkg/marker, pkg/plain and pkg/platform.
//
// It promises that no request takes longer than its timeout, with the reading of the body, that no answer is read
// beyond a bound, and that an answer which isn't understood in full is an error and never a guess: the agent acts on
// what this package reports. Unknown fields are ignored, since hosts become newer than the operator. Nothing that a
// host sends makes it panic.
package updateapi
