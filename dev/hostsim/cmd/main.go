// Command cmd runs one simulated Bottlerocket host until SIGTERM or SIGINT, to play with by curl:
//
//	go run ./dev/hostsim/cmd -socket /tmp/api.sock -version 1.26.1 -release 1.26.1,1.27.0 &
//	curl --unix-socket /tmp/api.sock -X POST http://localhost/actions/refresh-updates
//
// A host that was asked to reboot boots again by itself, after -boot-takes. On SIGHUP the files of
// -faults and -repo are read again.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/hostsim"
)

// tick is how often the clock is looked at for what no request brings about.
const tick = 100 * time.Millisecond

type options struct {
	socket, bootIDFile   string
	releases             string
	repoFile, faultsFile string
	bootTakes            time.Duration
	seed                 uint
	host                 hostsim.Config
}

func parseOptions() *options {
	o := &options{}
	flag.StringVar(&o.socket, "socket", "api.sock", "path of the unix socket to serve")
	flag.StringVar(&o.bootIDFile, "boot-id-file", "", "file to write each boot id to")
	flag.StringVar(&o.host.Name, "name", "host", "name; boot ids are made from it")
	flag.StringVar(&o.host.Version, "version", "1.26.1", "version that runs at first")
	flag.StringVar(&o.host.Variant, "variant", "aws-k8s-1.31", "variant")
	flag.StringVar(&o.host.Arch, "arch", "x86_64", "architecture")
	flag.UintVar(&o.seed, "seed", 0, "seed, the place in the waves")
	flag.StringVar(&o.releases, "release", "", "comma separated versions to publish for the variant and architecture")
	flag.StringVar(&o.repoFile, "repo", "", "json file with an array of releases to publish, instead of those of -release")
	flag.StringVar(&o.faultsFile, "faults", "", "json file with an array of faults")
	flag.DurationVar(&o.bootTakes, "boot-takes", 0, "time that the machine is down in a reboot")
	flag.DurationVar(&o.host.Latencies.Refresh, "refresh-takes", 0, "time that a refresh takes")
	flag.DurationVar(&o.host.Latencies.Prepare, "prepare-takes", 0, "time that a prepare takes")
	flag.DurationVar(&o.host.Latencies.Activate, "activate-takes", 0, "time that an activate takes")
	flag.DurationVar(&o.host.Latencies.Deactivate, "deactivate-takes", 0, "time that a deactivate takes")
	flag.Parse()
	return o
}

func main() {
	if err := run(parseOptions()); err != nil {
		log.Fatalf("hostsim: %v", err)
	}
}

func run(o *options) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)

	down := make(chan struct{}, 1)
	o.host.Repo = &hostsim.Repo{}
	o.host.Settings.Seed = uint32(min(o.seed, 1<<32-1))
	o.host.OnReboot = func() {
		select {
		case down <- struct{}{}:
		default: // it goes down already
		}
	}
	for version := range strings.SplitSeq(o.releases, ",") {
		if version == "" {
			continue
		}
		r := hostsim.Release{Version: version, Variant: o.host.Variant, Arch: o.host.Arch}
		if err := o.host.Repo.Release(r); err != nil {
			return err
		}
	}
	h, err := hostsim.New(o.host)
	if err != nil {
		return err
	}
	if err := o.load(h); err != nil {
		return err
	}
	server := hostsim.NewServer(h)
	if err := o.up(h, server); err != nil {
		return err
	}
	defer func() { _ = server.Close() }()

	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-hup:
			if err := o.load(h); err != nil {
				log.Printf("keep what there was: %v", err)
			}
		case <-ticker.C:
			h.Settle()
		case <-down:
			if err := server.Close(); err != nil {
				return err
			}
			h.PowerOff()
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(o.bootTakes):
			}
			h.Boot()
			if err := o.up(h, server); err != nil {
				return err
			}
		}
	}
}

// up shows a host that has booted to the world.
func (o *options) up(h *hostsim.Host, server *hostsim.Server) error {
	s := h.Snapshot()
	log.Printf("up: %s, boot id %s", s.PrettyName, s.BootID)
	if o.bootIDFile != "" {
		if err := os.WriteFile(o.bootIDFile, []byte(s.BootID+"\n"), 0o644); err != nil {
			return errors.Wrap(err, "write boot id")
		}
	}
	return server.Serve(o.socket)
}

// load reads the files of faults and releases, those that are given.
func (o *options) load(h *hostsim.Host) error {
	if o.repoFile != "" {
		b, err := os.ReadFile(o.repoFile)
		if err != nil {
			return errors.Wrap(err, "read releases")
		}
		if err := o.host.Repo.Load(b); err != nil {
			return err
		}
	}
	if o.faultsFile == "" {
		return nil
	}
	b, err := os.ReadFile(o.faultsFile)
	if err != nil {
		return errors.Wrap(err, "read faults")
	}
	faults, err := hostsim.ParseFaults(b)
	if err != nil {
		return err
	}
	return h.SetFaults(faults...)
}
