package manifest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// takeOff is the README's chapter on how to remove the operator.
func takeOff(t *testing.T) string {
	t.Helper()
	_, chapter, found := strings.Cut(readme(t), "\n## Take it off again\n")
	assert.Assert(t, found)
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	return chapter
}

// What people are told to remove with kubectl alone is every annotation that isn't their own.
func TestReadmeRemovesEveryAnnotation(t *testing.T) {
	_, command, found := strings.Cut(takeOff(t), "kubectl annotate node --all ")
	assert.Assert(t, found)
	command, _, _ = strings.Cut(command, "\n```")
	var want []string
	for _, w := range []marker.Writer{marker.WriterController, marker.WriterAgent} {
		for _, k := range marker.Keys(w) {
			want = append(want, string(k)+"-")
		}
	}
	assert.DeepEqual(t, strings.Fields(strings.ReplaceAll(command, "\\\n", "")), want)
}

// With kubectl and jq alone people uncordon the nodes that the operator would.
func TestReadmeUncordons(t *testing.T) {
	_, program, found := strings.Cut(takeOff(t), "jq -r '")
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
			if policy.TakeBack(&view).Unschedulable != nil {
				want = append(want, n.Name)
			}
			nodes = append(nodes, n)
		}
	}
	nodes = append(nodes, corev1.Node{})
	assert.DeepEqual(t, want, []string{"a-ours-cordoned"})
	assert.DeepEqual(t, strings.Fields(jq(t, program, nodes)), want)
}

// With kubectl and jq alone people put back what stood where the operator's marks for others stand (S5).
func TestReadmePutsMarksBack(t *testing.T) {
	_, rest, found := strings.Cut(takeOff(t), ".before")
	assert.Assert(t, found)
	_, rest, _ = strings.Cut(takeOff(t)[:len(takeOff(t))-len(rest)], "xargs -r kubectl uncordon")
	_, program, _ := strings.Cut(takeOff(t), rest)
	program = strings.TrimPrefix(rest+program, "\nkubectl get nodes -o json | jq -r '")
	program, _, _ = strings.Cut(program, "'")
	n := corev1.Node{}
	n.Name = "a"
	d := marker.Disruption{Since: time.Now(), Before: map[string]*string{marker.LabelExcluded: nil, marker.AnnotationDisrupt: new("false")}}
	n.Annotations = map[string]string{string(marker.KeyDisruption): marker.Encode(marker.Marks{Disruption: &d})[marker.KeyDisruption]}
	lines := strings.Split(strings.TrimSpace(jq(t, program, []corev1.Node{n, {}})), "\n")
	slices.Sort(lines)
	assert.DeepEqual(t, lines, []string{"annotate node a --overwrite " + marker.AnnotationDisrupt + "=false", "label node a --overwrite " + marker.LabelExcluded + "-"})
}

// make undeploy does what people are told to do without it.
func TestUndeployIsAsDocumented(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(filepath.Dir(must(Path())), "dev", "undeploy.sh"))
	assert.NilError(t, err)
	for _, part := range []string{`(?m)jsonpath='.*'$`, `wait --for=delete pod .*`} {
		find := regexp.MustCompile(part)
		assert.Equal(t, find.FindString(takeOff(t)), find.FindString(string(script)))
	}
	for _, e := range marker.Table() {
		if e.Kind == marker.KindLabel {
			assert.Assert(t, strings.Contains(takeOff(t), "kubectl label node -l "+string(e.Key)+" "+string(e.Key)+"-\n"))
			assert.Assert(t, slices.Contains(strings.Fields(strings.ReplaceAll(string(script), ";", " ")), string(e.Key)))
		}
	}
}
