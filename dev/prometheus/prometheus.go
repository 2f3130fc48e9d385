package prometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/port"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/process"
)

// Config is what to run.
type Config struct {
	// Dir gets all files; it must exist.
	Dir string
	// Rules are files with rules.
	Rules []string
	// Every is how often targets are scraped and rules are evaluated.
	Every time.Duration
	// Settings is the text of a configuration file, in place of the one that is made of Rules and Every and lets Scrape
	// say what is scraped.
	Settings string
	// Flags are added to its own ones.
	Flags []string
	// Progress gets a line for each thing that takes time; nil is silence.
	Progress io.Writer
}

// Target is what is scraped at /metrics.
type Target struct {
	// Address is host:port.
	Address string
	// Labels are those of each series that it has.
	Labels map[string]string
}

// Prometheus is a running one.
type Prometheus struct {
	dir     string
	port    *port.Port
	process *process.Process
}

// settings of Prometheus. Histograms are kept both as classic and as native ones.
const settings = `global:
  scrape_interval: %[1]s
  scrape_timeout: %[1]s
  evaluation_interval: %[1]s
  scrape_native_histograms: true
  always_scrape_classic_histograms: true
rule_files: %[2]s
scrape_configs:
- job_name: bottlerocket-update-operator
  file_sd_configs:
  - files: [targets.json]
`

const (
	// startTime bounds the wait until Prometheus answers.
	startTime = time.Minute
	// stopTime is what it has to end by itself.
	stopTime = 5 * time.Second
)

// Programs makes sure that Prometheus and promtool are built, and returns their folder.
func Programs(ctx context.Context, progress io.Writer) (string, error) {
	b, err := controlplane.Build(ctx, controlplane.Options{Groups: []controlplane.Group{controlplane.GroupPrometheus}, Progress: progress})
	return b.Dir, err
}

// Start builds Prometheus if that is needed, starts it, and waits until it is ready. It scrapes nothing yet.
func Start(ctx context.Context, config Config) (*Prometheus, error) {
	bin, err := Programs(ctx, config.Progress)
	if err != nil {
		return nil, err
	}
	rules, err := json.Marshal(config.Rules)
	if err != nil {
		return nil, errors.Wrap(err, "naming rules")
	}
	if config.Settings == "" {
		config.Settings = fmt.Sprintf(settings, config.Every, rules)
	}
	p := &Prometheus{dir: config.Dir}
	file := filepath.Join(p.dir, "prometheus.yaml")
	if err := os.WriteFile(file, []byte(config.Settings), 0o600); err != nil {
		return nil, errors.Wrap(err, "writing the settings of Prometheus")
	}
	if err := p.Scrape(nil); err != nil {
		return nil, err
	}
	if p.port, err = port.Reserve(0); err != nil {
		return nil, err
	}
	flags := append([]string{"--config.file=" + file, "--web.listen-address=" + p.port.Address(),
		"--storage.tsdb.path=" + filepath.Join(p.dir, "data")}, config.Flags...)
	if err := p.start(ctx, exec.Command(filepath.Join(bin, "prometheus"), flags...)); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

func (p *Prometheus) start(ctx context.Context, cmd *exec.Cmd) error {
	said, err := process.Log(p.log())
	if err != nil {
		return err
	}
	defer said.Close()
	// Without pages of its own Prometheus looks for them here.
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, said, said
	if p.process, err = process.Start(cmd); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := p.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.process.Done():
			return errors.Errorf("prometheus ended: its log ends with:\n%s", p.Log())
		case <-ctx.Done():
			return errors.Wrapf(err, "waiting until Prometheus is ready; its log ends with:\n%s", p.Log())
		case <-tick.C:
		}
	}
}

func (p *Prometheus) ready(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL()+"/-/ready", nil)
	if err != nil {
		return errors.Wrap(err, "asking Prometheus")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return errors.Wrap(err, "asking Prometheus")
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.Errorf("prometheus answers %s", response.Status)
	}
	return nil
}

// URL is where its HTTP API is.
func (p *Prometheus) URL() string { return "http://" + p.port.Address() }

// Log returns the end of what it said.
func (p *Prometheus) Log() string { return process.LogTail(p.log(), 4096) }

func (p *Prometheus) log() string { return filepath.Join(p.dir, "log") }

// Scrape says what is scraped from now on, in place of what was.
func (p *Prometheus) Scrape(targets []Target) error {
	type group struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels"`
	}
	groups := []group{}
	for _, t := range targets {
		groups = append(groups, group{[]string{t.Address}, t.Labels})
	}
	text, err := json.Marshal(groups)
	if err != nil {
		return errors.Wrap(err, "naming targets")
	}
	// Prometheus sees that the file has another name than before, and never a part of it.
	file := filepath.Join(p.dir, "targets.json")
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return errors.Wrap(err, "writing targets")
	}
	return errors.Wrap(os.Rename(file+".new", file), "writing targets")
}

// Stop ends it. Its files are the caller's.
func (p *Prometheus) Stop() {
	if p.process != nil {
		p.process.Stop(stopTime)
	}
	p.port.Release()
}
