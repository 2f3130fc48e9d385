package chaos

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/nodesim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
)

// What every run has, short enough that many things happen in little time.
const (
	soak           = time.Second
	deadline       = 40 * time.Second
	certificates   = 20 * time.Second
	maxLost        = 1
	quiet          = 5 * time.Second
	settle         = 2 * time.Second
	patience       = time.Minute
	startWithin    = 5 * time.Minute
	restWithin     = 5 * time.Minute
	glance         = 500 * time.Millisecond
	workloadFactor = 2
)

// Config is one run.
type Config struct {
	Seed uint64
	// Nodes is how many machines there are, Limit how many may be out of service.
	Nodes, Limit int
	// Times is how often each fault strikes.
	Times int
	// Progress gets a line for each thing that happens.
	Progress io.Writer
	// Keep is a folder that gets the audit log and the logs of all programs if something is wrong with
	// the run; empty is none. With KeepAll it gets them from every run.
	Keep    string
	KeepAll bool
}

// Result is what came of a run.
type Result struct {
	Seed uint64
	// Struck is how often each fault did what it was meant to.
	Struck map[Fault]int
	// Missed says why faults didn't.
	Missed []string
	// Releases is how many versions were rolled out, Took how long faults and rollouts took.
	Releases int
	Took     time.Duration
	Verdict
}

// Err is what is wrong with the run, nil if nothing is.
func (r Result) Err() error {
	switch {
	case len(r.Violations) > 0:
		return errors.Errorf("seed %d: %d promises were broken, the first: %s", r.Seed, len(r.Violations), r.Violations[0])
	case len(r.Missed) > 0:
		return errors.Errorf("seed %d: %s", r.Seed, r.Missed[0])
	}
	for _, f := range Faults() {
		if r.Struck[f] == 0 {
			return errors.Errorf("seed %d: %q never struck", r.Seed, f)
		}
	}
	return nil
}

type strikeFunc func(context.Context, Strike) (string, error)

// world is one cluster in trouble.
type world struct {
	*simcluster.Cluster
	config  Config
	network *network
	began   time.Time

	mu       sync.Mutex
	outages  []Window
	result   Result
	released int
}

// Run makes a cluster, lets it meet the faults of a seed, and judges. An error means that there is
// nothing to judge, or that the rollout did not come to its end.
func Run(ctx context.Context, config Config) (_ Result, err error) {
	w := &world{config: config, result: Result{Seed: config.Seed, Struck: map[Fault]int{}}}
	w.network = &network{relays: map[string]*relay{}, to: func() string { return w.ProxyAddress() }}
	defer w.network.close()
	if err := w.start(ctx); err != nil {
		return w.result, err
	}
	defer w.Stop()
	defer func() {
		if config.Keep != "" && (config.KeepAll || err != nil || w.result.Err() != nil) {
			w.keep(config.Keep)
		}
	}()
	terms, err := w.trouble(ctx)
	log, readErr := ReadLog(w.Plane.AuditLog())
	if readErr != nil {
		return w.result, readErr
	}
	w.result.Verdict = Judge(log, terms)
	for _, v := range w.result.Violations {
		w.say("BROKEN %s", v)
	}
	return w.result, err
}

func (w *world) start(ctx context.Context) (err error) {
	w.say("seed %d: starting a cluster of %d machines", w.config.Seed, w.config.Nodes)
	w.Cluster, err = simcluster.Start(ctx, simcluster.Config{
		Nodes: w.config.Nodes, Version: version(0), Progress: io.Discard,
		AuditPolicy: AuditPolicy, AgentProxy: w.network.address,
		Args: map[string][]string{
			controller: {"-lease-duration=" + leaseDuration.String(), "-lease-renew-deadline=2s", "-lease-retry-period=500ms"},
			proxy:      {"-certificate-life=" + certificates.String()},
			agent:      {"-refresh-interval=1s"},
		},
		Policy: fmt.Sprintf("version: 1\nmaxUnavailable: %d\nmaxLost: %d\nsoak: %s\ndeadlines: {staging: %s, reboot: %s, return: %s}\n"+
			"drain: {timeout: %s}\nretry: {base: 2s, max: 10s}\n", w.config.Limit, maxLost, soak, deadline, deadline, deadline, deadline),
		Reboot: nodesim.Reboot{Mode: nodesim.RebootStale, Down: 700 * time.Millisecond},
		Latencies: hostsim.Latencies{
			Refresh: 50 * time.Millisecond, Prepare: time.Second, Activate: 500 * time.Millisecond, Deactivate: 500 * time.Millisecond,
		},
		PodStop: 500 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			w.Stop()
		}
	}()
	within, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	count := int32(workloadFactor * w.config.Nodes)
	work, err := nodesim.StartWorkload(within, w.Client, nodesim.WorkloadConfig{
		Name: "web", Replicas: count, MaxUnavailable: count / 4, GracePeriod: time.Second,
	})
	if err != nil {
		return err
	}
	work.Close() // no workload is measured here: an API server that is away would be the workload's end
	for _, args := range [][]string{
		{"cordon", w.cordoned()},
		{"-n", simcluster.Namespace, "scale", "deployment/update-operator-controller", "--replicas=2"},
	} {
		if args[0] == "-n" {
			if err := w.Install(ctx); err != nil {
				return err
			}
		}
		if _, err := w.Kubectl(ctx, args...); err != nil {
			return err
		}
	}
	if err := w.Label(ctx); err != nil {
		return err
	}
	return w.AwaitOperator(within, startWithin, true)
}

// cordoned is the node that a user cordons before the operator is installed.
func (w *world) cordoned() string {
	return fmt.Sprintf("node-%d", 1+w.config.Seed%uint64(w.config.Nodes))
}

// version is that of the n-th release.
func version(n int) string { return fmt.Sprintf("1.%d.0", 50+n) }

// trouble releases versions while faults strike, and waits for rest.
func (w *world) trouble(ctx context.Context) (Terms, error) {
	plan := Draw(w.config.Seed, w.config.Times)
	w.began = time.Now()
	var lanes sync.WaitGroup
	lanes.Go(func() { w.strikeAll(ctx, plan.Platform) })
	lanes.Go(func() { w.strikeAll(ctx, plan.Operator) })
	over := make(chan struct{})
	go func() {
		lanes.Wait()
		close(over)
	}()
	err := w.rollOut(ctx, over)
	<-over
	if err == nil {
		err = w.Plane.Alive()
	}
	terms := Terms{
		Nodes: w.config.Nodes, Version: version(w.released), Limit: w.config.Limit, MaxLost: maxLost,
		RebootDeadline: deadline, ReturnDeadline: deadline, Soak: soak, Outages: w.outages,
	}
	w.result.Took, w.result.Releases = time.Since(w.began), w.released
	if err != nil {
		return terms, err
	}
	w.say("at rest on %s after %s", terms.Version, since(w.began))
	// Readiness probes and events come a moment after the last step.
	pauseFor(ctx, settle)
	from := time.Now()
	pauseFor(ctx, quiet)
	terms.Rest = Window{From: from, To: time.Now()}
	return terms, w.show(ctx)
}

// rollOut releases versions until no more faults strike, and ends when all nodes are at rest on the last.
func (w *world) rollOut(ctx context.Context, over <-chan struct{}) error {
	tick := time.NewTicker(glance)
	defer tick.Stop()
	w.released = 0
	var calm <-chan time.Time
	var last error
	for {
		done := false
		select {
		case <-over:
			done = true
			if calm == nil {
				calm = time.After(restWithin)
			}
		default:
		}
		at, err := w.atRest(ctx)
		last = err
		switch {
		case at && done && w.released > 0:
			return nil
		case at && !done:
			w.released++
			if err := w.Release(version(w.released)); err != nil {
				return err
			}
			w.say("released %s", version(w.released))
		}
		select {
		case <-ctx.Done():
			return errors.Wrap(ctx.Err(), "rolling out")
		case <-calm:
			if last == nil {
				last = errors.New("they are not")
			}
			return errors.WithMessagef(last, "waiting for %s until all nodes are at rest on %s", restWithin, version(w.released))
		case <-tick.C:
		}
	}
}

// atRest reports whether all nodes are at rest on the newest version. The error names one that isn't.
func (w *world) atRest(ctx context.Context) (bool, error) {
	list, err := w.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, errors.Wrap(err, "listing nodes")
	}
	for i := range list.Items {
		n := &list.Items[i]
		m, problems := marker.Decode(n.Annotations)
		rests := len(problems) == 0 && m.Disruption == nil && m.Intent.Action == marker.ActionStabilize &&
			m.Report.Answer(m.Intent.ID) == marker.StateReady && m.Report.Current == version(w.released) &&
			fleet.OSVersion(n.Status.NodeInfo.OSImage) == version(w.released) && nodesim.Ready(n)
		if !rests {
			return false, errors.Errorf("%s is not: %v", n.Name, n.Annotations)
		}
	}
	return len(list.Items) == w.config.Nodes, nil
}

// strikeAll carries out one lane of the plan.
func (w *world) strikeAll(ctx context.Context, strikes []Strike) {
	do := map[Fault]strikeFunc{
		APIServerKilled: w.killAPIServer, EtcdKilled: w.killEtcd, EtcdCompacted: w.compactEtcd,
		CertificateExpired: w.expireCertificate, AuthorityExpired: w.expireAuthority,
		LeaderKilled: w.kill(controller), ProxyKilled: w.kill(proxy), AgentKilled: w.kill(agent),
		LeaderPaused: w.pause(controller), ProxyPaused: w.pause(proxy), AgentPaused: w.pause(agent),
		NetworkCut: w.cutNetwork,
	}
	for _, s := range strikes {
		if !pauseFor(ctx, s.After) {
			return
		}
		said, err := do[s.Fault](ctx, s)
		w.mu.Lock()
		if err != nil {
			w.result.Missed = append(w.result.Missed, fmt.Sprintf("%s: %v", s.Fault, err))
		} else {
			w.result.Struck[s.Fault]++
		}
		w.mu.Unlock()
		if err != nil {
			said = "missed: " + err.Error()
		}
		w.say("%s: %s", s.Fault, said)
	}
}

func (w *world) say(format string, args ...any) {
	if w.config.Progress == nil {
		return
	}
	at := "      "
	if !w.began.IsZero() {
		at = fmt.Sprintf("%6.1f", time.Since(w.began).Seconds())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(w.config.Progress, "%s %s\n", at, fmt.Sprintf(format, args...))
}

// keep copies the logs to a folder.
func (w *world) keep(folder string) {
	into := filepath.Join(folder, fmt.Sprintf("seed-%d", w.config.Seed))
	if err := os.MkdirAll(into, 0o700); err != nil {
		w.say("keeping the logs: %v", err)
		return
	}
	found, _ := filepath.Glob(filepath.Join(w.Plane.Dir(), "*.log"))
	more, _ := filepath.Glob(filepath.Join(w.Fleet.Logs(), "*.log"))
	for _, path := range slices.Concat(found, more) {
		content, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(filepath.Join(into, filepath.Base(path)), content, 0o600)
		}
		if err != nil {
			w.say("keeping the logs: %v", err)
		}
	}
	w.say("the logs are in %s", into)
}
