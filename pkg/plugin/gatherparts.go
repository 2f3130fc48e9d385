package plugin

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	serverversion "k8s.io/apimachinery/pkg/version"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/file"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/preflight"
)

func gitVersion(body []byte) string {
	var v serverversion.Info
	if err := json.Unmarshal(body, &v); err != nil {
		return ""
	}
	return v.GitVersion
}

func (g *gathering) groups(ctx context.Context) {
	body, err := g.client.Discovery().RESTClient().Get().AbsPath("/apis").
		SetHeader("Accept", "application/json").Do(ctx).Raw()
	var list metav1.APIGroupList
	if err == nil {
		err = json.Unmarshal(body, &list)
	}
	var names []string
	for _, group := range list.Groups {
		names = append(names, group.Name)
	}
	g.s.Groups = readOf(names, refusedTo("get", "/apis", err))
}

// askers is how many questions about rights are asked at once.
const askers = 10

// rights asks the API server what the user and the operator's accounts may do.
func (g *gathering) rights(ctx context.Context) {
	_, plans, _ := found(ctx, "deployments", func(ctx context.Context) (*appsv1.Deployment, error) {
		return g.client.AppsV1().Deployments(g.namespace).Get(ctx, preflight.Account(preflight.Runner),
			metav1.GetOptions{})
	})
	together(
		func() { g.s.Caller = readOf(g.answers(ctx, g.s.CallerAsks(), g.callerMay)) },
		func() { g.s.Accounts = readOf(g.answers(ctx, g.s.AccountAsks(plans), g.accountMay)) },
	)
}

func (g *gathering) answers(ctx context.Context, asks []preflight.Ask, may func(context.Context, preflight.Ask) (bool, error)) ([]preflight.Answer, error) {
	all := make([]preflight.Answer, len(asks))
	asking, ctx := errgroup.WithContext(ctx)
	ask := func(i int) error {
		allowed, err := may(ctx, asks[i])
		all[i] = preflight.Answer{Ask: asks[i], Allowed: allowed}
		return err
	}
	// If one may not ask, the first question tells.
	if err := ask(0); err != nil {
		return nil, err
	}
	asking.SetLimit(askers)
	for i := range asks[1:] {
		asking.Go(func() error { return ask(i + 1) })
	}
	return all, asking.Wait()
}

func attributes(a preflight.Ask) *authorizationv1.ResourceAttributes {
	resource, sub, _ := strings.Cut(a.Resource, "/")
	return &authorizationv1.ResourceAttributes{Group: a.Group, Resource: resource, Subresource: sub, Verb: a.Verb,
		Namespace: a.Namespace, Name: a.Name}
}

func (g *gathering) callerMay(ctx context.Context, a preflight.Ask) (bool, error) {
	review, err := g.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx,
		&authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes(a)}}, metav1.CreateOptions{})
	if err != nil {
		return false, refusedTo("create", "selfsubjectaccessreviews", err)
	}
	return review.Status.Allowed, nil
}

func (g *gathering) accountMay(ctx context.Context, a preflight.Ask) (bool, error) {
	review, err := g.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: attributes(a),
			User: "system:serviceaccount:" + g.namespace + ":" + preflight.Account(a.Component),
			// As the API server puts each account into them.
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + g.namespace,
				"system:authenticated"}}}, metav1.CreateOptions{})
	if err != nil {
		return false, refusedTo("create", "subjectaccessreviews", err)
	}
	return review.Status.Allowed, nil
}

func (g *gathering) namespaces(ctx context.Context) {
	labels := func(name string) preflight.Read[map[string]string] {
		n, there, err := found(ctx, "namespaces", func(ctx context.Context) (*corev1.Namespace, error) {
			return g.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		})
		if !there {
			return readOf[map[string]string](nil, err)
		}
		// One without labels is there all the same.
		out := map[string]string{}
		maps.Copy(out, n.Labels)
		return known(out)
	}
	together(func() { g.s.Home = labels(g.namespace) }, func() { g.s.PlansHome = labels(kube.PlansNamespace) })
}

func (g *gathering) admission(ctx context.Context) {
	ours := preflight.Walls(true)
	policies, bindings := map[string]preflight.AdmissionPolicy{}, map[string]preflight.AdmissionBinding{}
	_, err := each(ctx, "validatingadmissionpolicies", metav1.ListOptions{},
		g.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().List,
		func(page *admissionv1.ValidatingAdmissionPolicyList) {
			for _, p := range page.Items {
				if !slices.Contains(ours, p.Name) {
					continue
				}
				// Fail is the API's default.
				out := preflight.AdmissionPolicy{Fails: p.Spec.FailurePolicy == nil || *p.Spec.FailurePolicy == admissionv1.Fail}
				if p.Status.TypeChecking != nil {
					for _, w := range p.Status.TypeChecking.ExpressionWarnings {
						out.Warnings = append(out.Warnings, w.FieldRef+": "+w.Warning)
					}
				}
				policies[p.Name] = out
			}
		})
	g.s.Policies = readOf(policies, err)
	_, err = each(ctx, "validatingadmissionpolicybindings", metav1.ListOptions{},
		g.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().List,
		func(page *admissionv1.ValidatingAdmissionPolicyBindingList) {
			for _, b := range page.Items {
				if !slices.Contains(ours, b.Name) {
					continue
				}
				out := preflight.AdmissionBinding{Policy: b.Spec.PolicyName, Narrowed: narrowed(b.Spec.MatchResources)}
				for _, a := range b.Spec.ValidationActions {
					out.Actions = append(out.Actions, string(a))
				}
				bindings[b.Name] = out
			}
		})
	g.s.Bindings = readOf(bindings, err)
}

// narrowed reports whether a binding leaves out objects that its policy is about. The API server puts empty selectors
// where there are none.
func narrowed(m *admissionv1.MatchResources) bool {
	some := func(s *metav1.LabelSelector) bool {
		return s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0
	}
	return m != nil && (some(m.NamespaceSelector) || some(m.ObjectSelector) || len(m.ResourceRules)+len(m.ExcludeResourceRules) > 0)
}

func (g *gathering) certificate(ctx context.Context) {
	config, there, err := found(ctx, "configmaps", func(ctx context.Context) (*corev1.ConfigMap, error) {
		return g.client.CoreV1().ConfigMaps(g.namespace).Get(ctx, "update-operator-proxy-ca", metav1.GetOptions{})
	})
	if there {
		g.s.Bundle = known(bundleOf(config.Data["ca.crt"]))
	} else {
		g.s.Bundle = readOf(preflight.Bundle{}, err)
	}
	// Its metadata alone: that it is there can be known without the key.
	_, there, err = found(ctx, "secrets", func(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
		return g.metadata.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(g.namespace).Get(ctx,
			"update-operator-proxy-tls", metav1.GetOptions{})
	})
	g.s.KeyStored = readOf(there, err)
}

// bundleOf reads certificates. The last of them to end counts: while they are renewed there are two.
func bundleOf(text string) preflight.Bundle {
	b := preflight.Bundle{There: true, Filled: text != ""}
	if !b.Filled {
		return b
	}
	n := 0
	for rest := []byte(text); ; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			b.Problem = err.Error()
			return b
		}
		if c.NotAfter.After(b.Ends) {
			b.Ends = c.NotAfter
		}
	}
	if n == 0 {
		b.Problem = "ca.crt holds no certificate in PEM"
	}
	return b
}

func (g *gathering) configs(ctx context.Context) {
	get := func(name string) (*corev1.ConfigMap, bool, error) {
		return found(ctx, "configmaps", func(ctx context.Context) (*corev1.ConfigMap, error) {
			return g.client.CoreV1().ConfigMaps(g.namespace).Get(ctx, name, metav1.GetOptions{})
		})
	}
	config, there, err := get(kube.PolicyConfigMap)
	policy := preflight.Policy{There: there}
	if there {
		set, wrong := decodePolicy(config)
		if policy.Settings = set; wrong != nil {
			// A mistake quotes what stands there, and that may be an address with a key in it.
			for _, mistake := range file.Lines(wrong) {
				policy.Mistakes = append(policy.Mistakes, scrub(mistake))
			}
		}
	}
	g.s.Policy = readOf(policy, err)
	config, there, err = get(kube.PauseConfigMap)
	pauses := preflight.Pauses{}
	if there {
		pauses = pausesOf(config.Data)
	}
	g.s.Pauses = readOf(pauses, err)
}

func pausesOf(data map[string]string) preflight.Pauses {
	set, err := kube.ReadPauses(data)
	if err != nil {
		return preflight.Pauses{Problem: err.Error()}
	}
	var out preflight.Pauses
	if set.Fleet != nil {
		out.Standing = append(out.Standing, fmt.Sprintf("the fleet is paused by %s since %s: %s", set.Fleet.By,
			moment(set.Fleet.At), set.Fleet.Reason))
	}
	for _, name := range slices.Sorted(maps.Keys(set.Groups)) {
		pause := set.Groups[name]
		out.Standing = append(out.Standing, fmt.Sprintf("group %s is paused by %s since %s: %s", name, pause.By,
			moment(pause.At), pause.Reason))
	}
	return out
}

// leases reads the leader's Lease, and those of nodes.
func (g *gathering) leases(ctx context.Context) {
	lease, there, err := found(ctx, "leases", func(ctx context.Context) (*coordinationv1.Lease, error) {
		return g.client.CoordinationV1().Leases(g.namespace).Get(ctx, kube.LeaseName, metav1.GetOptions{})
	})
	out := preflight.Lease{There: there}
	if there {
		s := lease.Spec
		out.Holder, _ = holder(lease, time.Time{})
		if s.RenewTime != nil {
			out.Renewed = s.RenewTime.Time
		}
		if s.LeaseDurationSeconds != nil {
			out.Duration = time.Duration(*s.LeaseDurationSeconds) * time.Second
		}
	}
	g.s.Leader = readOf(out, err)
	renewed := map[string]time.Time{}
	_, err = each(ctx, "leases in "+corev1.NamespaceNodeLease, metav1.ListOptions{},
		g.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List,
		func(page *coordinationv1.LeaseList) {
			for _, l := range page.Items {
				if l.Spec.RenewTime != nil {
					renewed[l.Name] = l.Spec.RenewTime.Time
				}
			}
		})
	g.s.Renewed = readOf(renewed, err)
}

func (g *gathering) daemonSets(ctx context.Context) {
	var all []preflight.DaemonSet
	_, err := each(ctx, "daemonsets", metav1.ListOptions{}, g.client.AppsV1().DaemonSets("").List,
		func(page *appsv1.DaemonSetList) {
			for _, d := range page.Items {
				out := preflight.DaemonSet{Namespace: d.Namespace, Name: d.Name}
				for _, label := range []string{"app.kubernetes.io/name", "app", "k8s-app", "name"} {
					if out.App == "" {
						out.App = d.Labels[label]
					}
				}
				for _, c := range d.Spec.Template.Spec.Containers {
					out.Images = append(out.Images, c.Image)
				}
				all = append(all, out)
			}
		})
	g.s.DaemonSets = readOf(all, err)
}

// operator reads the operator's own workloads and pods, and what was said of them.
func (g *gathering) operator(ctx context.Context) {
	said, err := g.events(ctx)
	if err != nil {
		g.s.EventsRefused = err.Error()
	}
	together(
		func() { g.s.Workloads = readOf(g.workloads(ctx, said)) },
		func() { g.s.Pods = readOf(g.pods(ctx, said)) },
		func() { g.s.Endpoints = readOf(g.endpoints(ctx)) },
	)
}

func (g *gathering) endpoints(ctx context.Context) (int, error) {
	ready := 0
	_, err := each(ctx, "endpointslices",
		metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + preflight.Account(preflight.Proxy)},
		g.client.DiscoveryV1().EndpointSlices(g.namespace).List, func(page *discoveryv1.EndpointSliceList) {
			for _, slice := range page.Items {
				for _, e := range slice.Endpoints {
					// Not known counts as Ready, by the API.
					if e.Conditions.Ready == nil || *e.Conditions.Ready {
						ready += len(e.Addresses)
					}
				}
			}
		})
	return ready, err
}

func (g *gathering) workloads(ctx context.Context, said map[string][]preflight.Words) (map[string]preflight.Workload, error) {
	all := map[string]preflight.Workload{}
	for _, component := range []string{preflight.Controller, preflight.Proxy, preflight.Runner} {
		name := preflight.Account(component)
		d, there, err := found(ctx, "deployments", func(ctx context.Context) (*appsv1.Deployment, error) {
			return g.client.AppsV1().Deployments(g.namespace).Get(ctx, name, metav1.GetOptions{})
		})
		if err != nil {
			return nil, err
		}
		if there {
			w := preflight.Workload{Desired: 1, Ready: int(d.Status.AvailableReplicas), Image: image(&d.Spec.Template),
				Said: said["ReplicaSet/"+name]}
			if d.Spec.Replicas != nil {
				w.Desired = int(*d.Spec.Replicas)
			}
			all[component] = w
		}
	}
	name := preflight.Account(preflight.Agent)
	d, there, err := found(ctx, "daemonsets", func(ctx context.Context) (*appsv1.DaemonSet, error) {
		return g.client.AppsV1().DaemonSets(g.namespace).Get(ctx, name, metav1.GetOptions{})
	})
	if there {
		all[preflight.Agent] = preflight.Workload{Desired: int(d.Status.DesiredNumberScheduled),
			Ready: int(d.Status.NumberReady),
			Image: image(&d.Spec.Template), Said: said["DaemonSet/"+name]}
	}
	return all, err
}

func image(template *corev1.PodTemplateSpec) string {
	if len(template.Spec.Containers) == 0 {
		return ""
	}
	return template.Spec.Containers[0].Image
}
