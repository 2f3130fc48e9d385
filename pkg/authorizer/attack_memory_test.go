package authorizer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pkg/errors"
	"gotest.tools/v3/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/manifest"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/port"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/process"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// sloth is one way to hold a connection until the server ends it, or ctx ends.
type sloth func(ctx context.Context, raw net.Conn, config *tls.Config, token string)

const slothRequest = "%s /api/v1/nodes/n HTTP/1.1\r\nHost: p\r\nAuthorization: Bearer %s\r\n"

// sloths need no good token.
var sloths = map[string]sloth{
	"nothing": func(_ context.Context, raw net.Conn, _ *tls.Config, _ string) { drain(raw) },
	"half a greeting": func(_ context.Context, raw net.Conn, _ *tls.Config, _ string) {
		record := append([]byte{22, 3, 1, 0x40, 0}, make([]byte, 16<<10)...)
		copy(record[5:], []byte{1, 0, 0xff, 0})
		_, _ = raw.Write(append(record, record[:14<<10]...))
		drain(raw)
	},
	"a greeting alone": says("http/1.1", func(string) string { return "" }),
	"headers that don't end": says("http/1.1", func(token string) string {
		return fmt.Sprintf(slothRequest, "GET", token) + "X: " + strings.Repeat("a", 6<<10)
	}),
	"refused, with answers that are not read": func(ctx context.Context, raw net.Conn, c *tls.Config, token string) {
		_, _ = io.WriteString(tls.Client(raw, c), strings.Repeat(fmt.Sprintf(slothRequest, "GET", token)+"\r\n", 20))
		<-ctx.Done()
	},
	"a body without end": says("http/1.1", func(token string) string {
		return fmt.Sprintf(slothRequest, "PATCH", token) + "Content-Length: 60000\r\n\r\n" + strings.Repeat("a", 20<<10)
	}),
	"HTTP/2 alone": says("h2", func(string) string { return preface(65535) }),
	"HTTP/2, refused, with a window of nothing": says("h2", func(token string) string { return preface(0) + streamsOf(token, streams, 0) }),
	"HTTP/2, bodies without end":                says("h2", func(token string) string { return preface(65535) + streamsOf(token, 4, 5<<10) }),
}

// says speaks once after the handshake, and takes what comes.
func says(protocol string, text func(token string) string) sloth {
	return func(_ context.Context, raw net.Conn, config *tls.Config, token string) {
		config = config.Clone()
		config.NextProtos = []string{protocol}
		conn := tls.Client(raw, config)
		if conn.Handshake() == nil {
			_, _ = io.WriteString(conn, text(token))
		}
		drain(raw)
	}
}

// scrapeUnread asks for metrics many times, at the port that has them, and reads none.
func scrapeUnread(ctx context.Context, raw net.Conn, _ *tls.Config, _ string) {
	_, _ = io.WriteString(raw, strings.Repeat("GET /metrics HTTP/1.1\r\nHost: p\r\n\r\n", 40))
	<-ctx.Done()
}

func drain(raw net.Conn) { _, _ = io.Copy(io.Discard, raw) }

func frameOf(kind, flags byte, stream uint32, payload string) string {
	head := []byte{byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload)), kind, flags}
	return string(binary.BigEndian.AppendUint32(head, stream)) + payload
}

// preface opens HTTP/2 with a window for answers.
func preface(window uint32) string {
	return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frameOf(4, 0, 0, string(binary.BigEndian.AppendUint32([]byte{0, 4}, window)))
}

// streamsOf are requests with a token, and with a body that has no end if there is one.
func streamsOf(token string, n, body int) string {
	// Literal fields without index: names and values of less than 127 bytes, and one longer value.
	field := func(name, value string) string { return "\x00" + hpackText(name) + hpackText(value) }
	method := "GET"
	if body > 0 {
		method = "PATCH"
	}
	block := field(":method", method) + field(":scheme", "https") + field(":authority", "p") + field(":path", "/api/v1/nodes/n") +
		field("authorization", "Bearer "+token)
	var out strings.Builder
	for i := range n {
		stream := uint32(2*i + 1)
		if body == 0 {
			out.WriteString(frameOf(1, 5, stream, block))
			continue
		}
		out.WriteString(frameOf(1, 4, stream, block))
		out.WriteString(frameOf(0, 0, stream, strings.Repeat("a", body)))
	}
	return out.String()
}

// hpackText is a string of RFC 7541, section 5.2, without Huffman's code.
func hpackText(s string) string {
	if len(s) < 127 {
		return string(rune(len(s))) + s
	}
	out := []byte{127}
	rest := len(s) - 127
	for ; rest >= 128; rest /= 128 {
		out = append(out, byte(rest%128+128))
	}
	return string(append(out, byte(rest))) + s
}

// TestAttackSloth lets 10,000 connections of every kind of sloth at a proxy's process, with the memory of the manifest,
// some of them at its port of probes and metrics. It holds that most of the agents' writes take less than a second
// meanwhile, those of new ones too, and nearly all a quarter of the time that agents give them; that probes are answered,
// and that the process never occupies what its container may.
func TestAttackSloth(t *testing.T) {
	if testing.Short() {
		t.Skip("it opens 10,000 connections to a process")
	}
	c := newCluster(t)
	p := c.process()
	var limit syscall.Rlimit
	assert.NilError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	count := 10_000
	if room := int(min(limit.Cur, 1<<20)) - 2000; room < count {
		count = room
		t.Logf("only %d connections: this process may open %d files", count, limit.Cur)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()

	write := c.writer(p, "sloth-0")
	write(ctx)
	pool := x509.NewCertPool()
	assert.Assert(t, pool.AppendCertsFromPEM(c.ca()))
	config := &tls.Config{RootCAs: pool, ServerName: c.options.ServerName, MinVersion: tls.VersionTLS13}
	c.node("sloth", nil)
	_, token := c.agentToken("sloth")
	kinds := slices.Sorted(maps.Keys(sloths))
	var next, opened atomic.Int64
	var wg sync.WaitGroup
	defer wg.Wait()
	attack, end := context.WithCancel(ctx)
	defer end()
	// A connection a millisecond: it is not the handshakes' work that is asked about.
	pace := time.NewTicker(time.Millisecond)
	defer pace.Stop()
	for range 16 {
		wg.Go(func() {
			for i := int(next.Add(1)); i <= count && attack.Err() == nil; i = int(next.Add(1)) {
				select {
				case <-pace.C:
				case <-attack.Done():
					return
				}
				// One of these addresses is the agents' own too: a NAT's.
				d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+i%8))}}
				address, do := p.address, sloths[kinds[i%len(kinds)]]
				if i%50 == 0 {
					address, do = p.probes, scrapeUnread
				}
				raw, err := d.DialContext(attack, "tcp", address)
				if err != nil {
					continue
				}
				opened.Add(1)
				stop := context.AfterFunc(attack, func() { _ = raw.Close() })
				wg.Go(func() {
					defer raw.Close()
					defer stop()
					do(attack, raw, config, forged(token, i))
				})
			}
		})
	}
	var took, fresh []time.Duration
	began := time.Now()
	// Within what one agent may ask for.
	turn := time.NewTicker(500 * time.Millisecond)
	defer turn.Stop()
	for i := 1; int(next.Load()) < count || len(fresh) < 5; i++ {
		<-turn.C
		took = append(took, write(ctx))
		assert.NilError(t, p.ready())
		fresh = append(fresh, c.writer(p, fmt.Sprintf("sloth-%d", i))(ctx))
	}
	most := p.most(t)
	t.Logf("%d connections in %s; %d writes took at most %s, %d of new agents at most %s; %d MiB of %d occupied at most", opened.Load(), time.Since(began),
		len(took), slices.Max(took), len(fresh), slices.Max(fresh), most>>20, p.limit>>20)
	assert.Assert(t, opened.Load() > int64(count)*9/10)
	// The attacker works on this machine too, and others may, so some may come late.
	for _, of := range [][]time.Duration{took, fresh} {
		slices.Sort(of)
		assert.Assert(t, of[len(of)/2] < time.Second && of[len(of)*9/10] < 5*time.Second, "%s", of)
	}
	assert.Assert(t, most < p.limit)
}

// proxyProcess is the real program with the memory that the manifest gives to it.
type proxyProcess struct {
	*process.Process
	// address is for agents, probes for probes and metrics.
	address, probes string
	// limit is what its container may occupy, in bytes.
	limit int64
}

func (c *cluster) process() *proxyProcess {
	c.t.Helper()
	objects, err := manifest.Load()
	assert.NilError(c.t, err)
	workload, err := objects.Workload(manifest.Proxy)
	assert.NilError(c.t, err)
	dir := c.t.TempDir()
	config, err := c.proxyConfig()
	assert.NilError(c.t, err)
	kubeconfig := filepath.Join(dir, "kubeconfig")
	assert.NilError(c.t, controlplane.WriteKubeconfig(kubeconfig, config))
	root, err := controlplane.Root()
	assert.NilError(c.t, err)
	program := filepath.Join(dir, "bottlerocket-update-operator")
	build := exec.CommandContext(c.t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "./cmd/bottlerocket-update-operator")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	assert.NilError(c.t, err, "%s", out)
	serve, probes := c.freeAddress(), c.freeAddress()
	cmd := exec.Command(program, "-proxy", "-kubeconfig="+kubeconfig, "-namespace="+c.options.Namespace, "-proxy-server-name="+c.options.ServerName,
		"-proxy-listen="+serve, "-listen="+probes)
	for _, e := range workload.Container().Env {
		if e.Value != "" {
			cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
		}
	}
	logPath := filepath.Join(dir, "log")
	log, err := process.Log(logPath)
	assert.NilError(c.t, err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	p := &proxyProcess{address: serve, probes: probes, limit: workload.Container().Resources.Limits.Memory().Value()}
	p.Process, err = process.Start(cmd)
	assert.NilError(c.t, err)
	c.t.Cleanup(func() { p.Stop(10 * time.Second) })
	until(c.t, func() error { return errors.WithMessage(p.ready(), process.LogTail(logPath, 2048)) })
	return p
}

// ready is a kubelet's probe, with its timeout.
func (p *proxyProcess) ready() error {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get("http://" + p.probes + "/readyz")
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	return nil
}

func (c *cluster) freeAddress() string {
	c.t.Helper()
	p, err := port.Reserve(0)
	assert.NilError(c.t, err)
	c.t.Cleanup(p.Release)
	return p.Address()
}

// most is the most memory that the process ever occupied, in bytes.
func (p *proxyProcess) most(t *testing.T) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	assert.NilError(t, err)
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	assert.NilError(t, err)
	return kib << 10
}

// writer returns an agent that reads its node and writes a report, and says how long that took.
func (c *cluster) writer(p *proxyProcess, node string) func(ctx context.Context) time.Duration {
	c.t.Helper()
	c.node(node, nil)
	_, token := c.agentToken(node)
	client, err := metadata.NewForConfig(c.configWith(&proxy{url: "https://" + p.address}, token, c.ca()))
	assert.NilError(c.t, err)
	nodes := client.Resource(nodesResource)
	return func(ctx context.Context) time.Duration {
		began := time.Now()
		n, err := nodes.Get(ctx, node, metav1.GetOptions{})
		assert.NilError(c.t, err)
		_, err = patchNode(ctx, nodes, node, factOf(n.ResourceVersion, marker.KeyBootID, fmt.Sprint(began.UnixNano())))
		assert.NilError(c.t, err)
		return time.Since(began)
	}
}
