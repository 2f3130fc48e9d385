package telemetry

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// The build, set by the linker: -ldflags "-X <this package>.Version=v2.0.0 -X <this package>.Commit=..."; what that
// leaves out is taken from the build information, which Go writes where it builds a checkout.
var (
	// Version is the git tag, or what git describe makes of it; "unknown" if nothing has one.
	Version string
	// Commit is the hash of the source's commit, and Date when that was committed, in RFC 3339; empty if nothing has one.
	Commit, Date string
)

func init() {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	version, commit, date := fromBuildInfo(info)
	Version, Commit, Date = cmp.Or(Version, version), cmp.Or(Commit, commit), cmp.Or(Date, date)
	Commit = Commit[:min(len(Commit), shortCommit)]
}

const (
	unknown = "unknown"
	// shortCommit is how many digits of a hash are unambiguous, and read by people.
	shortCommit = 12
)

func fromBuildInfo(info *debug.BuildInfo) (version, commit, date string) {
	version = info.Main.Version
	if version == "" || version == "(devel)" {
		version = unknown
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value
		case "vcs.time":
			date = s.Value
		}
	}
	return version, commit, date
}

// Build returns what -version says after the program's name: v2.0.0 (commit 0123456789ab, 2026-11-23T10:00:00Z). It is
// the version alone where the commit is not known.
func Build() string {
	switch {
	case Commit == "":
		return Version
	case Date == "":
		return Version + " (commit " + Commit + ")"
	}
	return Version + " (commit " + Commit + ", " + Date + ")"
}

// Namespace begins the name of every metric of the operator.
const Namespace = "bottlerocket_update"

// RegisterBuildInfo registers the gauge whose labels are the component and its build.
func RegisterBuildInfo(r prometheus.Registerer, component string) {
	g := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace:   Namespace,
		Name:        "build_info",
		Help:        "Always 1; the labels are the component and its build.",
		ConstLabels: prometheus.Labels{"component": component, "version": Version, "commit": Commit, "go_version": runtime.Version()},
	})
	g.Set(1)
	r.MustRegister(g)
}
