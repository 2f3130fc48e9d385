package manifest

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Grant is one thing that an account may do.
type Grant struct {
	// APIGroup is empty for the core group.
	APIGroup string
	// Resource has its subresource behind a slash, like pods/eviction.
	Resource string
	Verb     string
	// ResourceNames are the objects it is bound to, sorted and joined by commas; empty for any.
	ResourceNames string
	// Namespace is empty for the whole cluster.
	Namespace string
}

// Allows reports whether the grant covers a request. name is empty where the request names no object.
func (g Grant) Allows(apiGroup, resource, verb, namespace, name string) bool {
	return g.APIGroup == apiGroup && g.Resource == resource && g.Verb == verb &&
		(g.Namespace == "" || g.Namespace == namespace) &&
		(g.ResourceNames == "" || slices.Contains(strings.Split(g.ResourceNames, ","), name))
}

// Grants are all that the manifest's roles let a service account do, each once, sorted. A role that the
// manifest doesn't hold gives nothing here; Unbound tells of such.
func (o Objects) Grants(namespace, account string) []Grant {
	var all []Grant
	for _, b := range o.ClusterRoleBindings {
		if binds(b.Subjects, namespace, account) {
			all = append(all, grants(o.rules(b.RoleRef, ""), "")...)
		}
	}
	for _, b := range o.RoleBindings {
		if binds(b.Subjects, namespace, account) {
			all = append(all, grants(o.rules(b.RoleRef, b.Namespace), b.Namespace)...)
		}
	}
	slices.SortFunc(all, func(a, b Grant) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.APIGroup, b.APIGroup),
			cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.ResourceNames, b.ResourceNames))
	})
	return slices.Compact(all)
}

// binds reports whether subjects cover the account, also by the groups that every service account is in.
func binds(subjects []rbacv1.Subject, namespace, account string) bool {
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		switch s.Kind {
		case rbacv1.ServiceAccountKind:
			return s.Namespace == namespace && s.Name == account
		case rbacv1.UserKind:
			return s.Name == "system:serviceaccount:"+namespace+":"+account
		case rbacv1.GroupKind:
			return slices.Contains([]string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:" + namespace}, s.Name)
		}
		return false
	})
}

func (o Objects) rules(ref rbacv1.RoleRef, namespace string) []rbacv1.PolicyRule {
	if ref.Kind == "ClusterRole" {
		for _, r := range o.ClusterRoles {
			if r.Name == ref.Name {
				return r.Rules
			}
		}
		return nil
	}
	for _, r := range o.Roles {
		if r.Name == ref.Name && r.Namespace == namespace {
			return r.Rules
		}
	}
	return nil
}

func grants(rules []rbacv1.PolicyRule, namespace string) []Grant {
	var all []Grant
	for _, r := range rules {
		names := strings.Join(slices.Sorted(slices.Values(r.ResourceNames)), ",")
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					all = append(all, Grant{APIGroup: group, Resource: resource, Verb: verb, ResourceNames: names, Namespace: namespace})
				}
			}
		}
	}
	return all
}

// Unbound are the roles that bindings name and the manifest doesn't hold.
func (o Objects) Unbound() []string {
	var missing []string
	for _, b := range o.ClusterRoleBindings {
		if o.rules(b.RoleRef, "") == nil {
			missing = append(missing, b.RoleRef.Kind+" "+b.RoleRef.Name)
		}
	}
	for _, b := range o.RoleBindings {
		if o.rules(b.RoleRef, b.Namespace) == nil {
			missing = append(missing, b.RoleRef.Kind+" "+b.Namespace+"/"+b.RoleRef.Name)
		}
	}
	return missing
}
