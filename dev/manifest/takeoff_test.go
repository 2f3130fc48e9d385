package manifest

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/planner/lifecycle"
)

// byHand is how to undo with kubectl and jq alone what an operator that is gone has done.
func byHand(t *testing.T) string {
	t.Helper()
	_, chapter, found := strings.Cut(page(t, uninstallPage), "\n### With kubectl and jq alone\n")
	assert.Assert(t, found)
	return chapter
}

// The documented kubectl command removes exactly the operator's annotations.
func TestUninstallRemovesEveryAnnotation(t *testing.T) {
	_, command, found := strings.Cut(byHand(t), "kubectl annotate node --all ")
	assert.Assert(t, found)
	command, _, _ = strings.Cut(command, "\n```")
	var want []string
	for _, w := range []marker.Writer{marker.WriterController, marker.WriterAgent} {
		for _, k := range marker.Keys(w) {
			want = append(want, string(k)+"-")
		}
	}
	// Of what is the user's, a request would stand for when the operator is back.
	want = append(want, string(marker.KeyCycle)+"-")
	assert.DeepEqual(t, strings.Fields(strings.ReplaceAll(command, "\\\n", "")), want)
}

// The documented kubectl and jq commands uncordon the nodes that the operator would.
func TestUninstallUncordons(t *testing.T) {
	_, program, found := strings.Cut(byHand(t), "jq -r '")
	assert.Assert(t, found)
	program, _, _ = strings.Cut(program, "'")
	soak := time.Now()
	var nodes []corev1.Node
	var want []string
	for name, d := range map[string]*marker.Disruption{"a-ours": {}, "b-theirs": {WasUnschedulable: true}, "c-soaking": {Soak: &soak}, "d-none": nil} {
		for _, cordoned := range []bool{true, false} {
			m := marker.Marks{Intent: marker.Intent{ID: "1", Action: marker.ActionStabilize, Time: soak, Until: soak}, Disruption: d}
			if d != nil {
				d.Since = soak
			}
			n := corev1.Node{}
			n.Name = name
			if cordoned {
				n.Name += "-cordoned"
			}
			n.Annotations = map[string]string{}
			for k, v := range marker.Encode(m) {
				n.Annotations[string(k)] = v
			}
			n.Spec.Unschedulable = cordoned
			view := kube.View(&n)
			if lifecycle.Clean(&view).Unschedulable != nil {
				want = append(want, n.Name)
			}
			nodes = append(nodes, n)
		}
	}
	for _, unreadable := range []string{"{", "[]", "null"} {
		n := corev1.Node{}
		n.Name, n.Spec.Unschedulable = "unreadable", true
		n.Annotations = map[string]string{string(marker.KeyDisruption): unreadable}
		nodes = append([]corev1.Node{n}, nodes...)
	}
	nodes = append(nodes, corev1.Node{})
	assert.DeepEqual(t, want, []string{"a-ours-cordoned"})
	assert.DeepEqual(t, strings.Fields(jq(t, program, nodes)), want)
}

// The documented kubectl and jq commands put back what stood before the operator's marks for others, and change nothing
// that another client has written since (S5).
func TestUninstallPutsMarksBack(t *testing.T) {
	_, rest, found := strings.Cut(byHand(t), "| xargs -r kubectl uncordon\nkubectl get nodes -o json | jq -r '")
	assert.Assert(t, found)
	program, rest, _ := strings.Cut(rest, "'")
	assert.Assert(t, strings.HasPrefix(rest, " | sh\n"), "%q", rest)
	odd := " two  words; it's \"$(echo odd)\"=x-"
	node := func(name string, before map[string]*string, labels, annotations map[string]string) corev1.Node {
		n := corev1.Node{}
		n.Name, n.Labels, n.Annotations = name, labels, map[string]string{}
		maps.Copy(n.Annotations, annotations)
		d := marker.Disruption{Since: time.Now(), Before: before}
		n.Annotations[string(marker.KeyDisruption)] = marker.Encode(marker.Marks{Disruption: &d})[marker.KeyDisruption]
		return n
	}
	all := map[string]*string{marker.LabelExcluded: nil, marker.AnnotationScaleDown: nil, marker.AnnotationDisrupt: &odd}
	unreadable := node("unreadable", all, map[string]string{marker.LabelExcluded: "true"}, nil)
	unreadable.Annotations[string(marker.KeyDisruption)] = "{"
	nodes := []corev1.Node{
		unreadable, {},
		node("stand", all, map[string]string{marker.LabelExcluded: "true"}, map[string]string{marker.AnnotationScaleDown: "true", marker.AnnotationDisrupt: "true"}),
		node("changed", all, map[string]string{marker.LabelExcluded: "mine"}, map[string]string{marker.AnnotationScaleDown: "false"}),
		node("gone", all, nil, nil),
		node("empty", map[string]*string{marker.AnnotationDisrupt: new("")}, nil, map[string]string{marker.AnnotationDisrupt: "true"}),
	}
	want := []string{
		"annotate|node|empty|--overwrite|" + marker.AnnotationDisrupt + "=|",
		"annotate|node|stand|--overwrite|" + marker.AnnotationScaleDown + "-|",
		"annotate|node|stand|--overwrite|" + marker.AnnotationDisrupt + "=" + odd + "|",
		"label|node|stand|--overwrite|" + marker.LabelExcluded + "-|",
	}
	run := exec.CommandContext(t.Context(), "sh")
	run.Stdin = strings.NewReader("kubectl() { printf '%s|' \"$@\"; echo; }\n" + jq(t, program, nodes))
	out, err := run.CombinedOutput()
	assert.NilError(t, err, "%s", out)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	slices.Sort(lines)
	assert.DeepEqual(t, lines, want)

	// It is what the controller would do.
	for _, n := range nodes[2:] {
		view := kube.View(&n)
		c := lifecycle.Clean(&view)
		count := 0
		for _, line := range want {
			if strings.Contains(line, "|"+n.Name+"|") {
				count++
			}
		}
		assert.Equal(t, len(c.Labels)+len(c.Annotations), count, n.Name)
	}
}
