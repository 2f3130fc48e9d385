package plugin

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"gotest.tools/v3/assert"
	"gotest.tools/v3/golden"
	"gotest.tools/v3/poll"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/preflight"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/rollout"
)

const page = "../../docs/kubectl-plugin.md"

// documented compares a table of the page with what the code says, or writes it with -update.
func documented(t *testing.T, name, want string) {
	t.Helper()
	content, err := os.ReadFile(page)
	assert.NilError(t, err)
	before, rest, begins := strings.Cut(string(content), "<!-- "+name+":begin -->\n")
	got, after, ends := strings.Cut(rest, "<!-- "+name+":end -->")
	assert.Assert(t, begins && ends, "%s has no table %s", page, name)
	if golden.FlagUpdate() {
		text := before + "<!-- " + name + ":begin -->\n" + want + "<!-- " + name + ":end -->" + after
		assert.NilError(t, os.WriteFile(page, []byte(text), 0o644))
		return
	}
	assert.Equal(t, got, want, "run go test ./pkg/plugin -run TestDocs -update")
}

// Every subcommand and every flag is on the page.
func TestDocs(t *testing.T) {
	root := newPlugin(genericiooptions.NewTestIOStreamsDiscard()).command()
	commands := 0
	for _, c := range root.Commands() {
		t.Run(c.Name(), func(t *testing.T) { documented(t, "flags:"+c.Name(), flagTable(c)) })
		commands++
	}
	content, err := os.ReadFile(page)
	assert.NilError(t, err)
	assert.Equal(t, strings.Count(string(content), "<!-- flags:")/2, commands, "no table is of a command that isn't there")
	for _, lack := range plan.Lacks() {
		assert.Assert(t, strings.Contains(string(content), "| `"+string(lack)+"` |"), "%s has no %s", page, lack)
	}
	t.Run("fields", func(t *testing.T) {
		var b strings.Builder
		b.WriteString("| kind | fields |\n|---|---|\n")
		for _, v := range []any{
			Check{}, preflight.Finding{}, StatusList{}, Status{}, WaitingFor{}, marker.Failure{}, Plan{}, plan.Step{}, plan.Decision{}, plan.Usage{}, plan.Group{}, plan.Window{}, plan.StoppedVersion{}, VersionList{}, plan.Version{}, plan.Target{}, Proven{}, plan.Proof{}, Report{}, rollout.Node{}, rollout.Failure{}, History{}, Attempt{}} {
			of := reflect.TypeOf(v)
			name := of.Name()
			if _, is := of.FieldByName("printed"); !is {
				name = "in it: " + name
			}
			fmt.Fprintf(&b, "| %s | %s |\n", name, strings.Join(fields(of), ", "))
		}
		documented(t, "fields", b.String())
	})
}

func flagTable(c *cobra.Command) string {
	var b strings.Builder
	b.WriteString("| flag | default | meaning |\n|---|---|---|\n")
	c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		name, value := "`--"+f.Name+"`", f.DefValue
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		if value != "" {
			value = "`" + value + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, value, f.Usage)
	})
	return b.String()
}

// fields are the names of a structure's fields in JSON.
func fields(of reflect.Type) []string {
	var out []string
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && f.Type != reflect.TypeFor[printed]():
			out = append(out, fields(f.Type)...)
		case name != "" && name != "-":
			out = append(out, "`"+name+"`")
		}
	}
	return out
}

// rights are the page's roles: to look, to steer, to pin, to clean and to check.
func rights(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile(page)
	assert.NilError(t, err)
	blocks := strings.Split(string(content), "```yaml\n")[1:]
	assert.Equal(t, len(blocks), 5)
	return blocks
}

// The rights on the page are enough for each subcommand, and those to look are not enough to write.
func TestDocumentedRights(t *testing.T) {
	c := newCluster(t)
	h := idleHost("a")
	h.marks.Failure = &marker.Failure{Versions: []string{v2}, Count: 1, Reason: "RolledBack", At: noon, RetryAfter: noon.Add(time.Hour)}
	c.node(h)
	c.configMap(kube.StateConfigMap, "slots", "{}")
	c.leads("a")
	blocks := rights(t)
	looks, steers, pins, cleans := "looker-"+c.namespace, "steerer-"+c.namespace, "pinner-"+c.namespace, "cleaner-"+c.namespace
	c.grant(blocks[0], looks, steers, pins, cleans)
	c.grant(blocks[1], steers)
	c.grant(blocks[2], pins)
	c.grant(blocks[3], cleans)

	for _, line := range []string{"plan", "plan --policy -"} {
		// It is allowed; the pod just isn't there to answer.
		got := c.runWith("version: 1\n", append(strings.Split(line, " "), "--as", looks)...)
		assert.Assert(t, strings.HasSuffix(got.errs, "/controller-1 for its plan: address not allowed\n"), got.errs)
	}
	for _, line := range []string{"status", "versions", "history a", "__complete retry "} {
		got := c.run(append(strings.Split(line, " "), "--as", looks)...)
		if strings.HasPrefix(line, "__complete") {
			got = c.run(append([]string{"__complete", "--as", looks}, strings.Split(line, " ")[1:]...)...)
			assert.Assert(t, strings.HasPrefix(got.out, "a\n"), got.out)
		}
		assert.Equal(t, got.status, 0, got.errs)
		assert.Assert(t, !strings.Contains(got.errs, "forbidden"), got.errs)
	}
	c.watching(t, "--as", looks)()
	c.node(host{name: "new", notLabelled: true, noAgent: true, osImage: "Bottlerocket OS 1.50.0 (aws-k8s-1.36)"})
	for _, line := range []string{"enroll new --yes", "pause a --reason x", "pause --reason x", "pause --reason y", "resume", "resume a", "retry a", "acknowledge " + v2, "acknowledge " + v1} {
		got := c.run(append(strings.Fields(line), "--as", looks)...)
		// To resume what isn't paused needs no right.
		if !strings.HasPrefix(line, "resume") {
			assert.Equal(t, got.status, 1, line)
			assert.Assert(t, strings.Contains(got.errs, "forbidden"), got.errs)
		}
		got = c.run(append(strings.Fields(line), "--as", steers)...)
		assert.Equal(t, got.status, 0, got.errs)
	}
	for _, line := range []string{"pin " + v2 + " --yes", "pin " + v1 + " --yes", "rollback --to " + v2 + " --yes", "unpin --yes"} {
		// Those who steer lack it too: what patches the policy may run pods.
		for _, user := range []string{looks, steers} {
			got := c.run(append(strings.Fields(line), "--as", user, "--dry-run=server")...)
			refused := got.status == 1 && strings.Contains(got.errs, "forbidden")
			// To make a policy where there is none is what those who steer may.
			assert.Assert(t, refused || user == steers && strings.HasPrefix(line, "pin "+v2), got.errs)
		}
		got := c.run(append(strings.Fields(line), "--as", pins)...)
		assert.Equal(t, got.status, 0, got.errs)
	}
	// It refuses, since the node's agent is not there, and only after it was allowed to look.
	got := c.run("e2e", "--node", "a", "--as", looks)
	assert.Assert(t, strings.Contains(got.errs, "no agent pod is Ready on it"), got.errs)
	for _, line := range []string{"clean a --force=controller", "clean --all --state --force=controller --dry-run", "clean --all --state --labels --force=controller"} {
		assert.Equal(t, c.run(append(strings.Fields(line), "--as", looks)...).status, 1)
		got := c.run(append(strings.Fields(line), "--as", cleans)...)
		assert.Equal(t, got.status, 0, got.errs)
	}
}

// grant creates the roles of a block and binds them to users.
func (c *cluster) grant(block string, users ...string) {
	c.t.Helper()
	block, _, _ = strings.Cut(block, "```")
	ctx, rbac := c.t.Context(), c.client.RbacV1()
	var subjects []rbacv1.Subject
	for _, u := range users {
		subjects = append(subjects, rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: u})
	}
	for _, document := range strings.Split(block, "---\n") {
		var r rbacv1.Role
		assert.NilError(c.t, yaml.Unmarshal([]byte(document), &r))
		meta := metav1.ObjectMeta{Name: r.Name + "-" + c.namespace}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: r.Kind, Name: meta.Name}
		var err error
		if r.Kind == "ClusterRole" {
			_, err = rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: r.Rules}, metav1.CreateOptions{})
			assert.NilError(c.t, err)
			_, err = rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
		} else {
			assert.Equal(c.t, r.Namespace, "bottlerocket")
			_, err = rbac.Roles(c.namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: r.Rules}, metav1.CreateOptions{})
			assert.NilError(c.t, err)
			_, err = rbac.RoleBindings(c.namespace).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
		}
		assert.NilError(c.t, err)
		c.mayNow(users[0], &r)
		c.t.Cleanup(func() {
			ctx := context.Background()
			if r.Kind == "ClusterRole" {
				assert.NilError(c.t, rbac.ClusterRoleBindings().Delete(ctx, meta.Name, metav1.DeleteOptions{}))
				assert.NilError(c.t, rbac.ClusterRoles().Delete(ctx, meta.Name, metav1.DeleteOptions{}))
				return
			}
			assert.NilError(c.t, rbac.RoleBindings(c.namespace).Delete(ctx, meta.Name, metav1.DeleteOptions{}))
			assert.NilError(c.t, rbac.Roles(c.namespace).Delete(ctx, meta.Name, metav1.DeleteOptions{}))
		})
	}
}

// mayNow waits until the API server knows that a user has the rights of a role: it learns of them by watches of its own.
func (c *cluster) mayNow(user string, r *rbacv1.Role) {
	c.t.Helper()
	rule := r.Rules[0]
	resource, sub, _ := strings.Cut(rule.Resources[0], "/")
	asked := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: resource, Subresource: sub}}}
	if r.Kind != "ClusterRole" {
		asked.Spec.ResourceAttributes.Namespace = c.namespace
	}
	if len(rule.ResourceNames) > 0 {
		asked.Spec.ResourceAttributes.Name = rule.ResourceNames[0]
	}
	poll.WaitOn(c.t, func(poll.LogT) poll.Result {
		got, err := c.client.AuthorizationV1().SubjectAccessReviews().Create(c.t.Context(), asked, metav1.CreateOptions{})
		if err != nil {
			return poll.Error(err)
		}
		if !got.Status.Allowed {
			return poll.Continue("%s may not %s %s yet", user, rule.Verbs[0], rule.Resources[0])
		}
		return poll.Success()
	}, poll.WithTimeout(time.Minute), poll.WithDelay(10*time.Millisecond))
}

// What the runbooks say to type is there: subcommands and their flags.
func TestDocsRunbooks(t *testing.T) {
	root := newPlugin(genericiooptions.NewTestIOStreamsDiscard()).command()
	pages, err := filepath.Glob("../../docs/runbooks/*.md")
	assert.NilError(t, err)
	found := 0
	for _, p := range pages {
		content, err := os.ReadFile(p)
		assert.NilError(t, err)
		for _, m := range regexp.MustCompile("`kubectl bottlerocket ([^`|]*)").FindAllStringSubmatch(string(content), -1) {
			words := strings.Fields(m[1])
			c, _, err := root.Find(words[:1])
			assert.NilError(t, err, "%s: %s", p, m[1])
			for _, w := range words[1:] {
				name := strings.TrimLeft(w, "-")
				known := w == name || c.Flags().Lookup(name) != nil || len(name) == 1 && c.Flags().ShorthandLookup(name) != nil
				assert.Check(t, known, "%s: %s: %s", p, m[1], w)
			}
			found++
		}
	}
	assert.Assert(t, found > 10)
}
