package telemetry

import (
	"flag"
	"io"
	"testing"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"
)

// The command line wins over the environment, and that over the default; an empty variable is none.
func TestFlagsFromTheEnvironment(t *testing.T) {
	set := map[string]string{
		"UPDATE_OPERATOR_LOG_LEVEL": "debug", "UPDATE_OPERATOR_LEASE_DURATION": "90s", "UPDATE_OPERATOR_BRUPOP_METRICS": "false", "UPDATE_OPERATOR_LISTEN": "",
		// What Kubernetes sets, and what is of another version.
		"UPDATE_OPERATOR_PROXY_SERVICE_HOST": "10.96.0.20", "UPDATE_OPERATOR_PROXY_PORT_443_TCP": "tcp://10.96.0.20:443", "UPDATE_OPERATOR_NEWER": "x",
	}
	var level, listen string
	var lease time.Duration
	var metrics bool
	parse := func(args ...string) (Environment, error) {
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		fs.StringVar(&level, "log-level", "info", "")
		fs.StringVar(&listen, "listen", ":8080", "")
		fs.DurationVar(&lease, "lease-duration", 45*time.Second, "")
		fs.BoolVar(&metrics, "brupop-metrics", true, "")
		return ParseFlags(fs, args, func(name string) string { return set[name] })
	}
	env, err := parse("-lease-duration=1m")
	assert.NilError(t, err)
	assert.Equal(t, level, "debug")
	assert.Equal(t, listen, ":8080")
	assert.Equal(t, lease, time.Minute)
	assert.Equal(t, metrics, false)

	// A mistake is of the variable where that was taken, and of the flag where it was given.
	said := env.Explain(errors.New("flags -log-level, -log-format: unknown; -lease-duration: short"))
	assert.Error(t, said, "flags -log-level, -log-format: unknown; -lease-duration: short (-log-level is set by UPDATE_OPERATOR_LOG_LEVEL in the environment)")
	assert.Error(t, env.Explain(errors.New("flag -log-levels is empty")), "flag -log-levels is empty")
	assert.NilError(t, env.Explain(nil))

	set["UPDATE_OPERATOR_LEASE_DURATION"] = "soon"
	_, err = parse()
	assert.Error(t, err, `UPDATE_OPERATOR_LEASE_DURATION is "soon" in the environment: give what flag -lease-duration takes, like "45s", or unset it`)
	_, err = parse("-lease-duration=50s")
	assert.NilError(t, err)
}
