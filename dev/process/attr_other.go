//go:build unix && !linux

package process

import "syscall"

// attributes puts a child into a group of its own. This system has no
// parent-death signal.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
