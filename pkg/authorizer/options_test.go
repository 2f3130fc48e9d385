package authorizer

import (
	"flag"
	"testing"
	"time"

	"gotest.tools/v3/assert"
)

func TestOptions(t *testing.T) {
	assert.NilError(t, DefaultOptions().Validate())
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"no namespace", []string{"-namespace="}, "flag -namespace is empty"},
		{"no audience", []string{"-audience="}, "flag -audience is empty"},
		{"no port", []string{"-proxy-listen=localhost"}, "flag -proxy-listen"},
		{"IPv6", []string{"-proxy-listen=[::1]:8443"}, ""},
		{"no port for metrics", []string{"-listen=8080"}, "flag -listen"},
		{"a certificate that outlives its CA", []string{"-ca-life=1h", "-certificate-life=2h", "-ca-settle=1m"}, "-certificate-life"},
		{"no life", []string{"-certificate-life=0s"}, "-certificate-life"},
		{"settling for too long", []string{"-ca-life=1h", "-certificate-life=1h", "-ca-settle=11m"}, "-ca-settle"},
		{"short lives", []string{"-ca-life=1m", "-certificate-life=10s", "-ca-settle=5s"}, ""},
		{"a certificate without a key", []string{"-tls-cert-file=a"}, "-tls-key-file"},
		{"a CA without a certificate", []string{"-tls-ca-file=a"}, "-tls-cert-file"},
		{"a certificate of one's own", []string{"-tls-cert-file=a", "-tls-key-file=b"}, ""},
		{"an odd log level", []string{"-log-level=loud"}, "-log-level"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := DefaultOptions()
			fs := flag.NewFlagSet("proxy", flag.ContinueOnError)
			o.AddFlags(fs)
			assert.NilError(t, fs.Parse(tc.args))
			if err := o.Validate(); tc.want == "" {
				assert.NilError(t, err)
			} else {
				assert.ErrorContains(t, err, tc.want)
			}
		})
	}
	assert.Assert(t, DefaultOptions().CASettle >= 10*time.Minute, "kubelets take minutes to bring a ConfigMap to the agents")
}
