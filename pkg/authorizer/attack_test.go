package authorizer

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"
	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// unlimited lets a test send as much as it likes.
func unlimited(p *Proxy) {
	p.handler.limits = newLRUMap[string](func() *limit {
		return &limit{rate: rate.NewLimiter(rate.Inf, 0), open: make(chan struct{}, inFlight)}
	})
}

// battlefield is one agent's good token, its node in the middle of a reboot, and another node.
type battlefield struct {
	*cluster
	p          *proxy
	own, other string
	agentPod   *corev1.Pod
	token      string
}

func newBattlefield(t *testing.T, adjust ...func(*Proxy)) *battlefield {
	t.Helper()
	return newCluster(t).battlefield(adjust...)
}

func (c *cluster) battlefield(adjust ...func(*Proxy)) *battlefield {
	c.t.Helper()
	b := &battlefield{cluster: c, p: c.proxy(append(adjust, unlimited)...), own: "own-" + c.options.Namespace, other: "other-" + c.options.Namespace}
	c.node(b.own, with(liveIntent(marker.ActionRebootUpdate), string(marker.KeyBootID), oldBoot, "example.com/theirs", "kept"))
	c.node(b.other, with(liveIntent(marker.ActionRebootUpdate), string(marker.KeyBootID), oldBoot))
	b.agentPod, b.token = c.agentToken(b.own)
	return b
}

// dial connects as an agent does, in HTTP/1.1, so that every byte of a request is the test's.
func (b *battlefield) dial(t *testing.T, version uint16) (*tls.Conn, error) {
	t.Helper()
	pool := x509.NewCertPool()
	assert.Assert(t, pool.AppendCertsFromPEM(b.ca()))
	return tls.Dial("tcp", strings.TrimPrefix(b.p.url, "https://"),
		&tls.Config{RootCAs: pool, ServerName: b.options.ServerName, MinVersion: version, MaxVersion: version, NextProtos: []string{"http/1.1"}})
}

// slowest is how long an answer may take: a number of its own, so that a proxy that waits longer is found out.
const slowest = 40 * time.Second

// send sends bytes and returns what is answered first.
func (b *battlefield) send(t *testing.T, request string) (int, string) {
	t.Helper()
	conn, err := b.dial(t, tls.VersionTLS13)
	assert.NilError(t, err)
	defer conn.Close()
	assert.NilError(t, conn.SetDeadline(time.Now().Add(slowest)))
	// A server that has heard enough may hang up before the end.
	_, _ = io.WriteString(conn, request)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	assert.NilError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	assert.NilError(t, err)
	return res.StatusCode, string(body)
}

// state is all that must not change.
func (b *battlefield) state() string {
	b.t.Helper()
	var out []byte
	for _, name := range []string{b.own, b.other} {
		n := b.live(name)
		text, err := json.Marshal(struct {
			Metadata metav1.ObjectMeta
			Spec     corev1.NodeSpec
			Status   corev1.NodeStatus
		}{n.ObjectMeta, n.Spec, n.Status})
		assert.NilError(b.t, err)
		out = append(out, text...)
	}
	return string(out)
}

// attack is one request; OWN, OTHER, RV, TOKEN and NS are replaced in all of it.
type attack struct {
	name, method, target string
	headers              []string
	body                 string
	// live is what stands on the node instead.
	live map[string]string
	code int
	says string
}

func (a attack) request() string {
	headers := map[string]string{"Host": "proxy", "Authorization": "Bearer TOKEN", "Accept": acceptOfGets}
	if a.body != "" {
		headers["Content-Type"] = patchType
		headers["Content-Length"] = ""
	}
	var extra []string
	for _, h := range a.headers {
		if k, v, _ := strings.Cut(h, ": "); strings.HasPrefix(h, "+") {
			extra = append(extra, h[1:])
		} else {
			headers[k] = v
		}
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s HTTP/1.1\r\n", a.method, a.target)
	for k, v := range headers {
		if k == "Content-Length" {
			v = "LENGTH"
		}
		if v != "" {
			fmt.Fprintf(&out, "%s: %s\r\n", k, v)
		}
	}
	for _, h := range extra {
		out.WriteString(h + "\r\n")
	}
	return out.String() + "\r\n"
}

func (b *battlefield) sendAttack(t *testing.T, a attack) (int, string) {
	t.Helper()
	n := b.live(b.own)
	fill := strings.NewReplacer("OWN", b.own, "OTHER", b.other, "RV", n.ResourceVersion, "TOKEN", b.token, "NS", b.options.Namespace)
	body := fill.Replace(a.body)
	return b.send(t, strings.Replace(fill.Replace(a.request()), "LENGTH", fmt.Sprint(len(body)), 1)+body)
}

func (b *battlefield) run(t *testing.T, a attack) {
	if a.live != nil {
		b.annotate(b.own, a.live)
	}
	before := b.state()
	code, answer := b.sendAttack(t, a)
	assert.Equal(t, b.state(), before, "nothing changed")
	assert.Equal(t, code, a.code, answer)
	assert.Assert(t, strings.Contains(answer, a.says), answer)
	if a.code == http.StatusForbidden {
		var s metav1.Status
		assert.NilError(t, json.Unmarshal([]byte(answer), &s))
		assert.Equal(t, s.Reason, metav1.StatusReasonForbidden)
	}
}

func annotationsPatch(annotations string) string {
	return `{"metadata":{"resourceVersion":"RV","annotations":{` + annotations + `}}}`
}

func answerPatch(id, state, rest string) string {
	return annotationsPatch(`"bottlerocket.aws/active-id":"` + id + `","bottlerocket.aws/action-state":"` + state + `"` + rest)
}

const (
	no       = http.StatusForbidden
	ownPath  = "/api/v1/nodes/OWN"
	factBody = `{"metadata":{"resourceVersion":"RV","annotations":{"bottlerocket.aws/boot-id":"forged"}}}`
)

func TestAttackOtherNodes(t *testing.T) {
	b := newBattlefield(t)
	for _, a := range []attack{
		{name: "another node by its path", method: "PATCH", target: "/api/v1/nodes/OTHER", body: factBody, code: no, says: "not the agent's own"},
		{name: "another node by the body", method: "PATCH", target: ownPath, body: `{"metadata":{"name":"OTHER","resourceVersion":"RV"}}`, code: no, says: "metadata.name"},
		{name: "another node by an encoded slash", method: "PATCH", target: "/api/v1/nodes/OWN%2F..%2FOTHER", body: factBody, code: no},
		{name: "its own node, escaped: what is read in two ways", method: "GET", target: "/api/v1/node%73/OWN", code: no},
		{name: "another node by dots", method: "PATCH", target: "/api/v1/nodes/OWN/../OTHER", body: factBody, code: no},
		{name: "another node by encoded dots", method: "PATCH", target: "/api/v1/nodes/OWN/%2e%2e/OTHER", body: factBody, code: no},
		{name: "another node by case", method: "PATCH", target: "/api/v1/nodes/Own-NS", body: factBody, code: no},
		{name: "another node by a dot at the end", method: "PATCH", target: "/api/v1/nodes/OWN.", body: factBody, code: no},
		{name: "another node by a slash at the end", method: "PATCH", target: "/api/v1/nodes/OWN/", body: factBody, code: no},
		{name: "another node by a null byte", method: "PATCH", target: "/api/v1/nodes/OWN%00", body: factBody, code: no},
		{name: "another node by a parameter", method: "PATCH", target: "/api/v1/nodes/OWN;OTHER", body: factBody, code: no},
		{name: "another node by the whole URL", method: "PATCH", target: "https://kubernetes.default.svc/api/v1/nodes/OTHER", body: factBody, code: no},
		{name: "another node read", method: "GET", target: "/api/v1/nodes/OTHER", code: no},
		{name: "another node watched", method: "GET", target: "/api/v1/nodes?watch=true&fieldSelector=metadata.name%3DOTHER", code: no},
		{name: "all nodes read", method: "GET", target: "/api/v1/nodes", code: no},
		{name: "all nodes watched", method: "GET", target: "/api/v1/nodes?watch=true", code: no},
		{name: "two selectors", method: "GET", target: "/api/v1/nodes?fieldSelector=metadata.name%3DOWN&fieldSelector=metadata.name%3DOTHER", code: no},
		{name: "a wider selector", method: "GET", target: "/api/v1/nodes?fieldSelector=metadata.name!%3DOWN", code: no},
		{name: "a selector by label", method: "GET", target: "/api/v1/nodes?watch=true&labelSelector=kubernetes.io%2Fos%3Dlinux", code: no},
		{name: "a selector by label beside its own name", method: "GET", target: "/api/v1/nodes?fieldSelector=metadata.name%3DOWN&labelSelector=a%3Db", code: no},
		{name: "the whole node", method: "GET", target: ownPath, headers: []string{"Accept: application/json"}, code: no, says: "only metadata"},
		{name: "a table of nodes", method: "GET", target: "/api/v1/nodes?fieldSelector=metadata.name%3DOWN", headers: []string{"Accept: application/json;as=Table;g=meta.k8s.io;v=v1"}, code: no},
	} {
		t.Run(a.name, func(t *testing.T) { b.run(t, a) })
	}
}

func TestAttackContent(t *testing.T) {
	b := newBattlefield(t)
	patch := func(name, body, says string) attack {
		return attack{name: name, method: "PATCH", target: ownPath, body: body, code: no, says: says}
	}
	typed := func(name, kind, body string) attack {
		a := patch(name, body, "content type")
		a.headers = []string{"Content-Type: " + kind}
		return a
	}
	for _, a := range []attack{
		patch("a foreign key", annotationsPatch(`"example.com/a":"b"`), "example.com/a"),
		patch("a foreign key among good ones", annotationsPatch(`"bottlerocket.aws/boot-id":"b","example.com/a":"b"`), "example.com/a"),
		patch("a foreign annotation deleted", annotationsPatch(`"example.com/theirs":null`), "example.com/theirs"),
		patch("all annotations deleted", `{"metadata":{"resourceVersion":"RV","annotations":null}}`, "metadata.annotations"),
		patch("the intent's time made longer", annotationsPatch(`"bottlerocket.aws/intent-until":"2099-01-01T00:00:00Z"`), "intent-until"),
		patch("the intent deleted", annotationsPatch(`"bottlerocket.aws/intent-id":null`), "intent-id"),
		patch("a lock that nothing wishes for", annotationsPatch(`"bottlerocket.aws/lock":"{\"want\":\"1.0.0\",\"before\":\"latest\"}"`), "lock"),
		patch("a lock among facts", annotationsPatch(`"bottlerocket.aws/version-lock":"1.0.0","bottlerocket.aws/lock":"{\"want\":\"latest\",\"before\":\"latest\",\"giveBack\":true}"`), "lock"),
		patch("the record of a lock deleted", annotationsPatch(`"bottlerocket.aws/lock":null`), "lock"),
		patch("the mark of a lock as an annotation", annotationsPatch(`"bottlerocket.aws/locked":"true"`), "locked"),
		patch("the label of a lock", `{"metadata":{"resourceVersion":"RV","labels":{"bottlerocket.aws/locked":"true"}}}`, "metadata.labels"),
		patch("the label of a lock deleted", `{"metadata":{"resourceVersion":"RV","labels":{"bottlerocket.aws/locked":null}}}`, "metadata.labels"),
		patch("a lock that is no version", annotationsPatch(`"bottlerocket.aws/version-lock":"newest"`), "version-lock"),
		patch("a key of the operator that is not known", annotationsPatch(`"bottlerocket.aws/new":"b"`), "bottlerocket.aws/new"),
		patch("a key in another case", annotationsPatch(`"bottlerocket.aws/Boot-ID":"b"`), "Boot-ID"),
		patch("a label", `{"metadata":{"resourceVersion":"RV","labels":{"a":"b"}}}`, "metadata.labels"),
		patch("spec", `{"metadata":{"resourceVersion":"RV"},"spec":{"unschedulable":false}}`, "spec"),
		patch("a taint", `{"spec":{"taints":null}}`, "spec"),
		patch("status", `{"metadata":{"resourceVersion":"RV"},"status":{"conditions":[]}}`, "status"),
		patch("finalizers", `{"metadata":{"resourceVersion":"RV","finalizers":["a/b"]}}`, "metadata.finalizers"),
		patch("owners", `{"metadata":{"resourceVersion":"RV","ownerReferences":[]}}`, "metadata.ownerReferences"),
		patch("managed fields", `{"metadata":{"resourceVersion":"RV","managedFields":[]}}`, "metadata.managedFields"),
		patch("no resourceVersion", `{"metadata":{"annotations":{"bottlerocket.aws/boot-id":"b"}}}`, "resourceVersion"),
		patch("a name twice", `{"metadata":{"resourceVersion":"RV","annotations":{"bottlerocket.aws/boot-id":"a"}},"metadata":{"labels":{"a":"b"}}}`, "twice"),
		patch("a name in two cases", `{"metadata":{"resourceVersion":"RV"},"Metadata":{"labels":{"a":"b"}}}`, "Metadata"),
		patch("a strategic directive", `{"metadata":{"resourceVersion":"RV","$patch":"replace"}}`, "$patch"),
		patch("a directive for a key", annotationsPatch(`"$patch":"delete"`), "$patch"),
		patch("something after it", factBody+`{"spec":{}}`, "after the patch"),
		patch("deep nesting", strings.Repeat(`{"metadata":`, 5000)+"1"+strings.Repeat("}", 5000), "metadata.metadata"),
		patch("deep arrays", strings.Repeat("[", 60000), "not an object"),
		patch("a huge body", annotationsPatch(`"bottlerocket.aws/message":"`+strings.Repeat("m", maxBody)+`"`), "longer than"),
		patch("a huge value", annotationsPatch(`"bottlerocket.aws/message":"`+strings.Repeat("m", maxValue+1)+`"`), "message"),
		patch("an unprintable value", annotationsPatch(`"bottlerocket.aws/boot-id":"a\u0000b"`), "boot-id"),
		patch("colours for a terminal", annotationsPatch(`"bottlerocket.aws/operator-version":"v1\u001b[31m"`), "operator-version"),
		patch("a value that can't be read back", annotationsPatch(`"bottlerocket.aws/current-version":"newest"`), "current-version"),
		typed("a JSON patch", "application/json-patch+json", `[{"op":"add","path":"/metadata/labels/a","value":"b"}]`),
		typed("a strategic merge patch", "application/strategic-merge-patch+json", `{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"]}}`),
		typed("an apply patch", "application/apply-patch+yaml", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"OWN","labels":{"a":"b"}}}`),
		typed("no type", "", factBody),
		typed("two types in one", "application/merge-patch+json, application/json-patch+json", factBody),
		{name: "two types", method: "PATCH", target: ownPath, body: factBody, headers: []string{"+Content-Type: application/json-patch+json"}, code: no, says: "content type"},
		{name: "an encoded body", method: "PATCH", target: ownPath, body: factBody, headers: []string{"Content-Encoding: gzip"}, code: no, says: "encoding"},
		{name: "a dry run", method: "PATCH", target: ownPath + "?dryRun=All", body: factBody, code: no, says: "dryRun"},
		{name: "force", method: "PATCH", target: ownPath + "?force=true&fieldManager=kubelet", body: factBody, code: no, says: "force"},
		{name: "an older look", method: "PATCH", target: ownPath, body: strings.Replace(factBody, "RV", "1", 1), code: http.StatusConflict, says: "read it again"},
		{name: "busy from an older look", method: "PATCH", target: ownPath, body: strings.Replace(answerPatch(intentID, "busy", ""), "RV", "1", 1), code: http.StatusConflict, says: "read it again"},
	} {
		t.Run(a.name, func(t *testing.T) { b.run(t, a) })
	}
}

func TestAttackIntent(t *testing.T) {
	b := newBattlefield(t)
	fine := with(liveIntent(marker.ActionRebootUpdate), string(marker.KeyBootID), oldBoot)
	past := time.Now().Add(-time.Second).UTC().Format(time.RFC3339)
	locked := func(lock string) map[string]string {
		return with(liveIntent(marker.ActionStabilize), string(marker.KeyLock), lock, string(marker.KeyPaused), "why")
	}
	failed := with(fine, string(marker.KeyActiveID), intentID, string(marker.KeyActionState), "error", string(marker.KeyMessage), "m")
	answered := func(name, body, says string, live map[string]string) attack {
		return attack{name: name, method: "PATCH", target: ownPath, body: body, code: no, says: says, live: live}
	}
	for _, a := range []attack{
		answered("a report for an older intent", answerPatch("intent-6", "ready", `,"bottlerocket.aws/boot-id":"boot-new"`), intentID, fine),
		answered("busy after its time", answerPatch(intentID, "busy", ""), "may not begin after", with(fine, string(marker.KeyIntentUntil), past)),
		answered("busy on a paused node", answerPatch(intentID, "busy", ""), "paused", with(fine, string(marker.KeyPaused), "")),
		answered("busy on a paused node, with a word", answerPatch(intentID, "busy", ""), "paused", with(fine, string(marker.KeyPaused), "why")),
		answered("busy on a paused node, to lock its host", answerPatch(intentID, "busy", ""), "paused", locked(`{"want":"1.0.0","before":"latest"}`)),
		answered("busy on a paused node, to give back what it says itself", answerPatch(intentID, "busy", `,"bottlerocket.aws/lock":"{\"want\":\"latest\",\"before\":\"latest\",\"giveBack\":true}"`), "lock",
			locked(`{"want":"1.0.0","before":"latest"}`)),
		answered("busy on a paused node, to give back what can't be read", answerPatch(intentID, "busy", ""), "lock can't be read", locked(`{"want":"newest","before":"latest","giveBack":true}`)),
		answered("busy on a paused node, to reboot beside a lock that is given back", answerPatch(intentID, "busy", ""), "paused",
			with(fine, string(marker.KeyPaused), "why", string(marker.KeyLock), `{"want":"latest","before":"latest","giveBack":true}`)),
		answered("busy after error", answerPatch(intentID, "busy", `,"bottlerocket.aws/message":null`), "error already", failed),
		answered("the error taken away", annotationsPatch(`"bottlerocket.aws/active-id":null,"bottlerocket.aws/action-state":null,"bottlerocket.aws/message":null`), "active-id", failed),
		answered("the error's state taken away", annotationsPatch(`"bottlerocket.aws/action-state":null`), "action-state", failed),
		answered("success in the same boot", answerPatch(intentID, "ready", ""), "boot-id", fine),
		answered("success in the same boot after an error", answerPatch(intentID, "ready", ""), "boot-id", failed),
		answered("success without a boot", answerPatch(intentID, "ready", `,"bottlerocket.aws/boot-id":null`), "boot-id", fine),
		answered("an answer to an intent that can't be read", answerPatch(intentID, "error", `,"bottlerocket.aws/message":"m"`), "can't be read", with(fine, string(marker.KeyActionWanted), "dance")),
		answered("an answer to none", answerPatch(intentID, "error", `,"bottlerocket.aws/message":"m"`), "no intent", map[string]string{}),
	} {
		t.Run(a.name, func(t *testing.T) {
			// with() takes an empty value for a deletion; a pause without a word is one too.
			if a.name == "busy on a paused node" {
				a.live[string(marker.KeyPaused)] = ""
			}
			b.run(t, a)
		})
	}
	t.Run("busy on a node that was uncordoned", func(t *testing.T) {
		b.annotate(b.own, fine)
		n := b.live(b.own)
		n.Spec.Unschedulable = false
		_, err := b.admin.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{})
		assert.NilError(t, err)
		b.run(t, answered("", answerPatch(intentID, "busy", ""), "not cordoned", nil))
	})
}

func TestAttackProtocol(t *testing.T) {
	b := newBattlefield(t)
	for _, a := range []attack{
		{name: "no token", method: "GET", target: ownPath, headers: []string{"Authorization: "}, code: http.StatusUnauthorized, says: "bearer token"},
		{name: "a password", method: "GET", target: ownPath, headers: []string{"Authorization: Basic YTpi"}, code: http.StatusUnauthorized},
		{name: "two tokens", method: "GET", target: ownPath, headers: []string{"+Authorization: Bearer other"}, code: http.StatusUnauthorized},
		{name: "a token in the query", method: "GET", target: ownPath + "?access_token=TOKEN", headers: []string{"Authorization: "}, code: http.StatusUnauthorized},
		{name: "the protocols of a web socket", method: "GET", target: ownPath, headers: []string{"Authorization: ", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.TOKEN"}, code: http.StatusUnauthorized},
		{name: "a huge token", method: "GET", target: ownPath, headers: []string{"Authorization: Bearer " + strings.Repeat("a", maxToken+1)}, code: http.StatusUnauthorized},
		{name: "a huge header", method: "GET", target: ownPath, headers: []string{"X-A: " + strings.Repeat("a", 2*maxHeader)}, code: http.StatusRequestHeaderFieldsTooLarge},
		{name: "another user by impersonation", method: "PATCH", target: "/api/v1/nodes/OTHER", headers: []string{"Impersonate-User: system:admin", "Impersonate-Group: system:masters"}, body: factBody, code: no},
		{name: "another user by a front proxy's headers", method: "PATCH", target: "/api/v1/nodes/OTHER", headers: []string{"X-Remote-User: system:admin", "X-Forwarded-For: 127.0.0.1"}, body: factBody, code: no},
		{name: "another method by a header", method: "GET", target: "/api/v1/nodes/OTHER", headers: []string{"X-HTTP-Method-Override: PATCH"}, code: no},
		{name: "another path by a header", method: "GET", target: "/nothing", headers: []string{"X-Original-URL: " + ownPath, "X-Rewrite-URL: " + ownPath}, code: no},
		{name: "an upgrade", method: "POST", target: "/api/v1/namespaces/NS/pods/p/exec?command=sh&stdin=true", headers: []string{"Upgrade: SPDY/3.1", "Connection: Upgrade"}, code: no},
		{name: "attach", method: "GET", target: "/api/v1/namespaces/NS/pods/p/attach", headers: []string{"Upgrade: websocket", "Connection: Upgrade"}, code: no},
		{name: "the kubelet behind the node", method: "GET", target: ownPath + "/proxy/runningpods/", code: no},
		{name: "a service behind the API server", method: "GET", target: "/api/v1/namespaces/kube-system/services/https:dns:/proxy/", code: no},
		{name: "paths of kubectl proxy", method: "GET", target: "/apis/", code: no},
		{name: "secrets", method: "GET", target: "/api/v1/namespaces/NS/secrets/update-operator-proxy-tls", code: no},
		{name: "a token for itself", method: "POST", target: "/api/v1/namespaces/NS/serviceaccounts/update-operator-proxy/token", body: "{}", code: no},
		{name: "a replaced node", method: "PUT", target: ownPath, body: `{"metadata":{"name":"OWN"}}`, code: no},
		{name: "a deleted node", method: "DELETE", target: ownPath, code: no},
		{name: "deleted nodes", method: "DELETE", target: "/api/v1/nodes?fieldSelector=metadata.name%3DOWN", code: no},
		{name: "an eviction", method: "POST", target: "/api/v1/namespaces/NS/pods/p/eviction", body: "{}", code: no},
		{name: "a tunnel", method: "CONNECT", target: "kubernetes.default.svc:443", code: no},
		{name: "all options", method: "OPTIONS", target: "*", code: no},
		{name: "a trace", method: "TRACE", target: ownPath, code: no},
		{name: "a smaller Content-Length beside chunks", method: "PATCH", target: "/api/v1/nodes/OTHER", headers: []string{"Transfer-Encoding: chunked"},
			body: "0\r\n\r\nPATCH /api/v1/nodes/OTHER HTTP/1.1\r\nHost: p\r\n\r\n", code: no},
		{name: "two Content-Lengths", method: "PATCH", target: ownPath, headers: []string{"+Content-Length: 3"}, body: factBody, code: http.StatusBadRequest},
		{name: "an odd transfer encoding", method: "PATCH", target: ownPath, headers: []string{"Transfer-Encoding: xchunked"}, body: factBody, code: http.StatusNotImplemented},
		{name: "a space before a colon", method: "PATCH", target: ownPath, headers: []string{"+Transfer-Encoding : chunked"}, body: factBody, code: http.StatusBadRequest},
		{name: "a header that goes on below", method: "PATCH", target: ownPath, headers: []string{"+X: a", "+ b: c"}, body: "[]", code: no},
	} {
		t.Run(a.name, func(t *testing.T) { b.run(t, a) })
	}
	t.Run("TLS 1.2", func(t *testing.T) {
		_, err := b.dial(t, tls.VersionTLS12)
		assert.ErrorContains(t, err, "protocol version")
	})
	t.Run("no TLS", func(t *testing.T) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(b.p.url, "https://"))
		assert.NilError(t, err)
		defer conn.Close()
		_, err = fmt.Fprintf(conn, "GET /api/v1/nodes/%s HTTP/1.1\r\nHost: p\r\nAuthorization: Bearer %s\r\n\r\n", b.own, b.token)
		assert.NilError(t, err)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		assert.NilError(t, err)
		defer res.Body.Close()
		assert.Equal(t, res.StatusCode, http.StatusBadRequest)
	})
}

func TestAttackSlowBody(t *testing.T) {
	t.Parallel()
	b := newBattlefield(t)
	before := b.state()
	// The server gives up by itself, without a byte more.
	code, answer := b.send(t, "PATCH /api/v1/nodes/"+b.own+" HTTP/1.1\r\nHost: p\r\nAuthorization: Bearer "+b.token+"\r\nAccept: "+acceptOfGets+
		"\r\nContent-Type: "+patchType+"\r\nContent-Length: 1000\r\n\r\n{\"metadata\":")
	assert.Equal(t, code, no, answer)
	assert.Equal(t, b.state(), before)
}

// TestAttackLoop holds that an agent in a tight loop is held up, and no other agent is.
func TestAttackLoop(t *testing.T) {
	c := newCluster(t)
	p := c.proxy()
	c.node("loop-1", nil)
	c.node("loop-2", nil)
	_, mad := c.agentToken("loop-1")
	_, calm := c.agentToken("loop-2")
	b := &battlefield{cluster: c, p: p}
	get := func(node, token string) int {
		code, _ := b.send(t, "GET /api/v1/nodes/"+node+" HTTP/1.1\r\nHost: p\r\nAuthorization: Bearer "+token+"\r\nAccept: "+acceptOfGets+"\r\n\r\n")
		return code
	}
	held := false
	for range 20 * requestBurst {
		if get("loop-1", mad) == http.StatusTooManyRequests {
			held = true
			break
		}
	}
	assert.Assert(t, held)
	assert.Equal(t, get("loop-2", calm), http.StatusOK)
}
