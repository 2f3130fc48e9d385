// Command local keeps a cluster of simulated Bottlerocket machines for playing with:
//
//	local up     starts one, installs the operator, prints the KUBECONFIG to use, and keeps it running
//	             in the background
//	local down   stops it and removes its files
//	local release VERSION   offers an OS version to all machines
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/localcluster"
	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/nodes"
)

const version = "1.50.0"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "local: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("say what to do: up, down, or release VERSION")
	}
	control, err := socket()
	if err != nil {
		return err
	}
	switch args[0] {
	case "up":
		fs := flag.NewFlagSet("up", flag.ContinueOnError)
		count := fs.Int("nodes", 3, "how many machines")
		if err := fs.Parse(args[1:]); err != nil {
			return err
		}
		return up(ctx, control, *count)
	case "keep":
		fs := flag.NewFlagSet("keep", flag.ContinueOnError)
		count := fs.Int("nodes", 3, "how many machines")
		if err := fs.Parse(args[1:]); err != nil {
			return err
		}
		return keep(ctx, control, *count)
	case "down":
		if _, err := ask(ctx, control, "/down", nil); err != nil {
			return errors.New("no cluster is running")
		}
		return localcluster.Await(ctx, "the cluster has stopped", time.Minute, func() (bool, error) {
			_, err := os.Stat(control)
			return os.IsNotExist(err), nil
		})
	case "release":
		if len(args) != 2 {
			return errors.New("say which version: release 1.51.0")
		}
		answer, err := ask(ctx, control, "/release", url.Values{"version": {args[1]}})
		fmt.Print(answer)
		return err
	}
	return errors.Errorf("%q is not a thing to do: up, down, or release VERSION", args[0])
}

// socket is where a running cluster is talked to.
func socket() (string, error) {
	dir, err := controlplane.CacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "local.sock"), nil
}

// ask sends one request to the running cluster.
func ask(ctx context.Context, control, path string, values url.Values) (string, error) {
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", control)
	}, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://local"+path, strings.NewReader(values.Encode()))
	if err != nil {
		return "", errors.Wrap(err, "asking the cluster")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := client.Do(req)
	if err != nil {
		return "", errors.Wrap(err, "asking the cluster")
	}
	defer res.Body.Close()
	var b strings.Builder
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		b.WriteString(lines.Text() + "\n")
	}
	if res.StatusCode != http.StatusOK {
		return "", errors.New(strings.TrimSpace(b.String()))
	}
	return b.String(), nil
}

// up starts this program once more, detached from this terminal, and waits until it serves.
func up(ctx context.Context, control string, count int) error {
	if answer, err := ask(ctx, control, "/status", nil); err == nil {
		fmt.Print("already running\n" + answer)
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return errors.Wrap(err, "finding this program")
	}
	// The binary of `go run` is removed when it ends: keep a copy for the one that stays.
	kept := filepath.Join(filepath.Dir(control), "local-keep")
	body, err := os.ReadFile(self)
	if err != nil {
		return errors.Wrap(err, "reading this program")
	}
	_ = os.Remove(kept)
	if err := os.WriteFile(kept, body, 0o700); err != nil {
		return errors.Wrap(err, "keeping this program")
	}
	r, w, err := os.Pipe()
	if err != nil {
		return errors.Wrap(err, "making a pipe")
	}
	log, err := os.OpenFile(kept+".log", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return errors.Wrap(err, "opening a log")
	}
	defer log.Close()
	cmd := exec.Command(kept, "keep", fmt.Sprintf("-nodes=%d", count))
	cmd.Stdout, cmd.Stderr = w, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return errors.Wrap(err, "starting the cluster")
	}
	_ = w.Close()
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })()
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if lines.Text() == ready {
			answer, err := ask(ctx, control, "/status", nil)
			fmt.Print(answer)
			return err
		}
		fmt.Println(lines.Text())
	}
	_ = cmd.Wait()
	text, _ := os.ReadFile(kept + ".log")
	return errors.Errorf("the cluster did not start: %s", text)
}

// ready is the line by which the kept process says that it serves.
const ready = "ready"

// keep runs the cluster until it is asked to stop.
func keep(ctx context.Context, control string, count int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := localcluster.Start(ctx, localcluster.Config{
		Nodes: count, Version: version, Progress: os.Stdout,
		Args: map[string][]string{
			"controller": {"-soak=5s", "-lease-duration=6s", "-lease-renew-deadline=4s", "-lease-retry-period=1s"},
			"agent":      {"-refresh-interval=5s"},
		},
		Reboot:    nodes.Reboot{Mode: nodes.RebootShutdown, Down: 5 * time.Second},
		Latencies: hostsim.Latencies{Refresh: 500 * time.Millisecond, Prepare: 5 * time.Second, Activate: 500 * time.Millisecond},
	})
	if err != nil {
		return err
	}
	defer c.Stop()
	if err := c.Install(ctx); err != nil {
		return err
	}
	_ = os.Remove(control)
	l, err := net.Listen("unix", control)
	if err != nil {
		return errors.Wrap(err, "listening for commands")
	}
	defer os.Remove(control)
	mux := http.NewServeMux()
	mux.HandleFunc("/status", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "export KUBECONFIG=%s\n", c.Plane.Kubeconfig())
		fmt.Fprintf(w, "export PATH=%s:$PATH   # this cluster's kubectl\n", c.Plane.Binaries().Dir)
		fmt.Fprintf(w, "kubectl label node --all bottlerocket.aws/updater-interface-version=2.0.0\n")
		fmt.Fprintf(w, "go run ./dev/local release 1.51.0\n")
		if plan, err := c.PlanURL(ctx); err == nil && plan != "" {
			fmt.Fprintf(w, "curl %s\n", plan)
		}
	})
	mux.HandleFunc("/release", func(w http.ResponseWriter, r *http.Request) {
		if err := c.Release(r.FormValue("version")); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, "Bottlerocket %s is released\n", r.FormValue("version"))
	})
	mux.HandleFunc("/down", func(http.ResponseWriter, *http.Request) { cancel() })
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		end, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(end)
	}()
	if err := c.AwaitOperator(ctx, 2*time.Minute, false); err != nil {
		return err
	}
	fmt.Println(ready)
	_ = os.Stdout.Close()
	if err := server.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return errors.Wrap(err, "serving commands")
	}
	return nil
}
