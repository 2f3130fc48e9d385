package agent_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/agent"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

const serverName = "update-operator-proxy.bottlerocket.svc"

// authority is a CA with one serving certificate.
type authority struct {
	pem     []byte
	serving tls.Certificate
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	assert.NilError(t, err)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, key.Public(), key)
	assert.NilError(t, err)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{serverName},
		NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), key)
	assert.NilError(t, err)
	return authority{
		pem:     pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}),
		serving: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
	}
}

// proxyServer answers for one node as the real proxy does.
type proxyServer struct {
	*httptest.Server
	mu       sync.Mutex
	serving  tls.Certificate
	requests []recorded
	answer   func(http.ResponseWriter, *http.Request)
}

type recorded struct{ method, url, contentType, token, body string }

func newProxyServer(t *testing.T, a authority) *proxyServer {
	t.Helper()
	p := &proxyServer{serving: a.serving, answer: func(w http.ResponseWriter, _ *http.Request) { writeNode(w, "7", nil) }}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		p.requests = append(p.requests, recorded{r.Method, r.URL.String(), r.Header.Get("Content-Type"), r.Header.Get("Authorization"), string(body)})
		answer := p.answer
		p.mu.Unlock()
		answer(w, r)
	}))
	p.EnableHTTP2 = true
	p.Config.ErrorLog = nil
	p.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		return &tls.Config{Certificates: []tls.Certificate{p.serving}, NextProtos: []string{"h2", "http/1.1"}}, nil
	}}
	p.StartTLS()
	t.Cleanup(p.Close)
	return p
}

func (p *proxyServer) answers(f func(http.ResponseWriter, *http.Request)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = f
}

func (p *proxyServer) last() recorded {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests[len(p.requests)-1]
}

func node(version string, annotations map[string]string) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
		ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u", ResourceVersion: version, Annotations: annotations},
	}
}

func writeNode(w http.ResponseWriter, version string, annotations map[string]string) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(node(version, annotations))
}

// files are a token and a CA on disk.
type files struct{ token, ca string }

func newFiles(t *testing.T, a authority) files {
	t.Helper()
	f := files{filepath.Join(t.TempDir(), "token"), filepath.Join(t.TempDir(), "ca.crt")}
	assert.NilError(t, os.WriteFile(f.token, []byte("secret\n"), 0o600))
	assert.NilError(t, os.WriteFile(f.ca, a.pem, 0o600))
	return f
}

func (f files) proxy(t *testing.T, server string) *agent.Proxy {
	t.Helper()
	p, err := agent.NewProxy(agent.ProxyConfig{NodeName: "n1", Server: server, ServerName: serverName, TokenFile: f.token, CAFile: f.ca})
	assert.NilError(t, err)
	return p
}

func TestProxyRequests(t *testing.T) {
	a := newAuthority(t)
	s := newProxyServer(t, a)
	p := newFiles(t, a).proxy(t, s.URL)

	s.answers(func(w http.ResponseWriter, _ *http.Request) {
		writeNode(w, "7", map[string]string{"bottlerocket.aws/intent-id": "i", "other.example/key": "v"})
	})
	seen, err := p.Get(t.Context())
	assert.NilError(t, err)
	assert.DeepEqual(t, seen, &agent.Snapshot{UID: "u", ResourceVersion: "7", Annotations: map[string]string{"bottlerocket.aws/intent-id": "i"}})
	assert.Equal(t, s.last(), recorded{"GET", "/api/v1/nodes/n1", "", "Bearer secret", ""})

	_, err = p.Patch(t.Context(), agent.Patch{ResourceVersion: "7", Annotations: map[marker.Key]*string{
		marker.KeyActiveID: ptr("i"), marker.KeyMessage: nil,
	}})
	assert.NilError(t, err)
	assert.Equal(t, s.last(), recorded{"PATCH", "/api/v1/nodes/n1", "application/merge-patch+json", "Bearer secret",
		`{"metadata":{"resourceVersion":"7","annotations":{"bottlerocket.aws/active-id":"i","bottlerocket.aws/message":null}}}`})
}

func TestProxyErrorsCanBeToldApart(t *testing.T) {
	a := newAuthority(t)
	s := newProxyServer(t, a)
	p := newFiles(t, a).proxy(t, s.URL)
	status := func(code int, reason metav1.StatusReason) {
		s.answers(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_ = json.NewEncoder(w).Encode(metav1.Status{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
				Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "the node is paused",
			})
		})
	}
	status(403, metav1.StatusReasonForbidden)
	_, err := p.Patch(t.Context(), agent.Patch{ResourceVersion: "1"})
	assert.Assert(t, apierrors.IsForbidden(err), "%v", err)
	assert.ErrorContains(t, err, `patching node "n1": the node is paused`)
	status(409, metav1.StatusReasonConflict)
	_, err = p.Patch(t.Context(), agent.Patch{ResourceVersion: "1"})
	assert.Assert(t, apierrors.IsConflict(err), "%v", err)
	status(404, metav1.StatusReasonNotFound)
	_, err = p.Get(t.Context())
	assert.Assert(t, apierrors.IsNotFound(err), "%v", err)
}

func TestProxyCAMayChangeAtAnyTime(t *testing.T) {
	first, second := newAuthority(t), newAuthority(t)
	s := newProxyServer(t, first)
	f := newFiles(t, first)
	p := f.proxy(t, s.URL)
	_, err := p.Get(t.Context())
	assert.NilError(t, err)

	// The proxy comes back with a certificate of another CA, which the file doesn't hold yet.
	s.mu.Lock()
	s.serving = second.serving
	s.mu.Unlock()
	s.CloseClientConnections()
	_, err = p.Get(t.Context())
	assert.ErrorContains(t, err, "unknown authority")
	assert.ErrorContains(t, err, f.ca)

	assert.NilError(t, os.WriteFile(f.ca, append(first.pem, second.pem...), 0o600))
	_, err = p.Get(t.Context())
	assert.NilError(t, err)
}

func TestProxyMustCarryItsName(t *testing.T) {
	a := newAuthority(t)
	s := newProxyServer(t, a)
	f := newFiles(t, a)
	p, err := agent.NewProxy(agent.ProxyConfig{NodeName: "n1", Server: s.URL, ServerName: "other.example", TokenFile: f.token, CAFile: f.ca})
	assert.NilError(t, err)
	_, err = p.Get(t.Context())
	assert.ErrorContains(t, err, "other.example")
}

// A Service that was deleted and created again has another address, and its old one may be another Service's by then:
// the proxy is found by its name, must have the same certificate, and the pod needs no restart. Where names can't be
// resolved its address is tried on.
func TestServiceHasAnotherAddress(t *testing.T) {
	ours := newAuthority(t)
	f := newFiles(t, ours)
	first := newProxyServer(t, ours)
	next := newProxyServer(t, ours)
	u, err := url.Parse(first.URL)
	assert.NilError(t, err)
	// The same port on another address, as a Service has it.
	forward, err := net.Listen("tcp", net.JoinHostPort("127.86.75.30", u.Port()))
	assert.NilError(t, err)
	defer forward.Close()
	go func() { _ = next.Config.Serve(tls.NewListener(forward, next.TLS)) }()
	var mu sync.Mutex
	lookups, known := 0, false
	p, err := agent.NewProxy(agent.ProxyConfig{NodeName: "n1", Server: first.URL, ServerName: serverName, TokenFile: f.token, CAFile: f.ca,
		Lookup: func(_ context.Context, host string) ([]string, error) {
			mu.Lock()
			defer mu.Unlock()
			lookups++
			assert.Check(t, host == serverName)
			if !known {
				return nil, errors.New("no such host")
			}
			return []string{"127.86.75.30"}, nil
		}})
	assert.NilError(t, err)
	_, err = p.Get(t.Context())
	assert.NilError(t, err)
	assert.Equal(t, lookups, 0, "its address is enough")

	first.mu.Lock()
	first.serving = newAuthority(t).serving
	first.mu.Unlock()
	first.CloseClientConnections()
	_, err = p.Get(t.Context())
	assert.ErrorContains(t, err, "trusting the proxy")
	_, err = p.Get(t.Context())
	assert.ErrorContains(t, err, "looking up "+serverName+", since the proxy did not answer at "+u.Host+": no such host")
	_, err = p.Get(t.Context())
	assert.ErrorContains(t, err, "trusting the proxy")
	known = true
	_, err = p.Get(t.Context())
	assert.NilError(t, err)
	assert.Equal(t, next.last().token, "Bearer secret")
	assert.Equal(t, lookups, 2)
}

func TestProxyFilesThatCannotBeRead(t *testing.T) {
	f := newFiles(t, newAuthority(t))
	empty := filepath.Join(t.TempDir(), "empty")
	assert.NilError(t, os.WriteFile(empty, nil, 0o600))
	for _, c := range []struct{ token, ca, want string }{
		{f.token, "/nowhere/ca.crt", "reading the proxy's CA: open /nowhere/ca.crt"},
		{f.token, empty, "holds no certificate"},
		{"/nowhere/token", f.ca, "/nowhere/token"},
	} {
		_, err := agent.NewProxy(agent.ProxyConfig{NodeName: "n1", Server: "https://127.0.0.1:1", ServerName: serverName, TokenFile: c.token, CAFile: c.ca})
		assert.ErrorContains(t, err, c.want)
	}
}

func TestProxyWatch(t *testing.T) {
	a := newAuthority(t)
	s := newProxyServer(t, a)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.answers(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if q.Get("watch") == "" {
			t.Errorf("not a watch: %s", r.URL)
			return
		}
		if q.Get("fieldSelector") != "metadata.name=n1" {
			t.Errorf("of other nodes too: %s", r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		send := func(event string, object any) {
			_ = json.NewEncoder(w).Encode(map[string]any{"type": event, "object": object})
			w.(http.Flusher).Flush()
		}
		send("ADDED", node("7", map[string]string{"bottlerocket.aws/intent-id": "i"}))
		bookmark := node("7", map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		send("BOOKMARK", bookmark)
		send("MODIFIED", node("8", map[string]string{"bottlerocket.aws/intent-id": "j"}))
		send("DELETED", node("9", nil))
		<-ctx.Done()
	})
	events := make(chan *agent.Snapshot)
	watched := make(chan struct{})
	proxy := newFiles(t, a).proxy(t, s.URL)
	go func() {
		defer close(watched)
		proxy.Watch(ctx, func(s *agent.Snapshot) {
			select {
			case events <- s:
			case <-ctx.Done():
			}
		})
	}()
	assert.Equal(t, (<-events).Annotations["bottlerocket.aws/intent-id"], "i")
	assert.Equal(t, (<-events).Annotations["bottlerocket.aws/intent-id"], "j")
	assert.Assert(t, <-events == nil)
	cancel()
	<-watched
}
