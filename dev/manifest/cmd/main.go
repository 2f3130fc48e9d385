// Command cmd prints update-operator.yaml with another image and, if asked, with patches: what
// `make deploy-dev` applies.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/manifest"
)

func main() {
	image := flag.String("image", "", "image of all containers (default: as it stands)")
	patch := flag.String("patch", "", "file with strategic merge patches")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "render: %q is not a flag\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := render(*image, *patch, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "render: %v\n", err)
		os.Exit(1)
	}
}

func render(image, patch string, out io.Writer) error {
	o, err := manifest.Load()
	if err != nil {
		return err
	}
	if patch != "" {
		content, err := os.ReadFile(patch)
		if err != nil {
			return errors.Wrap(err, "reading the patches")
		}
		if o, err = o.Patched(content); err != nil {
			return errors.WithMessage(err, patch)
		}
	}
	if image != "" {
		o.SetImage(image)
	}
	y, err := o.YAML()
	if err != nil {
		return err
	}
	_, err = out.Write(y)
	return errors.Wrap(err, "printing the manifest")
}
