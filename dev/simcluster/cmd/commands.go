package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/simcluster"
)

// kept is the cluster that runs, as its commands see it.
type kept struct {
	*simcluster.Cluster
	at   places
	port int
	end  func()

	mu      sync.Mutex // one command at a time
	failing failing
}

// serve answers commands until ctx ends.
func (k *kept) serve(ctx context.Context) error {
	_ = os.Remove(k.at.socket)
	l, err := net.Listen("unix", k.at.socket)
	if err != nil {
		return errors.Wrap(err, "listening for commands")
	}
	mux := http.NewServeMux()
	for path, do := range map[string]func(context.Context, *http.Request) (string, error){
		"/up": k.up, "/release": k.release, "/fail": k.fail, "/heal": k.heal, "/down": k.down,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			k.mu.Lock()
			defer k.mu.Unlock()
			answer, err := do(ctx, r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			fmt.Fprintln(w, answer)
		})
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		<-ctx.Done()
		end, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(end)
	}()
	fmt.Println(ready)
	_ = os.Stdout.Close()
	if err := server.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return errors.Wrap(err, "serving commands")
	}
	return nil
}

// up gives the cluster the size that is asked for, and says how to use it.
func (k *kept) up(ctx context.Context, r *http.Request) (string, error) {
	if p := r.FormValue("port"); p != "" && p != strconv.Itoa(k.port) {
		return "", errors.Errorf("a cluster runs on port %d already: make cluster-down first, then make cluster-up API_PORT=%s", k.port, p)
	}
	if n := r.FormValue("nodes"); n != "" {
		want, err := strconv.Atoi(n)
		if err != nil {
			return "", errors.Wrap(err, "reading the number of nodes")
		}
		if err := k.resize(ctx, want); err != nil {
			return "", err
		}
	}
	return k.usage(ctx), nil
}

func (k *kept) resize(ctx context.Context, want int) error {
	add, remove := resizing(k.nodes(), want)
	for _, name := range add {
		m, err := k.Add(ctx, name)
		if err != nil {
			return err
		}
		if err := m.Host().SetFaults(k.failing.faults(name)...); err != nil {
			return err
		}
	}
	for _, name := range remove {
		delete(k.failing, name)
		if err := k.Fleet.Delete(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (k *kept) release(_ context.Context, r *http.Request) (string, error) {
	version := r.FormValue("version")
	if !isVersion(version) {
		return "", errors.Errorf("%q is no version: one looks like 1.51.0; released are %s", version, strings.Join(k.released(), ", "))
	}
	return "Bottlerocket " + version + " is released", k.Release(version)
}

func (k *kept) fail(_ context.Context, r *http.Request) (string, error) {
	answer, err := k.failing.fail(r.FormValue("on"), r.FormValue("how"), k.nodes(), k.released())
	if err != nil {
		return "", err
	}
	return answer, k.setFaults()
}

func (k *kept) heal(_ context.Context, r *http.Request) (string, error) {
	answer, err := k.failing.heal(r.FormValue("on"))
	if err != nil {
		return "", err
	}
	return answer, k.setFaults()
}

// setFaults gives each host the faults that it is to have, and no others.
func (k *kept) setFaults() error {
	for _, m := range k.Fleet.Machines() {
		if err := m.Host().SetFaults(k.failing.faults(m.Name())...); err != nil {
			return err
		}
	}
	return nil
}

func (k *kept) down(context.Context, *http.Request) (string, error) {
	k.end()
	return "", nil
}

func (k *kept) nodes() []string {
	var names []string
	for _, m := range k.Fleet.Machines() {
		names = append(names, m.Name())
	}
	slices.SortFunc(names, byNumber)
	return names
}

func (k *kept) released() []string {
	var versions []string
	for _, r := range k.Repo.Releases() {
		versions = append(versions, r.Version)
	}
	return versions
}
