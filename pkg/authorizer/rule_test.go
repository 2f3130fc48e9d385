package authorizer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	"gotest.tools/v3/golden"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/authorizer/rule"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

func TestJudge(t *testing.T) {
	reboot := intentOf(marker.ActionRebootUpdate)
	fact := func(k marker.Key, v string) Patch {
		return Patch{ResourceVersion: "10", Annotations: map[string]*string{string(k): value(v)}}
	}
	good := Write{NodeName: agent.NodeName, NodeUID: agent.NodeUID, Live: liveNode(reboot), Patch: answer(intentID, marker.StateBusy, nil), Now: noon.Add(time.Minute)}
	assert.Assert(t, rule.Judge(good) == nil)
	for _, tc := range []struct {
		name   string
		change func(w *Write)
		want   Reason
		says   string
	}{
		{name: "another node", change: func(w *Write) { w.Live.Name = "node-2" }, want: rule.ReasonNode, says: `"node-2"`},
		{name: "a node made anew", change: func(w *Write) { w.Live.UID = "uid-2" }, want: rule.ReasonNodeUID, says: "another one"},
		{name: "no resourceVersion", change: func(w *Write) { w.Patch.ResourceVersion = "" }, want: rule.ReasonVersion, says: "metadata.resourceVersion"},
		{name: "an older resourceVersion", change: func(w *Write) { w.Patch.ResourceVersion = "9" }, want: rule.ReasonConflict, says: "read it again"},
		{name: "a foreign key", change: func(w *Write) { w.Patch = fact("example.com/key", "v") }, want: rule.ReasonKey, says: "example.com/key"},
		{name: "a foreign key from an old look", change: func(w *Write) {
			w.Patch = fact("example.com/key", "v")
			w.Patch.ResourceVersion = "9"
		}, want: rule.ReasonKey},
		{name: "a controller's key", change: func(w *Write) { w.Patch = fact(marker.KeyIntentUntil, "2030-01-01T00:00:00Z") }, want: rule.ReasonKey},
		{name: "a user's key", change: func(w *Write) { w.Patch = fact(marker.KeyRetry, "") }, want: rule.ReasonKey},
		{name: "a label's key", change: func(w *Write) { w.Patch = fact(marker.KeyInterfaceVersion, "2.0.0") }, want: rule.ReasonKey},
		{name: "the pause taken away", change: func(w *Write) {
			w.Patch = Patch{ResourceVersion: "10", Annotations: map[string]*string{string(marker.KeyPaused): nil}}
		}, want: rule.ReasonKey},
		{name: "a fact", change: func(w *Write) { w.Patch = fact(marker.KeyCurrentVersion, "1.19.0") }},
		{name: "a fact on a node without an intent", change: func(w *Write) {
			w.Live.Annotations = nil
			w.Patch = fact(marker.KeyCurrentVersion, "1.19.0")
		}},
		{name: "a fact under an intent that can't be read", change: func(w *Write) {
			w.Live.Annotations = with(reboot, string(marker.KeyActionWanted), "dance")
			w.Patch = fact(marker.KeyCurrentVersion, "1.19.0")
		}},
		{name: "an answer to an intent that can't be read", change: func(w *Write) {
			w.Live.Annotations = with(reboot, string(marker.KeyActionWanted), "dance")
		}, want: rule.ReasonIntent, says: "can't be read"},
		{name: "an answer to no intent", change: func(w *Write) { w.Live.Annotations = nil }, want: rule.ReasonIntent, says: "no intent"},
		{name: "an answer to another intent", change: func(w *Write) { w.Patch = answer("intent-6", marker.StateReady, nil) }, want: rule.ReasonIntent, says: `"intent-7"`},
		{name: "a state alone, under an older answer", change: func(w *Write) {
			w.Live.Annotations = with(reboot, string(marker.KeyActiveID), "intent-6", string(marker.KeyActionState), "busy")
			w.Patch = fact(marker.KeyActionState, "ready")
		}, want: rule.ReasonIntent},
		{name: "a state alone, under this answer", change: func(w *Write) {
			w.Live.Annotations = with(reboot, string(marker.KeyActiveID), intentID, string(marker.KeyActionState), "busy", string(marker.KeyMessage), "m")
			w.Patch = fact(marker.KeyActionState, "error")
		}},
		{name: "the answer taken back", change: func(w *Write) {
			w.Live.Annotations = with(reboot, string(marker.KeyActiveID), intentID, string(marker.KeyActionState), "error", string(marker.KeyMessage), "m")
			w.Patch = Patch{ResourceVersion: "10", Annotations: map[string]*string{
				string(marker.KeyActiveID): nil, string(marker.KeyActionState): nil, string(marker.KeyMessage): nil}}
		}, want: rule.ReasonIntent},
		{name: "the message of an error taken away", change: func(w *Write) {
			w.Live.Annotations = with(reboot, string(marker.KeyActiveID), intentID, string(marker.KeyActionState), "error", string(marker.KeyMessage), "m")
			w.Patch = Patch{ResourceVersion: "10", Annotations: map[string]*string{string(marker.KeyMessage): nil}}
		}, want: rule.ReasonValue, says: "message"},
		{name: "an older answer left alone beside a fact", change: func(w *Write) {
			w.Live.Annotations = with(reboot, string(marker.KeyActiveID), "intent-6", string(marker.KeyActionState), "busy")
			w.Patch = fact(marker.KeyBootID, newBoot)
		}},
		{name: "an older answer written once more", change: func(w *Write) {
			w.Live.Annotations = with(reboot, string(marker.KeyActiveID), "intent-6", string(marker.KeyActionState), "busy")
			w.Patch = answer("intent-6", marker.StateBusy, nil)
		}, want: rule.ReasonIntent},
		{name: "a state that isn't one", change: func(w *Write) { w.Patch = answer(intentID, "dancing", nil) }, want: rule.ReasonValue, says: "action-state"},
		{name: "a reason that isn't one", change: func(w *Write) {
			w.Patch = answer(intentID, marker.StateError, map[marker.Key]string{marker.KeyMessage: "m", marker.KeyReason: "Dancing"})
		}, want: rule.ReasonValue, says: "reason"},
		{name: "a reason", change: func(w *Write) {
			w.Patch = answer(intentID, marker.StateError, map[marker.Key]string{marker.KeyMessage: "m", marker.KeyReason: "AnotherUpdater"})
		}},
		{name: "a reason alone, under an older answer", change: func(w *Write) {
			w.Live.Annotations = with(reboot, string(marker.KeyActiveID), "intent-6", string(marker.KeyActionState), "error", string(marker.KeyMessage), "m")
			w.Patch = fact(marker.KeyReason, "AnotherUpdater")
		}, want: rule.ReasonIntent},
		{name: "busy at the last moment", change: func(w *Write) { w.Now = noon.Add(time.Hour - time.Nanosecond) }},
		{name: "busy when the time is up", change: func(w *Write) { w.Now = noon.Add(time.Hour) }, want: rule.ReasonUntil},
		{name: "busy on a paused node", change: func(w *Write) { w.Live.Annotations = with(reboot, string(marker.KeyPaused), "why") }, want: rule.ReasonPaused},
		{name: "busy on an uncordoned node", change: func(w *Write) { w.Live.Unschedulable = false }, want: rule.ReasonNotCordoned},
		{name: "busy in the boot to be left", change: func(w *Write) {
			w.Patch = answer(intentID, marker.StateBusy, map[marker.Key]string{marker.KeyBootID: oldBoot})
		}},
		{name: "busy in a later boot", change: func(w *Write) {
			w.Patch = answer(intentID, marker.StateBusy, map[marker.Key]string{marker.KeyBootID: newBoot})
		}, want: rule.ReasonRebooted},
		{name: "busy to prepare on an uncordoned node", change: func(w *Write) {
			w.Live.Annotations, w.Live.Unschedulable = intentOf(marker.ActionPrepareUpdate), false
		}},
		{name: "busy affirmed", change: func(w *Write) {
			w.Live.Annotations = with(reboot, string(marker.KeyActiveID), intentID, string(marker.KeyActionState), "busy")
		}},
		{name: "busy affirmed when the time is up", change: func(w *Write) {
			w.Live.Annotations = with(reboot, string(marker.KeyActiveID), intentID, string(marker.KeyActionState), "busy")
			w.Now = noon.Add(2 * time.Hour)
		}, want: rule.ReasonUntil},
		{name: "busy affirmed by its state alone", change: func(w *Write) {
			w.Live.Annotations = with(reboot, string(marker.KeyActiveID), intentID, string(marker.KeyActionState), "busy", string(marker.KeyPaused), "why")
			w.Patch = fact(marker.KeyActionState, "busy")
		}, want: rule.ReasonPaused},
		{name: "busy after error", change: func(w *Write) {
			w.Live.Annotations = with(reboot, string(marker.KeyActiveID), intentID, string(marker.KeyActionState), "error", string(marker.KeyMessage), "m")
		}, want: rule.ReasonAfterError},
		{name: "busy after ready", change: func(w *Write) {
			w.Live.Annotations = with(reboot, string(marker.KeyActiveID), intentID, string(marker.KeyActionState), "ready")
		}, want: rule.ReasonAfterAnswer},
		{name: "busy after an answer that can't be read", change: func(w *Write) {
			w.Live.Annotations = with(reboot, string(marker.KeyActiveID), intentID, string(marker.KeyActionState), "errror")
		}, want: rule.ReasonAfterAnswer, says: "action-state"},
		{name: "busy after an error on another intent", change: func(w *Write) {
			w.Live.Annotations = with(reboot, string(marker.KeyActiveID), "intent-6", string(marker.KeyActionState), "error", string(marker.KeyMessage), "m")
		}},
		{name: "a reboot's success in the boot it had to leave", change: func(w *Write) {
			w.Patch = answer(intentID, marker.StateReady, map[marker.Key]string{marker.KeyBootID: oldBoot})
		}, want: rule.ReasonUnproven},
		{name: "a reboot's success without a boot ID", change: func(w *Write) { w.Patch = answer(intentID, marker.StateReady, nil) }, want: rule.ReasonUnproven},
		{name: "a reboot's success in another boot", change: func(w *Write) {
			w.Patch = answer(intentID, marker.StateReady, map[marker.Key]string{marker.KeyBootID: newBoot})
		}},
		{name: "a reboot's late success after its error", change: func(w *Write) {
			w.Live.Annotations = with(reboot, string(marker.KeyActiveID), intentID, string(marker.KeyActionState), "error", string(marker.KeyMessage), "m")
			w.Patch = answer(intentID, marker.StateReady, map[marker.Key]string{marker.KeyBootID: newBoot})
		}},
		{name: "an error after the time is up, on a paused node", change: func(w *Write) {
			w.Live.Annotations, w.Now = with(reboot, string(marker.KeyPaused), "why"), noon.Add(2*time.Hour)
			w.Patch = answer(intentID, marker.StateError, nil)
		}},
		{name: "a message of two lines", change: func(w *Write) { w.Patch = fact(marker.KeyMessage, "a\nb") }, want: rule.ReasonValue, says: "U+000A"},
		{name: "a message that turns text around", change: func(w *Write) { w.Patch = fact(marker.KeyOperatorVersion, "v2\u202e") }, want: rule.ReasonValue},
		{name: "a message too long", change: func(w *Write) {
			w.Patch = answer(intentID, marker.StateError, map[marker.Key]string{marker.KeyMessage: strings.Repeat("m", marker.MaxMessage+1)})
		}, want: rule.ReasonValue, says: "message"},
		{name: "a version that isn't one", change: func(w *Write) { w.Patch = fact(marker.KeyAvailableVersion, "latest") }, want: rule.ReasonValue},
		{name: "facts of the host's settings, and what it lists", change: func(w *Write) {
			w.Patch.Annotations = map[string]*string{string(marker.KeyVersionLock): new("v1.26.1"), string(marker.KeyWaveSeed): new("1487"), string(marker.KeyOfferedVersions): new("1.27.0,1.26.1,more")}
		}},
		{name: "a lock that is none", change: func(w *Write) { w.Patch = fact(marker.KeyVersionLock, "1.26.1 or so") }, want: rule.ReasonValue, says: "version-lock"},
		{name: "a seed that is none", change: func(w *Write) { w.Patch = fact(marker.KeyWaveSeed, "1e3") }, want: rule.ReasonValue, says: "wave-seed"},
		{name: "more offers than may be", change: func(w *Write) {
			w.Patch = fact(marker.KeyOfferedVersions, strings.Repeat("1.26.1,", 20)+"1.26.1")
		}, want: rule.ReasonValue, says: "offered-versions"},
		{name: "a flag that is neither", change: func(w *Write) { w.Patch = fact(marker.KeyUpdateAvailable, "yes") }, want: rule.ReasonValue},
		{name: "a flag", change: func(w *Write) { w.Patch = fact(marker.KeyUpdateAvailable, "true") }},
		{name: "a good fact beside a bad one that stands", change: func(w *Write) {
			w.Live.Annotations = with(reboot, string(marker.KeyAvailableVersion), "latest")
			w.Patch = fact(marker.KeyCurrentVersion, "1.19.0")
		}},
		{name: "an answer beside a bad fact that stands", change: func(w *Write) {
			w.Live.Annotations = with(reboot, string(marker.KeyAvailableVersion), "latest")
		}, want: rule.ReasonValue},
		{name: "nothing at all", change: func(w *Write) { w.Patch.Annotations = nil }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := good
			tc.change(&w)
			got := rule.Judge(w)
			assert.Equal(t, verdict(got), orAllowed(tc.want))
			if tc.says != "" {
				assert.Assert(t, strings.Contains(got.Message, tc.says), got.Message)
			}
		})
	}
}

func verdict(r *Refusal) string {
	if r == nil {
		return "allowed"
	}
	return string(r.Reason)
}

func orAllowed(r Reason) string {
	if r == "" {
		return "allowed"
	}
	return string(r)
}

// TestJudgeAnswers prints what the rule says to every answer in every situation, so that a change of the
// rule shows as a change of this table.
func TestJudgeAnswers(t *testing.T) {
	var out strings.Builder
	columns := []marker.State{marker.StateBusy, marker.StateReady, marker.StateError, marker.StateNone}
	fmt.Fprintf(&out, "%-16s %-8s %-12s", "intent", "answered", "node")
	for _, s := range columns {
		name := string(s)
		if s == marker.StateNone {
			name = "taken back"
		}
		fmt.Fprintf(&out, " | %-20s", name)
	}
	out.WriteString("\n")
	intents := map[string]map[string]string{"none": nil, "unreadable": with(intentOf(marker.ActionStabilize), string(marker.KeyIntentUntil), "soon")}
	order := []string{"none", "unreadable"}
	for _, a := range marker.Actions() {
		order = append(order, string(a))
		intents[string(a)] = intentOf(a)
	}
	for _, name := range order {
		for _, answered := range []string{"no", "older", "busy", "ready", "error"} {
			for _, node := range []string{"as it was", "rebooted", "too late", "paused", "uncordoned"} {
				fmt.Fprintf(&out, "%-16s %-8s %-12s", name, answered, node)
				for _, s := range columns {
					fmt.Fprintf(&out, " | %-20s", verdict(rule.Judge(situation(intents[name], answered, node, s))))
				}
				out.WriteString("\n")
			}
		}
	}
	goldenText(t, out.String(), "answers.golden")
}

func situation(annotations map[string]string, answered, node string, s marker.State) Write {
	live := with(annotations, string(marker.KeyBootID), oldBoot, string(marker.KeyCurrentVersion), "1.19.0")
	switch answered {
	case "older":
		live = with(live, string(marker.KeyActiveID), "intent-6", string(marker.KeyActionState), "ready")
	case "busy", "ready", "error":
		live = with(live, string(marker.KeyActiveID), intentID, string(marker.KeyActionState), answered, string(marker.KeyMessage), "it broke before")
	}
	w := Write{NodeName: agent.NodeName, NodeUID: agent.NodeUID, Live: liveNode(nil), Now: noon}
	facts := map[marker.Key]string{}
	switch node {
	case "rebooted":
		facts = map[marker.Key]string{marker.KeyBootID: newBoot, marker.KeyCurrentVersion: target}
	case "too late":
		w.Now = noon.Add(time.Hour)
	case "paused":
		live = with(live, string(marker.KeyPaused), "maintenance")
	case "uncordoned":
		w.Live.Unschedulable = false
	}
	w.Live.Annotations = live
	w.Patch = answer(intentID, s, facts)
	if s == marker.StateNone {
		w.Patch = Patch{ResourceVersion: "10", Annotations: map[string]*string{
			string(marker.KeyActiveID): nil, string(marker.KeyActionState): nil, string(marker.KeyMessage): nil}}
	}
	return w
}

// goldenText compares a table with its golden file.
func goldenText(t *testing.T, s, file string) {
	t.Helper()
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	golden.Assert(t, strings.Join(lines, "\n"), file)
}

// TestJudgeKeys prints which key an agent may touch.
func TestJudgeKeys(t *testing.T) {
	var out strings.Builder
	keys := []string{"example.com/key", "bottlerocket.aws/unheard-of", "bottlerocket.aws/Active-ID", "kubectl.kubernetes.io/last-applied-configuration", ""}
	for _, e := range marker.Table() {
		keys = append(keys, string(e.Key))
	}
	identities := []struct {
		name string
		Identity
	}{
		{"own node", agent},
		{"other node", Identity{NodeName: "node-2", NodeUID: "uid-2"}},
		{"recreated", Identity{NodeName: agent.NodeName, NodeUID: "uid-0"}},
	}
	fmt.Fprintf(&out, "%-50s %-7s", "key", "")
	for _, i := range identities {
		fmt.Fprintf(&out, " | %-20s", i.name)
	}
	out.WriteString("\n")
	values := map[marker.Key]string{marker.KeyActiveID: intentID, marker.KeyActionState: "ready", marker.KeyReason: "AnotherUpdater", marker.KeyAvailableVersion: target,
		marker.KeyOfferedVersions: target, marker.KeyVersionLock: "latest", marker.KeyWaveSeed: "7",
		marker.KeyCurrentVersion: target, marker.KeyActivatedID: intentID, marker.KeyProtocol: "1", marker.KeyActionActive: "false", marker.KeyUpdateAvailable: "false"}
	for _, k := range keys {
		for _, op := range []string{"set", "delete"} {
			fmt.Fprintf(&out, "%-50s %-7s", k, op)
			for _, i := range identities {
				p := Patch{ResourceVersion: "10", Annotations: map[string]*string{k: nil}}
				if v, ok := values[marker.Key(k)]; op == "set" && ok {
					p.Annotations[k] = &v
				} else if op == "set" {
					p.Annotations[k] = value("value")
				}
				live := with(intentOf(marker.ActionStabilize), string(marker.KeyActiveID), intentID, string(marker.KeyActionState), "busy", k, "stands")
				if marker.Owns(marker.WriterAgent, k) && k != "" {
					live = with(intentOf(marker.ActionStabilize), string(marker.KeyActiveID), intentID, string(marker.KeyActionState), "busy")
				}
				fmt.Fprintf(&out, " | %-20s", verdict(rule.Judge(Write{NodeName: i.NodeName, NodeUID: i.NodeUID, Live: liveNode(live), Patch: p, Now: noon})))
			}
			out.WriteString("\n")
		}
	}
	goldenText(t, out.String(), "keys.golden")
}

// TestAgentStepsPass holds that whatever an agent's own next step reports is allowed, as long as `busy`
// keeps its rules: an agent must stay able to work.
func TestAgentStepsPass(t *testing.T) {
	hosts := []next.Host{}
	for _, state := range []next.HostState{next.HostUninitialized, next.HostIdle, next.HostAvailable, next.HostStaged, next.HostReady} {
		for _, boot := range []string{oldBoot, newBoot} {
			for _, version := range []string{"1.19.0", target} {
				for _, last := range []next.LastCommand{
					{}, {Command: next.CommandRefresh, Success: true, Timestamp: "t"},
					{Command: next.CommandPrepare, Success: true, Timestamp: "t", Started: target},
					{Command: next.CommandPrepare, Timestamp: "t", Problem: "no space"},
				} {
					hosts = append(hosts, next.Host{BootID: boot, Version: version, State: state, Chosen: target,
						ChosenKnown: last.Command == next.CommandRefresh, Staged: target, Last: last, VersionLock: "latest"})
				}
			}
		}
	}
	reports := 0
	for _, action := range marker.Actions() {
		for _, answered := range []string{"no", "older", "busy", "ready", "error"} {
			for _, affirmed := range []string{"", intentID} {
				for n, h := range hosts {
					var wish *marker.Lock
					if n%3 == 1 {
						wish = &marker.Lock{Want: target, Before: "latest"}
					}
					w := situation(intentOf(action), answered, "as it was", marker.StateReady)
					last, problems := marker.DecodeReport(w.Live.Annotations)
					assert.Equal(t, len(problems), 0)
					i, problems := marker.DecodeIntent(w.Live.Annotations)
					assert.Equal(t, len(problems), 0)
					v := next.View{Now: noon, Started: noon.Add(-time.Hour), Intent: i, Report: last, Host: h,
						Affirmed: affirmed, RefreshTried: noon, RefreshEvery: time.Hour, Lock: wish}
					step := next.Decide(v)
					if step.Kind != next.StepReport {
						continue
					}
					reports++
					w.Patch.Annotations = map[string]*string{}
					for k, v := range next.Changes(v, step, w.Live.Annotations, "v2.0.0") {
						w.Patch.Annotations[string(k)] = v
					}
					refusal := rule.Judge(w)
					assert.Assert(t, refusal == nil, "%s answered %s, host %+v: %+v refused: %v", action, answered, h, step, refusal)
				}
			}
		}
	}
	assert.Assert(t, reports > 100, "only %d reports", reports)
}
