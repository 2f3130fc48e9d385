package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pkg/errors"
)

// pipeDrain bounds the wait for output pipes that a grandchild keeps open.
const pipeDrain = 2 * time.Second

// Process is one running or ended child.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Start starts cmd as a child that ends with this process. It sets
// cmd.SysProcAttr; everything else of cmd is the caller's.
func Start(cmd *exec.Cmd) (*Process, error) {
	cmd.SysProcAttr = attributes()
	if cmd.WaitDelay == 0 {
		cmd.WaitDelay = pipeDrain
	}
	if err := fork(cmd); err != nil {
		return nil, errors.Wrapf(err, "starting %q", filepath.Base(cmd.Path))
	}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Pid is the child's process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running tells whether the child has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Wait waits for the child's end and returns how it ended: nil for exit status
// 0, an *exec.ExitError for any other.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// ExitCode is the exit status of an ended child, -1 while it runs or if a
// signal ended it.
func (p *Process) ExitCode() int {
	if p.Running() || p.cmd.ProcessState == nil {
		return -1
	}
	return p.cmd.ProcessState.ExitCode()
}

// Signal sends a signal to the child alone; a child that has ended is no error.
func (p *Process) Signal(sig os.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return errors.Wrapf(err, "signalling %q", filepath.Base(p.cmd.Path))
	}
	return nil
}

// SignalGroup sends a signal to the child and to what it started itself.
func (p *Process) SignalGroup(sig syscall.Signal) {
	if p.Running() {
		_ = syscall.Kill(-p.Pid(), sig)
	}
}

// Kill ends the child and what it started with SIGKILL and waits for its end.
func (p *Process) Kill() {
	p.SignalGroup(syscall.SIGKILL)
	<-p.done
}

// Stop asks the child to end with SIGTERM, kills its group when the grace
// period is over, and waits for its end.
func (p *Process) Stop(grace time.Duration) {
	_ = p.Signal(syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.Kill()
	}
}
