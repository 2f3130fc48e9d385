package plugin

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
)

// unpacked reads an archive.
func unpacked(t *testing.T, file string) map[string]string {
	t.Helper()
	content, err := os.ReadFile(file)
	assert.NilError(t, err)
	zipped, err := gzip.NewReader(bytes.NewReader(content))
	assert.NilError(t, err)
	files := map[string]string{}
	before := ""
	for archive := tar.NewReader(zipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		assert.NilError(t, err)
		assert.Assert(t, header.Name > before, "the files are sorted")
		before = header.Name
		text, err := io.ReadAll(archive)
		assert.NilError(t, err)
		name, is := strings.CutPrefix(header.Name, "bottlerocket-support/")
		assert.Assert(t, is, header.Name)
		files[name] = string(text)
	}
}

// planted are secrets by where they stand. None of them may be in an archive.
var planted = map[string]string{
	"a Secret's data":                    "SECRETDATA7f3a",
	"a bearer token in a log":            "BEARER0a1b2c3d4e5f",
	"a JSON web token in a log":          "eyJhbGciOiJSUzI1NiIsImtpZCI6IlgifQ.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJlc2lnbmF0dXJl",
	"a basic authorization in a log":     "dXNlcjpwYXNzd29yZHBhc3N3b3Jk",
	"a private key in a log":             "MIIEowIBAAKCAQEAprivatekeyinalog",
	"the end of a private key":           "RW5kT2ZBUHJpdmF0ZUtleQ==",
	"a private key in one line":          "MIIEowIBAAKCAQEAprivatekeyinoneline",
	"a password in JSON in a log":        "PASSWORDinJSON",
	"a password in JSON in JSON":         "PASSWORDtwiceQUOTED",
	"a password with blanks":             "PASSWORD WITH BLANKS",
	"an AWS key in a log":                "AKIAIOSFODNN7EXAMPLE",
	"a webhook in a log":                 "XXXXwebhook24charsXXXX99",
	"an address with a user":             "prometheus-userinfo",
	"an address with a password":         "pr0m/etheus-password",
	"an address with a query":            "QUERYTOKEN99",
	"an address as urlKey":               "URLKEYpath",
	"another key of the policy":          "OTHERKEYofPOLICY",
	"another's annotation of a node":     "NODEANNOTATION55",
	"the last applied configuration":     "LASTAPPLIED66",
	"a variable of a pod":                "PODVARIABLE77",
	"the arguments of another container": "SIDECARARG88",
	"an Event":                           "EVENTTOKEN12345678",
	"a metric":                           "eyJtZXRyaWNzIjoxfQ.eyJtZXRyaWNzIjoxfQ.bWV0cmljcw",
	"an agent's message":                 "MESSAGEPASSWORD",
	"a token to join nodes":              "abcdef.0123456789abcdef",
}

// An archive holds what is needed, and none of the secrets that stand all around it. It is its owner's alone, is never
// written over another file unless asked, and the same cluster gives the same files.
func TestSupportBundle(t *testing.T) {
	in := newInstallation(t)
	in.install()
	in.plant()
	in.through = in.logs
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	got := in.run("support-bundle", "-o", file)
	assert.Equal(t, got.status, 0, got.errs)
	assert.Assert(t, strings.HasPrefix(got.out, file+" written: "), got.out)
	info, err := os.Stat(file)
	assert.NilError(t, err)
	assert.Equal(t, info.Mode(), os.FileMode(0o600))
	files := unpacked(t, file)
	for name, text := range files {
		assert.Assert(t, !strings.Contains(text, "\x1b"), name)
	}
	for where, secret := range planted {
		for name, text := range files {
			assert.Assert(t, !strings.Contains(text, secret), "%s is in %s", where, name)
		}
	}
	for name, holds := range map[string]string{
		"check.txt": "Something must be mended", "check.json": `"verdict": "fail"`, "versions.json": `"server": "v1.`, "nodes.json": `"bottlerocket.aws/message"`,
		"objects/pods.json": `"agent-br-1"`, "objects/deployments.json": "update-operator-controller", "objects/daemonsets.json": "update-operator-agent",
		"objects/leases.json": "controller-1_8c0c", "objects/poddisruptionbudgets.json": "update-operator-proxy", "objects/services.json": "update-operator-proxy",
		"objects/endpointslices.json": "10.0.0.1", "events/namespace.json": "Unhealthy", "events/nodes.json": "NodeLost",
		"access/clusterroles.json": "update-operator-controller", "access/clusterrolebindings.json": "update-operator-controller", "access/roles.json": "update-operator-controller",
		"access/rolebindings.json": "update-operator-controller", "access/validatingadmissionpolicies.json": "update-operator-controller-evictions",
		"access/validatingadmissionpolicybindings.json": "Deny", "config/policy.yaml": "maxUnavailable: 2", "config/update-policy.json": "(left-out)",
		"config/update-operator-proxy-ca.json": "BEGIN CERTIFICATE", "secret-names.json": "update-operator-proxy-tls",
		"logs/agent-br-1/agent.log": "the last line", "logs/agent-br-1/agent.previous.log": "the last line", "metrics/controller-1.txt": "bottlerocket_update_controller_nodes 2",
		"README.txt": "secret-names.json", "unread.txt": "plan.json: ",
	} {
		assert.Assert(t, strings.Contains(files[name], holds), "%s: %.2000s", name, files[name])
		if strings.HasSuffix(name, ".json") {
			assert.Assert(t, json.Valid([]byte(files[name])), name)
		}
		assert.Assert(t, strings.Contains(files["README.txt"], name), "%s is not in the index", name)
	}
	assert.Assert(t, strings.Contains(files["config/policy.yaml"], "http://(left-out)@prometheus.example.com:9090/path?(left-out)"), files["config/policy.yaml"])
	assert.Assert(t, !strings.Contains(files["nodes.json"], "other-1"), "nodes that it has nothing to do with are left out")

	got = in.run("support-bundle", "-o", file)
	assert.Equal(t, got.status, 1)
	assert.Assert(t, strings.Contains(got.errs, "exists: give another name"), got.errs)
	got = in.run("support-bundle", "-o", file, "--force")
	assert.Equal(t, got.status, 0, got.errs)
	again := unpacked(t, file)
	assert.Equal(t, len(again), len(files))
	for name, text := range files {
		if !strings.HasPrefix(name, "check") && name != "versions.json" && name != "README.txt" {
			assert.Equal(t, again[name], text)
		}
	}
	left, err := os.ReadDir(filepath.Dir(file))
	assert.NilError(t, err)
	assert.Equal(t, len(left), 1, "nothing else is left in the folder")

	// With no rights at all there is an archive too, which says what is missing.
	bare := filepath.Join(t.TempDir(), "bare.tar.gz")
	got = in.run("support-bundle", "-o", bare, "--as", "visitor")
	assert.Equal(t, got.status, 0, got.errs)
	files = unpacked(t, bare)
	for _, part := range []string{"nodes.json: you may not list nodes", "config/update-policy.json: you may not get configmaps", "secret-names.json: you may not list secrets"} {
		assert.Assert(t, strings.Contains(files["unread.txt"], part), files["unread.txt"])
	}
}

// plant puts a secret wherever one may stand, and what an archive should hold beside it.
func (in *installation) plant() {
	in.t.Helper()
	ctx, core := in.t.Context(), in.client.CoreV1()
	did[*corev1.Secret](in)(core.Secrets(kube.Namespace).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "update-notify"},
		StringData: map[string]string{"url": planted["a Secret's data"]}}, metav1.CreateOptions{}))
	in.t.Cleanup(func() { in.kubectl("", "-n", "bottlerocket", "delete", "secret", "update-notify") })
	policy := "version: 1\nmaxUnavailable: 2\nalerts:\n  url: http://" + planted["an address with a user"] + ":" + planted["an address with a password"] + "@prometheus.example.com:9090/path?sig=" +
		planted["an address with a query"] + "\nnotify:\n  urlKey: https://chat.example.com/" + planted["an address as urlKey"] + "/x\n"
	in.kubectl("", "-n", "bottlerocket", "create", "configmap", "update-policy", "--from-literal=policy.yaml="+policy, "--from-literal=other="+planted["another key of the policy"])
	in.t.Cleanup(func() { in.kubectl("", "-n", "bottlerocket", "delete", "configmap", "update-policy") })
	in.kubectl("", "annotate", "node", "br-1", "example.com/note="+planted["another's annotation of a node"], corev1.LastAppliedConfigAnnotation+`={"x":"`+planted["the last applied configuration"]+`"}`,
		"bottlerocket.aws/message=the host says password="+planted["an agent's message"])
	in.kubectl("", "-n", "bottlerocket", "annotate", "pod", "agent-br-1", corev1.LastAppliedConfigAnnotation+"="+planted["the last applied configuration"])
	in.pod(kube.Namespace, "controller-1", "br-1", map[string]string{"app.kubernetes.io/name": "bottlerocket-update-operator", "app.kubernetes.io/component": "controller"})
	for _, name := range []string{"agent-br-1", "controller-1"} {
		p := did[*corev1.Pod](in)(core.Pods(kube.Namespace).Get(ctx, name, metav1.GetOptions{}))
		p.Status = corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "agent", RestartCount: 1, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
		did[*corev1.Pod](in)(core.Pods(kube.Namespace).UpdateStatus(ctx, p, metav1.UpdateOptions{}))
	}
	in.deletePod(kube.Namespace, "injected")
	did[*corev1.Pod](in)(core.Pods(kube.Namespace).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "injected", Labels: map[string]string{"app.kubernetes.io/name": "bottlerocket-update-operator"}},
		Spec: corev1.PodSpec{NodeName: "br-2", Containers: []corev1.Container{
			{Name: "agent", Image: "agent", Env: []corev1.EnvVar{{Name: "DB", Value: planted["a variable of a pod"]}, {Name: "GOMEMLIMIT", Value: "57MiB"}}},
			{Name: "sidecar", Image: "sidecar", Args: []string{"-x", planted["the arguments of another container"]}, Env: []corev1.EnvVar{{Name: "POD_NAME", Value: planted["a variable of a pod"]}}}}}}, metav1.CreateOptions{}))
	in.t.Cleanup(func() { in.deletePod(kube.Namespace, "injected") })
	in.t.Cleanup(in.event("Pod", "agent-br-1", "Unhealthy", "Authorization: Bearer "+planted["an Event"]))
	e := did[*corev1.Event](in)(core.Events("default").Create(ctx, &corev1.Event{ObjectMeta: metav1.ObjectMeta{GenerateName: "e-"}, Reason: "NodeLost", Message: "join with " + planted["a token to join nodes"],
		InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "br-1"}}, metav1.CreateOptions{}))
	in.t.Cleanup(func() { in.kubectl("", "-n", "default", "delete", "event", e.Name) })
}

// logs answers for the kubelets, which aren't there.
func (in *installation) logs(next http.RoundTripper) http.RoundTripper {
	said := strings.Join([]string{
		"bWlkZGxlT2ZBUHJpdmF0ZUtleQo", planted["the end of a private key"], "-----END EC PRIVATE KEY-----",
		"level=info msg=began", "curl -H 'Authorization: Bearer " + planted["a bearer token in a log"] + "'", "map[Authorization:[Basic " + planted["a basic authorization in a log"] + "]]",
		"token " + planted["a JSON web token in a log"] + " was refused", "-----BEGIN RSA PRIVATE KEY-----", planted["a private key in a log"], "-----END RSA PRIVATE KEY-----",
		`{"key":"-----BEGIN PRIVATE KEY-----\n` + planted["a private key in one line"] + `\n-----END PRIVATE KEY-----\n"}`,
		`{"db_password": "` + planted["a password in JSON in a log"] + `","x":1}`, `{"msg":"{\"password\":\"` + planted["a password in JSON in JSON"] + `\"}"}`,
		`password="` + planted["a password with blanks"] + `"`, "aws " + planted["an AWS key in a log"], "a terminal \x1b[2J obeys", "post https://hooks.example.com/services/T0/B0/" + planted["a webhook in a log"],
		"the last line"}, "\n")
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		answer := func(text string) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/plain"}}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
		}
		switch {
		case r.Header.Get("Impersonate-User") != "":
		case strings.HasSuffix(r.URL.Path, "/log"):
			return answer(said)
		case strings.HasSuffix(r.URL.Path, "/proxy/metrics"):
			return answer("bottlerocket_update_controller_nodes 2\nx{t=\"" + planted["a metric"] + "\"} 1\n")
		}
		return next.RoundTrip(r)
	})
}

// What is no secret stays readable.
func TestScrubLeaves(t *testing.T) {
	for _, text := range []string{
		"token without node claims", "the basic check", "https://registry.example.com/v2/bottlerocket-update-operator/manifests/v2.0.0",
		"public.ecr.aws/bottlerocket/bottlerocket-update-operator@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		`Get "https://10.0.0.1:443/api/v1/nodes/ip-10-0-12-34.eu-west-1.compute.internal": dial tcp: connection refused`,
		"k3s/v1.36.3+k3s1#0123456789abcdef", "3b2a1c00-0000-4000-8000-000000000000", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
		"channel: https://update.k3s.io/v1-release/channels/stable", "urlKey: chat",
	} {
		assert.Equal(t, scrub(text), text)
	}
}

// TestAttackScrub: much text of what looks like secrets, and ends nowhere, takes time by its length alone.
func TestAttackScrub(t *testing.T) {
	took := func(size int) time.Duration {
		var b strings.Builder
		for b.Len() < size {
			for _, secret := range planted {
				b.WriteString("-----BEGIN PRIVATE KEY----- password=\"http://a@" + secret + "?eyJ ")
			}
		}
		began := time.Now()
		assert.Assert(t, len(scrub(b.String())) < size)
		return time.Since(began)
	}
	small, large := took(64<<10), took(1<<20)
	t.Logf("64 KiB in %s, 1 MiB in %s", small, large)
	assert.Assert(t, large < 10*time.Second)
}
