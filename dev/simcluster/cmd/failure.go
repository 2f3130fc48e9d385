package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
)

// failure is one way in which a host fails.
type failure struct {
	name string
	// says is what happens.
	says string
	// fault makes it happen with a version, or with any if that is empty.
	fault func(version string) hostsim.Fault
}

var failures = []failure{
	{"roll-back", "the new version doesn't come up, and the boot loader goes back to the old one", func(v string) hostsim.Fault {
		return hostsim.Fault{ID: hostsim.F17, Version: v}
	}},
	{"hang", "the host never gets done with downloading and writing the update", func(v string) hostsim.Fault {
		return hostsim.Fault{ID: hostsim.F2, Command: hostsim.Prepare, Version: v}
	}},
	{"never-return", "the host goes down for its reboot, and its kubelet is not heard of again", func(v string) hostsim.Fault {
		return hostsim.Fault{ID: hostsim.F18, Version: v}
	}},
}

func failureNames() []string {
	var names []string
	for _, f := range failures {
		names = append(names, f.name)
	}
	return names
}

// failing are the nodes and versions that were told to fail, and how.
type failing map[string]failure

// fail lets a node or a version fail, instead of what it did before, and says what will happen. nodes and released are
// those that are known.
func (f failing) fail(on, how string, nodes, released []string) (string, error) {
	i := slices.IndexFunc(failures, func(f failure) bool { return f.name == how })
	if i < 0 {
		return "", errors.Errorf("%q is no way to fail: say %s", how, strings.Join(failureNames(), ", "))
	}
	if !slices.Contains(nodes, on) && !isVersion(on) {
		return "", errors.Errorf("%q is no node and no version: the nodes are %s; a version looks like 1.51.0, and released are %s",
			on, strings.Join(nodes, ", "), strings.Join(released, ", "))
	}
	f[on] = failures[i]
	says := on + ": " + failures[i].says
	if isVersion(on) && !slices.Contains(released, on) {
		says += "; it isn't released yet: make cluster-release OS=" + on
	}
	return says, nil
}

// heal ends the failure of a node or a version, or with an empty name all of them, and names what it ended.
func (f failing) heal(on string) (string, error) {
	healed := f.names()
	if on != "" {
		healed = []string{on}
		if _, there := f[on]; !there {
			return "", errors.Errorf("%q was not told to fail: %s", on, cmp.Or(f.String(), "nothing was"))
		}
	}
	if len(healed) == 0 {
		return "", errors.New("nothing was told to fail")
	}
	for _, name := range healed {
		delete(f, name)
	}
	return strings.Join(healed, ", ") + ": well again; kubectl bottlerocket retry NODE ends a node's wait after a failure", nil
}

// faults are those of one node's host.
func (f failing) faults(node string) []hostsim.Fault {
	var faults []hostsim.Fault
	for _, on := range f.names() {
		switch {
		case on == node:
			faults = append(faults, f[on].fault(""))
		case isVersion(on):
			faults = append(faults, f[on].fault(on))
		}
	}
	return faults
}

func (f failing) names() []string { return slices.Sorted(maps.Keys(f)) }

// String is what fails and how, empty if nothing does.
func (f failing) String() string {
	var all []string
	for _, on := range f.names() {
		all = append(all, on+" ("+f[on].name+")")
	}
	return strings.Join(all, ", ")
}
