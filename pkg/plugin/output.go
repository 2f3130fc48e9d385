package plugin

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

// version is that of the structures that -o json and -o yaml print; it changes when a field changes its meaning.
const version = "plugin.bottlerocket.aws/v1"

// printed is what -o json and -o yaml print.
type printed struct{ metav1.TypeMeta }

func kind(name string) printed {
	return printed{metav1.TypeMeta{Kind: name, APIVersion: version}}
}

// GetObjectKind makes these structures ones that cli-runtime prints.
func (p *printed) GetObjectKind() schema.ObjectKind { return &p.TypeMeta }

// output is the flag -o.
type output struct {
	format  string
	formats []string
}

func (o *output) addTo(c *cobra.Command, formats ...string) {
	o.formats = formats
	c.Flags().StringVarP(&o.format, "output", "o", "", "Output format, one of: "+strings.Join(formats, ", "))
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
}

func (o *output) validate() error {
	if o.format != "" && !slices.Contains(o.formats, o.format) {
		return errors.Errorf("output format %q is not known: give one of %s", o.format, strings.Join(o.formats, ", "))
	}
	return nil
}

func (o *output) wide() bool { return o.format == "wide" }

// printer prints structures; nil if a table is wanted.
func (o *output) printer() printers.ResourcePrinter {
	switch o.format {
	case "json":
		return escaped{&printers.JSONPrinter{}}
	case "yaml":
		return &printers.YAMLPrinter{}
	}
	return nil
}

// escaped prints JSON that a terminal shows as it is, and that a program reads as it was.
type escaped struct{ *printers.JSONPrinter }

// PrintObj is for printers.ResourcePrinter.
func (e escaped) PrintObj(o runtime.Object, out io.Writer) error {
	return e.JSONPrinter.PrintObj(o, plain.JSON(out))
}

// maxLine is how much is shown of a value, or of a line of words, in bytes.
const maxLine = 1024

// line makes a text one printable line.
func line(said string) string { return plain.Line(said, maxLine) }

// table is aligned text, in which each cell is one line.
type table struct {
	w interface {
		io.Writer
		Flush() error
	}
}

func newTable(out io.Writer) *table { return &table{w: printers.GetNewTabWriter(out)} }

func (t *table) row(cells ...string) {
	for i, c := range cells {
		if cells[i] = line(c); c == "" {
			cells[i] = "-"
		}
	}
	_, _ = io.WriteString(t.w, strings.Join(cells, "\t")+"\n")
}

// moment formats a time, with seconds only if there are any.
func moment(t time.Time) string {
	switch t = t.UTC(); {
	case t.IsZero():
		return ""
	case t.Second() == 0:
		return t.Format("2006-01-02 15:04 MST")
	}
	return t.Format("2006-01-02 15:04:05 MST")
}

// age formats how long ago a time was.
func age(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(now.Sub(t), 0))
}

// coming formats a time that lies ahead.
func coming(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return moment(t) + " (in " + duration.HumanDuration(max(t.Sub(now), 0)) + ")"
}

// warn prints what to know before the rest is believed.
func warn(out io.Writer, notes []string) {
	for _, n := range notes {
		fmt.Fprintf(out, "warning: %s\n", line(n))
	}
}

// printLines prints lines.
func printLines(out io.Writer, lines []string) {
	for _, l := range lines {
		fmt.Fprintln(out, line(l))
	}
}
