package plugin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// observation is one look at the node of a run.
type observation struct {
	at   time.Time
	node fleet.Node
	// pods are those on the node, and sawPods if they were looked at.
	pods    []podSeen
	sawPods bool
	events  []eventSeen
	// decision is what the leader's plan says of the node; nil if it wasn't asked.
	decision *plan.Decision
}

// podSeen is one pod. ending: it is shutting down. stays: it belongs to a DaemonSet, or is static.
type podSeen struct {
	uid, name     string
	ending, stays bool
}

// eventSeen is an Event of the operator on the node.
type eventSeen struct {
	id, reason, message string
}

// entry is one line of a journal.
type entry struct{ what, text string }

// journal is what a run has seen of its node. It makes of each observation what is new in it, and reads no clock.
type journal struct {
	id    string
	began time.Time
	// before is the node before the request, and node as it was seen last.
	before, node fleet.Node
	at           time.Time
	waits        string
	events       map[string]bool
	// pods are those that were seen on the node in its drain, evicted the names of those that left it.
	pods    map[string]podSeen
	evicted []string
	hooks   []string
	// cordoned and returned are when the node was taken out of service and given back, by the controller's clock.
	cordoned, returned time.Time
	// boots are the kubelet's, in their order.
	boots []string
	busy  bool
}

func newJournal(before *fleet.Node, id string, began time.Time) *journal {
	return &journal{id: id, began: began, before: *before, node: *before, at: began, events: map[string]bool{}, pods: map[string]podSeen{}, boots: []string{before.BootID}}
}

func draining(v *fleet.Node) bool { return v.Phase() == intent.PhaseDraining }

// begun reports whether the reboot can't be taken back any more.
func begun(v *fleet.Node) bool {
	return len(v.Problems) == 0 && (intent.PointOfNoReturn(v.Marks) || v.Phase() == intent.PhaseVerifying)
}

// phaseShown is a node's phase, as users read it.
func phaseShown(v *fleet.Node) intent.Phase {
	if w := v.Marks.Waiting; w != nil && w.Reason == string(plan.ReasonLost) {
		return intent.PhaseLost
	}
	return v.Phase()
}

// see takes an observation in, and returns what is new in it.
func (j *journal) see(o *observation) []entry {
	var all []entry
	add := func(what, format string, args ...any) { all = append(all, entry{what, fmt.Sprintf(format, args...)}) }
	was, now := &j.node, &o.node
	if d := now.Marks.Disruption; d != nil {
		j.cordoned = d.Since
		if d.Returned != nil {
			j.returned = *d.Returned
		}
	}
	if p := phaseShown(now); p != phaseShown(was) {
		add(string(p), "%s", means(p, now))
	}
	if now.Unschedulable != was.Unschedulable {
		add("cordon", "%s", map[bool]string{true: "the node is cordoned", false: "the node is uncordoned"}[now.Unschedulable])
	}
	if busy := intent.PointOfNoReturn(now.Marks); busy && !j.busy {
		j.busy = true
		add("reboot", "the agent has begun: from here on the reboot can't be taken back")
	}
	if now.Ready != was.Ready {
		add("kubelet", "%s", map[bool]string{true: "the node is Ready", false: "the node is not Ready"}[now.Ready])
	}
	if last := j.boots[len(j.boots)-1]; now.BootID != last && now.BootID != "" {
		j.boots = append(j.boots, now.BootID)
		add("kubelet", "boot %s, with %s; before it was boot %s", now.BootID, cmp.Or(now.OSVersion, "another system than Bottlerocket"), last)
	}
	all = append(all, j.seePods(o)...)
	all = append(all, j.seeWaits(o)...)
	for _, e := range o.events {
		if !j.events[e.id] {
			j.events[e.id] = true
			add("event", "%s: %s", e.reason, e.message)
		}
	}
	j.node, j.at = *now, o.at
	return all
}

// means says what a phase is about.
func means(p intent.Phase, v *fleet.Node) string {
	target, cycles := v.Marks.Intent.Target, v.Marks.Cycles()
	switch p {
	case intent.PhaseStaging:
		if cycles {
			return "the agent is asked whether it runs " + target
		}
		return "the agent stages " + marker.ShortVersion(target)
	case intent.PhaseStaged:
		return "the node waits for its turn"
	case intent.PhaseDraining:
		return plan.TakenOut(marker.ShortVersion(target), cycles) + "; its pods are evicted"
	case intent.PhaseRebooting:
		return "nothing is left to evict: the reboot is asked for"
	case intent.PhaseReturning:
		if v.Marks.Report.State == marker.StateError {
			return "the agent reports: " + v.Marks.Report.Message
		}
		return "the agent answers from boot " + v.Marks.Report.BootID + " with " + v.Marks.Report.Current
	case intent.PhaseVerifying:
		return "back in service; the soak runs"
	case intent.PhaseResetting:
		return "the attempt was abandoned; the agent undoes what may be activated"
	case intent.PhaseWaiting, intent.PhaseUpToDate:
		return "at rest"
	default:
		return "see waiting-for"
	}
}

// seePods says which pods leave the node in its drain.
func (j *journal) seePods(o *observation) []entry {
	if !o.sawPods {
		return nil
	}
	var all []entry
	if !o.node.Disrupted() && !j.node.Disrupted() {
		clear(j.pods)
	}
	here := map[string]bool{}
	for _, p := range o.pods {
		here[p.uid] = true
		if was := j.pods[p.uid]; p.ending && !was.ending && !p.stays {
			all = append(all, entry{"pod", p.name + " is evicted, and shuts down"})
		}
		j.pods[p.uid] = p
	}
	for _, uid := range slices.Sorted(maps.Keys(j.pods)) {
		p := j.pods[uid]
		if here[uid] || p.stays {
			continue
		}
		delete(j.pods, uid)
		j.evicted = append(j.evicted, p.name)
		all = append(all, entry{"pod", p.name + " has left the node"})
	}
	return all
}

// seeWaits says what the node waits for, once: while it is in progress by what the controller wrote on it, before that
// by the leader's plan. What a phase is about anyhow is not said again.
func (j *journal) seeWaits(o *observation) []entry {
	reason, message := plan.Reason(""), ""
	switch w := o.node.Marks.Waiting; {
	case w != nil:
		reason, message = plan.Reason(w.Reason), w.Message
	case o.decision != nil && o.decision.Act == "":
		reason, message = o.decision.Reason, o.decision.Message.String()
	default:
		return nil
	}
	name, _, hook := strings.Cut(strings.TrimPrefix(message, "hook "), " is awaited")
	if hook && reason == plan.ReasonHookAwaited && !slices.Contains(j.hooks, name) {
		j.hooks = append(j.hooks, name)
	}
	said := string(reason) + ": " + message
	if said == j.waits || slices.Contains(ofPhases, reason) {
		return nil
	}
	j.waits = said
	return []entry{{"waits", said}}
}

// ofPhases are the reasons that say no more than a phase.
var ofPhases = []plan.Reason{plan.ReasonStaging, plan.ReasonDraining, plan.ReasonRebooting, plan.ReasonReturning, plan.ReasonSoaking, plan.ReasonResetting, plan.ReasonUpToDate}

// selected are the options of a list; an empty selector selects all.
func selected(labels, fields string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: labels, FieldSelector: fields}
}

// podsOn lists the pods on a node that have not ended.
func podsOn(ctx context.Context, client kubernetes.Interface, node string) ([]podSeen, error) {
	list, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, selected("", "spec.nodeName="+node))
	if err != nil {
		return nil, errors.Wrapf(err, "listing the pods on node %q", node)
	}
	var pods []podSeen
	for i := range list.Items {
		p := &list.Items[i]
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		owner := metav1.GetControllerOf(p)
		_, static := p.Annotations[corev1.MirrorPodAnnotationKey]
		pods = append(pods, podSeen{uid: string(p.UID), name: p.Namespace + "/" + p.Name, ending: p.DeletionTimestamp != nil,
			stays: static || owner != nil && owner.Kind == "DaemonSet"})
	}
	return pods, nil
}

// nodeEvents lists the operator's Events on a node since a time that an administrator should read: the others say what
// the node's annotations do.
func nodeEvents(ctx context.Context, client kubernetes.Interface, node string, since time.Time) ([]eventSeen, error) {
	list, err := client.CoreV1().Events(metav1.NamespaceDefault).List(ctx, selected("", "involvedObject.kind=Node,involvedObject.name="+node))
	if err != nil {
		return nil, errors.Wrapf(err, "listing the Events on node %q", node)
	}
	var events []eventSeen
	for i := range list.Items {
		e := &list.Items[i]
		if e.Source.Component != "bottlerocket-update-operator" || e.LastTimestamp.Time.Before(since.Truncate(time.Second)) ||
			e.Type != corev1.EventTypeWarning && e.Reason != string(plan.ReasonCycleRefused) && e.Reason != string(plan.ReasonRequestWithdrawn) {
			continue
		}
		events = append(events, eventSeen{fmt.Sprintf("%s %d", e.UID, e.Count), e.Reason, e.Message})
	}
	return events, nil
}
