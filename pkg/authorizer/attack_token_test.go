package authorizer

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// with returns the battlefield with another token in the attacker's hands.
func (b *battlefield) with(token string) *battlefield {
	other := *b
	other.token = token
	return &other
}

// nodeToken is bound to a node and to no pod, as Kubernetes issues them too.
func (b *battlefield) nodeToken(n *corev1.Node) string {
	b.t.Helper()
	tr, err := b.admin.CoreV1().ServiceAccounts(b.options.Namespace).CreateToken(b.t.Context(), b.options.AgentAccount, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{Audiences: []string{b.options.Audience},
			BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID}}}, metav1.CreateOptions{})
	assert.NilError(b.t, err)
	return tr.Status.Token
}

// expired signs the claims of a good token once more, with the API server's own key, for a time that is over.
func (b *battlefield) expired(good string) string {
	b.t.Helper()
	parts := strings.Split(good, ".")
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	assert.NilError(b.t, err)
	var claims map[string]any
	assert.NilError(b.t, json.Unmarshal(text, &claims))
	over := time.Now().Add(-time.Hour)
	claims["iat"], claims["nbf"], claims["exp"] = over.Add(-time.Hour).Unix(), over.Add(-time.Hour).Unix(), over.Unix()
	return b.signed(parts[0], claims)
}

func (b *battlefield) signed(header string, claims map[string]any) string {
	b.t.Helper()
	content, err := os.ReadFile(filepath.Join(b.plane.Dir(), "sa.key"))
	assert.NilError(b.t, err)
	block, _ := pem.Decode(content)
	key, err := x509.ParseECPrivateKey(block.Bytes)
	assert.NilError(b.t, err)
	text, err := json.Marshal(claims)
	assert.NilError(b.t, err)
	signed := header + "." + base64.RawURLEncoding.EncodeToString(text)
	digest := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
	assert.NilError(b.t, err)
	signature := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// TestAttackToken holds which tokens are good, against tokens that are really issued.
func TestAttackToken(t *testing.T) {
	b := newBattlefield(t)
	o := b.options
	pod, good := b.agentPod, b.token
	elsewhere := o.Namespace + "-else"
	b.namespace(elsewhere)
	b.account(elsewhere, o.AgentAccount)
	namesake := b.pod(elsewhere, o.AgentAccount, pod.Name, b.own)
	unscheduled := b.pod(o.Namespace, o.AgentAccount, "unscheduled", "")
	controller := b.pod(o.Namespace, "update-operator-controller", "controller", b.own)
	header, claims, _ := strings.Cut(good, ".")
	claims, _, _ = strings.Cut(claims, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`))
	for _, tc := range []struct {
		name, token string
		code        int
		says        string
	}{
		{"nonsense", "nonsense", http.StatusUnauthorized, "not valid"},
		{"another signature", good[:len(good)-8] + "AAAAAAAA", http.StatusUnauthorized, "not valid"},
		{"no signature", none + "." + claims + ".", http.StatusUnauthorized, "not valid"},
		{"a header alone", header, http.StatusUnauthorized, "not valid"},
		{"expired", b.expired(good), http.StatusUnauthorized, "not valid"},
		{"another audience", b.tokenOf(pod, "vault"), http.StatusUnauthorized, "audience"},
		{"the API server's audience", b.tokenOf(pod, "https://kubernetes.default.svc.cluster.local"), http.StatusUnauthorized, "audience"},
		{"bound to nothing", b.cluster.token(o.Namespace, o.AgentAccount, nil, o.Audience), no, "not bound to a pod"},
		{"bound to the node alone", b.nodeToken(b.live(b.own)), no, "not bound to a pod"},
		{"of a pod without a node", b.cluster.token(o.Namespace, o.AgentAccount, unscheduled, o.Audience), no, "names no node"},
		{"of the controller", b.cluster.token(o.Namespace, "update-operator-controller", controller, o.Audience), no, "not the agents' service account"},
		{"of a pod of that name elsewhere", b.cluster.token(elsewhere, o.AgentAccount, namesake, o.Audience), no, "not the agents' service account"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b.with(tc.token).run(t, attack{method: "PATCH", target: ownPath, body: factBody, code: tc.code, says: tc.says})
			b.with(tc.token).run(t, attack{method: "GET", target: ownPath, code: tc.code, says: tc.says})
		})
	}
}

func (b *battlefield) tokenOf(pod *corev1.Pod, audience string) string {
	b.t.Helper()
	return b.cluster.token(b.options.Namespace, b.options.AgentAccount, pod, audience)
}

// A Node made anew under the same name is another one: what was issued for the first opens nothing.
func TestAttackRecreatedNode(t *testing.T) {
	b := newBattlefield(t)
	b.run(t, attack{method: "PATCH", target: ownPath, body: strings.Replace(factBody, "RV", "1", 1), code: http.StatusConflict})
	assert.NilError(t, b.admin.CoreV1().Nodes().Delete(t.Context(), b.own, metav1.DeleteOptions{}))
	nodes := b.client(b.p, b.token)
	_, err := nodes.Get(t.Context(), b.own, metav1.GetOptions{})
	assert.ErrorContains(t, err, "is gone")
	b.node(b.own, liveIntent(marker.ActionRebootUpdate))
	for _, a := range []attack{
		{name: "read", method: "GET", target: ownPath},
		{name: "listed", method: "GET", target: "/api/v1/nodes?fieldSelector=metadata.name%3DOWN"},
		{name: "watched", method: "GET", target: "/api/v1/nodes?watch=true&fieldSelector=metadata.name%3DOWN"},
		{name: "reported on", method: "PATCH", target: ownPath, body: factBody},
		{name: "answered for", method: "PATCH", target: ownPath, body: answerPatch(intentID, "busy", "")},
	} {
		a.code, a.says = no, "another one than the token was issued for"
		t.Run(a.name, func(t *testing.T) { b.run(t, a) })
	}
}

// TestAttackDeletedPod holds that a deleted pod's token opens nothing soon after.
func TestAttackDeletedPod(t *testing.T) {
	t.Parallel()
	b := newBattlefield(t)
	nodes := b.client(b.p, b.token)
	_, err := nodes.Get(t.Context(), b.own, metav1.GetOptions{})
	assert.NilError(t, err)
	b.deleteAgent()
	until(t, func() error {
		_, err := nodes.Get(t.Context(), b.own, metav1.GetOptions{})
		if !apierrors.IsUnauthorized(err) {
			return errors.Errorf("got %v", err)
		}
		return nil
	})
	b.run(t, attack{method: "PATCH", target: ownPath, body: factBody, code: http.StatusUnauthorized, says: "not valid"})
}

// TestAttackWatchOfADeletedPod holds that what a deleted pod's token opened before ends soon after.
func TestAttackWatchOfADeletedPod(t *testing.T) {
	t.Parallel()
	b := newBattlefield(t, func(p *Proxy) {
		p.handler.trust = trust{every: time.Second, again: 100 * time.Millisecond, most: 20 * time.Second}
	})
	w, err := b.client(b.p, b.token).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + b.own})
	assert.NilError(t, err)
	defer w.Stop()
	nextEvent(t, w)
	b.deleteAgent()
	ended(t, w)
}

// TestAttackWatchOfARecreatedNode holds that a watch ends when its node is another one of that name: what was issued for
// the first shows nothing of it for long.
func TestAttackWatchOfARecreatedNode(t *testing.T) {
	t.Parallel()
	b := newBattlefield(t, func(p *Proxy) {
		p.handler.trust = trust{every: time.Second, again: 100 * time.Millisecond, most: 20 * time.Second}
	})
	w, err := b.client(b.p, b.token).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + b.own})
	assert.NilError(t, err)
	defer w.Stop()
	nextEvent(t, w)
	assert.NilError(t, b.admin.CoreV1().Nodes().Delete(t.Context(), b.own, metav1.DeleteOptions{}))
	b.node(b.own, nil)
	ended(t, w)
}

func (b *battlefield) deleteAgent() {
	b.t.Helper()
	var now int64
	assert.NilError(b.t, b.admin.CoreV1().Pods(b.agentPod.Namespace).Delete(b.t.Context(), b.agentPod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
}
