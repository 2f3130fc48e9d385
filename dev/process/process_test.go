package process

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"gotest.tools/v3/assert"
)

// parentEnv turns this test program into a parent that starts one child, prints
// the child's process id and waits to be killed.
const parentEnv = "PROCESS_TEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(parentEnv) != "" {
		child, err := Start(exec.Command("/bin/sh", "-c", "exec sleep 3600"))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(child.Pid())
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestChildLeadsItsOwnGroup(t *testing.T) {
	p := start(t, "exec sleep 3600")
	pgid, err := syscall.Getpgid(p.Pid())
	assert.NilError(t, err)
	assert.Equal(t, pgid, p.Pid())
}

func TestStopEndsAChildThatIgnoresSIGTERM(t *testing.T) {
	p := start(t, "trap '' TERM; while :; do sleep 1; done")
	p.Stop(50 * time.Millisecond)
	assert.Assert(t, !p.Running())
	assert.Equal(t, p.ExitCode(), -1)
}

func TestStopLetsAChildEndByItself(t *testing.T) {
	r, w, err := os.Pipe()
	assert.NilError(t, err)
	cmd := exec.Command("/bin/sh", "-c", "trap 'exit 7' TERM; echo up; while :; do sleep 0.1; done")
	cmd.Stdout = w
	p, err := Start(cmd)
	assert.NilError(t, err)
	t.Cleanup(p.Kill)
	_, err = bufio.NewReader(r).ReadString('\n')
	assert.NilError(t, err)
	p.Stop(10 * time.Second)
	assert.Equal(t, p.ExitCode(), 7)
	assert.NilError(t, p.Signal(syscall.SIGTERM), "a child that has ended is no error")
}

func TestStartNamesTheProgramItCannotFind(t *testing.T) {
	_, err := Start(exec.Command("/nonexistent/program"))
	assert.ErrorContains(t, err, `starting "program"`)
}

func start(t *testing.T, script string) *Process {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	p, err := Start(cmd)
	assert.NilError(t, err)
	t.Cleanup(p.Kill)
	return p
}
