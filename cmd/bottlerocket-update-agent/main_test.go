package main

import (
	"bytes"
	"strings"
	"testing"

	"gotest.tools/v3/assert"
)

// The agent's own program goes by the namespace of its pod too (issue 14, F3).
func TestNamespaceOfThePod(t *testing.T) {
	var stdout, stderr bytes.Buffer
	env := func(name string) string { return map[string]string{"POD_NAMESPACE": "ops"}[name] }
	assert.Equal(t, run(t.Context(), []string{"-help"}, env, &stdout, &stderr), exitOK)
	assert.Assert(t, strings.Contains(stdout.String(), "update-operator-proxy.ops.svc"), stdout.String())
}

// The same rule holds for the agent's own program, which knows no modes.
func TestEnvironment(t *testing.T) {
	env := func(name string) string {
		return map[string]string{"UPDATE_OPERATOR_NODE_NAME": "n", "UPDATE_OPERATOR_PROXY_SERVER": "http://p", "UPDATE_OPERATOR_CONTROLLER": "what"}[name]
	}
	var stdout, stderr bytes.Buffer
	assert.Equal(t, run(t.Context(), nil, env, &stdout, &stderr), exitUsage)
	assert.Equal(t, stderr.String(), `bottlerocket-update-agent: flag -proxy-server: "http://p" is not an https URL: give one like https://10.96.0.20`+
		" (-proxy-server is set by UPDATE_OPERATOR_PROXY_SERVER in the environment)\n")
}

func TestRun(t *testing.T) {
	env := func(node string) func(string) string {
		return func(key string) string {
			if key == "NODE_NAME" {
				return node
			}
			return ""
		}
	}
	for _, c := range []struct {
		name, node string
		args       []string
		status     int
		stdout     string
		stderr     string
	}{
		{name: "no node name", args: []string{"-proxy-server=https://p"}, status: exitUsage, stderr: "flag -node-name is empty"},
		{name: "no proxy", node: "n1", status: exitUsage, stderr: "flag -proxy-server is empty"},
		{name: "unknown flag", args: []string{"-nope"}, status: exitUsage, stderr: "flag provided but not defined: -nope"},
		{name: "argument", args: []string{"nope"}, status: exitUsage, stderr: `"nope" is not a flag`},
		{name: "bad level", node: "n1", args: []string{"-proxy-server=https://p", "-log-level=loud"}, status: exitUsage, stderr: `log level "loud"`},
		{name: "no CA", node: "n1", args: []string{"-proxy-server=https://p", "-proxy-ca-file=/nowhere/ca.crt"}, status: exitFailed, stderr: "reading the proxy's CA: open /nowhere/ca.crt"},
		{name: "version", args: []string{"-version"}, status: exitOK, stdout: name},
		{name: "help", args: []string{"-help"}, status: exitOK, stdout: "-proxy-ca-file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			assert.Equal(t, run(t.Context(), c.args, env(c.node), &stdout, &stderr), c.status)
			assert.Assert(t, strings.Contains(stdout.String(), c.stdout), stdout.String())
			assert.Assert(t, strings.Contains(stderr.String(), c.stderr), stderr.String())
			if c.status != exitOK {
				assert.Equal(t, strings.Count(stderr.String(), "\n"), 1, stderr.String())
			}
		})
	}
}
