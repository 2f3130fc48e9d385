//go:build !linux

package hostsim

import "testing"

// unprivileged does what modes can stop; these systems' tests don't run as root.
func unprivileged(_ *testing.T, _ string, do func() error) error { return do() }
