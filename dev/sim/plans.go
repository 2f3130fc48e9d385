package sim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

const (
	plansNamespace = "bottlerocket-plans"
	plansField     = "plans:"
	// systemLabel is what plans choose their nodes by.
	systemLabel = "example.com/system"
	// filesName is the ConfigMap that templates of content mount.
	filesName = "files"
	// firstKubelet is what the kubelets of nodes of plans show at first.
	firstKubelet = "v1.35.1+k3s1"
	// prepares begins the names of templates whose pods change nothing.
	prepares = "prepare"
)

// The templates of apply pods, by what their pods do.
const (
	newKubelet       = "new-kubelet"
	newKubeletReboot = "new-kubelet-reboot"
	newFiles         = "new-files"
	newFilesReboot   = "new-files-reboot"
)

var templates = []string{prepares, prepares + "-files", newKubelet, newKubeletReboot, newFiles, newFilesReboot}

// planning are the kinds of scenarios with nodes of plans.
var planning = []Kind{CrashRunner, FreezeRunner, PlanPodHangs, PlanPodFails, PlanPodNoEffect, PlanPodEvicted, PlanPodRejected, PlanPodRefused,
	ImageNotPulled, KubeletDies, RebootInPod, PersonDeletesPlanPod, PersonChangesTemplate}

// planMoments are those of nodes of plans beside the others'.
var planMoments = []Moment{AtPod}

// plan draws nodes of plans, for a part of the seeds, the plans of each policy, and what goes wrong with them.
func (s *Scenario) plan(r *rand.Rand) {
	if r.IntN(4) > 0 {
		return
	}
	s.PlanNodes, s.Runners, s.Walls = 1+r.IntN(s.Nodes), 1+r.IntN(2), r.IntN(2) == 0
	if len(s.Policies) == 0 {
		s.Policies = []Rules{nil}
		if r.IntN(2) == 0 {
			s.Policies = []Rules{nil, nil}
		}
	}
	files, kubelets := drawFiles(r), drawKubelets(r)
	which := r.IntN(4)
	for i := range s.Policies {
		var plans []string
		last := i == len(s.Policies)-1
		if which != 0 {
			minor := 1
			if last {
				minor = 2
			}
			plans = append(plans, fmt.Sprintf(kubelets, fmt.Sprintf("v1.36.%d+k3s1", minor)))
		}
		if which != 1 {
			plans = append(plans, files)
		}
		if which == 3 {
			slices.Reverse(plans)
		}
		if i > 0 && !last && r.IntN(4) == 0 {
			plans = plans[1:]
		}
		s.Policies[i].put("plans", "[%s]", strings.Join(plans, ", "))
	}
	some := make([]Kind, 1+r.IntN(5))
	for i := range some {
		some[i] = planning[r.IntN(len(planning))]
	}
	for range 1 + r.IntN(2*len(some)+4) {
		f := Fault{At: time.Duration(r.Int64N(int64(s.Trouble))).Truncate(time.Millisecond), Kind: some[r.IntN(len(some))],
			On: s.Nodes - 1 - r.IntN(s.PlanNodes), For: time.Duration(r.Int64N(int64(1<<r.IntN(8)) * int64(2*time.Second))).Truncate(time.Millisecond), N: r.IntN(16)}
		switch r.IntN(4) {
		case 0:
			f.When = moments[r.IntN(len(moments))]
		case 1:
			f.When = AtPod
		case 2:
			f.When = AtBusy
		}
		s.Faults = append(s.Faults, f)
	}
}

func drawKubelets(r *rand.Rand) string {
	rule := "{name: k3s, nodeSelector: {}, apply: " + newKubelet + ", target: {version: %s}, proof: kubeletVersion, effect: restart, deadline: 5m"
	if r.IntN(2) == 0 {
		rule = strings.NewReplacer(newKubelet, newKubeletReboot, "restart", "reboot").Replace(rule)
	}
	if r.IntN(3) == 0 {
		rule += ", drain: cordon"
	}
	if r.IntN(2) == 0 {
		rule += ", prepare: " + prepares
	}
	if r.IntN(3) == 0 {
		rule += ", maxMinorSkip: 1"
	}
	return rule + "}"
}

func drawFiles(r *rand.Rand) string {
	rule := "{name: files, nodeSelector: " + pick(r, "{}", "{}", "{matchLabels: {"+systemLabel+": b}}")
	rule += pick(r, ", apply: "+newFiles+", effect: none", ", apply: "+newFiles+", effect: none, drain: cordon", ", apply: "+newFiles+", effect: restart",
		", apply: "+newFilesReboot+", effect: reboot", ", apply: "+newFilesReboot+", effect: restart, drain: cordon")
	if r.IntN(3) == 0 {
		rule += ", prepare: " + prepares + "-files"
	}
	return rule + ", target: {content: true}, proof: content, deadline: 5m}"
}

// planned reports whether the i-th machine's node is one of plans: the last ones are.
func (s Scenario) planned(i int) bool { return i >= s.Nodes-s.PlanNodes }

// writeTemplates makes what the plans of all policies name.
func (w *world) writeTemplates() {
	core := w.people.CoreV1()
	must(core.Secrets(namespace).Create(background, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "update-operator-runner"},
		Data: map[string][]byte{"key": []byte("0123456789abcdef0123456789abcdef")}}, metav1.CreateOptions{}))
	must(core.ConfigMaps(plansNamespace).Create(background, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: plansNamespace, Name: filesName},
		Data: map[string]string{"file": "0"}}, metav1.CreateOptions{}))
	for _, name := range templates {
		t := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: plansNamespace, Name: name}}
		t.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: "example.com/i:TARGET_VERSION"}}
		if name == newFiles || name == newFilesReboot {
			t.Template.Spec.Volumes = []corev1.Volume{{Name: "files", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: filesName}}}}}
		}
		must(core.PodTemplates(plansNamespace).Create(background, t, metav1.CreateOptions{}))
	}
}

// changeTemplates is a user who writes all templates anew, or what they mount.
func (w *world) changeTemplates(mounted bool) {
	w.rounds++
	round := fmt.Sprint(w.rounds)
	if mounted {
		w.note(people, "change the files")
		files := w.server.ConfigMap(plansNamespace, filesName).DeepCopy()
		files.Data = map[string]string{"file": round}
		must(w.people.CoreV1().ConfigMaps(plansNamespace).Update(background, files, metav1.UpdateOptions{}))
		return
	}
	w.note(people, "change the templates")
	for _, name := range templates {
		t := w.server.PodTemplate(plansNamespace, name).DeepCopy()
		t.Template.Annotations = map[string]string{"example.com/round": round}
		must(w.people.CoreV1().PodTemplates(plansNamespace).Update(background, t, metav1.UpdateOptions{}))
	}
}

// digests are what the content of each plan is now, as the runner says.
func (w *world) digests() map[string]string {
	out := map[string]string{}
	cm := w.server.ConfigMap(namespace, kube.PlanTargetsConfigMap)
	if cm == nil {
		return out
	}
	for name, value := range cm.Data {
		var t struct {
			Digest string `json:"digest"`
		}
		if json.Unmarshal([]byte(value), &t) == nil {
			out[name] = t.Digest
		}
	}
	return out
}

// planUnsettled says what a machine of plans still has to become; empty: nothing.
func (w *world) planUnsettled(m *machine, n *corev1.Node) string {
	plans, digests := w.plans(), w.digests()
	for i := range plans {
		p := &plans[i]
		if !chosen(p.Selector, n.Labels) {
			continue
		}
		want, has := p.Target.Version, m.kubeletVersion
		if p.Target.Content {
			want, has = digests[p.Name], m.has[p.Name]
		}
		if has != want || want == "" {
			return fmt.Sprintf("%s has %q of plan %s and not %q", n.Name, has, p.Name, want)
		}
	}
	if has(n, marker.KeyDisruption) || has(n, marker.KeyIntentID) && annotation(n, marker.KeyActionWanted) != string(marker.ActionStabilize) {
		return n.Name + " is still out of service"
	}
	return ""
}

// plans are those of the policy that stands.
func (w *world) plans() []policy.Plan {
	cm := w.server.ConfigMap(namespace, kube.PolicyConfigMap)
	if cm == nil {
		return nil
	}
	if w.plansOf != cm.ResourceVersion {
		w.plansOf, w.plansThere = cm.ResourceVersion, w.stands().Plans
	}
	return w.plansThere
}

// planPodsOn are the pods of plans on a node.
func (w *world) planPodsOn(node string) []*corev1.Pod {
	return slices.DeleteFunc(w.server.PodsOn(node), func(p *corev1.Pod) bool { return p.Namespace != plansNamespace })
}

// planOf is what the marks of a node say of its attempt's plan; false: it has none. It shares no code with the
// operator.
func planOf(n *corev1.Node) (mark planMark, ok bool) {
	text := annotation(n, marker.KeyPlan)
	return mark, text != "" && json.Unmarshal([]byte(text), &mark) == nil
}

type planMark struct {
	Name, Digest, Proof, Effect, Drain, Apply, Deadline string
}

// inPlace reports whether the plan of a node's attempt leaves the node's pods where they are.
func inPlace(n *corev1.Node) bool {
	mark, ok := planOf(n)
	return ok && mark.Drain != "true"
}

// inService reports whether it leaves the node in service too.
func inService(n *corev1.Node) bool {
	mark, ok := planOf(n)
	return ok && mark.Drain == "false"
}

// boots reports whether the attempt of a node ends with another boot.
func boots(n *corev1.Node) bool {
	mark, ok := planOf(n)
	return !ok || mark.Effect == "reboot"
}

// target is the last part of a plan's version, PLAN/TARGET#DIGEST, and its digest; false: it is none.
func target(version string) (plan, target, digest string, ok bool) {
	plan, rest, ok := strings.Cut(version, "/")
	target, digest, _ = strings.Cut(rest, "#")
	return plan, target, digest, ok
}

// planNamed is a plan of a policy; nil: there is none.
func planNamed(set *policy.Settings, name string) *policy.Plan {
	if i := slices.IndexFunc(set.Plans, func(p policy.Plan) bool { return p.Name == name }); i >= 0 {
		return &set.Plans[i]
	}
	return nil
}
