package preflight_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	"gotest.tools/v3/golden"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostile"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/preflight"
)

var noon = time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)

func known[T any](v T) preflight.Read[T] { return preflight.Read[T]{Value: v} }

func host(name string) preflight.Node {
	return preflight.Node{Node: fleet.Node{Name: name, Interface: fleet.InterfaceUpdateAPI, Ready: true}, OSImage: "Bottlerocket OS 1.50.0 (aws-k8s-1.36)", Kubelet: "v1.36.1-eks-1a2b"}
}

// good is a cluster where all is well, with plans.
func good() *preflight.Snapshot {
	s := &preflight.Snapshot{
		Namespace: "bottlerocket", PlansNamespace: "bottlerocket-plans",
		Clock: known(preflight.Clock{Server: noon, Here: noon}), Server: known("v1.36.3"), Groups: known([]string{"apps"}),
		Home:      known(map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}),
		PlansHome: known(map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}),
		Policies:  known(map[string]preflight.AdmissionPolicy{}), Bindings: known(map[string]preflight.AdmissionBinding{}),
		Workloads: known(map[string]preflight.Workload{}), Endpoints: known(2),
		Pods:   known([]preflight.Pod{{Name: "agent-a", Component: preflight.Agent, Node: "a", Ready: true}}),
		Leader: known(preflight.Lease{There: true, Holder: "controller-1", Renewed: noon, Duration: 45 * time.Second}),
		Bundle: known(preflight.Bundle{There: true, Filled: true, Ends: noon.Add(90 * 24 * time.Hour)}), KeyStored: known(true),
		Nodes: known([]preflight.Node{host("a")}), Renewed: known(map[string]time.Time{"a": noon.Add(-10 * time.Second)}),
	}
	for _, name := range preflight.Walls(true) {
		s.Policies.Value[name] = preflight.AdmissionPolicy{Fails: true}
		s.Bindings.Value[name] = preflight.AdmissionBinding{Policy: name, Actions: []string{"Deny", "Audit"}}
	}
	for _, c := range []string{preflight.Controller, preflight.Proxy, preflight.Runner, preflight.Agent} {
		s.Workloads.Value[c] = preflight.Workload{Desired: 1, Ready: 1, Image: "image:v2"}
	}
	for _, a := range s.CallerAsks() {
		s.Caller.Value = append(s.Caller.Value, preflight.Answer{Ask: a, Allowed: true})
	}
	for _, a := range s.AccountAsks(true) {
		s.Accounts.Value = append(s.Accounts.Value, preflight.Answer{Ask: a, Allowed: a.Component != preflight.Agent})
	}
	return s
}

// notYet is the same cluster before the operator is installed.
func notYet() *preflight.Snapshot {
	s := good()
	s.Home.Value, s.PlansHome.Value, s.Workloads.Value, s.Pods.Value = nil, nil, nil, nil
	s.Policies.Value, s.Bindings.Value = nil, nil
	s.Leader, s.Bundle, s.KeyStored = known(preflight.Lease{}), known(preflight.Bundle{}), known(false)
	s.Accounts.Value = slices.DeleteFunc(s.Accounts.Value, func(a preflight.Answer) bool { return a.Component != preflight.Agent })
	return s
}

// judged returns the findings by their check, and holds what is so of all: that each check finds something, one line
// each, and that all that isn't well has a remedy.
func judged(t *testing.T, s *preflight.Snapshot) map[preflight.Check][]preflight.Finding {
	t.Helper()
	all := preflight.Judge(s)
	assert.DeepEqual(t, all, preflight.Judge(s))
	found := map[preflight.Check][]preflight.Finding{}
	for _, f := range all {
		assert.Equal(t, f.Remedy == "", f.Verdict == preflight.VerdictOK, "%+v", f)
		assert.Assert(t, f.Message != "" && len(f.Message) <= 600 && !strings.Contains(f.Message, "\n"), "%+v", f)
		assert.NilError(t, hostile.Obeyed(f.Message))
		assert.Assert(t, slices.Contains(preflight.Verdicts(), f.Verdict), "%+v", f)
		found[f.Check] = append(found[f.Check], f)
	}
	assert.Equal(t, len(preflight.Checks()), len(found))
	for _, c := range preflight.Checks() {
		assert.Assert(t, len(found[c]) > 0, "%s says nothing", c)
	}
	return found
}

// written are findings as text.
func written(all []preflight.Finding) string {
	var b strings.Builder
	for _, f := range all {
		fmt.Fprintf(&b, "%s %s: %s\n", f.Verdict, f.Check, f.Message)
		if f.Remedy != "" {
			fmt.Fprintf(&b, "  -> %s\n", f.Remedy)
		}
	}
	return b.String()
}

// The worst come first, and those of the same verdict keep their order.
func TestWorstFirst(t *testing.T) {
	var all []preflight.Finding
	for i, v := range []preflight.Verdict{preflight.VerdictOK, preflight.VerdictWarn, preflight.VerdictAbsent, preflight.VerdictFail, preflight.VerdictUnknown, preflight.VerdictWarn} {
		all = append(all, preflight.Finding{Verdict: v, Message: fmt.Sprint(i)})
	}
	preflight.WorstFirst(all)
	order := ""
	for _, f := range all {
		order += f.Message
	}
	assert.Equal(t, order, "341520")
}

// Where all is well nothing else is said; before the operator is installed nothing fails.
func TestWell(t *testing.T) {
	golden.Assert(t, written(preflight.Judge(good())), "well.golden")
	golden.Assert(t, written(preflight.Judge(notYet())), "absent.golden")
	for check, all := range judged(t, good()) {
		assert.Equal(t, all[0].Verdict, preflight.VerdictOK, "%s: %+v", check, all)
	}
	absent := 0
	for check, all := range judged(t, notYet()) {
		assert.Assert(t, all[0].Verdict == preflight.VerdictOK || all[0].Verdict == preflight.VerdictAbsent, "%s: %+v", check, all)
		if all[0].Verdict == preflight.VerdictAbsent {
			absent++
		}
	}
	assert.Equal(t, absent, 9)
}

// What could not be read makes the checks that need it say so, and no other one; and nothing is called well or wrong
// for it.
func TestUnknown(t *testing.T) {
	type check = preflight.Check
	needs := map[string][]check{
		"Clock":  {preflight.CheckClock, preflight.CheckNodeClocks, preflight.CheckLeader, preflight.CheckCertificate, preflight.CheckFresh},
		"Server": {preflight.CheckAPIServer}, "Groups": {preflight.CheckOtherUpdaters},
		"Caller": {preflight.CheckInstallRights, preflight.CheckCommandRights}, "Accounts": {preflight.CheckAccountRights, preflight.CheckAgentRights},
		"Home": {preflight.CheckNamespace}, "PlansHome": {preflight.CheckPlans}, "Policies": {preflight.CheckAdmission}, "Bindings": {preflight.CheckAdmission},
		"Workloads": {preflight.CheckController, preflight.CheckProxies, preflight.CheckAgents, preflight.CheckPlans, preflight.CheckImages},
		"Pods":      {preflight.CheckAgents}, "Leader": {preflight.CheckLeader}, "Endpoints": {preflight.CheckProxies},
		"Bundle": {preflight.CheckCertificate}, "KeyStored": nil, "Policy": {preflight.CheckPolicy, preflight.CheckPauses}, "Pauses": {preflight.CheckPauses},
		"Nodes": {preflight.CheckKubelets, preflight.CheckNodeClocks, preflight.CheckOtherUpdaters, preflight.CheckAgents, preflight.CheckUnlabelled, preflight.CheckFresh, preflight.CheckLabels,
			preflight.CheckOtherSystems, preflight.CheckInPlace, preflight.CheckAnnotations, preflight.CheckAutoscalerMarks, preflight.CheckBudgets,
			preflight.CheckSingleReplicas, preflight.CheckBarePods},
		"Renewed": {preflight.CheckNodeClocks}, "Budgets": {preflight.CheckBudgets}, "Overlapping": {preflight.CheckBudgets}, "Singles": {preflight.CheckSingleReplicas},
		"Bare": {preflight.CheckBarePods}, "DaemonSets": {preflight.CheckOtherUpdaters}, "UpgradePlans": {preflight.CheckOtherUpdaters},
	}
	parts := reflect.TypeFor[preflight.Snapshot]()
	for f := range parts.Fields() {
		if f.Type.Kind() != reflect.Struct {
			continue
		}
		want, named := needs[f.Name]
		assert.Assert(t, named, "%s is new: say here which checks need it", f.Name)
		s := good()
		part := reflect.ValueOf(s).Elem().FieldByName(f.Name)
		part.FieldByName("Value").SetZero()
		part.FieldByName("Refused").SetString("you may not list it")
		for check, all := range judged(t, s) {
			unknown := slices.ContainsFunc(all, func(f preflight.Finding) bool {
				return f.Verdict == preflight.VerdictUnknown && f.Message == "you may not list it"
			})
			assert.Equal(t, unknown, slices.Contains(want, check), "%s without %s: %+v", check, f.Name, all)
			assert.Assert(t, all[0].Verdict == preflight.VerdictOK || all[0].Verdict == preflight.VerdictUnknown, "%s without %s: %+v", check, f.Name, all)
		}
	}
}

// The remedy for a right that is missing is another one than for an API server that does not answer.
func TestRemedyForUnknown(t *testing.T) {
	s := good()
	s.Nodes = preflight.Read[[]preflight.Node]{Refused: "you may not list nodes", Forbidden: true}
	s.Leader = preflight.Read[preflight.Lease]{Refused: "the API server did not answer in time"}
	found := judged(t, s)
	assert.Assert(t, strings.Contains(found[preflight.CheckKubelets][0].Remedy, "#rights"))
	assert.Assert(t, strings.Contains(found[preflight.CheckLeader][0].Remedy, "/readyz"))
}

// Each way in which a check finds something.
func TestFindings(t *testing.T) {
	const fail, warn, ok = preflight.VerdictFail, preflight.VerdictWarn, preflight.VerdictOK
	node := func(change func(n *preflight.Node)) func(*preflight.Snapshot) {
		return func(s *preflight.Snapshot) { change(&s.Nodes.Value[0]) }
	}
	deny := func(component, what string) func(*preflight.Snapshot) {
		return func(s *preflight.Snapshot) {
			for i := range s.Accounts.Value {
				if a := &s.Accounts.Value[i]; a.Component == component && a.String() == what {
					a.Allowed = !a.Allowed
					return
				}
			}
			t.Fatalf("%s is not asked of %s", what, component)
		}
	}
	refuse := func(s *preflight.Snapshot, what string) {
		for i := range s.Caller.Value {
			if a := &s.Caller.Value[i]; a.For == what {
				a.Allowed = false
			}
		}
	}
	workload := func(component string, w preflight.Workload) func(*preflight.Snapshot) {
		return func(s *preflight.Snapshot) { w.Image = "image:v2"; s.Workloads.Value[component] = w }
	}
	agent := func(said ...preflight.Words) func(*preflight.Snapshot) {
		return func(s *preflight.Snapshot) { s.Pods.Value[0].Ready, s.Pods.Value[0].Said = false, said }
	}
	budget := func(b preflight.Budget) func(*preflight.Snapshot) {
		return func(s *preflight.Snapshot) { b.Name = "web/web"; s.Budgets.Value = []preflight.Budget{b} }
	}
	wall := func(change func(p *preflight.AdmissionPolicy, b *preflight.AdmissionBinding)) func(*preflight.Snapshot) {
		return func(s *preflight.Snapshot) {
			p, b := s.Policies.Value["update-operator-runner"], s.Bindings.Value["update-operator-runner"]
			change(&p, &b)
			s.Policies.Value["update-operator-runner"], s.Bindings.Value["update-operator-runner"] = p, b
		}
	}
	settings := func(change func(p *policy.Settings)) func(*preflight.Snapshot) {
		return func(s *preflight.Snapshot) {
			s.Policy.Value = preflight.Policy{There: true, Settings: policy.DefaultSettings()}
			change(&s.Policy.Value.Settings)
		}
	}
	var texts strings.Builder
	for _, c := range []struct {
		check   preflight.Check
		change  func(*preflight.Snapshot)
		verdict preflight.Verdict
		message string
	}{
		{preflight.CheckAPIServer, func(s *preflight.Snapshot) { s.Server = known("v1.30.9") }, fail, "the API server is v1.30.9"},
		{preflight.CheckAPIServer, func(s *preflight.Snapshot) { s.Server = known("v1.31.0-eks-1") }, ok, "v1.31.0-eks-1"},
		{preflight.CheckLeader, func(s *preflight.Snapshot) { s.Leader.Value.Renewed = noon.Add(91 * time.Second) }, warn, "1m31s ahead"},
		{preflight.CheckController, func(s *preflight.Snapshot) { s.Workloads.Value = map[string]preflight.Workload{"proxy": {}} }, fail, "is missing"},
		{preflight.CheckUnlabelled, func(s *preflight.Snapshot) {
			for i := range 5 {
				n := host(fmt.Sprint("b-", i))
				n.Interface = ""
				s.Nodes.Value = append(s.Nodes.Value, n)
			}
		}, warn, "5 Bottlerocket nodes: b-0, b-1, b-2, b-3, b-4"},
		{preflight.CheckAPIServer, func(s *preflight.Snapshot) { s.Server = known("newest") }, warn, `"newest" can't be read`},
		{preflight.CheckKubelets, node(func(n *preflight.Node) { n.Kubelet = "v1.30.1" }), fail, "older than 1.31 on 1 node: a (v1.30.1)"},
		{preflight.CheckKubelets, node(func(n *preflight.Node) { n.Kubelet = "v1.32.1" }), warn, "three minor versions older"},
		{preflight.CheckKubelets, node(func(n *preflight.Node) { n.Kubelet = "v1.33.1" }), ok, ""},
		{preflight.CheckKubelets, node(func(n *preflight.Node) { n.Kubelet = "v1.37.0" }), warn, "newer than the API server"},
		{preflight.CheckKubelets, node(func(n *preflight.Node) { n.Kubelet, n.OSImage, n.Interface = "v1.2.0", "Ubuntu", "" }), ok, "of 0 nodes"},
		{preflight.CheckClock, func(s *preflight.Snapshot) { s.Clock.Value.Here = noon.Add(90 * time.Second) }, warn, "differ by 1m30s"},
		{preflight.CheckClock, func(s *preflight.Snapshot) { s.Clock.Value.Here = noon.Add(time.Minute) }, ok, ""},
		{preflight.CheckNodeClocks, func(s *preflight.Snapshot) { s.Renewed.Value["a"] = noon.Add(time.Hour) }, warn, "1 node: a (1h)"},
		{preflight.CheckNodeClocks, func(s *preflight.Snapshot) {
			s.Renewed.Value["a"] = noon.Add(-time.Hour)
			s.Nodes.Value[0].Ready = false
		}, ok, ""},
		{preflight.CheckOtherUpdaters, func(s *preflight.Snapshot) { s.Groups.Value = []string{"brupop.bottlerocket.aws"} }, fail, "Brupop is installed"},
		{preflight.CheckOtherUpdaters, func(s *preflight.Snapshot) {
			s.DaemonSets.Value = []preflight.DaemonSet{{Namespace: "brupop-bottlerocket-aws", Name: "brupop-agent"}}
		}, fail, "DaemonSet brupop-bottlerocket-aws/brupop-agent"},
		{preflight.CheckOtherUpdaters, func(s *preflight.Snapshot) {
			s.DaemonSets.Value = []preflight.DaemonSet{{Namespace: "bottlerocket", Name: "update-operator-agent-update-api"}}
		}, fail, "the 0.1.x operator"},
		{preflight.CheckOtherUpdaters, func(s *preflight.Snapshot) {
			s.DaemonSets.Value = []preflight.DaemonSet{{Namespace: "ops", Name: "reboots", Images: []string{"ghcr.io/kubereboot/kured:1.23.0@sha256:0"}}}
		}, warn, "kured is installed: DaemonSet ops/reboots"},
		{preflight.CheckOtherUpdaters, func(s *preflight.Snapshot) {
			s.DaemonSets.Value = []preflight.DaemonSet{{Name: "x", App: "kured"}, {Name: "kured-exporter", Images: []string{"kuredish:1"}}}
		}, warn, "kured is installed"},
		{preflight.CheckOtherUpdaters, func(s *preflight.Snapshot) {
			s.UpgradePlans.Value = []preflight.UpgradePlan{{Name: "system-upgrade/none"}, {Name: "system-upgrade/os", Nodes: []string{"a"}}}
		}, fail, "Plan system-upgrade/os of system-upgrade-controller selects 1 node: a"},
		{preflight.CheckOtherUpdaters, node(func(n *preflight.Node) { n.OldLabels = []string{"x"} }), warn, "labels of the 0.1.x operator"},
		{preflight.CheckInstallRights, func(s *preflight.Snapshot) { refuse(s, preflight.Install) }, warn, "you may not apply update-operator.yaml again"},
		{preflight.CheckInstallRights, func(s *preflight.Snapshot) { *s = *notYet(); refuse(s, preflight.Install) }, fail, "you may not install the operator; you lack 32 rights: create namespaces"},
		{preflight.CheckCommandRights, func(s *preflight.Snapshot) { refuse(s, "plan") }, warn, "you may not use kubectl bottlerocket plan; you lack 2 rights: get leases.coordination.k8s.io update-operator-controller in bottlerocket"},
		{preflight.CheckAccountRights, deny(preflight.Controller, "create events"), fail, "the account update-operator-controller lacks 1 right: create events"},
		{preflight.CheckAccountRights, deny(preflight.Proxy, "create tokenreviews.authentication.k8s.io"), fail, "update-operator-proxy lacks"},
		{preflight.CheckAccountRights, deny(preflight.Runner, "get pods/log in bottlerocket-plans"), fail, "update-operator-runner lacks"},
		{preflight.CheckAgentRights, deny(preflight.Agent, "patch nodes"), fail, "the account update-operator-agent has 1 right: patch nodes"},
		{preflight.CheckAgentRights, func(s *preflight.Snapshot) { *s = *notYet(); deny(preflight.Agent, "get nodes")(s) }, fail, "get nodes"},
		{preflight.CheckNamespace, func(s *preflight.Snapshot) { s.Home.Value = map[string]string{} }, warn, "has no label"},
		{preflight.CheckNamespace, func(s *preflight.Snapshot) {
			s.Home.Value = map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}
		}, fail, `enforces the pod security level "baseline"`},
		{preflight.CheckNamespace, func(s *preflight.Snapshot) { s.Workloads.Value = nil }, preflight.VerdictAbsent, "nothing of the operator is in namespace bottlerocket yet"},
		{preflight.CheckNamespace, func(s *preflight.Snapshot) { s.Home.Value, s.Workloads.Refused = nil, "no" }, fail, "there is no namespace bottlerocket"},
		{preflight.CheckAdmission, func(s *preflight.Snapshot) { delete(s.Policies.Value, "update-operator-controller-creations") }, fail, "update-operator-controller-creations is missing"},
		{preflight.CheckAdmission, func(s *preflight.Snapshot) { delete(s.Bindings.Value, "update-operator-proxy") }, fail, "update-operator-proxy is not bound"},
		{preflight.CheckAdmission, wall(func(p *preflight.AdmissionPolicy, _ *preflight.AdmissionBinding) { p.Fails = false }), fail, "failurePolicy is not Fail"},
		{preflight.CheckAdmission, wall(func(_ *preflight.AdmissionPolicy, b *preflight.AdmissionBinding) { b.Policy = "x" }), fail, `its binding is of policy "x"`},
		{preflight.CheckAdmission, wall(func(_ *preflight.AdmissionPolicy, b *preflight.AdmissionBinding) {
			b.Actions = []string{"Warn", "Audit"}
		}), fail, "does Warn, Audit, and not Deny"},
		{preflight.CheckAdmission, wall(func(_ *preflight.AdmissionPolicy, b *preflight.AdmissionBinding) { b.Narrowed = true }), fail, "has matchResources"},
		{preflight.CheckAdmission, wall(func(p *preflight.AdmissionPolicy, _ *preflight.AdmissionBinding) {
			p.Warnings = []string{"spec: undefined field"}
		}), warn, "spec: undefined field"},
		{preflight.CheckAdmission, func(s *preflight.Snapshot) {
			delete(s.Workloads.Value, "runner")
			delete(s.Policies.Value, "update-operator-runner")
		}, ok, "4 admission policies"},
		{preflight.CheckController, func(s *preflight.Snapshot) { delete(s.Workloads.Value, "controller") }, fail, "Deployment update-operator-controller is missing"},
		{preflight.CheckController, workload("controller", preflight.Workload{}), fail, "scaled to none"},
		{preflight.CheckController, workload("controller", preflight.Workload{Desired: 1}), fail, "0 of 1 Ready"},
		{preflight.CheckController, workload("controller", preflight.Workload{Desired: 1, Said: []preflight.Words{{"FailedCreate", "exceeded quota"}}}), fail, "Its pods can't be made: exceeded quota"},
		{preflight.CheckProxies, workload("proxy", preflight.Workload{Desired: 2, Ready: 1}), warn, "1 of 2 Ready"},
		{preflight.CheckProxies, func(s *preflight.Snapshot) { s.Endpoints.Value = 0 }, fail, "no Ready endpoint"},
		{preflight.CheckProxies, func(s *preflight.Snapshot) {
			workload("proxy", preflight.Workload{Desired: 2})(s)
			s.Pods.Value = append(s.Pods.Value, preflight.Pod{Component: "proxy", Said: []preflight.Words{{"Unschedulable", "0/3 nodes are available"}}})
		}, fail, "No node takes it: 0/3 nodes are available"},
		{preflight.CheckLeader, func(s *preflight.Snapshot) { s.Leader.Value.Renewed = noon.Add(-91 * time.Second) }, fail, "controller-1 renewed the Lease update-operator-controller last 1m31s ago"},
		{preflight.CheckLeader, func(s *preflight.Snapshot) { s.Leader.Value.Renewed = noon.Add(-90 * time.Second) }, ok, "controller-1 leads"},
		{preflight.CheckLeader, func(s *preflight.Snapshot) { s.Leader.Value.Renewed = noon.Add(5 * time.Minute) }, warn, "5m ahead"},
		{preflight.CheckLeader, func(s *preflight.Snapshot) { s.Leader.Value = preflight.Lease{} }, fail, "names none"},
		{preflight.CheckLeader, func(s *preflight.Snapshot) { s.Leader.Value.Holder = "" }, fail, "names none"},
		{preflight.CheckLeader, func(s *preflight.Snapshot) { s.Leader.Value.Renewed = noon.Add(90 * time.Second) }, ok, ""},
		{preflight.CheckCertificate, func(s *preflight.Snapshot) { s.Bundle.Value = preflight.Bundle{} }, fail, "is missing"},
		{preflight.CheckCertificate, func(s *preflight.Snapshot) { s.KeyStored.Value = false }, fail, "Secret update-operator-proxy-tls is missing"},
		{preflight.CheckCertificate, func(s *preflight.Snapshot) { s.Bundle.Value.Filled = false }, fail, "has no ca.crt"},
		{preflight.CheckCertificate, func(s *preflight.Snapshot) { s.Bundle.Value.Problem = "not PEM" }, fail, "can't be read: not PEM"},
		{preflight.CheckCertificate, func(s *preflight.Snapshot) { s.Bundle.Value.Ends = noon }, fail, "ended at 2026-01-05 12:00 UTC"},
		{preflight.CheckCertificate, func(s *preflight.Snapshot) { s.Bundle.Value.Ends = noon.Add(24 * time.Hour) }, warn, "in 24h"},
		{preflight.CheckCertificate, func(s *preflight.Snapshot) { s.Bundle.Value.Ends = noon.Add(14 * 24 * time.Hour) }, ok, ""},
		{preflight.CheckCertificate, func(s *preflight.Snapshot) { s.Bundle.Value.Ends = noon.Add(14*24*time.Hour - time.Minute) }, warn, "in 335h59m"},
		{preflight.CheckAgents, func(s *preflight.Snapshot) {
			s.Pods.Value = append([]preflight.Pod{{Component: "agent", Node: "a", Said: []preflight.Words{{"Error", "x"}}}}, s.Pods.Value...)
		}, ok, "a Ready agent is on each of 1 node"},
		{preflight.CheckAgents, func(s *preflight.Snapshot) { agent()(s); s.Pods.Value[0].Created = noon.Add(-time.Minute) }, fail, "It is not Ready"},
		{preflight.CheckProxies, func(s *preflight.Snapshot) {
			workload("proxy", preflight.Workload{Desired: 2})(s)
			s.Endpoints.Value = 0
		}, fail, "0 of 2 Ready"},
		{preflight.CheckPlans, func(s *preflight.Snapshot) {
			delete(s.Workloads.Value, "runner")
			settings(func(*policy.Settings) {})(s)
		}, ok, "no plans are used"},
		{preflight.CheckPlans, func(s *preflight.Snapshot) {
			delete(s.Workloads.Value, "runner")
			settings(func(p *policy.Settings) { p.Plans = make([]policy.Plan, 1) })(s)
			s.Policy.Value.Mistakes = []string{"x"}
		}, ok, "no plans are used"},
		{preflight.CheckPolicy, func(s *preflight.Snapshot) {
			s.Policy.Value = preflight.Policy{There: true, Mistakes: []string{"a", "b", "c", "d"}}
		}, fail, "4 mistakes: a; b; c"},
		{preflight.CheckAnnotations, node(func(n *preflight.Node) {
			n.Interface, n.Problems, n.Marks.Intent.ID = "", []marker.Problem{{Key: marker.KeyPlan, Why: "x"}}, "7-x"
		}), fail, "1 node: a"},
		{preflight.CheckAnnotations, node(func(n *preflight.Node) {
			n.Interface, n.Problems = "", []marker.Problem{{Key: marker.KeyPlan, Why: "x"}}
		}), ok, ""},
		{preflight.CheckBudgets, budget(preflight.Budget{MaxUnavailable: "0", Expected: 1, Here: 1}), fail, "web/web"},
		{preflight.CheckBudgets, budget(preflight.Budget{MaxUnavailable: "0", Here: 1}), warn, "0 of 0"},
		{preflight.CheckAgents, agent(), fail, "It is not Ready"},
		{preflight.CheckAgents, func(s *preflight.Snapshot) { agent()(s); s.EventsRefused = "you may not list events" }, fail, "why is not known: you may not list events"},
		{preflight.CheckAgents, func(s *preflight.Snapshot) { agent()(s); s.Pods.Value[0].Created = noon.Add(-time.Second) }, warn, "have just been made on 1 node: a"},
		{preflight.CheckAgents, agent(preflight.Words{Message: "something odd"}), fail, "It is not Ready: something odd"},
		{preflight.CheckAgents, agent(preflight.Words{Message: `x: the socket /run/api.sock may not be used: check the SELinux type`}, preflight.Words{Reason: "Error"}), fail, "SELinux policy keeps it"},
		{preflight.CheckAgents, agent(preflight.Words{Reason: "FailedMount", Message: `references non-existent config key: ca.crt`}), fail, "It waits for the proxies' certificate authority"},
		{preflight.CheckAgents, agent(preflight.Words{Reason: "FailedMount", Message: `configmap "update-operator-proxy-ca" not found`}), fail, "ConfigMap update-operator-proxy-ca, which is missing"},
		{preflight.CheckAgents, agent(preflight.Words{Reason: "FailedMount", Message: `other`}), fail, "A volume can't be mounted: other"},
		{preflight.CheckAgents, agent(preflight.Words{Reason: "OOMKilled"}), fail, "memory limit"},
		{preflight.CheckAgents, agent(preflight.Words{Reason: "ErrImagePull", Message: "unauthorized"}), fail, "can't be pulled: unauthorized"},
		{preflight.CheckAgents, agent(preflight.Words{Message: "node a can't be watched through the proxy"}), fail, "It does not reach a proxy"},
		{preflight.CheckAgents, agent(preflight.Words{Reason: "CrashLoopBackOff", Message: "back-off"}, preflight.Words{Reason: "Error"}, preflight.Words{Message: "panic"}), fail, "crashes again and again: panic"},
		{preflight.CheckAgents, agent(preflight.Words{Reason: "CreateContainerConfigError", Message: "no user"}), fail, "can't be made: no user"},
		{preflight.CheckAgents, func(s *preflight.Snapshot) {
			agent()(s)
			s.Nodes.Value[0].Marks.Report.Message = "observing the host: the socket /run/api.sock may not be used: check the SELinux type"
		}, fail, "SELinux"},
		{preflight.CheckAgents, func(s *preflight.Snapshot) { agent()(s); s.Nodes.Value[0].Ready = false }, fail, "The node itself is not Ready"},
		{preflight.CheckAgents, func(s *preflight.Snapshot) { s.Pods.Value = nil }, fail, "The DaemonSet has made no pod there"},
		{preflight.CheckAgents, func(s *preflight.Snapshot) { s.Pods.Value = nil; s.Nodes.Value[0].OSImage = "Debian" }, fail, "It is no Bottlerocket host"},
		{preflight.CheckAgents, func(s *preflight.Snapshot) {
			s.Pods.Value = nil
			workload("agent", preflight.Workload{Said: []preflight.Words{{"FailedCreate", `violates PodSecurity "baseline:latest"`}}})(s)
		}, fail, "pod security level refuses"},
		{preflight.CheckAgents, func(s *preflight.Snapshot) { delete(s.Workloads.Value, "agent") }, fail, "DaemonSet update-operator-agent is missing"},
		{preflight.CheckAgents, node(func(n *preflight.Node) { n.Interface = "" }), ok, "no node has the label"},
		{preflight.CheckAgents, func(s *preflight.Snapshot) {
			s.Pods.Value = append(s.Pods.Value, preflight.Pod{Component: "agent", Node: "a", Said: []preflight.Words{{"Error", "x"}}})
		}, ok, "a Ready agent is on each of 1 node"},
		{preflight.CheckPlans, func(s *preflight.Snapshot) { s.PlansHome.Value = nil }, fail, "there is no namespace bottlerocket-plans"},
		{preflight.CheckPlans, func(s *preflight.Snapshot) {
			s.PlansHome.Value = map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
		}, warn, `enforces the pod security level "restricted"`},
		{preflight.CheckPlans, workload("runner", preflight.Workload{Desired: 1}), fail, "Deployment update-operator-runner: 0 of 1 Ready"},
		{preflight.CheckPlans, func(s *preflight.Snapshot) { delete(s.Workloads.Value, "runner") }, ok, "no plans are used"},
		{preflight.CheckPlans, func(s *preflight.Snapshot) {
			delete(s.Workloads.Value, "runner")
			s.Nodes.Value[0].Interface = fleet.InterfacePlan
			settings(func(p *policy.Settings) { p.Plans = make([]policy.Plan, 1) })(s)
		}, fail, "the policy has plans and nodes have the label value plan, and components/plans/plans.yaml is not installed"},
		{preflight.CheckImages, func(s *preflight.Snapshot) { s.Workloads.Value["agent"] = preflight.Workload{Image: "image:v1"} }, warn, "controller image:v2, proxy image:v2, agent image:v1"},
		{preflight.CheckPolicy, settings(func(*policy.Settings) {}), ok, "is valid"},
		{preflight.CheckPolicy, func(s *preflight.Snapshot) {
			s.Policy.Value = preflight.Policy{There: true, Mistakes: []string{"line 2: x", "line 3: y"}}
		}, fail, "2 mistakes: line 2: x; line 3: y"},
		{preflight.CheckPauses, settings(func(p *policy.Settings) { p.Pause = &policy.Pause{Reason: "release"} }), warn, "the policy pauses the fleet: release"},
		{preflight.CheckPauses, settings(func(p *policy.Settings) {
			p.Groups = []policy.Group{{Name: "canary"}}
			p.Groups[0].Pause = &policy.Pause{Reason: "bad"}
		}), warn, "the policy pauses group canary: bad"},
		{preflight.CheckPauses, func(s *preflight.Snapshot) { s.Pauses.Value.Standing = []string{"the fleet is paused by ann"} }, warn, "the fleet is paused by ann"},
		{preflight.CheckPauses, func(s *preflight.Snapshot) { s.Pauses.Value.Problem = "no JSON" }, fail, "pauses everything: no JSON"},
		{preflight.CheckPauses, node(func(n *preflight.Node) { n.Marks.Paused = true }), warn, "1 node: a"},
		{preflight.CheckUnlabelled, node(func(n *preflight.Node) { n.Interface = "" }), warn, "no label, are 1 Bottlerocket node: a"},
		{preflight.CheckUnlabelled, node(func(n *preflight.Node) { n.OSImage = "Debian" }), warn, "no node of this cluster runs Bottlerocket"},
		{preflight.CheckUnlabelled, func(s *preflight.Snapshot) {
			for i := range 20 {
				n := host(fmt.Sprintf("b-%02d", i))
				n.Interface = ""
				s.Nodes.Value = append(s.Nodes.Value, n)
			}
		}, warn, "20 Bottlerocket nodes: b-00, b-01, b-02, b-03, b-04 and 15 more"},
		{preflight.CheckFresh, node(func(n *preflight.Node) { n.FreshTaint, n.Created = true, noon.Add(-21*time.Minute) }), warn, "longer than freshNodes.deadline, 15m0s, from 1 node: a"},
		{preflight.CheckFresh, node(func(n *preflight.Node) { n.FreshTaint, n.Created = true, noon.Add(-19*time.Minute) }), ok, ""},
		{preflight.CheckFresh, node(func(n *preflight.Node) {
			n.FreshTaint, n.Created, n.Marks.Disruption = true, noon.Add(-time.Hour), &marker.Disruption{}
		}), ok, ""},
		{preflight.CheckLabels, node(func(n *preflight.Node) { n.Interface = "3" }), fail, "1 node: a (3)"},
		{preflight.CheckOtherSystems, node(func(n *preflight.Node) { n.OSImage = "Debian" }), fail, "1 node: a"},
		{preflight.CheckOtherSystems, node(func(n *preflight.Node) { n.OSImage, n.Interface = "Debian", fleet.InterfacePlan }), ok, ""},
		{preflight.CheckOtherSystems, node(func(n *preflight.Node) { n.OSImage = "" }), ok, ""},
		{preflight.CheckInPlace, node(func(n *preflight.Node) { n.Marks.Report.Reason = marker.ReasonInterfaceUnsupported }), warn, "1 node: a"},
		{preflight.CheckAnnotations, node(func(n *preflight.Node) { n.Problems = []marker.Problem{{Key: marker.KeyDisruption, Why: "is no JSON"}} }), fail, "1 node: a. The first: bottlerocket.aws/disruption: is no JSON"},
		{preflight.CheckAutoscalerMarks, node(func(n *preflight.Node) { n.Autoscalers = map[string]string{marker.AnnotationDisrupt: "true"} }), warn, "autoscalers never remove these"},
		{preflight.CheckAutoscalerMarks, node(func(n *preflight.Node) { n.Excluded = true }), warn, "load balancers leave these out"},
		{preflight.CheckAutoscalerMarks, node(func(n *preflight.Node) { n.Excluded, n.Marks.Disruption = true, &marker.Disruption{} }), ok, ""},
		{preflight.CheckBudgets, budget(preflight.Budget{MaxUnavailable: "0", Expected: 3, Here: 1}), fail, "never let a pod go, so nodes with such pods are not updated: 1 PodDisruptionBudget: web/web"},
		{preflight.CheckBudgets, func(s *preflight.Snapshot) {
			settings(func(p *policy.Settings) { p.Draining.Eviction.Predict = false })(s)
			budget(preflight.Budget{MaxUnavailable: "0", Expected: 3, Here: 1})(s)
		}, warn, "the policy drains such nodes all the same"},
		{preflight.CheckBudgets, func(s *preflight.Snapshot) {
			settings(func(p *policy.Settings) { p.Draining.Eviction.Force = true })(s)
			budget(preflight.Budget{MaxUnavailable: "0", Expected: 3, Here: 1})(s)
		}, warn, "the policy drains such nodes all the same"},
		{preflight.CheckBudgets, budget(preflight.Budget{MaxUnavailable: "0%", Expected: 3, Here: 1}), fail, "web/web"},
		{preflight.CheckBudgets, budget(preflight.Budget{MinAvailable: "100%", Expected: 3, Here: 1}), fail, "web/web"},
		{preflight.CheckBudgets, budget(preflight.Budget{MinAvailable: "3", Expected: 3, Healthy: 2, Here: 1}), fail, "web/web"},
		{preflight.CheckBudgets, budget(preflight.Budget{MinAvailable: "90%", Expected: 3, Healthy: 3, Here: 1}), fail, "never"},
		{preflight.CheckBudgets, budget(preflight.Budget{MinAvailable: "2", Expected: 3, Healthy: 2, Here: 1}), warn, "web/web (2 of 3 healthy)"},
		{preflight.CheckBudgets, budget(preflight.Budget{MinAvailable: "2", Expected: 3, Healthy: 3, Allowed: 1, Here: 1}), ok, ""},
		{preflight.CheckBudgets, budget(preflight.Budget{MaxUnavailable: "0", Expected: 3}), ok, "each PodDisruptionBudget"},
		{preflight.CheckBudgets, func(s *preflight.Snapshot) { s.Overlapping.Value = []string{"web/web-1"} }, fail, "1 pod: web/web-1"},
		{preflight.CheckBudgets, func(s *preflight.Snapshot) { s.Cut = []string{"pods beyond the first 200000"} }, warn, "not all was looked at: pods beyond"},
		{preflight.CheckSingleReplicas, func(s *preflight.Snapshot) { s.Singles.Value = []string{"Deployment web/db"} }, warn, "1 workload: Deployment web/db"},
		{preflight.CheckBarePods, func(s *preflight.Snapshot) { s.Bare.Value = []string{"web/bare"} }, warn, "1 pod: web/bare"},
	} {
		s := good()
		c.change(s)
		// What comes first and is none of the operator's hides nothing.
		s.Nodes.Value = slices.Insert(s.Nodes.Value, 0, preflight.Node{Node: fleet.Node{Name: "0", Ready: true}, OSImage: "Ubuntu", Kubelet: "v1.20.0"})
		all := judged(t, s)[c.check]
		found := all[0]
		texts.WriteString(written(all))
		assert.Equal(t, found.Verdict, c.verdict, "%+v", found)
		assert.Assert(t, strings.Contains(found.Message, c.message), "%q is not in %q", c.message, found.Message)
	}
	golden.Assert(t, texts.String(), "findings.golden")
}

// Nodes with the same trouble are one finding, however many there are and whatever each of them says.
func TestManyAgents(t *testing.T) {
	s := good()
	s.Nodes.Value, s.Pods.Value = nil, nil
	for i := range 5000 {
		name := fmt.Sprintf("node-%04d", i)
		s.Nodes.Value = append(s.Nodes.Value, host(name))
		reason := []string{"ImagePullBackOff", "OOMKilled"}[i%2]
		s.Pods.Value = append(s.Pods.Value, preflight.Pod{Component: "agent", Node: name, Said: []preflight.Words{{reason, "of " + name}}})
	}
	found := judged(t, s)[preflight.CheckAgents]
	assert.Equal(t, len(found), 2)
	assert.Assert(t, strings.HasPrefix(found[0].Message, "no Ready agent on 2500 nodes: node-0000, node-0002, node-0004, node-0006, node-0008 and 2495 more. Its image"), found[0].Message)
}

// What others wrote is one printable line of limited length in every message.
func TestAttackWords(t *testing.T) {
	for _, word := range hostile.Words() {
		s := good()
		s.Nodes.Value[0].Interface = fleet.Interface(word)
		s.Nodes.Value = append(s.Nodes.Value, host(word))
		s.Nodes.Value[1].Problems = []marker.Problem{{Key: marker.KeyPlan, Why: word}}
		s.Pods.Value = []preflight.Pod{{Component: "agent", Node: word, Said: []preflight.Words{{word, word}}}}
		s.Leader.Value.Holder, s.Server.Value, s.Pauses.Value.Problem = word, word, word
		s.Singles.Value, s.Bare.Value, s.Overlapping.Value = []string{word}, []string{word}, []string{word}
		s.Budgets.Value = []preflight.Budget{{Name: word, MaxUnavailable: "0", Expected: 1, Here: 1}}
		s.DaemonSets.Value, s.UpgradePlans.Value = []preflight.DaemonSet{{Namespace: word, Name: "kured"}}, []preflight.UpgradePlan{{Name: word, Nodes: []string{word}}}
		s.Policy.Value = preflight.Policy{There: true, Mistakes: []string{word}}
		s.Workloads.Value["agent"] = preflight.Workload{Image: word}
		judged(t, s)
	}
}
