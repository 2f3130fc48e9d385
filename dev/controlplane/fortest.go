package controlplane

import (
	"context"
	"io"
	"sync"
	"testing"

	"github.com/pkg/errors"
)

// ForTest starts a control plane for one test and stops it at the test's end.
// Programs that are missing are built first. A test whose control plane can't
// run fails; it is skipped in a short run alone.
func ForTest(t testing.TB, config Config) *ControlPlane {
	t.Helper()
	SkipIfShort(t)
	c, err := buildAndStart(testProgress(t), config)
	if err != nil {
		t.Fatalf("starting a control plane: %v", err)
	}
	t.Cleanup(c.Stop)
	return c
}

// SkipIfShort skips a test that needs a control plane in a short run (-short), which starts none and takes a minute.
func SkipIfShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("a short run starts no control plane")
	}
}

// Shared is one control plane for the tests of a package. It starts when the
// first test asks for it, so a run of other tests doesn't pay for it:
//
//	var cluster controlplane.Shared
//
//	func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }
type Shared struct {
	// Config is what to run.
	Config Config

	once sync.Once
	c    *ControlPlane
	err  error
}

// Main runs a package's tests and stops the control plane after the last one.
func (s *Shared) Main(m *testing.M) int {
	defer func() {
		if s.c != nil {
			s.c.Stop()
		}
	}()
	return m.Run()
}

// Get is the control plane, started now if it doesn't run yet.
func (s *Shared) Get(t testing.TB) *ControlPlane {
	t.Helper()
	SkipIfShort(t)
	s.once.Do(func() { s.c, s.err = buildAndStart(testProgress(t), s.Config) })
	if s.err != nil {
		t.Fatalf("starting a control plane: %v", s.err)
	}
	return s.c
}

func buildAndStart(progress io.Writer, config Config) (*ControlPlane, error) {
	ctx := context.Background()
	if config.Binaries.APIServer == "" {
		var err error
		if config.Binaries, err = Build(ctx, Options{Progress: progress}); err != nil {
			return nil, errors.WithMessage(err, "building the control plane")
		}
	}
	return Start(ctx, config)
}
