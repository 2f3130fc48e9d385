package process

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	"gotest.tools/v3/poll"
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

func TestChildEndsWithAParentKilledHard(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has a parent-death signal")
	}
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentEnv+"=1")
	_, err := parent.StdinPipe()
	assert.NilError(t, err)
	out, err := parent.StdoutPipe()
	assert.NilError(t, err)
	assert.NilError(t, parent.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	assert.NilError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	assert.NilError(t, err, line)
	assert.NilError(t, syscall.Kill(pid, 0), "the child must run before its parent is killed")

	assert.NilError(t, parent.Process.Kill())
	_ = parent.Wait()
	poll.WaitOn(t, func(poll.LogT) poll.Result {
		if gone(pid) {
			return poll.Success()
		}
		return poll.Continue("child %d still runs", pid)
	}, poll.WithTimeout(10*time.Second), poll.WithDelay(10*time.Millisecond))
}

// gone tells whether a process has ended; one that nobody has waited for yet
// counts as ended.
func gone(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err != nil || strings.Contains(string(status), "State:\tZ")
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
