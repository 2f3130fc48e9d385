package agent_test

import (
	"flag"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

func valid() agent.Options {
	o := agent.DefaultOptions()
	o.NodeName, o.ProxyServer = "n1", "https://10.96.0.20"
	return o
}

func TestOptionsAreValidated(t *testing.T) {
	assert.NilError(t, valid().Validate())
	for want, change := range map[string]func(*agent.Options){
		"flag -node-name is empty: give it, or set NODE_NAME": func(o *agent.Options) { o.NodeName = "" },
		"flag -proxy-server is empty":                         func(o *agent.Options) { o.ProxyServer = "" },
		`flag -proxy-server: "http://x" is not an https URL`:  func(o *agent.Options) { o.ProxyServer = "http://x" },
		`flag -proxy-server: "10.0.0.1" is not an https URL`:  func(o *agent.Options) { o.ProxyServer = "10.0.0.1" },
		"flag -proxy-server-name is empty":                    func(o *agent.Options) { o.ProxyServerName = "" },
		"flag -proxy-ca-file is empty":                        func(o *agent.Options) { o.CAFile = "" },
		"flag -token-file is empty":                           func(o *agent.Options) { o.TokenFile = "" },
		"flag -host-socket is empty":                          func(o *agent.Options) { o.HostSocket = "" },
		"flag -boot-id-file is empty":                         func(o *agent.Options) { o.BootIDFile = "" },
		"flag -listen is empty":                               func(o *agent.Options) { o.ListenAddress = "" },
		"flag -refresh-interval: 1ms is too short":            func(o *agent.Options) { o.RefreshInterval = time.Millisecond },
		`log level "loud" is not one of: error, warn`:         func(o *agent.Options) { o.LogLevel = "loud" },
		`log format "xml" is not one of: text, json`:          func(o *agent.Options) { o.LogFormat = "xml" },
	} {
		o := valid()
		change(&o)
		assert.ErrorContains(t, o.Validate(), want)
	}
}

func TestFlagsSetOptions(t *testing.T) {
	o := agent.DefaultOptions()
	fs := flag.NewFlagSet("agent", flag.ContinueOnError)
	o.AddFlags(fs)
	args := []string{
		"-node-name=n", "-proxy-server=https://p", "-proxy-server-name=name", "-proxy-ca-file=ca", "-token-file=token",
		"-host-socket=sock", "-boot-id-file=boot", "-refresh-interval=5m", "-listen=:1", "-log-level=debug", "-log-format=json",
	}
	assert.NilError(t, fs.Parse(args))
	assert.Equal(t, o, agent.Options{
		NodeName: "n", ProxyServer: "https://p", ProxyServerName: "name", CAFile: "ca", TokenFile: "token",
		HostSocket: "sock", BootIDFile: "boot", RefreshInterval: 5 * time.Minute,
		Options: telemetry.Options{ListenAddress: ":1", LogLevel: "debug", LogFormat: "json"},
	})
	set := 0
	fs.VisitAll(func(*flag.Flag) { set++ })
	assert.Equal(t, set, len(args))
}

// A manifest can only compose https://$(HOST):$(PORT), of whatever family the Service's address is.
func TestIPv6ProxyServer(t *testing.T) {
	o := valid()
	o.ProxyServer = "https://fd00::1:443"
	assert.NilError(t, o.Validate())
	o.ProxyServer = "https://[fd00::1]:443"
	assert.NilError(t, o.Validate())
}
