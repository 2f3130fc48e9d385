package main

import (
	"context"
	"net"
	"strconv"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/port"
)

var (
	threeNodes  = []string{"node-1", "node-2", "node-3"}
	twoReleases = []string{"1.50.0", "1.51.0"}
)

// A node fails with any version, a version on any node, and what is healed fails no more. Each host takes the faults.
func TestWhatIsToldToFail(t *testing.T) {
	f := failing{}
	must := func(says string, err error) string {
		t.Helper()
		assert.NilError(t, err)
		return says
	}
	rollsBack, hangs, staysAway := hostsim.F17, hostsim.F2, hostsim.F18
	must(f.fail("node-2", "never-return", threeNodes, twoReleases))
	must(f.fail("node-2", "hang", threeNodes, twoReleases))
	must(f.fail("1.51.0", "roll-back", threeNodes, twoReleases))
	says := must(f.fail("1.52.0", "never-return", threeNodes, twoReleases))
	assert.Equal(t, says, "1.52.0: the host goes down for its reboot, and its kubelet is not heard of again; "+
		"it isn't released yet: make cluster-release OS=1.52.0")
	assert.Equal(t, f.String(), "1.51.0 (roll-back), 1.52.0 (never-return), node-2 (hang)")

	releases := []hostsim.Fault{{ID: rollsBack, Version: "1.51.0"}, {ID: staysAway, Version: "1.52.0"}}
	assert.DeepEqual(t, f.faults("node-1"), releases)
	assert.DeepEqual(t, f.faults("node-2"), append(releases, hostsim.Fault{ID: hangs, Command: hostsim.Prepare}))
	h, err := hostsim.New(hostsim.Config{Version: "1.50.0"})
	assert.NilError(t, err)
	for _, way := range failures {
		assert.NilError(t, h.SetFaults(way.fault(""), way.fault("1.51.0")), way.name)
	}

	must(f.heal("1.51.0"))
	assert.DeepEqual(t, f.faults("node-3"), []hostsim.Fault{{ID: staysAway, Version: "1.52.0"}})
	must(f.heal(""))
	assert.Equal(t, len(f.faults("node-2")), 0)
}

// A name that isn't known gets one line with those that are.
func TestBadNamesGetTheKnownOnes(t *testing.T) {
	f := failing{}
	for _, c := range []struct{ on, how, want string }{
		{"node-9", "hang", `"node-9" is no node and no version: the nodes are node-1, node-2, node-3; a version looks like 1.51.0, and released are 1.50.0, 1.51.0`},
		{"v1.51.0", "hang", `"v1.51.0" is no node and no version: `},
		{"node-1", "explode", `"explode" is no way to fail: say roll-back, hang, never-return`},
	} {
		_, err := f.fail(c.on, c.how, threeNodes, twoReleases)
		assert.ErrorContains(t, err, c.want)
	}
	_, err := f.heal("")
	assert.ErrorContains(t, err, "nothing was told to fail")
	f["node-1"] = failures[0]
	_, err = f.heal("node-2")
	assert.ErrorContains(t, err, `"node-2" was not told to fail: node-1 (roll-back)`)
}

func TestCommandsThatAreWrittenWrong(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "say what to do: up, down, release VERSION, fail NODE|VERSION roll-back|hang|never-return, or heal [NODE|VERSION]"},
		{[]string{"uphill"}, `"uphill" is not a thing to do: up, down,`},
		{[]string{"release"}, "say which version: make cluster-release OS=1.51.0"},
		{[]string{"fail", "node-1"}, "say what fails and how: make cluster-fail ON=NODE|VERSION HOW=roll-back|hang|never-return"},
		{[]string{"up", "-nodes=0"}, "-nodes is 0: give 1 or more"},
		{[]string{"up", "-port=70000"}, "-port is 70000: give 1 or more, and no port above 65535"},
		{[]string{"up", "6"}, `"6" is not a flag: up takes -nodes and -port`},
		{[]string{"up", "-size=6"}, "up takes -nodes and -port"},
		{[]string{"down"}, "no cluster is running: start one with make cluster-up"},
		{[]string{"release", "1.51.0"}, "no cluster is running: start one with make cluster-up"},
	} {
		assert.ErrorContains(t, run(context.Background(), c.args), c.want)
	}
}

// A port on which something listens is told together with the remedy.
func TestAPortThatIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", net.JoinHostPort(port.Loopback, "0"))
	assert.NilError(t, err)
	defer l.Close()
	n := l.Addr().(*net.TCPAddr).Port
	want := "port " + strconv.Itoa(n) + " of 127.0.0.1 is taken: end what listens there, or choose another port: make cluster-up API_PORT="
	assert.ErrorContains(t, free(n), want)
}

// A cluster that runs gets the number of machines that is asked for, whichever of its nodes were deleted.
func TestTheMachinesOfAClusterThatRuns(t *testing.T) {
	for _, c := range []struct {
		have        []string
		want        int
		add, remove []string
	}{
		{threeNodes, 3, nil, nil},
		{threeNodes, 5, []string{"node-4", "node-5"}, nil},
		{[]string{"node-1", "node-3"}, 4, []string{"node-2", "node-4"}, nil},
		{[]string{"node-1", "node-10", "node-2"}, 1, nil, []string{"node-2", "node-10"}},
	} {
		add, remove := resizing(c.have, c.want)
		assert.DeepEqual(t, add, c.add)
		assert.DeepEqual(t, remove, c.remove)
	}
}

func TestTheFollowingVersion(t *testing.T) {
	assert.Equal(t, following([]string{"1.9.0", "1.50.3", "1.50.0"}), "1.51.0")
}

// A cluster that starts or stops is known by its lock, so that another start doesn't take it for a port that is taken.
func TestAClusterThatIsJustStarting(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	at, err := findPlaces()
	assert.NilError(t, err)
	held, err := controlplane.TryLock(at.lock)
	assert.NilError(t, err)
	for _, want := range []bool{false, true} {
		unused, err := at.unused()
		assert.NilError(t, err)
		assert.Equal(t, unused, want)
		_ = held.Close()
	}
}
