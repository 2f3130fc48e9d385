package e2e_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/manifest"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
)

// counts are what a client of the workload saw, see dev/realcluster/programs/web.
type counts struct {
	Asked, Failed, Starts int
	Errors                []string
}

// clients returns the counts of all clients, by node.
func (w *world) clients(t *testing.T) map[string]counts {
	t.Helper()
	list, err := w.Client.CoreV1().Pods("shop").List(t.Context(), metav1.ListOptions{LabelSelector: "app=client"})
	assert.NilError(t, err)
	out := map[string]counts{}
	for i := range list.Items {
		p := &list.Items[i]
		var c counts
		await(t, "the client on "+p.Spec.NodeName+" answers", func() (bool, error) {
			b, err := w.Client.CoreV1().Pods("shop").ProxyGet("http", p.Name, "8080", "/", nil).DoRaw(t.Context())
			if err != nil {
				return false, err
			}
			return true, json.Unmarshal(b, &c)
		})
		out[p.Spec.NodeName] = c
	}
	assert.Equal(t, len(out), nodeCount)
	return out
}

// served checks that the workload answered all requests between two looks at its clients.
func served(t *testing.T, before, after map[string]counts) {
	t.Helper()
	for node, b := range before {
		a := after[node]
		assert.Check(t, a.Asked-b.Asked > 20, "the client on %s asked only %d times", node, a.Asked-b.Asked)
		assert.Check(t, a.Failed == b.Failed, "of %d requests from %s, %d had no answer: %s", a.Asked-b.Asked, node, a.Failed-b.Failed, strings.Join(a.Errors, "\n"))
	}
}

// machines are the boot IDs and the reboots that the hosts were asked for.
func (w *world) machines() (boots map[string]string, asked map[string]int) {
	boots, asked = map[string]string{}, map[string]int{}
	for _, n := range w.Nodes {
		boots[n.Name()] = n.Host.BootID()
		asked[n.Name()] = n.Host.Snapshot().Counters.RebootsAsked
	}
	return boots, asked
}

// rebootedOnce: S3 by the machines themselves, and by the kubelets' word.
func (w *world) rebootedOnce(t *testing.T, boots map[string]string, asked map[string]int) {
	t.Helper()
	nodes, err := w.views(t.Context())
	assert.NilError(t, err)
	for _, n := range nodes {
		host := w.Node(n.Name).Host
		assert.Check(t, host.Snapshot().Counters.RebootsAsked == asked[n.Name]+1, "%s was asked to reboot %d times", n.Name, host.Snapshot().Counters.RebootsAsked-asked[n.Name])
		assert.Check(t, n.BootID == host.BootID() && n.BootID != boots[n.Name], "%s reports boot %s; its host is in %s and was in %s", n.Name, n.BootID, host.BootID(), boots[n.Name])
	}
}

// lease is the one that elects the leader.
func (w *world) lease(t *testing.T) (holder string, transitions int32) {
	t.Helper()
	l, err := w.Client.CoordinationV1().Leases(manifest.Namespace).Get(t.Context(), kube.LeaseName, metav1.GetOptions{})
	assert.NilError(t, err)
	assert.Assert(t, l.Spec.HolderIdentity != nil && l.Spec.LeaseTransitions != nil)
	return *l.Spec.HolderIdentity, *l.Spec.LeaseTransitions
}

func uids(pods []corev1.Pod) map[string]bool {
	out := map[string]bool{}
	for _, p := range pods {
		out[string(p.UID)] = true
	}
	return out
}

// A planned rollout: every node is updated with one reboot, those that carry the operator and DNS too, and
// no workload of the cluster is disturbed (L1, S1, S3, S7).
func TestRollout(t *testing.T) {
	w := inWorld(t)
	boots, asked := w.machines()
	agents := uids(w.pods(t, manifest.Agent))
	_, transitions := w.lease(t)
	before := w.clients(t)
	began := time.Now()
	w.release(t)
	w.awaitRest(t)
	t.Logf("%d nodes were updated in %s", nodeCount, time.Since(began).Round(time.Second))

	w.rebootedOnce(t, boots, asked)
	served(t, before, w.clients(t))
	assert.Check(t, reflect.DeepEqual(uids(w.pods(t, manifest.Agent)), agents), "agents' pods were replaced")
	// The controller's node went down once, and came back with its pod.
	holder, now := w.lease(t)
	assert.Check(t, now > transitions && now <= transitions+2, "leadership moved %d times", now-transitions)
	pods := w.pods(t, manifest.Controller)
	assert.Check(t, len(pods) == 1 && strings.HasPrefix(holder, pods[0].Name), "%s holds the lease, not a controller that runs", holder)
	for _, n := range w.Nodes {
		assert.Check(t, n.Cuts() == n.Host.Snapshot().Counters.RebootsAsked, "%s lost its power %d times, and was asked %d times to reboot", n.Name(), n.Cuts(), n.Host.Snapshot().Counters.RebootsAsked)
	}
}

// The pods run as the manifest says: by their objects, and by the kernel's word on their processes.
func TestSecuritySettings(t *testing.T) {
	w := inWorld(t)
	for _, component := range []string{manifest.Controller, manifest.Proxy, manifest.Agent, manifest.Runner} {
		o := w.objects
		if component == manifest.Runner {
			o = w.plans
		}
		want, err := o.Workload(component)
		assert.NilError(t, err)
		for _, p := range w.pods(t, component) {
			assert.DeepEqual(t, p.Spec.SecurityContext, want.Template.Spec.SecurityContext)
			assert.DeepEqual(t, p.Spec.Containers[0].SecurityContext, want.Container().SecurityContext)
			assert.Equal(t, p.Spec.ServiceAccountName, want.Template.Spec.ServiceAccountName)
			assert.Equal(t, p.Status.ContainerStatuses[0].Image, imageName)
		}
	}
	seen := 0
	for _, n := range w.Nodes {
		out, err := n.Exec(t.Context(), nil, "bash", "-c",
			`for p in /proc/[0-9]*; do if tr '\0' ' ' <$p/cmdline 2>/dev/null | grep -q '^/bottlerocket-update-'; then `+
				`tr '\0' ' ' <$p/cmdline; echo; cat $p/status; grep ' / / ' $p/mountinfo; echo ==; fi; done`)
		assert.NilError(t, err)
		for _, process := range strings.Split(strings.TrimSuffix(strings.TrimSpace(out), "=="), "==") {
			command := strings.TrimSpace(strings.SplitN(strings.TrimSpace(process), "\n", 2)[0])
			status := map[string]string{}
			lines := bufio.NewScanner(strings.NewReader(process))
			for lines.Scan() {
				name, value, _ := strings.Cut(lines.Text(), ":")
				status[name] = strings.Join(strings.Fields(value), " ")
			}
			groups := "65532"
			if strings.HasPrefix(command, "/bottlerocket-update-agent") {
				groups = "274 65532"
			}
			for name, want := range map[string]string{
				"Uid": "65532 65532 65532 65532", "Gid": "65532 65532 65532 65532", "Groups": groups, "NoNewPrivs": "1", "Seccomp": "2",
				"CapEff": "0000000000000000", "CapPrm": "0000000000000000", "CapBnd": "0000000000000000", "CapInh": "0000000000000000", "CapAmb": "0000000000000000",
			} {
				assert.Check(t, status[name] == want, "%s on %s: %s is %q, not %q", command, n.Name(), name, status[name], want)
			}
			seen++
		}
	}
	assert.Equal(t, seen, 1+2+nodeCount+1)
}

// Agents reach the proxy by its Service with the token of their pod: all that is known of a node came
// through there, and the API server never heard of an agent.
func TestAgentsUseTheProxy(t *testing.T) {
	w := inWorld(t)
	ca, err := w.Client.CoreV1().ConfigMaps(manifest.Namespace).Get(t.Context(), "update-operator-proxy-ca", metav1.GetOptions{})
	assert.NilError(t, err)
	roots := x509.NewCertPool()
	assert.Assert(t, roots.AppendCertsFromPEM([]byte(ca.Data["ca.crt"])))
	for _, p := range w.pods(t, manifest.Proxy) {
		raw, err := w.Dial(t.Context(), net.JoinHostPort(p.Status.PodIP, "8443"))
		assert.NilError(t, err)
		conn := tls.Client(raw, &tls.Config{RootCAs: roots, ServerName: "update-operator-proxy.bottlerocket.svc", MinVersion: tls.VersionTLS12})
		assert.Check(t, conn.HandshakeContext(t.Context()), "the certificate of %s", p.Name)
		_ = conn.Close()
	}
	users := w.users(t)
	account := "system:serviceaccount:" + manifest.Namespace + ":update-operator-"
	assert.Check(t, users[account+"proxy"]["patch nodes"] > 0 && users[account+"proxy"]["create tokenreviews"] > 0, "%v", users[account+"proxy"])
	for _, component := range []string{"proxy", "controller"} {
		assert.Check(t, users[account+component]["a dry run of patch nodes"] > 0, "the %s has not asked whether its admission policy stands", component)
	}
	assert.Check(t, len(users[account+"agent"]) == 0, "agents asked the API server: %v", users[account+"agent"])
	for user, did := range users {
		for what, n := range did {
			assert.Check(t, !strings.HasPrefix(what, "refused ") || !strings.HasPrefix(user, account), "%s: %s, %d times", user, what, n)
		}
	}
}

// users are the requests in the audit log, by user.
func (w *world) users(t *testing.T) map[string]map[string]int {
	t.Helper()
	f, err := os.Open(w.Plane.AuditLog())
	assert.NilError(t, err)
	defer f.Close()
	out := map[string]map[string]int{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e struct {
			Verb           string
			RequestURI     string
			User           struct{ Username string }
			ObjectRef      struct{ Resource, Subresource string }
			ResponseStatus struct {
				Code    int
				Message string
			}
		}
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		did := e.Verb + " " + e.ObjectRef.Resource
		if e.ResponseStatus.Code == 403 && strings.Contains(e.RequestURI, "dryRun=All") {
			did = "a dry run of " + did
		} else if e.ResponseStatus.Code == 403 {
			did = "refused " + did
			if strings.Contains(e.ResponseStatus.Message, "ValidatingAdmissionPolicy") {
				did += ": " + e.ResponseStatus.Message
			}
		}
		if out[e.User.Username] == nil {
			out[e.User.Username] = map[string]int{}
		}
		out[e.User.Username][did]++
	}
	assert.NilError(t, lines.Err())
	return out
}

// The probes tell the truth: a pod that can't do its work isn't Ready, and is again when it can.
func TestProbes(t *testing.T) {
	w := inWorld(t)
	for _, component := range []string{manifest.Controller, manifest.Proxy, manifest.Agent, manifest.Runner} {
		for _, p := range w.pods(t, component) {
			for _, path := range []string{"/healthz", "/readyz"} {
				_, err := w.Client.CoreV1().Pods(p.Namespace).ProxyGet("http", p.Name, "8080", path, nil).DoRaw(t.Context())
				assert.Check(t, err, "%s of %s", path, p.Name)
			}
		}
	}
	n := w.Nodes[0]
	ready := func() (bool, error) {
		for _, p := range w.pods(t, manifest.Agent) {
			if p.Spec.NodeName == n.Name() {
				return podReady(&p), nil
			}
		}
		return false, fmt.Errorf("no agent on %s", n.Name())
	}
	n.CloseHostAPI()
	await(t, "an agent without its host isn't Ready", func() (bool, error) {
		is, err := ready()
		return !is, err
	})
	assert.NilError(t, n.RestartHostAPI())
	await(t, "it is Ready again", ready)
}
