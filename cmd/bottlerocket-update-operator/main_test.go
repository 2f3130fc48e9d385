package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// Bad input gets one clear line on stderr that names the thing, status 2 for usage and 1 otherwise.
func TestBadInput(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "kubeconfig")
	assert.NilError(t, os.WriteFile(broken, []byte("{"), 0o600))
	controller := []string{"-controller", "-node-name=n", "-pod-name=p", "-listen=127.0.0.1:0"}
	for name, c := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"no mode":               {nil, exitUsage, "exactly one of -controller, -agent, -proxy, -runner"},
		"two modes":             {[]string{"-agent", "--proxy"}, exitUsage, "-agent and -proxy exclude each other"},
		"unknown flag":          {append(controller, "-frobnicate"), exitUsage, "frobnicate"},
		"flag of another mode":  {[]string{"-agent", "-agent-selector=a"}, exitUsage, "agent-selector"},
		"not a flag":            {append(controller, "now"), exitUsage, `"now" is not a flag`},
		"bad duration":          {append(controller, "-lease-duration=soon"), exitUsage, "lease-duration"},
		"setting of the policy": {append(controller, "-max-unavailable=2"), exitUsage, "max-unavailable"},
		"lease times":           {append(controller, "-lease-duration=1s"), exitUsage, "-lease-duration must exceed"},
		"namespace of plans":    {[]string{"-runner", "-plans-namespace=bottlerocket"}, exitUsage, "-plans-namespace"},
		"no node name":          {[]string{"-agent", "-proxy-server=https://10.0.0.1"}, exitUsage, "node-name"},
		"no kubeconfig":         {append(controller, "-kubeconfig=/nowhere/at/all"), exitFailed, "/nowhere/at/all"},
		"broken kubeconfig":     {append(controller, "-kubeconfig="+broken), exitFailed, broken},
		"outside a cluster":     {controller, exitFailed, "-kubeconfig"},
		"address in use or bad": {append(controller, "-listen=256.0.0.1:1", "-kubeconfig="+workingKubeconfig(t)),
			exitFailed, "256.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			status := run(t.Context(), c.args, func(string) string { return "" }, &out, &errs)
			said := errs.String()
			lines := strings.Split(strings.TrimSpace(said), "\n")
			last := lines[len(lines)-1]
			assert.Equal(t, status, c.status, said)
			assert.Assert(t, strings.HasPrefix(last, name0) && strings.Contains(last, c.says), "%q", said)
			if c.status == exitUsage {
				assert.Equal(t, len(lines), 1, said)
			}
		})
	}
}

const name0 = "bottlerocket-update-operator: "

// workingKubeconfig names an API server that does not run.
func workingKubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	assert.NilError(t, os.WriteFile(path, []byte(`{"apiVersion":"v1","kind":"Config","current-context":"c",
"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],
"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],"users":[{"name":"u","user":{"token":"t"}}]}`), 0o600))
	return path
}

func TestVersionAndHelp(t *testing.T) {
	var out, errs bytes.Buffer
	assert.Equal(t, run(t.Context(), []string{"-version"}, os.Getenv, &out, &errs), exitOK)
	assert.Assert(t, strings.HasPrefix(out.String(), "bottlerocket-update-operator "))
	out.Reset()
	assert.Equal(t, run(t.Context(), []string{"-proxy", "-help"}, os.Getenv, &out, &errs), exitOK)
	assert.Assert(t, strings.Contains(out.String(), "-proxy-listen"))
	assert.Equal(t, errs.String(), "")
}

// The environment can say all that flags can, the mode too, and the command line wins.
func TestEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		args []string
		// status 0 is for a help text.
		status int
		says   string
	}{
		"mode":                {map[string]string{"CONTROLLER": "true"}, []string{"-help"}, exitOK, "Flags of -controller"},
		"mode given":          {map[string]string{"CONTROLLER": "true", "PROXY": "true"}, []string{"-agent", "-help"}, exitOK, "Flags of -agent"},
		"mode switched off":   {map[string]string{"CONTROLLER": "true", "PROXY": "1"}, []string{"-controller=false", "-help"}, exitOK, "Flags of -proxy"},
		"two modes":           {map[string]string{"CONTROLLER": "true", "PROXY": "true"}, nil, exitUsage, "UPDATE_OPERATOR_PROXY in the environment"},
		"bad mode":            {map[string]string{"AGENT": "yes"}, nil, exitUsage, `UPDATE_OPERATOR_AGENT is "yes" in the environment: give what flag -agent takes, like "true", or unset it`},
		"bad duration":        {map[string]string{"LEASE_DURATION": "soon"}, []string{"-controller"}, exitUsage, `UPDATE_OPERATOR_LEASE_DURATION is "soon"`},
		"bad duration, given": {map[string]string{"LEASE_DURATION": "soon"}, []string{"-controller", "-lease-duration=45s"}, exitUsage, "no pod name"},
		"bad level":           {map[string]string{"NODE_NAME": "n", "POD_NAME": "p", "LOG_LEVEL": "loud"}, []string{"-controller"}, exitUsage, "-log-level is set by UPDATE_OPERATOR_LOG_LEVEL in the environment"},
		"of another mode":     {map[string]string{"LEASE_DURATION": "soon"}, []string{"-agent"}, exitUsage, "-node-name is empty"},
		"version":             {map[string]string{"VERSION": "true"}, nil, exitOK, name},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			getenv := func(name string) string {
				short, ok := strings.CutPrefix(name, "UPDATE_OPERATOR_")
				if !ok {
					return ""
				}
				return c.env[short]
			}
			assert.Equal(t, run(t.Context(), c.args, getenv, &out, &errs), c.status, errs.String())
			assert.Assert(t, strings.Contains(out.String()+errs.String(), c.says), "%s%s", &out, &errs)
			assert.Equal(t, strings.Count(errs.String(), "\n"), min(c.status, 1), errs.String())
		})
	}
}

// forServices are the ends of what Kubernetes sets in pods for each Service of their namespace, whatever its name.
var forServices = regexp.MustCompile(`(_SERVICE_HOST|_SERVICE_PORT(_.*)?|_PORT(_[0-9]+_(TCP|UDP|SCTP).*)?)$`)

// No flag is ever set by what Kubernetes sets for Services such as update-operator-proxy.
func TestNoFlagIsSetByKubernetes(t *testing.T) {
	assert.Assert(t, forServices.MatchString("UPDATE_OPERATOR_PROXY_SERVICE_HOST") && forServices.MatchString("UPDATE_OPERATOR_PROXY_PORT_443_TCP_ADDR"))
	names := slices.Clone(modeNames)
	for _, mode := range modeNames {
		var out, errs bytes.Buffer
		assert.Equal(t, run(t.Context(), []string{"-" + mode, "-help"}, func(string) string { return "" }, &out, &errs), exitOK)
		for _, m := range regexp.MustCompile(`(?m)^  -([a-z-]+)`).FindAllStringSubmatch(out.String(), -1) {
			names = append(names, m[1])
		}
	}
	assert.Assert(t, len(names) > 40 && slices.Contains(names, "proxy-server") && slices.Contains(names, "check-policy"), names)
	for _, n := range names {
		assert.Check(t, !forServices.MatchString(telemetry.Variable(n)), n)
	}
}

// In another namespace all programs go by it, and by the names that follow from it (issue 14, F3).
func TestNamespaceOfThePod(t *testing.T) {
	env := func(name string) string { return map[string]string{"POD_NAMESPACE": "ops"}[name] }
	for mode, want := range map[string][]string{
		"-controller": {`(default "ops")`}, "-proxy": {`(default "ops")`, "update-operator-proxy.ops.svc"}, "-agent": {"update-operator-proxy.ops.svc"}, "-runner": {`(default "ops")`},
	} {
		var out, errs bytes.Buffer
		assert.Equal(t, run(t.Context(), []string{mode, "-help"}, env, &out, &errs), exitOK)
		for _, w := range want {
			assert.Check(t, strings.Contains(out.String(), w), "%s: %s", mode, w)
		}
		assert.Check(t, !strings.Contains(out.String(), `"bottlerocket"`) && !strings.Contains(out.String(), ".bottlerocket.svc"), mode)
	}
}

// -check-policy tells every mistake of a file, a line each, and nothing of what it would do with the rest.
func TestCheckPolicy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	check := func(text string) (status int, out, errs string) {
		assert.NilError(t, os.WriteFile(path, []byte(text), 0o600))
		var stdout, stderr bytes.Buffer
		status = run(t.Context(), []string{"-check-policy", path}, func(string) string { return "" }, &stdout, &stderr)
		return status, strings.ReplaceAll(stdout.String(), path, "FILE"), strings.ReplaceAll(stderr.String(), path, "FILE")
	}
	status, out, errs := check("version: 1\nmaxUnavailable: 120%\ndeadlines: {staging: 1m}\ngroups: [{nodeSelector: {}}]\n")
	assert.Equal(t, status, exitFailed)
	assert.Equal(t, out, "")
	assert.Equal(t, errs, "FILE: line 2: maxUnavailable \"120%\" is more than all: give 0% to 100%\nFILE: line 4: groups[0].name is missing: give each group one\n")
	status, out, errs = check("version: 1\ndeadlines: {staging: 1m}\n")
	assert.Equal(t, status, exitOK)
	assert.Assert(t, strings.HasPrefix(out, "FILE: warning: the staging deadline") && strings.HasSuffix(out, "FILE is good\n"), out)
	assert.Equal(t, errs, "")
}
