package sim

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// put writes a ConfigMap as a user does.
func (w *world) put(name string, data map[string]string) {
	maps := w.people.CoreV1().ConfigMaps(namespace)
	if cm := w.server.ConfigMap(namespace, name); cm != nil {
		cm = cm.DeepCopy()
		cm.Data = data
		must(maps.Update(background, cm, metav1.UpdateOptions{}))
		return
	}
	must(maps.Create(background, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}, metav1.CreateOptions{}))
}

// writePolicy writes a policy. Where the scenario says so, its pause of the fleet is set in PauseConfigMap instead, as the
// kubectl plugin does it.
func (w *world) writePolicy(text string) {
	if w.scenario.pausesBeside() {
		text = w.setPause(text)
	}
	w.putPolicy(text)
}

func (w *world) putPolicy(text string) {
	w.note(people, "write the policy: %s", strings.ReplaceAll(strings.TrimSpace(text), "\n", "; "))
	w.put(kube.PolicyConfigMap, map[string]string{kube.PolicyKey: text})
}

// setPause sets or ends the pause in PauseConfigMap, and returns the policy's text without its pause.
func (w *world) setPause(text string) string {
	var pauses kube.Pauses
	rules := slices.DeleteFunc(strings.Split(text, "\n"), func(rule string) bool {
		is := strings.HasPrefix(rule, pauseField)
		if is {
			pauses.Fleet = &kube.Pause{Reason: "a fair", By: people, At: w.now, InFlight: policy.Finish}
			if strings.Contains(rule, string(policy.Return)) {
				pauses.Fleet.InFlight = policy.Return
			}
		}
		return is
	})
	w.note(people, "pause the fleet with the plugin: %t", pauses.Fleet != nil)
	w.put(kube.PauseConfigMap, map[string]string{kube.PauseKey: string(must(json.Marshal(pauses)))})
	return strings.Join(rules, "\n")
}

// mistakes are what users write instead of a policy.
var mistakes = []map[string]string{
	{kube.PolicyKey: "version: 1\nmaxUnavailable: all of them\n"}, {kube.PolicyKey: ""}, {kube.PolicyKey: "version: 1\nmaxUnavailabel: 1\n"}, {"policy.yml": "version: 1\n"},
	{kube.PolicyKey: "version: 1\nwindows: [{schedule: at night, duration: 1h}]\n"},
}

// breakPolicy writes what is none, and later what stood there before.
func (w *world) breakPolicy(f Fault) bool {
	broken := mistakes[f.N%len(mistakes)]
	before := w.server.ConfigMap(namespace, kube.PolicyConfigMap)
	w.note(people, "write no policy: %q", broken)
	w.put(kube.PolicyConfigMap, broken)
	w.restore(f.For, func() {
		// A pause that was set with the plugin outlives this.
		switch {
		case before == nil:
			w.putPolicy(byDefault)
		default:
			w.putPolicy(before.Data[kube.PolicyKey])
		}
	})
	return true
}

// byDefault is the policy of a user without wishes.
const byDefault = "version: 1\n"

// deletePolicy takes the policy away, and later writes it again, as after a prune by mistake.
func (w *world) deletePolicy(f Fault) bool {
	before := w.server.ConfigMap(namespace, kube.PolicyConfigMap)
	if before == nil {
		return false
	}
	w.note(people, "delete the policy")
	_ = w.people.CoreV1().ConfigMaps(namespace).Delete(background, kube.PolicyConfigMap, metav1.DeleteOptions{})
	w.restore(f.For, func() {
		if w.server.ConfigMap(namespace, kube.PolicyConfigMap) == nil {
			w.note(people, "write the policy again")
			w.put(kube.PolicyConfigMap, before.Data)
		}
	})
	return true
}

// acknowledge lets the newest version go on wherever it failed.
func (w *world) acknowledge() {
	w.note(people, "acknowledge %s", w.newest)
	w.put(kube.AcknowledgedConfigMap, map[string]string{w.newest: ""})
}

// endPolicies lets the fleet come to its end.
func (w *world) endPolicies() {
	if !w.scenario.governed() {
		return
	}
	w.acknowledge()
	if n := len(w.scenario.Policies); n > 0 {
		w.writePolicy(w.scenario.Policies[n-1].Text())
	} else {
		w.writePolicy(byDefault)
	}
}

// stands is the policy that stands now; where what stands can't be read, that of the flags.
func (w *world) stands() policy.Settings {
	t := told{w: w, defaults: w.settings}
	t.file(w.server.ConfigMap(namespace, kube.PolicyConfigMap))
	if t.pause(w.server.ConfigMap(namespace, kube.PauseConfigMap)); t.beside != nil {
		t.set.Pause = t.beside
	}
	return t.set
}

// badRelease publishes a version that comes up on no machine before everything is put right.
func (w *world) badRelease() {
	w.release()
	w.bad = append(w.bad, w.newest)
	for _, m := range w.machines {
		if err := m.host.AddFault(hostsim.Fault{ID: hostsim.F17, Version: w.newest, Until: w.now.Add(30 * 24 * time.Hour)}); err != nil {
			panic(err)
		}
	}
}
