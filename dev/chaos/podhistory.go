package chaos

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podLife is what the log tells of one pod.
type podLife struct {
	name string // with its namespace
	node string
	// bound is when it was put on its node.
	bound time.Time
	// stays: a drain leaves it where it is.
	stays bool
	// over: its containers have ended.
	over bool
	// seen is the last version that shows it, gone the one without it; goneAt when that was answered.
	seen, gone uint64
	goneAt     time.Time
}

// look is a list of the pods of one node.
type look struct {
	by      string
	node    string
	at      time.Time
	version uint64
	left    []string // to evict
}

// podHistory is what the log tells of all pods.
type podHistory struct {
	pods  map[string]*podLife // by UID
	named map[string]*podLife // the newest of the name
	looks []look
}

func podsOf(log Log) *podHistory {
	h := &podHistory{pods: map[string]*podLife{}, named: map[string]*podLife{}}
	for _, e := range log.Entries {
		if e.Object.Resource != "pods" || !e.succeeded() {
			continue
		}
		switch e.resource() + " " + e.Verb {
		case "pods/binding create":
			h.bind(e)
		case "pods list":
			h.list(e)
		case "pods delete":
			h.remove(e)
		default:
			if p := podIn(e.Response); p != nil {
				h.see(p, e)
			}
		}
	}
	return h
}

func podIn(raw []byte) *corev1.Pod {
	var p corev1.Pod
	if len(raw) == 0 || json.Unmarshal(raw, &p) != nil || p.Kind != "Pod" || p.UID == "" {
		return nil
	}
	return &p
}

func (h *podHistory) see(p *corev1.Pod, e *Entry) *podLife {
	l := h.pods[string(p.UID)]
	if l == nil {
		l = &podLife{name: p.Namespace + "/" + p.Name}
		h.pods[string(p.UID)] = l
		h.named[l.name] = l
	}
	if p.Spec.NodeName != "" && l.node == "" {
		l.node, l.bound = p.Spec.NodeName, e.Answered.Time
	}
	l.stays = staysInDrain(p)
	l.over = p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	l.seen = max(l.seen, versionOf(p.ResourceVersion))
	if l.gone > 0 && l.seen > l.gone {
		// It was not gone, whatever a list said.
		l.gone, l.goneAt = 0, time.Time{}
	}
	return l
}

// staysInDrain is the rule of the README: what a drain leaves alone.
func staysInDrain(p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	own := p.Namespace == "bottlerocket" && p.Labels["app.kubernetes.io/name"] == "bottlerocket-update-operator"
	return mirror || own || owner != nil && owner.Kind == "DaemonSet"
}

func (h *podHistory) bind(e *Entry) {
	var b corev1.Binding
	if json.Unmarshal(e.Request, &b) != nil {
		return
	}
	if l := h.named[e.Object.Namespace+"/"+e.Object.Name]; l != nil && l.node == "" {
		l.node, l.bound = b.Target.Name, e.Answered.Time
	}
}

func (h *podHistory) remove(e *Entry) {
	var o metav1.DeleteOptions
	_ = json.Unmarshal(e.Request, &o)
	final := o.GracePeriodSeconds != nil && *o.GracePeriodSeconds == 0
	l := h.named[e.Object.Namespace+"/"+e.Object.Name]
	version := uint64(0)
	if p := podIn(e.Response); p != nil {
		l = h.see(p, e)
		version = versionOf(p.ResourceVersion)
		final = final || p.DeletionGracePeriodSeconds != nil && *p.DeletionGracePeriodSeconds == 0
	}
	if l != nil && final && l.goneAt.IsZero() {
		l.gone, l.goneAt = version, e.Answered.Time
	}
}

// list takes in which pods are on a node, and which aren't any more.
func (h *podHistory) list(e *Entry) {
	node := nodeOf(e.RequestURI)
	var list corev1.PodList
	if node == "" || json.Unmarshal(e.Response, &list) != nil || list.Kind != "PodList" || list.Continue != "" {
		return
	}
	k := look{by: e.User.Username, node: node, at: e.Received.Time, version: versionOf(list.ResourceVersion)}
	there := map[string]bool{}
	for i := range list.Items {
		p := &list.Items[i]
		there[string(p.UID)] = true
		if l := h.see(p, e); !l.stays && !l.over {
			k.left = append(k.left, l.name)
		}
	}
	h.looks = append(h.looks, k)
	for uid, l := range h.pods {
		if l.node == node && !there[uid] && l.goneAt.IsZero() && l.seen <= k.version && l.bound.Before(k.at) {
			l.gone, l.goneAt = k.version, e.Answered.Time
		}
	}
}

// nodeOf is the node that a list of pods is limited to, empty if it isn't or if it is only a part.
func nodeOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Path != "/api/v1/pods" || u.Query().Get("labelSelector") != "" {
		return ""
	}
	node, ok := strings.CutPrefix(u.Query().Get("fieldSelector"), "spec.nodeName=")
	if !ok || strings.ContainsAny(node, ",=") {
		return ""
	}
	return node
}

// lastLook is the controller's last list of a node's pods before a time.
func (h *podHistory) lastLook(node string, before time.Time) (look, bool) {
	var last look
	for _, k := range h.looks {
		if k.by == controllerAccount && k.node == node && k.at.Before(before) && k.at.After(last.at) {
			last = k
		}
	}
	return last, !last.at.IsZero()
}

// left are the pods to evict that were on a node at a version, of those put there before a time.
func (h *podHistory) left(node string, version uint64, at, boundBefore time.Time) []string {
	var names []string
	for _, l := range h.pods {
		if l.node != node || l.stays || l.over || !l.bound.Before(boundBefore) {
			continue
		}
		if l.goneAt.IsZero() || l.gone > version || l.gone == 0 && l.goneAt.After(at) {
			names = append(names, l.name)
		}
	}
	return names
}
