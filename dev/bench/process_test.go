package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"
)

const mebibyte = 1 << 20

func needProc(b *testing.B) {
	b.Helper()
	if runtime.GOOS != "linux" {
		b.Skip("memory and input of processes are read from /proc, which only Linux has")
	}
}

// memory is what a process occupies, in bytes: its own pages, all that are in memory for it, and the most that
// those ever were.
type memory struct{ anon, resident, most int64 }

func memoryOf(pid int) (memory, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, errors.Wrap(err, "reading a process's status")
	}
	var m memory
	for line := range strings.Lines(string(status)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kib, _ := strconv.ParseInt(f[1], 10, 64)
		switch f[0] {
		case "RssAnon:":
			m.anon = kib << 10
		case "VmRSS:":
			m.resident = kib << 10
		case "VmHWM:":
			m.most = kib << 10
		}
	}
	return m, nil
}

// received counts the bytes that a process has read so far, from sockets as from files.
func received(pid int) (int64, error) {
	io, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return 0, errors.Wrap(err, "reading a process's input")
	}
	rest, ok := bytes.CutPrefix(io, []byte("rchar: "))
	line, _, end := bytes.Cut(rest, []byte("\n"))
	if !ok || !end {
		return 0, errors.Errorf("a process's input is not readable: %q", io)
	}
	return strconv.ParseInt(string(line), 10, 64)
}

// clockTick is what Linux counts a process's time in, whatever the kernel's own clock.
const clockTick = 10 * time.Millisecond

// cpuOf is the time that a process has worked.
func cpuOf(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, errors.Wrap(err, "reading a process's times")
	}
	// The name before it may hold anything, spaces too.
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(f) < 13 {
		return 0, errors.Errorf("a process's times are not readable: %q", stat)
	}
	user, errUser := strconv.ParseInt(f[11], 10, 64)
	system, errSystem := strconv.ParseInt(f[12], 10, 64)
	if errUser != nil || errSystem != nil {
		return 0, errors.Errorf("a process's times are not readable: %q", stat)
	}
	return time.Duration(user+system) * clockTick, nil
}

// running is a process of the product: its id and its arguments.
type running struct {
	pid  int
	args []string
}

// find returns the running programs of that name, all of whose arguments wanted are among theirs.
func find(program string, wanted ...string) ([]running, error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, errors.Wrap(err, "looking for processes")
	}
	var found []running
next:
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		args := strings.Split(strings.TrimSuffix(string(content), "\x00"), "\x00")
		if filepath.Base(args[0]) != program {
			continue
		}
		joined := "\x00" + strings.Join(args, "\x00") + "\x00"
		for _, w := range wanted {
			if !strings.Contains(joined, "\x00"+w+"\x00") {
				continue next
			}
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err == nil {
			found = append(found, running{pid, args})
		}
	}
	return found, nil
}

// flag is the value of a flag in a process's arguments; of several the last one counts.
func (r running) flag(name string) string {
	value := ""
	for _, a := range r.args {
		if v, ok := strings.CutPrefix(a, "-"+name+"="); ok {
			value = v
		}
	}
	return value
}

// peak follows a process's memory and returns the most that its own pages came to.
func peak(ctx context.Context, pid int) (stop func() int64) {
	ctx, cancel := context.WithCancel(ctx)
	var most int64
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			if m, err := memoryOf(pid); err == nil {
				most = max(most, m.anon)
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return func() int64 {
		cancel()
		wg.Wait()
		return most
	}
}

func reportMemory(b *testing.B, pid int, when string) {
	b.Helper()
	m, err := memoryOf(pid)
	assert.NilError(b, err)
	b.ReportMetric(float64(m.anon)/mebibyte, "MiB-anon-"+when)
	b.ReportMetric(float64(m.resident)/mebibyte, "MiB-RSS-"+when)
}

// pass lets a measured time go by.
func pass(b *testing.B, d time.Duration) {
	b.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-b.Context().Done():
		b.Fatal("interrupted")
	}
}
