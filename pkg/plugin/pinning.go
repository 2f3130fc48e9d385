package plugin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/file"
)

// pinning is a change of a pin before it is written: of which policy, and for which nodes.
type pinning struct {
	file.Pin
	// config has the policy; nil if there is none.
	config        *corev1.ConfigMap
	key           configKey
	before, after string
	// nodes are those for which the pin holds, and apart names groups of the fleet that have one of their own.
	nodes []*fleet.Node
	apart []string
	// set is the policy before.
	set policy.Settings
}

// choose finds the nodes for which the pin is to hold: those whose hosts choose their version, of the group, or of the
// fleet without the groups that have a pin of their own.
func (in *pinning) choose(all []fleet.Node) error {
	set := policy.DefaultSettings()
	var err error
	if strings.TrimSpace(in.before) != "" {
		set, err = decodePolicy(in.config)
	}
	if err != nil {
		return errors.WithMessagef(err, "the policy has a mistake, correct that first: ConfigMap %s/%s", in.key.namespace, kube.PolicyConfigMap)
	}
	in.set = set
	var names []string
	own := map[string]bool{}
	for i := range set.Groups {
		g := &set.Groups[i]
		names = append(names, g.Name)
		if own[g.Name] = g.Versions.Pin != set.Versions.Pin; own[g.Name] && in.Group == "" {
			in.apart = append(in.apart, fmt.Sprintf("group %s says itself that its pin is %q, and keeps it", g.Name, g.Versions.Pin))
		}
	}
	if in.Group != "" && !slices.Contains(names, in.Group) {
		return errors.Errorf("group %q is not in the policy: it has %q", in.Group, names)
	}
	for i := range all {
		n := &all[i]
		of := set.GroupOf(n.Labels)
		if !n.Labelled() || n.Planned() || n.Leaving != "" || n.OSVersion == "" || in.Group != "" && of != in.Group || in.Group == "" && own[of] {
			continue
		}
		in.nodes = append(in.nodes, n)
	}
	return nil
}

// write makes the policy's new text. A pin that is lower than what a node runs needs the leave to go down.
func (in *pinning) write() error {
	in.Downgrade = in.Version != "" && slices.ContainsFunc(in.nodes, func(n *fleet.Node) bool { return marker.CompareVersions(in.Version, n.OSVersion) < 0 })
	after, err := in.Write([]byte(in.before), zones)
	in.after = string(after)
	return err
}

// difference is which lines go and come. The last lines of both that are alike are left out, as the first are.
func (in *pinning) difference() []string {
	lines := []string{fmt.Sprintf("ConfigMap %s/%s, %s:", in.key.namespace, in.key.name, in.key.key)}
	if in.config == nil {
		lines[0] = fmt.Sprintf("ConfigMap %s/%s, which does not exist and is made; all that its %s does not say is as by default:", in.key.namespace, in.key.name, in.key.key)
	}
	old, now := strings.Split(in.before, "\n"), strings.Split(in.after, "\n")
	if in.before == "" {
		old = nil
	}
	at := 0
	for ; len(old) > 0 && len(now) > 0 && old[0] == now[0]; at++ {
		old, now = old[1:], now[1:]
	}
	for len(old) > 0 && len(now) > 0 && old[len(old)-1] == now[len(now)-1] {
		old, now = old[:len(old)-1], now[:len(now)-1]
	}
	lines = append(lines, fmt.Sprintf("@@ line %d @@", at+1))
	for _, l := range merged(old, now) {
		lines = append(lines, strings.TrimRight(l, "\r"))
	}
	return lines
}

// merged are the lines of a small difference: those that stand in both in their order, with those that go and come.
func merged(old, now []string) []string {
	var out []string
	for len(old) > 0 || len(now) > 0 {
		switch {
		case len(old) > 0 && len(now) > 0 && old[0] == now[0]:
			out, old, now = append(out, "  "+old[0]), old[1:], now[1:]
		case len(old) > 0 && !slices.Contains(now, old[0]):
			out, old = append(out, "- "+old[0]), old[1:]
		case len(now) > 0:
			out, now = append(out, "+ "+now[0]), now[1:]
		default:
			out, old = append(out, "- "+old[0]), old[1:]
		}
	}
	return out
}

// of names what is pinned.
func (in *pinning) of() string {
	if in.Group == "" {
		return "the fleet"
	}
	return "group " + in.Group
}

func (in *pinning) question() string {
	if in.Version == "" {
		return fmt.Sprintf("Take the pin of %s out of the policy?", in.of())
	}
	return fmt.Sprintf("Pin %s, %s, to %s?", in.of(), plural(len(in.nodes), "node"), in.Version)
}

// means is what the change means, by what the nodes report.
func (in *pinning) means() []string {
	lines := []string{""}
	runs := map[string][]string{}
	for _, n := range in.nodes {
		runs[n.OSVersion] = append(runs[n.OSVersion], n.Name)
	}
	for _, v := range slices.SortedFunc(maps.Keys(runs), func(a, b string) int { return marker.CompareVersions(b, a) }) {
		nodes := plural(len(runs[v]), "node")
		switch c := marker.CompareVersions(in.Version, v); {
		case in.Version == "":
			lines = append(lines, fmt.Sprintf("%s: from %s on to what its hosts choose, %s", in.of(), v, nodes))
		case c == 0:
			lines = append(lines, fmt.Sprintf("%s: stays at %s, %s", in.of(), v, nodes))
		case c < 0:
			lines = append(lines, fmt.Sprintf("%s: from %s down to %s, %s", in.of(), v, in.Version, nodes))
		default:
			lines = append(lines, fmt.Sprintf("%s: from %s to %s, %s", in.of(), v, in.Version, nodes))
		}
	}
	if len(in.nodes) == 0 {
		lines = append(lines, in.of()+" has no node that a pin holds for")
	}
	lines = append(lines, in.apart...)
	if in.Version == "" {
		if in.Group != "" && in.set.Versions.Pin != "" {
			lines = append(lines, fmt.Sprintf("the fleet's pin, %s, holds for the group then", in.set.Versions.Pin))
		}
		if strings.Contains(in.after, "downgrade") && in.stillDown() {
			lines = append(lines, "versions.downgrade stays true: it did not come with the pin")
		}
		return lines
	}
	return append(lines, in.hindrances()...)
}

// stillDown reports whether nodes may still go down once the pin is out.
func (in *pinning) stillDown() bool {
	set, err := file.Decode([]byte(in.after), policy.DefaultSettings(), zones)
	if err != nil {
		return false
	}
	for i := range set.Groups {
		if set.Groups[i].Name == in.Group {
			return set.Groups[i].Versions.Downgrade
		}
	}
	return set.Versions.Downgrade
}

// hindrances are why nodes will not go to the pin, by what they report.
func (in *pinning) hindrances() []string {
	var absent, unknown, locked, failed []string
	override := in.set.Versions.OverrideLocks
	for i := range in.set.Groups {
		if in.set.Groups[i].Name == in.Group {
			override = in.set.Groups[i].Versions.OverrideLocks
		}
	}
	for _, n := range in.nodes {
		if f := n.Marks.Failure; f != nil && slices.Contains(f.Broken, in.Version) {
			failed = append(failed, n.Name)
		}
		if marker.CompareVersions(n.OSVersion, in.Version) == 0 {
			continue
		}
		switch listed, known := n.Marks.Report.Offered.Lists(in.Version); {
		case !known:
			unknown = append(unknown, n.Name)
		case !listed:
			absent = append(absent, n.Name)
		}
		if lockedByOthers(n, in.Version) && !override {
			locked = append(locked, n.Name)
		}
	}
	var lines []string
	say := func(names []string, format string, args ...any) {
		if len(names) > 0 {
			lines = append(lines, plural(len(names), "node")+" "+fmt.Sprintf(format, args...)+": "+plan.Some(names))
		}
	}
	say(absent, "not offered %s, which stay where they are (%s)", in.Version, plan.ReasonPinNotOffered)
	say(unknown, "of which it is not known whether they are offered %s", in.Version)
	say(locked, "locked to another version by others, which stay where they are (%s)", plan.ReasonLockedByOthers)
	say(failed, "that failed with %s", in.Version)
	return lines
}

// lockedByOthers reports whether a host has a lock to another version that the operator did not set.
func lockedByOthers(n *fleet.Node, pin string) bool {
	lock, l := n.Marks.Report.VersionLock, n.Marks.Lock
	if lock == "" || lock == marker.LockLatest || marker.SameLock(lock, pin) {
		return false
	}
	return l == nil || !l.Ours(lock) && !marker.SameLock(lock, l.Before)
}

// planned is in short what a plan by the policy with the change does.
func (in *pinning) planned(out *plan.Plan) []string {
	var lines []string
	for i := range out.Versions {
		if v := &out.Versions[i]; v.Version == in.Version && v.Target != nil && v.Target.Reason == plan.ReasonVersionStopped {
			lines = append(lines, string(v.Target.Reason)+": "+v.Target.Message.String())
		}
	}
	reasons := map[string]int{}
	for i := range out.Nodes {
		d := &out.Nodes[i]
		reasons[string(d.Reason)]++
	}
	var each []string
	for _, r := range slices.Sorted(maps.Keys(reasons)) {
		each = append(each, fmt.Sprintf("%d %s", reasons[r], r))
	}
	said := "by the plan with this change no node is managed"
	if len(each) > 0 {
		said = fmt.Sprintf("by the plan with this change, of %s: %s", plural(len(out.Nodes), "node"), strings.Join(each, ", "))
	}
	return append(lines, said)
}
