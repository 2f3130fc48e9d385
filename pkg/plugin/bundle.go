package plugin

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// bundleWithin bounds the making of a bundle, beside the check that is in it.
const bundleWithin = 5 * time.Minute

type bundleOptions struct {
	file  string
	force bool
}

func (p *plugin) supportBundleCommand() *cobra.Command {
	o := &bundleOptions{}
	c := &cobra.Command{
		Use:   "support-bundle",
		Short: "Write an archive with what is needed to find a fault, and no secret in it",
		Long: "Write an archive with what is needed to find a fault: the check, the plan, nodes, the operator's objects and logs, and Events.\n" +
			"No data of Secrets is read, and what may be a secret is left out of everything else. Look through it before you send it.",
		Example: "  kubectl bottlerocket support-bundle\n  kubectl bottlerocket support-bundle -o fault.tar.gz",
		Args:    noArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return p.supportBundle(c.Context(), o) },
	}
	c.Flags().StringVarP(&o.file, "output", "o", "", "The file to write; bottlerocket-support-TIME.tar.gz by default")
	c.Flags().BoolVar(&o.force, "force", false, "Write the file although it exists")
	_ = c.MarkFlagFilename("output", "tar.gz")
	return c
}

func (p *plugin) supportBundle(ctx context.Context, o *bundleOptions) error {
	if o.file == "" {
		o.file = "bottlerocket-support-" + p.now().UTC().Format("20060102T150405Z") + ".tar.gz"
	}
	if _, err := os.Lstat(o.file); err == nil && !o.force {
		return exists(o.file)
	}
	b, err := p.bundle(ctx)
	if err != nil {
		return err
	}
	archive, err := b.archive(p.now())
	if err != nil {
		return err
	}
	if err := writeFile(o.file, archive, o.force); err != nil {
		return err
	}
	fmt.Fprintf(p.Out, "%s written: %d files, %d KiB\n", line(o.file), len(b.files), (len(archive)+1023)>>10)
	fmt.Fprintln(p.ErrOut,
		"Look through it before you send it: README.txt in it says what it holds, and what is left out")
	if n := len(b.unread); n > 0 {
		warn(p.ErrOut, []string{fmt.Sprintf("%d things could not be read; unread.txt in the archive says which and why",
			n)})
	}
	return nil
}

// bundle is what an archive is made of.
type bundle struct {
	client    kubernetes.Interface
	metadata  metadata.Interface
	namespace string
	// files are by their path in the archive, already scrubbed; about says of each what it is.
	files map[string][]byte
	about map[string]string
	// unread are lines on what could not be read.
	unread []string
	// size is how large all logs are so far.
	size int
}

func (p *plugin) bundle(ctx context.Context) (*bundle, error) {
	check, err := p.checked(ctx)
	if err != nil {
		return nil, err
	}
	config, err := p.bounded()
	if err != nil {
		return nil, err
	}
	client, err := newClient(config)
	if err != nil {
		return nil, err
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, errors.Wrap(err, "making a client of the API server")
	}
	ctx, cancel := context.WithTimeout(ctx, bundleWithin)
	defer cancel()
	b := &bundle{client: client, metadata: meta, namespace: p.namespace(), files: map[string][]byte{},
		about: map[string]string{}}
	b.object("check.json", "what kubectl bottlerocket check found", check)
	var text bytes.Buffer
	if err := check.print(&text); err != nil {
		return nil, err
	}
	b.text("check.txt", "the same as a table", text.Bytes())
	b.object("versions.json", "the versions of the plugin and of the API server", map[string]string{
		"plugin": telemetry.Build(), "server": check.Server, "made": p.now().UTC().Format(time.RFC3339), "namespace": p.namespace()})
	if plan, err := p.ask(ctx, client, nil); err != nil {
		b.lacks("plan.json", err)
	} else {
		b.object("plan.json", "the leading controller's plan: what starts next, and why each other node waits", plan)
		text.Reset()
		if err := printPlan(&plan, &text, true); err != nil {
			return nil, err
		}
		b.text("plan.txt", "the same as a table", text.Bytes())
	}
	b.read(ctx)
	return b, ctxErr(ctx)
}

// object adds a file of JSON, text one of text.
func (b *bundle) object(path, about string, object any) {
	body, err := scrubbed(object)
	if err != nil {
		b.lacks(path, err)
		return
	}
	b.files[path], b.about[path] = body, about
}

func (b *bundle) text(path, about string, text []byte) {
	b.files[path], b.about[path] = []byte(scrub(string(text))), about
}

// lacks notes what could not be read.
func (b *bundle) lacks(path string, err error) {
	if err != nil {
		b.unread = append(b.unread, path+": "+scrub(line(err.Error())))
	}
}

func exists(path string) error {
	return errors.Errorf("%q exists: give another name by --output, or --force to write it again", path)
}

// writeFile writes a file as a whole or not at all, for its owner alone to read. Without force it never takes the
// place of one that exists.
func writeFile(path string, content []byte, force bool) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), ".bottlerocket-support-*")
	if err != nil {
		return errors.Wrap(err, "writing the archive")
	}
	defer os.Remove(file.Name())
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return errors.Wrap(err, "writing the archive")
	}
	if force {
		return errors.Wrap(os.Rename(file.Name(), path), "writing the archive")
	}
	// A link, unlike a rename, fails where something stands.
	err = os.Link(file.Name(), path)
	if _, wrong := os.Lstat(path); err != nil && errors.Is(wrong, fs.ErrNotExist) {
		// Not every file system has links.
		err = os.Rename(file.Name(), path)
	}
	if errors.Is(err, fs.ErrExist) {
		return exists(path)
	}
	return errors.Wrap(err, "writing the archive")
}
