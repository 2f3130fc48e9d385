package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/runner/next"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// looked is a look at one node.
type looked struct {
	next.View
	// node and template are what it is of; nil: not there, or not looked at.
	node     *corev1.Node
	template *corev1.PodTemplate
	// problem is why the template could not be looked at.
	problem error
}

// glance looks at what the watches have shown. Of a template it takes for granted that it is good: before anything is
// done there is a live look.
func (r *Runner) glance(name string) (looked, error) {
	n, err := stored[*corev1.Node](r.w.nodes.GetIndexer(), name)
	if err != nil {
		return looked{}, err
	}
	objs, err := r.w.pods.GetIndexer().ByIndex(byNode, name)
	if err != nil {
		return looked{}, errors.Wrap(err, "looking up pods")
	}
	pods := make([]corev1.Pod, 0, len(objs))
	for _, obj := range objs {
		if p, ok := obj.(*corev1.Pod); ok {
			pods = append(pods, *p)
		}
	}
	l := r.see(name, n, pods)
	l.Template.Known = true
	return l, nil
}

// look looks live.
func (r *Runner) look(ctx context.Context, name string) (looked, error) {
	n, err := r.node(ctx, name)
	if err != nil {
		return looked{}, err
	}
	list, err := r.client.CoreV1().Pods(r.options.PlansNamespace).List(ctx, metav1.ListOptions{LabelSelector: kube.PlanLabel,
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", name).String()})
	if err != nil {
		return looked{}, errors.Wrapf(err, "listing the pods of plans on node %q", name)
	}
	l := r.see(name, n, list.Items)
	l.problem = r.seeTemplate(ctx, &l)
	return l, nil
}

// node reads a node live; nil if it is gone.
func (r *Runner) node(ctx context.Context, name string) (*corev1.Node, error) {
	n, err := r.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		n = nil
	case err != nil:
		return nil, errors.Wrapf(err, "reading node %q", name)
	}
	r.reach()
	return n, nil
}

// see makes a view, and remembers until when intents may begin.
func (r *Runner) see(name string, n *corev1.Node, pods []corev1.Pod) looked {
	l := looked{node: n, View: next.View{Now: r.time.Now(), Build: telemetry.Version}}
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.memories[name]
	if m == nil {
		m = &memory{}
	}
	until := map[string]time.Time{}
	if n != nil {
		l.Node = nodeOf(n)
		until[l.Node.Intent.ID] = l.Node.Intent.Until
	}
	for i := range pods {
		p, made := podOf(&pods[i])
		if !made {
			continue
		}
		if t, known := m.until[p.Intent]; known {
			p.Until = t
			if _, present := until[p.Intent]; !present {
				until[p.Intent] = t
			}
		}
		l.Pods = append(l.Pods, p)
	}
	m.until, l.Memory = until, m.Memory
	if n == nil && len(l.Pods) == 0 {
		delete(r.memories, name)
	} else {
		r.memories[name] = m
	}
	return l
}

// remember changes what is remembered of a node's present intent.
func (r *Runner) remember(n *next.Node, change func(*next.Memory)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.memories[n.Name]
	if m == nil {
		m = &memory{}
		r.memories[n.Name] = m
	}
	if m.Intent != n.Intent.ID {
		m.Memory = next.Memory{Intent: n.Intent.ID}
	}
	change(&m.Memory)
}

// seeTemplate looks live at the template of an intent whose pod is still to be made, and whether it is what the attempt
// is about.
func (r *Runner) seeTemplate(ctx context.Context, l *looked) error {
	n := l.Node
	if n == nil || n.Plan == nil || n.Unreadable || n.Intent.Template == "" || !needsPod(n) {
		return nil
	}
	all, known := r.plans.current()
	if !known {
		return nil
	}
	p := named(all, n.Plan.Name)
	switch {
	case p == nil:
		l.Template = next.Template{Known: true, Problem: fmt.Sprintf("the policy has no plan %q any more", n.Plan.Name)}
		return nil
	case p.Apply != n.Plan.Apply, n.Intent.Template != p.Apply && n.Intent.Template != p.Prepare:
		l.Template = next.Template{Known: true, Problem: fmt.Sprintf("plan %q names other templates now", n.Plan.Name)}
		return nil
	}
	key, err := r.keys.known(ctx)
	if err != nil {
		return err
	}
	f, err := look(ctx, live{r.client, r.options.PlansNamespace}, key, p)
	if err != nil {
		return err
	}
	if f.target.Digest != n.Plan.Digest {
		// Another runner may use another key since the Secret was made anew; or the digest is that of a key that is gone.
		if key, err = r.keys.read(ctx); err != nil {
			return err
		}
		if f, err = look(ctx, live{r.client, r.options.PlansNamespace}, key, p); err != nil {
			return err
		}
		stands, err := r.targets.shown()
		if err != nil {
			return err
		}
		keep(&f.target, decode(stands)[p.Name])
	}
	l.template, l.Template = f.templates[n.Intent.Template], next.Template{Known: true, Problem: f.target.Problem}
	if f.target.Problem == "" && f.target.Digest != n.Plan.Digest {
		l.Template.Problem = "the template changed, or what it mounts: the attempt is about " + n.Plan.Digest + ", and it is " + f.target.Digest
	}
	return nil
}

// needsPod reports whether the intent may still want its pod.
func needsPod(n *next.Node) bool {
	switch n.Intent.Action {
	case marker.ActionPrepareUpdate, marker.ActionConfirmUpdate, marker.ActionRebootUpdate:
		answer := n.Report.Answer(n.Intent.ID)
		return answer == marker.StateNone || answer == marker.StateBusy
	case marker.ActionStabilize, marker.ActionResetState:
	}
	return false
}
