package architecture

// Module is this module's path.
const Module = "github.com/bottlerocket-os/bottlerocket-update-operator"

// Layers, from the bottom. A package imports only layers below its own, or what its place allows beside.
const (
	layerPure = iota
	layerEdge
	layerLoop
	layerCommand
)

type place struct {
	layer int
	// beside are packages of the same layer that may be imported.
	beside []string
}

// places are the folders whose packages are placed; a folder stands for what is under it too, unless
// that is named itself.
var places = map[string]place{
	"pkg/plain":   {layer: layerPure},
	"pkg/wave":    {layer: layerPure},
	"pkg/marker":  {layer: layerPure, beside: []string{"pkg/plain"}},
	"pkg/intent":  {layer: layerPure, beside: []string{"pkg/marker"}},
	"pkg/fleet":   {layer: layerPure, beside: []string{"pkg/marker", "pkg/intent"}},
	"pkg/policy":  {layer: layerPure, beside: []string{"pkg/marker", "pkg/intent"}},
	"pkg/plan":    {layer: layerPure, beside: []string{"pkg/plain", "pkg/wave", "pkg/marker", "pkg/intent", "pkg/fleet", "pkg/policy"}},
	"pkg/rollout": {layer: layerPure, beside: []string{"pkg/plain", "pkg/marker", "pkg/intent", "pkg/fleet", "pkg/plan"}},
	"pkg/notice":  {layer: layerPure, beside: []string{"pkg/plain", "pkg/marker", "pkg/intent", "pkg/fleet", "pkg/policy", "pkg/plan", "pkg/rollout"}},
	"pkg/planner": {layer: layerPure, beside: []string{"pkg/plain", "pkg/marker", "pkg/intent", "pkg/fleet", "pkg/policy", "pkg/plan"}},
	// One node knows nothing of the others, nor does a budget; checks know both.
	"pkg/planner/lifecycle": {layer: layerPure, beside: []string{"pkg/marker", "pkg/intent", "pkg/fleet", "pkg/policy", "pkg/plan"}},
	"pkg/planner/budget":    {layer: layerPure, beside: []string{"pkg/fleet", "pkg/policy", "pkg/plan"}},
	"pkg/planner/check": {layer: layerPure, beside: []string{"pkg/marker", "pkg/intent", "pkg/fleet", "pkg/policy", "pkg/plan",
		"pkg/planner/lifecycle", "pkg/planner/budget"}},

	"pkg/policy/window": {layer: layerPure},
	"pkg/policy/file":   {layer: layerPure, beside: []string{"pkg/marker", "pkg/policy/window"}},

	"pkg/agent/next":      {layer: layerPure, beside: []string{"pkg/marker", "pkg/intent"}},
	"pkg/authorizer/rule": {layer: layerPure, beside: []string{"pkg/plain", "pkg/marker"}},
	"pkg/runner/next":     {layer: layerPure, beside: []string{"pkg/marker", "pkg/fleet"}},

	"pkg/preflight": {layer: layerPure, beside: []string{"pkg/plain", "pkg/marker", "pkg/fleet", "pkg/policy"}},

	"pkg/connlimit": {layer: layerPure},
	"pkg/telemetry": {layer: layerEdge},
	"pkg/alert":     {layer: layerEdge},
	"pkg/post":      {layer: layerEdge},
	"pkg/channel":   {layer: layerEdge, beside: []string{"pkg/telemetry"}},
	"pkg/drain":     {layer: layerEdge, beside: []string{"pkg/telemetry"}},
	"pkg/kube":      {layer: layerEdge, beside: []string{"pkg/telemetry"}},
	"pkg/platform":  {layer: layerEdge, beside: []string{"pkg/telemetry", "pkg/platform"}},

	// The loops never import each other.
	"pkg/controller": {layer: layerLoop},
	"pkg/agent":      {layer: layerLoop},
	"pkg/authorizer": {layer: layerLoop},
	"pkg/runner":     {layer: layerLoop},
	"pkg/plugin":     {layer: layerLoop},

	"cmd": {layer: layerCommand},
}

// pure are the packages that decide. They get all they know as values.
var pure = []string{"pkg/plain", "pkg/wave", "pkg/marker", "pkg/intent", "pkg/fleet", "pkg/policy", "pkg/plan", "pkg/rollout", "pkg/notice", "pkg/planner", "pkg/agent/next",
	"pkg/authorizer/rule", "pkg/runner/next", "pkg/preflight"}

// pureImports is all that a pure package may import beside other pure ones.
var pureImports = []string{
	"bytes", "cmp", "container/heap", "container/list", "encoding", "encoding/base64", "encoding/binary", "encoding/hex", "encoding/json",
	"errors", "fmt", "hash", "hash/crc32", "hash/fnv", "io", "iter", "maps", "math", "math/big", "math/bits", "reflect", "regexp", "slices", "sort",
	"strconv", "strings", "text/tabwriter", "time", "unicode", "unicode/utf16", "unicode/utf8", "unique",
	"github.com/pkg/errors", "golang.org/x/mod/semver",
	// The policy file, and the ranges and the schedules in it.
	"go.yaml.in/yaml/v3", "github.com/Masterminds/semver/v3", "github.com/robfig/cron/v3",
}

// impure are calls that pure packages' imports would let them make.
var impure = map[string][]string{
	// A zone by its name, or the local one, is the machine's word.
	"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "LoadLocation", "Local"},
	"fmt":  {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
}

// process are calls that belong to commands: a package that ends the process, or reads its environment,
// decides for all others.
var process = map[string][]string{
	"os":      {"Exit", "Getenv", "LookupEnv", "Environ", "ExpandEnv", "Setenv", "Unsetenv"},
	"syscall": {"Exit", "Getenv", "Environ"},
	"log":     {"Fatal", "Fatalf", "Fatalln"},
}

const (
	agentCommand  = "cmd/bottlerocket-update-agent"
	pluginCommand = "cmd/kubectl-bottlerocket"
)

// unlinked is what packages must not link, by their folders.
var unlinked = map[string][]string{
	// The agent runs on every node, and each of them would pay for it in memory.
	agentCommand: {"k8s.io/kubectl", "k8s.io/client-go/kubernetes"},
	// The plugin runs on users' own machines. It is no part of the operator and decides nothing: all that pkg/planner
	// plans by goes through budgets and checks. How one node is cleaned is in pkg/planner/lifecycle.
	pluginCommand: {Module + "/pkg/planner/budget", Module + "/pkg/planner/check", Module + "/pkg/controller", Module + "/pkg/drain",
		Module + "/pkg/agent", Module + "/pkg/authorizer", Module + "/pkg/platform", Module + "/dev", "k8s.io/kubectl"},
	// The runner decides on single nodes, whatever the others do.
	"pkg/runner": {Module + "/pkg/planner", Module + "/pkg/drain", "k8s.io/kubectl"},
	// The proxy judges what single agents write, whatever the policy says.
	"pkg/authorizer": {Module + "/pkg/policy", Module + "/pkg/plan", Module + "/pkg/planner", Module + "/pkg/fleet"},
}

// reserved are modules that only one folder imports, with that folder: kubectl and what its plugins are made of
// are heavy, and what makes the image and what it holds beside the commands isn't theirs.
var reserved = map[string]string{
	"k8s.io/kubectl":                         "pkg/drain",
	"k8s.io/cli-runtime":                     "pkg/plugin",
	"github.com/spf13/cobra":                 "pkg/plugin",
	"github.com/google/go-containerregistry": "dev/image",
	"golang.org/x/crypto/x509roots":          "dev/image/roots",
	"github.com/Masterminds/semver":          "pkg/policy/file",
	"github.com/robfig/cron":                 "pkg/policy/window",
}

// vague names say nothing about what is inside.
var vague = []string{"util", "utils", "helper", "helpers", "manager", "common"}

// topLevel is what the top folder may hold beside dotfiles and what git ignores.
var topLevel = []string{
	"cmd", "pkg", "dev", "docs", "monitoring", "charts", "update-operator.yaml", "kustomization.yaml", "components", "Makefile", "Dockerfile", "go.mod", "go.sum", "README.md",
	"CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md",
	"LICENSE-APACHE", "LICENSE-MIT", "COPYRIGHT", "NOTICE",
	// Made by make build, make image and make dist.
	"bin", "dist",
}
