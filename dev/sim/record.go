package sim

import (
	"os"
	"strings"

	"github.com/pkg/errors"
)

// Record puts the figures that a search printed into a document, between the lines
// "<!-- figures of WHAT -->" and "<!-- end -->", so that nobody types them.
func Record(path, what, figures string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return errors.Wrap(err, "recording figures")
	}
	mark := "<!-- figures of " + what + " -->\n"
	before, rest, found := strings.Cut(string(text), mark)
	_, after, ends := strings.Cut(rest, "<!-- end -->")
	if !found || !ends {
		return errors.Errorf("recording figures: %s has no place for those of %s", path, what)
	}
	out := before + mark + "```text\n" + strings.TrimRight(figures, "\n") + "\n```\n<!-- end -->" + after
	return errors.Wrap(os.WriteFile(path, []byte(out), 0o644), "recording figures")
}
