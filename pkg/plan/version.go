package plan

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// Version is what one version of Bottlerocket is in the fleet. Most of it is the word of hosts, of which any may lie:
// it is shown and nothing else, and no decision may read it.
type Version struct {
	Version string `json:"version"`
	// Nodes run it, by their kubelets. Of the Offered ones the hosts list it, and Chosen are those that would go to
	// it now.
	Nodes   int `json:"nodes"`
	Offered int `json:"offered"`
	Chosen  int `json:"chosen"`
	// Failed is on how many nodes it failed, Since when it was first seen in this cluster, and Target what the policy
	// says of it. A leader knows them.
	Failed *int      `json:"failed,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	Target *Target   `json:"target,omitempty"`
	// Unlisted nodes run a lower version, and their hosts don't list this one. WavesOpenBy is by when the waves are
	// open to those of them for which that isn't past, if the release has the default waves; zero if there are none,
	// or their places in the waves aren't known.
	Unlisted    int       `json:"unlisted,omitempty"`
	WavesOpenBy time.Time `json:"wavesOpenBy,omitzero"`
	// Locked nodes run a lower version, and their hosts list this one and are locked to another.
	Locked int `json:"locked,omitempty"`
	// Notes say in words what Unlisted and Locked mean.
	Notes []Message `json:"notes,omitempty"`
}

// Target is whether nodes may go to a version now, as far as that is for the policy to say.
type Target struct {
	Allowed bool `json:"allowed"`
	// Reason and Message are why not, and NotBefore is when that may be over by the clock alone.
	Reason    Reason    `json:"reason,omitempty"`
	Message   Message   `json:"message,omitzero"`
	NotBefore time.Time `json:"notBefore,omitzero"`
}

// maxVersions bounds the list: each host may make versions up.
const maxVersions = 50

// VersionsOf returns what each version is among these nodes, the newest first, and how many versions are left out:
// those that the fewest nodes name. Nodes that plans update have no part in it. Seen is since when versions are
// known; it may be empty. What else only a leader knows is left to it.
func VersionsOf(nodes []*fleet.Node, seen map[string]time.Time, now time.Time) (versions []Version, leftOut int) {
	hosts := make([]host, 0, len(nodes))
	for _, n := range nodes {
		if !n.Planned() {
			hosts = append(hosts, hostOf(n))
		}
	}
	found := counted(hosts)
	leftOut = max(len(found)-maxVersions, 0)
	found = found[:len(found)-leftOut]
	slices.SortFunc(found, func(a, b *offering) int {
		return cmp.Or(marker.CompareVersions(b.Version.Version, a.Version.Version), cmp.Compare(b.Version.Version, a.Version.Version))
	})
	look(found, hosts)
	versions = make([]Version, 0, len(found))
	locked := 0
	for _, o := range found {
		o.Since = seen[o.Version.Version]
		o.note(now, locked)
		locked = max(locked, o.Locked)
		versions = append(versions, o.Version)
	}
	return versions, leftOut
}

// host is what a node says of versions.
type host struct {
	node *fleet.Node
	// listed are the versions that the host lists; known: that is all of them, but for those that are lower than the
	// last one where the list was cut. An agent that reports no list says at least what its host would go to.
	listed     []string
	known, cut bool
	// chosen is what it would go to; empty if it wouldn't.
	chosen string
}

func hostOf(n *fleet.Node) host {
	h := host{node: n}
	if len(n.Problems) > 0 {
		return h
	}
	r := &n.Marks.Report
	if r.Available != n.OSVersion {
		h.chosen = r.Available
	}
	h.listed, h.cut = r.Offered.Versions()
	if h.known = len(h.listed) > 0; !h.known && r.Available != "" {
		h.listed = []string{r.Available}
	}
	return h
}

// lacks reports whether the host is known not to list a version, which is not in its list.
func (h *host) lacks(version string) bool {
	return h.known && (!h.cut || marker.CompareVersions(version, h.listed[len(h.listed)-1]) > 0)
}

// counted counts what hosts run, list and choose, the version that the most nodes name first.
func counted(hosts []host) []*offering {
	all := map[string]*offering{}
	of := func(version string) *offering {
		o := all[version]
		if o == nil {
			o = &offering{Version: Version{Version: version}}
			all[version] = o
		}
		return o
	}
	for i := range hosts {
		h := &hosts[i]
		if h.node.OSVersion != "" {
			of(h.node.OSVersion).Nodes++
		}
		for _, v := range slices.Compact(slices.Sorted(slices.Values(h.listed))) {
			of(v).Offered++
		}
		if h.chosen != "" {
			of(h.chosen).Chosen++
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b *offering) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(b.Offered+b.Chosen, a.Offered+a.Chosen), cmp.Compare(b.Version.Version, a.Version.Version))
	})
}

// FromLowestRun returns the versions that are not lower than all that run, and those that a host would go to. Hosts
// list older ones too.
func FromLowestRun(all []Version) []Version {
	lowest := ""
	for i := range all {
		if all[i].Nodes > 0 {
			lowest = all[i].Version
		}
	}
	out := make([]Version, 0, len(all))
	for i := range all {
		if all[i].Chosen > 0 || marker.CompareVersions(all[i].Version, lowest) >= 0 {
			out = append(out, all[i])
		}
	}
	return out
}
