package chaos

import (
	"slices"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

const human = "kubernetes-admin"

func promises(v Verdict) []string {
	var list []string
	for _, x := range v.Violations {
		if !slices.Contains(list, x.Promise) {
			list = append(list, x.Promise)
		}
	}
	slices.Sort(list)
	return list
}

func TestWhatShouldHappenBreaksNothing(t *testing.T) {
	v := newTape("a").play(way("a"), nil)
	assert.Equal(t, len(v.Violations), 0, "%v", v.Violations)
	f := v.Figures
	assert.Equal(t, f.Cordons, 1)
	assert.Equal(t, f.Begun, 1)
	assert.Equal(t, f.Reboots, 1)
	assert.Equal(t, f.Updated, 1)
	assert.Equal(t, f.MostDisrupted, 1)
	assert.Equal(t, f.NodesOnVersion, 1)
	assert.Assert(t, f.Checks > 30 && f.Holes == 0)
	v = newTape("a", "b").play(append(way("a"), way("b")...), nil)
	assert.Equal(t, len(v.Violations), 0, "%v", v.Violations)
	assert.Equal(t, v.Figures.MostDisrupted, 1)
}

// Each promise, broken in each way that the judge is to see.
func TestBrokenPromises(t *testing.T) {
	w := way("a")
	yes, no := new(true), new(false)
	for _, tc := range []struct {
		name   string
		broken []string
		stages []stage
		terms  func(*Terms)
	}{
		{"two nodes at once", []string{"S1"}, append(append(slices.Clone(w[:at(w, "evict")]), way("b")...), w[at(w, "evict"):]...), nil},
		{"a cordon before its slot", []string{"S1"}, before(without(w, "slot"), "evict", w[at(w, "slot")].do), nil},
		{"a cordon after its slot was freed", []string{"S1"}, before(w, "cordon", w[at(w, "free")].do), nil},

		{"a pod is left", []string{"S2"}, before(without(w, "evict"), "busy", w[at(w, "evict")].do), nil},
		{"a pod is left that the look did not show", []string{"S2"}, before(instead(without(w, "evict"), "look", func(t *tape) {
			t.look("a")
			t.look("a", "pod-a")
			t.pods["pod-a"].ResourceVersion = t.next()
			t.entry("system:node:a", "patch", "pods", "pod-a", nil, t.pods["pod-a"]).Object.Namespace = "default"
			t.look("b")
		}), "busy", w[at(w, "evict")].do), nil},
		{"the last look for pods is missing", []string{"S2"}, without(w, "look"), nil},
		{"a reboot is asked of a node that is not cordoned", []string{"S2", "S3"}, before(w, "reboot", func(t *tape) { t.patch(human, "a", nil, no) }), nil},
		{"a reboot is asked without a disruption", []string{"S2", "S5"}, before(w, "reboot", func(t *tape) {
			t.command("a", map[marker.Key]string{marker.KeyDisruption: ""}, nil)
		}), nil},

		{"a reboot without busy", []string{"S3"}, without(w, "busy"), nil},
		{"a second reboot for one intent", []string{"S3"}, before(w, "back", func(t *tape) { t.kubelet("a", "boot-2a", "1.51.0", true); t.kubelet("a", "boot-2-a", "1.51.0", true) }), nil},
		{"a reboot that begins too late", []string{"S3"}, before(w, "busy", func(t *tape) { t.now = t.now.Add(31 * time.Second) }), nil},
		{"a reboot that begins on a paused node", []string{"S3"}, before(w, "busy", func(t *tape) {
			t.patch(human, "a", map[marker.Key]string{marker.KeyPaused: "me"}, nil)
		}), nil},

		{"an answer to another intent", []string{"S4"}, before(w, "affirm", func(t *tape) {
			t.report("a", map[marker.Key]string{marker.KeyActiveID: "i3-a", marker.KeyActionState: "ready"})
		}), nil},
		{"a report with a key that is not the agent's", []string{"S4", "writers"}, before(w, "slot", func(t *tape) {
			t.report("a", map[marker.Key]string{marker.KeyWaitingFor: "Me"})
		}), nil},
		{"a cordon by the proxy", []string{"S4"}, before(w, "slot", func(t *tape) { t.patch(proxyAccount, "a", nil, no) }), nil},
		{"a report from nowhere", []string{"S4"}, before(w, "slot", func(t *tape) {
			t.report("a", map[marker.Key]string{marker.KeyAvailableVersion: "1.51.0"})
			t.log.Entries[len(t.log.Entries)-1].Request = encode(`{"metadata":{"annotations":{"bottlerocket.aws/available-version":"1.51.0"}}}`)
		}), nil},
		{"a report on another host", []string{"S4"}, before(append(way("b")[:2:2], w...), "slot", func(t *tape) {
			t.report("b", map[marker.Key]string{marker.KeyBootID: "boot-1-a"})
		}), nil},
		{"an agent talks to the API server", []string{"S4"}, before(w, "slot", func(t *tape) {
			t.entry(agentAccount, "get", "nodes", "a", nil, nil)
		}), nil},

		{"a user's cordon is taken away", []string{"S5"}, instead(before(w, "slot", func(t *tape) { t.patch(human, "a", nil, yes) }), "cordon", func(t *tape) {
			t.command("a", map[marker.Key]string{marker.KeyDisruption: t.disruption(true, false), marker.KeyRebootFrom: "boot-1-a"}, nil)
		}), nil},
		{"what stood before is recorded wrongly", []string{"S5"}, before(w, "slot", func(t *tape) { t.patch(human, "a", nil, yes) }), nil},
		{"a node stays cordoned", []string{"S5"}, instead(w, "return", func(t *tape) {
			i := t.intent("i4-a", marker.ActionStabilize)
			i[marker.KeyDisruption] = t.disruption(false, true)
			t.command("a", i, nil)
		}), nil},
		{"a cordon without a record", []string{"S5"}, before(w, "slot", func(t *tape) { t.command("a", nil, yes); t.command("a", nil, no) }), nil},

		{"success without a new boot", []string{"S7"}, instead(instead(w, "boot", func(t *tape) { t.kubelet("a", "boot-1-a", "1.51.0", true) }), "back", func(t *tape) {
			a := t.answer("a", marker.StateReady)
			a[marker.KeyCurrentVersion] = "1.51.0"
			t.report("a", a)
		}), nil},
		{"success without the kubelet's word on the version", []string{"L1", "S7"}, instead(w, "boot", func(t *tape) { t.kubelet("a", "boot-2-a", "1.50.0", true) }), nil},
		{"success without the agent's word", []string{"L1", "S7"}, without(w, "back"), nil},
		{"success before the soak is over", []string{"S7"}, without(w, "soak"), nil},
		{"success while not Ready", []string{"S7"}, before(w, "finish", func(t *tape) { t.kubelet("a", "boot-2-a", "1.51.0", false) }), nil},
		{"success after a break in the soak", []string{"S7"}, before(w, "soak", func(t *tape) {
			t.kubelet("a", "boot-2-a", "1.51.0", false)
			t.kubelet("a", "boot-2-a", "1.51.0", true)
		}), nil},
		{"success with another version than the target", []string{"S7"}, instead(w, "finish", func(t *tape) {
			t.command("a", map[marker.Key]string{marker.KeyDisruption: "",
				marker.KeyHistory: `[{"version":"1.49.0","outcome":"updated","started":"2026-09-20T10:00:00Z","ended":"2026-09-20T10:00:09Z"}]`}, nil)
		}), nil},

		{"a node stays behind", []string{"L1"}, append(way("b"), stage{"c", func(*tape) {}}), nil},
		{"a node is unknown", []string{"L1"}, w, func(t *Terms) { t.Nodes = 3 }},
		{"a node stays in hands", []string{"L1"}, without(w, "finish"), nil},

		{"a write at rest", []string{"L4"}, w, func(t *Terms) { t.Rest.From = start }},
		{"no rest", []string{"L4"}, w, func(t *Terms) { t.Rest = Window{} }},

		{"a person writes an intent", []string{"writers"}, before(w, "slot", func(t *tape) {
			t.patch(human, "a", map[marker.Key]string{marker.KeyWaitingFor: "Me"}, nil)
		}), nil},
		{"the controller pauses a node", []string{"writers"}, before(w, "look", func(t *tape) {
			t.command("a", map[marker.Key]string{marker.KeyPaused: "x"}, nil)
			t.patch(human, "a", map[marker.Key]string{marker.KeyPaused: ""}, nil)
		}), nil},
		{"the controller reports", []string{"writers"}, before(w, "look", func(t *tape) {
			t.command("a", map[marker.Key]string{marker.KeyAvailableVersion: "1.51.0"}, nil)
		}), nil},

		{"a refused write is repeated", []string{"refusals"}, before(w, "slot", func(t *tape) {
			for range 4 {
				t.entry(controllerAccount, "patch", "nodes", "a", `{"metadata":{"resourceVersion":"2"}}`, nil).Answer.Code = 409
			}
		}), nil},

		{"a write that is not in the log", []string{"log"}, instead(w, "staged", lost(w[at(w, "staged")])), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			nodes := []string{"a"}
			if tc.name == "two nodes at once" || tc.name == "a report on another host" || tc.name == "a node stays behind" {
				nodes = append(nodes, "b")
			}
			tape := newTape(nodes...)
			v := tape.play(tc.stages, tc.terms)
			got := promises(v)
			if tc.name == "a report on another host" {
				// b is not updated there, which is beside the point.
				got = slices.DeleteFunc(got, func(p string) bool { return p == "L1" })
			}
			assert.DeepEqual(t, got, tc.broken)
			for _, x := range v.Violations {
				assert.Assert(t, x.String() != "" && x.What != "")
			}
		})
	}
}

// A hole that an outage explains is no violation, and hides nothing that can still be seen.
func TestHoles(t *testing.T) {
	w := way("a")
	all := func(t *Terms) { t.Outages = []Window{{From: start, To: start.Add(time.Hour)}} }
	for _, s := range w {
		if s.name == "first intent" || s.name == "soak" || s.name == "end" {
			continue
		}
		t.Run("without "+s.name, func(t *testing.T) {
			v := newTape("a").play(instead(w, s.name, lost(s)), all)
			assert.Equal(t, len(v.Violations), 0, "%v", v.Violations)
		})
	}
	t.Run("a write whose outcome is unknown", func(t *testing.T) {
		stages := instead(w, "staged", func(t *tape) {
			lost(w[at(w, "staged")])(t)
			t.entry(proxyAccount, "patch", "nodes", "a", nil, nil).Answer.Code = 504
		})
		v := newTape("a").play(stages, nil)
		// What was refused without a body can't be judged, and isn't.
		assert.Equal(t, len(v.Violations), 0, "%v", v.Violations)
		assert.Equal(t, v.Figures.Holes, 1)
	})
	t.Run("two nodes at once, the end of the first lost", func(t *testing.T) {
		lostEnd := instead(w, "finish", lost(w[at(w, "finish")]))
		v := newTape("a", "b").play(append(lostEnd[:at(w, "end")], way("b")...), all)
		assert.Equal(t, len(v.Violations), 0, "%v", v.Violations)
	})
	t.Run("a reboot without busy is seen all the same", func(t *testing.T) {
		v := newTape("a").play(without(instead(w, "staged", lost(w[at(w, "staged")])), "busy"), all)
		assert.DeepEqual(t, promises(v), []string{"S3"})
	})
}

// A drain leaves some pods where they are, and a Lost node lends its slot.
func TestWhatIsAllowed(t *testing.T) {
	w := way("a")
	for name, edit := range map[string]func(*corev1.Pod){
		"a DaemonSet's pod": func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: new(true)}}
		},
		"a mirror pod": func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} },
		"the operator's own": func(p *corev1.Pod) {
			p.Namespace, p.Labels = "bottlerocket", map[string]string{"app.kubernetes.io/name": "bottlerocket-update-operator"}
		},
		"a pod that has ended": func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded },
	} {
		t.Run(name, func(t *testing.T) {
			v := newTape("a").play(before(w, "cordon", func(t *tape) { t.pod("stays", "a", edit) }), nil)
			assert.Equal(t, len(v.Violations), 0, "%v", v.Violations)
		})
	}
	t.Run("a pod that came after the last look", func(t *testing.T) {
		v := newTape("a").play(before(w, "reboot", func(t *tape) { t.pod("late", "a", nil) }), nil)
		assert.Equal(t, len(v.Violations), 0, "%v", v.Violations)
	})
	t.Run("another node while one is Lost", func(t *testing.T) {
		lostOne := append(slices.Clone(w[:at(w, "boot")]), stage{"wait", func(t *tape) { t.now = t.now.Add(time.Minute) }})
		v := newTape("a", "b").play(append(append(lostOne, way("b")...), w[at(w, "boot"):]...), nil)
		assert.Equal(t, len(v.Violations), 0, "%v", v.Violations)
		assert.Equal(t, v.Figures.MostDisrupted, 2)
	})
}
