package controlplane

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/pkg/errors"
)

// Options says what to build.
type Options struct {
	// Version of Kubernetes, such as 1.36.3. Empty takes K8S_VERSION from the
	// environment and, without it, the version that dev/controlplane/programs pins.
	Version string
	// Groups says which programs; none is those of a control plane.
	Groups []Group
	// Kubelets are versions of Kubernetes, build metadata and all, that a kubelet is to call itself: for each there is
	// one more program, kubelet-VERSION, with the code of Version.
	Kubelets []string
	// Progress gets a line when the build of a program starts and ends; nil is
	// silence.
	Progress io.Writer
}

// Build makes sure that the programs that are asked for are in the cache and
// says where they are. What is there and was built from the same pins by the
// same Go release is taken as it is, without running a command. Several
// processes may call it at the same time: one builds, the others wait, and
// none ever sees a half-written program.
func Build(ctx context.Context, o Options) (Binaries, error) {
	b, err := newBuild(o)
	if err != nil {
		return Binaries{}, err
	}
	if len(b.missing()) == 0 {
		return b.binaries, nil
	}
	held, err := lock(ctx, filepath.Join(b.dir, "lock"), func() {
		b.say("waiting for another process that builds programs for Kubernetes %s", b.version)
	})
	if err != nil {
		return Binaries{}, err
	}
	defer held.Close()
	if err := b.run(ctx); err != nil {
		return Binaries{}, err
	}
	return b.binaries, nil
}

// build is one look at the cache.
type build struct {
	version  string
	pinned   string // the version that dev/controlplane/programs pins
	root     string // of the checkout
	programs []program
	dir      string
	stamps   map[string]string // by program
	binaries Binaries
	progress io.Writer
}

func newBuild(o Options) (*build, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	pinned, err := DefaultVersion()
	if err != nil {
		return nil, err
	}
	version, err := chooseVersion(o.Version, pinned)
	if err != nil {
		return nil, err
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	b := &build{
		version:  version,
		pinned:   pinned,
		root:     root,
		dir:      filepath.Join(cache, "k8s-"+version),
		stamps:   map[string]string{},
		progress: o.Progress,
	}
	b.binaries = binaries(version, b.dir)
	groups := o.Groups
	if len(groups) == 0 {
		groups = []Group{GroupControlPlane}
	}
	fingerprints := map[string]string{}
	for _, p := range slices.Concat(programs, kubelets(o.Kubelets)) {
		if p.called == "" && !slices.Contains(groups, p.group) {
			continue
		}
		b.programs = append(b.programs, p)
		fingerprint, known := fingerprints[p.folder()]
		if !known {
			if fingerprint, err = pins(filepath.Join(root, p.folder())); err != nil {
				return nil, err
			}
			fingerprints[p.folder()] = fingerprint
		}
		// The pins of dev/controlplane/programs say nothing about another Kubernetes: its
		// version alone fixes what is built.
		from := fingerprint
		if p.kubernetes && version != pinned {
			from = ""
		}
		if b.stamps[p.name], err = p.stamp(version, from); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *build) say(format string, args ...any) {
	if b.progress != nil {
		fmt.Fprintf(b.progress, format+"\n", args...)
	}
}

func (b *build) missing() []program {
	var out []program
	for _, p := range b.programs {
		if !p.fresh(b.dir, b.stamps[p.name]) {
			out = append(out, p)
		}
	}
	return out
}

// run builds what is missing; the caller holds the lock.
func (b *build) run(ctx context.Context) error {
	missing := b.missing()
	if len(missing) == 0 {
		return nil
	}
	// The go command's own temporary folder lies here too, so that nothing is
	// left outside the cache if it is killed.
	temp := filepath.Join(b.dir, "tmp")
	if err := os.RemoveAll(temp); err != nil {
		return errors.Wrap(err, "clearing the build folder")
	}
	if err := os.MkdirAll(temp, 0o700); err != nil {
		return errors.Wrap(err, "making the build folder")
	}
	defer os.RemoveAll(temp)
	other := filepath.Join(b.dir, "module")
	prepared := false
	for _, p := range missing {
		source, flags := filepath.Join(b.root, p.folder()), []string{"-mod=readonly"}
		if p.kubernetes && b.version != b.pinned {
			source, flags = other, []string{"-mod=mod"}
			if !prepared {
				if err := moduleFor(ctx, other, b.version, b.say); err != nil {
					return err
				}
				prepared = true
			}
		}
		if err := b.one(ctx, p, source, temp, flags); err != nil {
			return err
		}
	}
	return nil
}

func (b *build) one(ctx context.Context, p program, source, temp string, flags []string) error {
	ldflags, err := p.ldflags(b.version)
	if err != nil {
		return err
	}
	b.say("building %s (the first time this takes minutes)", p.of(b.version))
	began := time.Now()
	out := filepath.Join(temp, p.name)
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-tags", p.tags, "-ldflags", ldflags, "-o", out}, flags...)
	if err := goCommand(ctx, source, nil, []string{"GOTMPDIR=" + temp}, append(args, p.pkg)...); err != nil {
		return errors.WithMessagef(err, "building %s", p.name)
	}
	if err := p.install(out, b.dir, b.stamps[p.name]); err != nil {
		return err
	}
	b.say("built %s in %.0f s", p.name, time.Since(began).Seconds())
	return nil
}
