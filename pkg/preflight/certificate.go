package preflight

import (
	"fmt"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

// soon is before its end when a certificate that was not renewed is warned of, as by the alert
// BottlerocketUpdateCertificateEnds.
const soon = 14 * 24 * time.Hour

func certificate(s *Snapshot) []Finding {
	if !s.installed() {
		return absent(s)
	}
	if b := blind(s.Bundle); b != nil {
		return b
	}
	const object = "ConfigMap update-operator-proxy-ca"
	logs := fmt.Sprintf("see why: kubectl -n %s logs -l app.kubernetes.io/component=proxy --prefix --tail=-1 | grep -i certificate", s.Namespace)
	b := s.Bundle.Value
	switch {
	case !b.There:
		return failed(object+" is missing, so proxies can't publish their certificate and no agent starts", restoreIt)
	case s.KeyStored.Refused == "" && !s.KeyStored.Value:
		return failed("Secret update-operator-proxy-tls is missing, and proxies may not create it", restoreIt)
	case !b.Filled:
		return failed(object+" has no ca.crt: no proxy has filled it yet, and agents wait for it", logs)
	case b.Problem != "":
		return failed(object+" can't be read: "+b.Problem,
			fmt.Sprintf("delete it and let the proxies write it anew: kubectl -n %s delete configmap update-operator-proxy-ca; %s", s.Namespace, restoreIt))
	}
	if b := blind(s.Clock); b != nil {
		return b
	}
	switch now := s.now(); {
	case !now.Before(b.Ends):
		return failed("the certificate authority in "+object+" ended at "+moment(b.Ends)+": no agent reaches a proxy",
			logs)
	case b.Ends.Sub(now) < soon:
		return warned("the certificate authority in "+object+" ends at "+moment(b.Ends)+", in "+plain.Duration(b.Ends.Sub(now).Round(time.Minute)).String()+", and should have been renewed", logs)
	}
	return well("agents trust a certificate authority that ends at " + moment(b.Ends))
}

// now is the API server's time; zero if it is not known.
func (s *Snapshot) now() time.Time { return s.Clock.Value.Server }

func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 MST") }
