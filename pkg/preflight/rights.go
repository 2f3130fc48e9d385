package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Ask is a question to the API server: whether an account may do something.
type Ask struct {
	// Component is whose account is meant; empty: the caller's.
	Component string
	// For is what the caller needs it for: Install, or a command of the plugin.
	For string
	// Group, Resource (with its subresource behind a slash), Verb, Namespace and Name are as in RBAC; no namespace: the
	// whole cluster; no name: any.
	Group, Resource, Verb, Namespace, Name string
}

// Answer is an Ask with its answer.
type Answer struct {
	Ask
	Allowed bool
}

// String is in the words of `kubectl auth can-i`.
func (a Ask) String() string {
	s := a.Verb + " " + a.Resource
	if a.Group != "" {
		s += "." + a.Group
	}
	if a.Name != "" {
		s += " " + a.Name
	}
	if a.Namespace != "" {
		s += " in " + a.Namespace
	}
	return s
}

// Install is what Ask.For says of rights that applying the manifest needs.
const Install = "install"

// scope is where a grant holds.
type scope int

const (
	everywhere scope = iota
	atHome
	inDefault
	inPlans
)

// grant is a line of rights; its parts are separated by blanks.
type grant struct {
	scope                               scope
	group, resources, verbs, boundNames string
}

// granted are the rights of each account, as update-operator.yaml and components/plans/plans.yaml give them.
var granted = map[string][]grant{
	Controller: {
		{everywhere, "", "nodes", "get list watch patch", ""},
		{everywhere, "", "pods", "list", ""},
		{everywhere, "", "pods/eviction", "create", ""},
		{everywhere, "policy", "poddisruptionbudgets", "list", ""},
		{everywhere, "apps", "daemonsets deployments replicasets statefulsets", "get", ""},
		{everywhere, "storage.k8s.io", "volumeattachments", "list", ""},
		{everywhere, "", "persistentvolumeclaims", "get", ""},
		{everywhere, "", "events", "create patch", ""},
		{atHome, "", "pods", "watch", ""},
		{atHome, "", "configmaps", "create", ""},
		{atHome, "", "configmaps", "get update", "update-state"},
		{atHome, "", "configmaps", "list watch", "update-policy update-pause update-acknowledged plan-targets"},
		{atHome, "coordination.k8s.io", "leases", "create", ""},
		{atHome, "coordination.k8s.io", "leases", "get update", "update-operator-controller"},
	},
	Proxy: {
		{everywhere, "authentication.k8s.io", "tokenreviews", "create", ""},
		{everywhere, "", "nodes", "get list watch patch", ""},
		{atHome, "", "secrets", "get update", "update-operator-proxy-tls"},
		{atHome, "", "configmaps", "get update", "update-operator-proxy-ca"},
	},
	Runner: {
		{everywhere, "", "nodes", "get list watch patch", ""},
		{atHome, "", "configmaps", "get list watch", "update-policy"},
		{atHome, "", "configmaps", "create", ""},
		{atHome, "", "configmaps", "get list watch update", "plan-targets"},
		{atHome, "", "secrets", "get update", "update-operator-runner"},
		{inPlans, "", "podtemplates configmaps secrets", "get list watch", ""},
		{inPlans, "", "pods", "get list watch create delete patch", ""},
		{inPlans, "", "pods/log", "get", ""},
	},
}

// forbidden is what the account of agents must never have: the proxy is their only door.
var forbidden = []grant{
	{everywhere, "", "nodes", "get list watch update patch delete", ""},
	{everywhere, "", "nodes/status", "update patch", ""},
	{everywhere, "", "pods/eviction", "create", ""},
	{atHome, "", "secrets", "get list", ""},
}

// toInstall is what applying the manifest needs.
var toInstall = []grant{
	{everywhere, "", "namespaces", "create patch", ""},
	{atHome, "", "serviceaccounts configmaps secrets services", "create patch", ""},
	{everywhere, "rbac.authorization.k8s.io", "clusterroles clusterrolebindings", "create patch", ""},
	{atHome, "rbac.authorization.k8s.io", "roles rolebindings", "create patch", ""},
	{inDefault, "rbac.authorization.k8s.io", "roles rolebindings", "create patch", ""},
	{everywhere, "admissionregistration.k8s.io", "validatingadmissionpolicies validatingadmissionpolicybindings",
		"create patch", ""},
	{atHome, "apps", "deployments daemonsets", "create patch", ""},
	{atHome, "policy", "poddisruptionbudgets", "create patch", ""},
}

// toCommand is what the plugin's commands need, as on docs/kubectl-plugin.md.
var toCommand = map[string][]grant{
	"status": {
		{everywhere, "", "nodes", "list watch", ""},
		{atHome, "", "pods", "list", ""},
		{atHome, "", "configmaps", "get", "update-policy"},
	},
	"plan": {
		{atHome, "coordination.k8s.io", "leases", "get", "update-operator-controller"},
		{atHome, "", "pods/proxy", "get", ""},
	},
	"pause, resume, retry and acknowledge": {
		{everywhere, "", "nodes", "patch", ""},
		{atHome, "", "configmaps", "get patch", "update-pause update-acknowledged"},
		{atHome, "", "configmaps", "create", ""},
	},
}

// asks are the single questions of some grants.
func (s *Snapshot) asks(grants []grant, component, what string) []Ask {
	var all []Ask
	for _, g := range grants {
		where := map[scope]string{atHome: s.Namespace, inDefault: "default", inPlans: s.PlansNamespace}[g.scope]
		names := strings.Fields(g.boundNames)
		if len(names) == 0 {
			names = []string{""}
		}
		for _, resource := range strings.Fields(g.resources) {
			for _, verb := range strings.Fields(g.verbs) {
				for _, name := range names {
					all = append(all, Ask{component, what, g.group, resource, verb, where, name})
				}
			}
		}
	}
	return all
}

// CallerAsks is what to ask about the user.
func (s *Snapshot) CallerAsks() []Ask {
	all := s.asks(toInstall, "", Install)
	for _, command := range slices.Sorted(maps.Keys(toCommand)) {
		all = append(all, s.asks(toCommand[command], "", command)...)
	}
	return all
}

// AccountAsks is what to ask about the operator's accounts, that of the runner with plans alone.
func (s *Snapshot) AccountAsks(plans bool) []Ask {
	all := append(s.asks(granted[Controller], Controller, ""), s.asks(granted[Proxy], Proxy, "")...)
	if plans {
		all = append(all, s.asks(granted[Runner], Runner, "")...)
	}
	return append(all, s.asks(forbidden, Agent, "")...)
}

// answers returns which of the questions that are meant have this answer.
func answers(all []Answer, allowed bool, meant func(Answer) bool) []string {
	var names []string
	for _, a := range all {
		if a.Allowed == allowed && meant(a) {
			names = append(names, a.String())
		}
	}
	return names
}

func installRights(s *Snapshot) []Finding {
	if b := blind(s.Caller); b != nil {
		return b
	}
	lacking := answers(s.Caller.Value, false, func(a Answer) bool { return a.For == Install })
	const remedy = "let a cluster administrator apply it, or give yourself the right: kubectl auth can-i create clusterroles"
	switch {
	case len(lacking) == 0:
		return well("you may apply update-operator.yaml")
	case s.installed():
		return warned("you may not apply update-operator.yaml again; you lack "+of(lacking, "right"), remedy)
	}
	return failed("you may not install the operator; you lack "+of(lacking, "right"), remedy)
}

func commandRights(s *Snapshot) []Finding {
	if b := blind(s.Caller); b != nil {
		return b
	}
	var found []Finding
	for _, command := range slices.Sorted(maps.Keys(toCommand)) {
		lacking := answers(s.Caller.Value, false, func(a Answer) bool { return a.For == command })
		if len(lacking) > 0 {
			found = append(found, warned(fmt.Sprintf("you may not use kubectl bottlerocket %s; you lack %s", command,
				of(lacking, "right")),
				"ask an administrator for the Roles in docs/kubectl-plugin.md#rights")...)
		}
	}
	if found == nil {
		return well("you may use the plugin's commands")
	}
	return found
}

func accountRights(s *Snapshot) []Finding {
	if !s.installed() {
		return absent(s)
	}
	if b := blind(s.Accounts); b != nil {
		return b
	}
	var found []Finding
	for _, component := range []string{Controller, Proxy, Runner} {
		lacking := answers(s.Accounts.Value, false, func(a Answer) bool { return a.Component == component })
		if len(lacking) == 0 {
			continue
		}
		remedy := restoreIt
		if component == Runner {
			remedy = restorePlans
		}
		found = append(found, failed(fmt.Sprintf("the account %s lacks %s", Account(component), of(lacking, "right")),
			remedy)...)
	}
	if found == nil {
		return well("the operator's accounts have their rights")
	}
	return found
}

// agentRights looks also before the operator is installed: the account of the first operator has the same name.
func agentRights(s *Snapshot) []Finding {
	if b := blind(s.Accounts); b != nil {
		return b
	}
	if has := answers(s.Accounts.Value, true, func(a Answer) bool { return a.Component == Agent }); len(has) > 0 {
		return failed(fmt.Sprintf("the account %s has %s. It must have none: a stolen token of any node could use it",
			Account(Agent), of(has, "right")),
			"find what gives it and delete that: kubectl get clusterrolebindings,rolebindings -A -o wide | grep "+Account(Agent))
	}
	return well("the account of agents has no rights")
}
