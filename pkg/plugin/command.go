package plugin

import (
	"io"
	"sync"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/kube"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// plugin is what all subcommands share.
type plugin struct {
	genericiooptions.IOStreams
	flags *genericclioptions.ConfigFlags
	now   func() time.Time
	// again is after how long a watch looks again.
	again time.Duration
}

func newPlugin(streams genericiooptions.IOStreams) *plugin {
	flags := genericclioptions.NewConfigFlags(true)
	// The operator's namespace, and not that of the kubeconfig's context.
	namespace := kube.Namespace
	flags.Namespace = &namespace
	// What a node, a host or the API server says may be printed anywhere, so nothing gets past these.
	streams.Out, streams.ErrOut = plain.Text(streams.Out), plain.Text(streams.ErrOut)
	return &plugin{IOStreams: streams, flags: flags, now: time.Now, again: watchAgain}
}

func (p *plugin) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-bottlerocket",
		Short: "Show and steer the updates of Bottlerocket nodes",
		Long: "Show what the Bottlerocket update operator does with the nodes, what it would do next and why not more, and enroll nodes, pin them to a version,\n" +
			"pause, resume or retry it; check the cluster before and after it is installed; and clean up after it.",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl bottlerocket"},
		Version:       telemetry.Build(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(p.In)
	root.SetOut(p.Out)
	root.SetErr(p.ErrOut)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return errors.Errorf("%v; see '%s --help'", err, c.CommandPath())
	})
	// cobra would take -v for it, which kubectl's own commands have for something else.
	root.Flags().Bool("version", false, "Print the version and exit")
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	p.flags.AddFlags(root.PersistentFlags())
	root.PersistentFlags().Lookup("namespace").Usage = "The namespace that the operator runs in"
	root.AddCommand(p.checkCommand(), p.enrollCommand(), p.statusCommand(), p.planCommand(), p.versionsCommand(), p.pinCommand(), p.unpinCommand(), p.rollbackCommand(), p.provenCommand(), p.reportCommand(), p.historyCommand(), p.pauseCommand(), p.resumeCommand(), p.retryCommand(),
		p.acknowledgeCommand(), p.e2eCommand(), p.cleanCommand(), p.supportBundleCommand())
	return root
}

func (p *plugin) namespace() string { return *p.flags.Namespace }

// config says how to reach the API server.
func (p *plugin) config() (*rest.Config, error) {
	c, err := p.flags.ToRESTConfig()
	if err != nil {
		return nil, errors.WithMessage(err, "reading the kubeconfig")
	}
	c.WarningHandler = &warnings{out: p.ErrOut, printed: map[string]bool{}}
	c.UserAgent = "kubectl-bottlerocket/" + telemetry.Version
	// As kubectl's own: a command makes a few requests, or one for each node that it is given.
	c.QPS, c.Burst = 50, 300
	return c, nil
}

// warnings prints what the API server warns of, once.
type warnings struct {
	out     io.Writer
	mu      sync.Mutex
	printed map[string]bool
}

// HandleWarningHeader is for rest.WarningHandler.
func (w *warnings) HandleWarningHeader(code int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if code == 299 && text != "" && !w.printed[text] {
		w.printed[text] = true
		warn(w.out, []string{text})
	}
}

func (p *plugin) client() (kubernetes.Interface, error) {
	c, err := p.config()
	if err != nil {
		return nil, err
	}
	return newClient(c)
}

func newClient(c *rest.Config) (kubernetes.Interface, error) {
	// Half the time that the same nodes take as JSON.
	c.ContentType = "application/vnd.kubernetes.protobuf"
	c.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(c)
	return client, errors.Wrap(err, "making a client of the API server")
}

// metadataClient reads the metadata of objects alone: what else a Node holds is ten times as much.
func (p *plugin) metadataClient() (metadata.Interface, error) {
	c, err := p.config()
	if err != nil {
		return nil, err
	}
	client, err := metadata.NewForConfig(c)
	return client, errors.Wrap(err, "making a client of the API server")
}
