package plugin

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

// top is the folder in the archive.
const top = "bottlerocket-support/"

// archive returns the files, in the order of their names and with an index, as a compressed archive.
func (b *bundle) archive(made time.Time) ([]byte, error) {
	slices.Sort(b.unread)
	unread := "All was read.\n"
	if len(b.unread) > 0 {
		unread = strings.Join(b.unread, "\n") + "\n"
	}
	b.text("unread.txt", "what could not be read, and why", []byte(unread))
	b.text("README.txt", "this text", []byte(b.index(made)))
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for _, path := range slices.Sorted(maps.Keys(b.files)) {
		body, err := printable(path, b.files[path])
		if err != nil {
			return nil, err
		}
		header := &tar.Header{Name: top + path, Mode: 0o600, Size: int64(len(body)),
			ModTime: made.Truncate(time.Second),
			Format:  tar.FormatPAX}
		if err := archive.WriteHeader(header); err != nil {
			return nil, errors.Wrap(err, "making the archive")
		}
		if _, err := archive.Write(body); err != nil {
			return nil, errors.Wrap(err, "making the archive")
		}
	}
	if err := archive.Close(); err != nil {
		return nil, errors.Wrap(err, "making the archive")
	}
	err := zipped.Close()
	return out.Bytes(), errors.Wrap(err, "making the archive")
}

// printable returns a file as a terminal may show it: a log may hold anything.
func printable(path string, body []byte) ([]byte, error) {
	var out bytes.Buffer
	to := plain.Text(&out)
	if strings.HasSuffix(path, ".json") {
		to = plain.JSON(&out)
	}
	_, err := to.Write(body)
	return out.Bytes(), errors.Wrap(err, "making the archive")
}

// index is the README.txt of an archive.
func (b *bundle) index(made time.Time) string {
	b.about["README.txt"] = "this text"
	var s strings.Builder
	fmt.Fprintf(&s, `What kubectl bottlerocket support-bundle read of the namespace %s and its nodes at %s.

Left out, where something is left out it says %s:
- all data of Secrets: their names alone were asked for
- values of annotations that aren't the operator's or autoscalers', managedFields
- values of environment variables that the manifest doesn't have, and command lines of containers that aren't its own
- in every text: private keys, tokens, passwords, and of addresses the user, the query, and parts that may be a key
- keys of ConfigMaps that aren't the operator's

Here as they are: names of nodes, namespaces, pods and budgets, labels, images, IP addresses, messages of Events.

`, b.namespace, made.UTC().Format(time.RFC3339), leftOut)
	for _, path := range slices.Sorted(maps.Keys(b.about)) {
		fmt.Fprintf(&s, "%-48s %s\n", path, b.about[path])
	}
	return s.String()
}
