package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/port"
)

// ready is the line by which the kept process says that it serves.
const ready = "ready"

// errBusy is the answer while a cluster runs that doesn't take commands.
var errBusy = errors.New("another local cluster is just starting or stopping: try again when it is done")

// up starts this program once more, detached from this terminal, and waits until it serves. A cluster that runs already
// is asked to be as o says.
func up(ctx context.Context, at places, o options) error {
	answer, err := ask(ctx, at, "/up", o.values())
	if !errors.Is(err, errNotRunning) {
		fmt.Print(answer)
		return err
	}
	if unused, err := at.unused(); err != nil || !unused {
		return cmp.Or(err, errBusy)
	}
	o = options{nodes: cmp.Or(o.nodes, defaultNodes), port: cmp.Or(o.port, defaultPort)}
	if err := free(o.port); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return errors.Wrap(err, "finding this program")
	}
	// The binary of `go run` is removed when it ends: keep a copy for the one that stays.
	body, err := os.ReadFile(self)
	if err != nil {
		return errors.Wrap(err, "reading this program")
	}
	_ = os.Remove(at.program)
	if err := os.WriteFile(at.program, body, 0o700); err != nil {
		return errors.Wrap(err, "keeping this program")
	}
	r, w, err := os.Pipe()
	if err != nil {
		return errors.Wrap(err, "making a pipe")
	}
	log, err := os.OpenFile(at.log, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return errors.Wrap(err, "opening a log")
	}
	defer log.Close()
	cmd := exec.Command(at.program, "keep", fmt.Sprintf("-nodes=%d", o.nodes), fmt.Sprintf("-port=%d", o.port))
	cmd.Stdout, cmd.Stderr = w, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return errors.Wrap(err, "starting the cluster")
	}
	_ = w.Close()
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })()
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if lines.Text() == ready {
			return tell(ctx, at, "/up", nil)
		}
		fmt.Println(lines.Text())
	}
	_ = cmd.Wait()
	text, _ := os.ReadFile(at.log)
	return errors.Errorf("the cluster did not start: %s", text)
}

// free returns an error with the remedy if something listens on the API server's port.
func free(number int) error {
	p, err := port.Reserve(number)
	if errors.Is(err, port.ErrTaken) {
		return errors.Errorf("port %d of %s is taken: end what listens there, or choose another port: make cluster-up API_PORT=%d",
			number, port.Loopback, number+1)
	}
	if err != nil {
		return err
	}
	p.Release()
	return nil
}
