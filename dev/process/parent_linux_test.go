package process

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	"gotest.tools/v3/poll"
)

// Only Linux has a parent-death signal, so only there is this promised (see doc.go).
func TestChildEndsWithAParentKilledHard(t *testing.T) {
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

// gone reports whether a process has ended; one that its parent hasn't waited for yet
// counts as ended.
func gone(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err != nil || strings.Contains(string(status), "State:\tZ")
}
