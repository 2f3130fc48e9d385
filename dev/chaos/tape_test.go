package chaos

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

var start = time.Date(2026, 9, 20, 10, 0, 0, 0, time.UTC)

// tape plays API server: it keeps objects and writes an audit log of what it is asked.
type tape struct {
	now     time.Time
	version uint64
	nodes   map[string]*corev1.Node
	pods    map[string]*corev1.Pod
	held    map[string]string
	state   string // the version of the list of slots
	// mute: what happens is not logged.
	mute bool
	log  Log
}

func newTape(nodes ...string) *tape {
	t := &tape{now: start, nodes: map[string]*corev1.Node{}, pods: map[string]*corev1.Pod{}, held: map[string]string{}}
	for _, name := range nodes {
		n := &corev1.Node{TypeMeta: metav1.TypeMeta{Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Annotations: map[string]string{}}}
		t.nodes[name] = n
		n.ResourceVersion = t.next()
		t.entry("admin", "create", "nodes", name, nil, n)
		t.kubelet(name, "boot-1-"+name, "1.50.0", true)
	}
	return t
}

func (t *tape) next() string {
	t.version++
	t.now = t.now.Add(100 * time.Millisecond)
	return strconv.FormatUint(t.version, 10)
}

func (t *tape) entry(by, verb, resource, name string, request, response any) *Entry {
	e := &Entry{Stage: "ResponseComplete", Verb: verb, Received: metav1.NewMicroTime(t.now), Answered: metav1.NewMicroTime(t.now.Add(time.Millisecond))}
	e.User.Username, e.Answer.Code = by, 200
	e.Object.Resource, e.Object.Name = resource, name
	e.Request, e.Response = encode(request), encode(response)
	if !t.mute {
		t.log.Entries = append(t.log.Entries, e)
	}
	return e
}

func encode(v any) json.RawMessage {
	if v == nil {
		return nil
	}
	if raw, ok := v.(string); ok {
		return json.RawMessage(raw)
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// kubelet writes a node's status.
func (t *tape) kubelet(name, boot, version string, ready bool) {
	n := t.nodes[name]
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	since := metav1.NewTime(t.now.Truncate(time.Second))
	if c := n.Status.Conditions; len(c) == 1 && c[0].Status == status {
		since = c[0].LastTransitionTime
	}
	n.Status.NodeInfo.BootID, n.Status.NodeInfo.OSImage = boot, "Bottlerocket OS "+version+" (aws-k8s-1.36)"
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: since}}
	n.ResourceVersion = t.next()
	t.entry("system:node:"+name, "patch", "nodes", name, "{}", n).Object.Subresource = "status"
}

// patch is a merge patch of annotations and, if it isn't nil, the cordon.
func (t *tape) patch(by, name string, annotations map[marker.Key]string, cordon *bool) {
	n := t.nodes[name]
	metadata, keys := map[string]any{}, map[string]any{}
	for k, v := range annotations {
		if v == "" {
			delete(n.Annotations, string(k))
			keys[string(k)] = nil
		} else {
			n.Annotations[string(k)] = v
			keys[string(k)] = v
		}
	}
	if len(keys) > 0 {
		metadata["annotations"] = keys
	}
	if isOperator(by) {
		metadata["resourceVersion"] = n.ResourceVersion
	}
	body := map[string]any{"metadata": metadata}
	if cordon != nil {
		n.Spec.Unschedulable = *cordon
		var value any
		if *cordon {
			value = true
		}
		body["spec"] = map[string]any{"unschedulable": value}
	}
	n.ResourceVersion = t.next()
	var answer any = n
	if by == proxyAccount {
		answer = metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadata"}, ObjectMeta: n.ObjectMeta}
	}
	t.entry(by, "patch", "nodes", name, body, answer)
}

// report is a patch of the agent's, by the proxy.
func (t *tape) report(name string, annotations map[marker.Key]string) {
	t.patch(proxyAccount, name, annotations, nil)
}

func (t *tape) command(name string, annotations map[marker.Key]string, cordon *bool) {
	t.patch(controllerAccount, name, annotations, cordon)
}

// intent is what a new intent says.
func (t *tape) intent(id string, a marker.Action) map[marker.Key]string {
	return map[marker.Key]string{
		marker.KeyIntentID: id, marker.KeyActionWanted: string(a), marker.KeyTargetVersion: "1.51.0",
		marker.KeyIntentTime: t.now.Format(time.RFC3339), marker.KeyIntentUntil: t.now.Add(30 * time.Second).Format(time.RFC3339),
	}
}

func (t *tape) answer(name string, s marker.State) map[marker.Key]string {
	return map[marker.Key]string{marker.KeyActiveID: t.nodes[name].Annotations[string(marker.KeyIntentID)], marker.KeyActionState: string(s)}
}

func (t *tape) slots(change func(map[string]string)) {
	before := t.state
	change(t.held)
	t.state = t.next()
	c := func(version string) corev1.ConfigMap {
		return corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "update-state", ResourceVersion: version},
			Data: map[string]string{"slots": string(encode(t.held))}}
	}
	t.entry(controllerAccount, "update", "configmaps", "update-state", c(before), c(t.state)).Object.Namespace = "bottlerocket"
}

func (t *tape) pod(name, node string, edit func(*corev1.Pod)) {
	p := &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)}}
	if edit != nil {
		edit(p)
	}
	p.ResourceVersion = t.next()
	t.pods[name] = p
	t.entry("system:serviceaccount:kube-system:replicaset-controller", "create", "pods", name, nil, p).Object.Namespace = p.Namespace
	bound := t.entry("system:kube-scheduler", "create", "pods", name, map[string]any{"target": map[string]any{"name": node}}, nil)
	bound.Object.Namespace, bound.Object.Subresource = p.Namespace, "binding"
	p.Spec.NodeName = node
	p.ResourceVersion = t.next()
}

// gone is the end of a pod, by its kubelet.
func (t *tape) gone(name string) {
	p := t.pods[name]
	delete(t.pods, name)
	p.ResourceVersion = t.next()
	t.entry("system:node:"+p.Spec.NodeName, "delete", "pods", name, map[string]any{"gracePeriodSeconds": 0}, p).Object.Namespace = p.Namespace
}

// look is the controller's list of a node's pods; hidden ones are left out.
func (t *tape) look(node string, hidden ...string) {
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(t.version, 10)}}
	for name, p := range t.pods {
		if p.Spec.NodeName == node && !slices.Contains(hidden, name) {
			list.Items = append(list.Items, *p)
		}
	}
	t.now = t.now.Add(10 * time.Millisecond)
	t.entry(controllerAccount, "list", "pods", "", nil, list).RequestURI = "/api/v1/pods?fieldSelector=spec.nodeName%3D" + node + "&limit=500"
	t.now = t.now.Add(10 * time.Millisecond)
}

// show is a client's list of all nodes.
func (t *tape) show() {
	list := corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList"}}
	for _, n := range t.nodes {
		list.Items = append(list.Items, *n)
	}
	t.entry("admin", "list", "nodes", "", nil, list)
}

func (t *tape) disruption(cordonedBefore bool, soak bool) string {
	s := fmt.Sprintf(`{"since":%q,"wasUnschedulable":%t`, t.now.Format(time.RFC3339Nano), cordonedBefore)
	if soak {
		s += fmt.Sprintf(`,"ready":"then","soak":%q`, t.now.Format(time.RFC3339Nano))
	}
	return s + "}"
}

// stage is one thing that happens on the way of a node.
type stage struct {
	name string
	do   func(*tape)
}

// way is an update as it should be.
func way(node string) []stage {
	yes, no := new(true), new(false)
	return []stage{
		{"first intent", func(t *tape) {
			i := t.intent("i1-"+node, marker.ActionStabilize)
			delete(i, marker.KeyTargetVersion)
			t.command(node, i, nil)
		}},
		{"facts", func(t *tape) {
			a := t.answer(node, marker.StateReady)
			a[marker.KeyCurrentVersion], a[marker.KeyBootID] = "1.50.0", "boot-1-"+node
			t.report(node, a)
		}},
		{"stage", func(t *tape) { t.command(node, t.intent("i2-"+node, marker.ActionPrepareUpdate), nil) }},
		{"staged", func(t *tape) { t.report(node, t.answer(node, marker.StateReady)) }},
		{"slot", func(t *tape) { t.slots(func(held map[string]string) { held["uid-"+node] = node }) }},
		{"pod", func(t *tape) { t.pod("pod-"+node, node, nil) }},
		{"cordon", func(t *tape) {
			t.command(node, map[marker.Key]string{marker.KeyDisruption: t.disruption(false, false), marker.KeyRebootFrom: "boot-1-" + node}, yes)
		}},
		{"evict", func(t *tape) { t.gone("pod-" + node) }},
		{"look", func(t *tape) { t.look(node) }},
		{"reboot", func(t *tape) { t.command(node, t.intent("i3-"+node, marker.ActionRebootUpdate), nil) }},
		{"busy", func(t *tape) { t.report(node, t.answer(node, marker.StateBusy)) }},
		{"boot", func(t *tape) { t.kubelet(node, "boot-2-"+node, "1.51.0", true) }},
		{"back", func(t *tape) {
			a := t.answer(node, marker.StateReady)
			a[marker.KeyCurrentVersion], a[marker.KeyBootID] = "1.51.0", "boot-2-"+node
			t.report(node, a)
		}},
		{"return", func(t *tape) {
			i := t.intent("i4-"+node, marker.ActionStabilize)
			i[marker.KeyDisruption] = t.disruption(false, true)
			t.command(node, i, no)
		}},
		{"affirm", func(t *tape) { t.report(node, t.answer(node, marker.StateReady)) }},
		{"soak", func(t *tape) { t.now = t.now.Add(time.Second) }},
		{"finish", func(t *tape) {
			t.command(node, map[marker.Key]string{
				marker.KeyDisruption: "", marker.KeyTargetVersion: "", marker.KeyRebootFrom: "",
				marker.KeyHistory: `[{"version":"1.51.0","outcome":"updated","started":"2026-09-20T10:00:00Z","ended":"2026-09-20T10:00:09Z"}]`,
			}, nil)
		}},
		{"free", func(t *tape) { t.slots(func(held map[string]string) { delete(held, "uid-"+node) }) }},
		{"end", func(t *tape) { t.show() }},
	}
}

// play lets stages happen and returns the verdict.
func (t *tape) play(stages []stage, edit func(*Terms)) Verdict {
	for _, s := range stages {
		s.do(t)
	}
	from := t.now.Add(time.Second)
	terms := Terms{Nodes: len(t.nodes), Version: "1.51.0", Limit: 1, MaxLost: 1, RebootDeadline: 30 * time.Second, ReturnDeadline: 30 * time.Second,
		Soak: time.Second, Rest: Window{From: from, To: from.Add(5 * time.Second)}}
	if edit != nil {
		edit(&terms)
	}
	return Judge(t.log, terms)
}

// instead replaces stages, before puts one before another; an unknown name is a mistake of the test.
func instead(stages []stage, name string, do func(*tape)) []stage {
	out := slices.Clone(stages)
	out[at(out, name)].do = do
	return out
}

func before(stages []stage, name string, do func(*tape)) []stage {
	return slices.Insert(slices.Clone(stages), at(stages, name), stage{"more", do})
}

func without(stages []stage, name string) []stage { return instead(stages, name, func(*tape) {}) }

func at(stages []stage, name string) int {
	i := slices.IndexFunc(stages, func(s stage) bool { return s.name == name })
	if i < 0 {
		panic("no stage " + name)
	}
	return i
}

func lost(s stage) func(*tape) {
	return func(t *tape) {
		t.mute = true
		s.do(t)
		t.mute = false
	}
}
