package manifest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// undeploying runs dev/undeploy.sh with a kubectl that answers from a script: $1 is all of its arguments, and $nodes a
// file that holds what the n-th look at the nodes finds in its n-th line, the last one over and over. It returns what
// was printed and what was asked, but for the looks.
func undeploying(t *testing.T, answers, nodes string, env ...string) (string, []string, error) {
	t.Helper()
	root := filepath.Dir(must(Path()))
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	stub := func(name, body string) {
		assert.NilError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+body), 0o755))
	}
	assert.NilError(t, os.WriteFile(filepath.Join(dir, "nodes"), []byte(nodes), 0o600))
	stub("kubectl", `cd "$(dirname "$0")"
case "$*" in
*go-template*)
	head -n 1 nodes | tr ',' '\n'
	if [ "$(wc -l <nodes)" -gt 1 ]; then sed 1d nodes >next && mv next nodes; fi
	exit ;;
*jsonpath*) ;;
*) printf '%s\n' "$*" >>calls ;;
esac
case "$*" in
`+answers+`
esac`)
	stub("sleep", ":")
	run := exec.CommandContext(t.Context(), "sh", filepath.Join("dev", "undeploy.sh"))
	run.Dir = root
	run.Env = append(append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH")), env...)
	out, err := run.CombinedOutput()
	asked, readErr := os.ReadFile(calls)
	assert.NilError(t, readErr)
	return string(out), strings.Split(strings.TrimSpace(string(asked)), "\n"), err
}

const (
	there    = "*'get deployment'*) echo deployment.apps/update-operator-controller ;;\n"
	labelled = "*'get nodes -l'*) echo node/a ;;\n"
	deletion = "delete --ignore-not-found -l !bottlerocket.aws/keep -f update-operator.yaml -f components/force-drain/force-drain.yaml -f components/grace-period/grace-period.yaml -f components/plans/plans.yaml"
)

// Each node that is left is named with what it waits for, again when that changes; a pod on a host that is down holds
// nothing up.
func TestUndeployNamesWhatIsLeft(t *testing.T) {
	out, asked, err := undeploying(t, there+labelled+"*--for=delete*) echo timed out >&2; exit 1 ;;\n",
		"a\na Draining: pod x,a Draining: pod x,b\na Draining: pod x\na Draining: pod y\n\n")
	assert.NilError(t, err, out)
	assert.Equal(t, out, "timed out\nwaiting for a Draining: pod x\nwaiting for b\nwaiting for a Draining: pod y\n")
	assert.Equal(t, asked[len(asked)-1], deletion)
}

// A node that is never uncordoned isn't awaited in silence.
func TestUndeploySaysHowToGoOn(t *testing.T) {
	out, asked, err := undeploying(t, there+labelled, "a\na Draining: pod x,b\n\n", "MINUTES=0")
	assert.NilError(t, err, out)
	assert.Assert(t, strings.Contains(out, "'kubectl bottlerocket plan'"), out)
	assert.Assert(t, strings.Contains(out, "'kubectl bottlerocket clean a b --force=controller'"), out)
	assert.Equal(t, asked[len(asked)-1], deletion)

	out, _, err = undeploying(t, there+labelled, "a\na\n\n")
	assert.NilError(t, err, out)
	assert.Equal(t, out, "waiting for a\n")
}

// A lock that no agent takes back is taken back on the host, by what its record says.
func TestUndeploySaysHowToUnlock(t *testing.T) {
	locked := func(before string) string {
		return `a its host is to be unlocked: "{\"want\":\"` + before + `\",\"before\":\"` + before + `\",\"giveBack\":true}"`
	}
	for _, before := range []string{"latest", "v1.50.0"} {
		out, asked, err := undeploying(t, there+labelled, "a\n"+strings.ReplaceAll(locked(before), ",", ";")+"\n\n", "MINUTES=0")
		assert.NilError(t, err, out)
		assert.Assert(t, strings.Contains(out, "\n  On the host of a: apiclient set updates.version-lock="+before+"\n"), out)
		assert.Equal(t, asked[len(asked)-1], deletion)
	}
	out, _, err := undeploying(t, there+labelled, "a\na Draining: pod x\n\n", "MINUTES=0")
	assert.NilError(t, err, out)
	assert.Assert(t, !strings.Contains(out, "apiclient"), out)
}

// Interrupted in the last deletion and run again it goes on there, whether or not its controller is gone by then.
func TestUndeployRunAgain(t *testing.T) {
	noController := "*--for=condition=Available*) echo gone >&2; exit 1 ;;\n"
	for name, answers := range map[string]string{"the Deployment is gone": noController, "it is on its way out": there + noController, "only labels are left": labelled + noController} {
		t.Run(name, func(t *testing.T) {
			out, asked, err := undeploying(t, answers, "\n")
			assert.NilError(t, err, out)
			assert.Equal(t, asked[len(asked)-1], deletion)
		})
	}
	for name, left := range map[string]string{"nodes are left": "a\n", "nodes may be marked at any time": "\n"} {
		t.Run(name, func(t *testing.T) {
			answers := noController
			if left == "\n" {
				answers = there + labelled + noController
			}
			out, asked, err := undeploying(t, answers, left)
			assert.ErrorContains(t, err, "exit status 1")
			assert.Assert(t, strings.Contains(out, "kubectl bottlerocket clean --all"), out)
			for _, call := range asked {
				assert.Assert(t, !strings.HasPrefix(call, "label ") && !strings.HasPrefix(call, "delete "), call)
			}
		})
	}
}

// Pods that the runner kept are let go, or the namespace of plans would never be gone.
func TestUndeployLetsGoOfPods(t *testing.T) {
	out, asked, err := undeploying(t, there+"*'get pods -o name'*) printf 'pod/a\npod/b\n' ;;\n", "\n")
	assert.NilError(t, err, out)
	n := len(asked)
	patch := ` --type=merge -p {"metadata":{"finalizers":null}}`
	assert.DeepEqual(t, asked[n-3:], []string{"-n " + plansNamespace + " patch pod/a" + patch, "-n " + plansNamespace + " patch pod/b" + patch, deletion})
}

// What installed the operator removes it, and not before the nodes are uncordoned.
func TestUndeployOtherForms(t *testing.T) {
	out, asked, err := undeploying(t, there+labelled, "a\n\n", "REMOVE=kubectl uninstall update-operator")
	assert.NilError(t, err, out)
	assert.Equal(t, asked[len(asked)-1], "uninstall update-operator")
	for _, call := range asked {
		assert.Assert(t, !strings.HasPrefix(call, "delete "), call)
	}
}

// The marks of autoLabel go, and last: a controller that still runs would label the nodes again.
func TestUndeployForgetsWhatWasLabelled(t *testing.T) {
	out, asked, err := undeploying(t, there+"*jsonpath*auto-labelled*) printf 'a b ' ;;\n", "\n")
	assert.NilError(t, err, out)
	n := len(asked)
	assert.Equal(t, asked[n-2], deletion)
	assert.Equal(t, asked[n-1], "annotate node a b bottlerocket.aws/auto-labelled-")
}

// A taint that nothing takes off any more keeps workloads away for ever: the nodes that have it are named.
func TestUndeployNamesFreshNodes(t *testing.T) {
	out, _, err := undeploying(t, there+`*jsonpath*bottlerocket.aws/fresh*) printf 'a \nb NoSchedule\nc NoSchedule\n' ;;`+"\n", "\n")
	assert.NilError(t, err, out)
	assert.Assert(t, strings.HasSuffix(out, "\n  kubectl taint node b c bottlerocket.aws/fresh:NoSchedule-\n"), out)
}

// An API server that doesn't answer isn't one that has no nodes left.
func TestUndeployDeletesNothingUnseen(t *testing.T) {
	for _, question := range []string{"*'get nodes -l'*", "*'get deployment'*", "'label node'*", "*'get pods'*"} {
		out, asked, err := undeploying(t, question+") echo refused >&2; exit 1 ;;\n", "\n")
		assert.ErrorContains(t, err, "exit status 1", out)
		assert.Assert(t, !strings.HasPrefix(asked[len(asked)-1], "delete "), "%q", asked)
	}
}

// make undeploy does what the documentation says to do by hand.
func TestUndeployIsAsDocumented(t *testing.T) {
	root := filepath.Dir(must(Path()))
	content, err := os.ReadFile(filepath.Join(root, "dev", "undeploy.sh"))
	assert.NilError(t, err)
	script := string(content)
	for _, part := range []string{`(?m)go-template='.*'$`, `wait --for=delete pod .* --timeout=\w+`, `-n bottlerocket-plans get pods -o name`, `--type=merge -p '.*'`,
		`delete --ignore-not-found -l '.*?'`} {
		find := regexp.MustCompile(part)
		assert.Assert(t, find.MatchString(script), part)
		assert.Equal(t, find.FindString(page(t, uninstallPage)), find.FindString(script))
	}
	for _, e := range marker.Table() {
		if e.Kind == marker.KindLabel && e.Writer == marker.WriterUser {
			assert.Assert(t, strings.Contains(page(t, uninstallPage), "kubectl label node -l "+string(e.Key)+" "+string(e.Key)+"-\n"))
			assert.Assert(t, strings.Contains(script, string(e.Key)))
		}
	}
	_, command, found := strings.Cut(page(t, uninstallPage), "kubectl delete --ignore-not-found clusterrole,clusterrolebinding ")
	assert.Assert(t, found)
	names, _, _ := strings.Cut(command, "\n")
	for i, file := range []string{"force-drain", "grace-period"} {
		extra, err := Decode(further(t, file))
		assert.NilError(t, err)
		for _, o := range extra.All {
			kind := o.GetObjectKind().GroupVersionKind().Kind
			assert.Assert(t, kind == "ClusterRole" || kind == "ClusterRoleBinding", kind)
			object, err := meta.Accessor(o)
			assert.NilError(t, err)
			assert.Equal(t, object.GetName(), strings.Fields(names)[i])
		}
	}
}

// What undeploy asks a real API server for is the nodes with the mark of autoLabel, and no others.
func TestUndeployFindsWhatWasLabelled(t *testing.T) {
	w := newPlane(t, Namespace)
	w.fill(t)
	query := regexp.MustCompile(`jsonpath='(.*auto-labelled.*)'`).FindStringSubmatch(page(t, "dev/undeploy.sh"))
	assert.Assert(t, query != nil)
	out, err := exec.CommandContext(t.Context(), w.cp.Binaries().Kubectl, "--kubeconfig", w.cp.Kubeconfig(), "get", "nodes", "-o", "jsonpath="+query[1]).CombinedOutput()
	assert.NilError(t, err, "%s", out)
	assert.Equal(t, string(out), returner+" ")
}
