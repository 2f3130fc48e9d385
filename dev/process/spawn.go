package process

import (
	"os/exec"
	"runtime"
	"sync"
)

// request asks the forking thread to start cmd.
type request struct {
	cmd  *exec.Cmd
	done chan<- error
}

var (
	forkOnce sync.Once
	forks    chan request
)

// fork starts cmd on the one thread that forks children and lives as long as
// this process does.
func fork(cmd *exec.Cmd) error {
	forkOnce.Do(func() {
		forks = make(chan request)
		go forkLoop(forks)
	})
	done := make(chan error, 1)
	forks <- request{cmd: cmd, done: done}
	return <-done
}

// forkLoop never returns: if it did, its thread would end and the kernel would
// kill every child that it forked.
func forkLoop(requests <-chan request) {
	runtime.LockOSThread()
	for r := range requests {
		r.done <- r.cmd.Start()
	}
}
