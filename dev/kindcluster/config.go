package kindcluster

import (
	"bytes"
	"embed"
	"text/template"
	"time"

	"github.com/pkg/errors"
)

//go:embed etc
var etc embed.FS

// kindConfig is the cluster's configuration for kind, with a worker for each folder.
func kindConfig(folders []string, grace time.Duration) ([]byte, error) {
	t, err := template.ParseFS(etc, "etc/cluster.yaml")
	if err != nil {
		return nil, errors.Wrap(err, "reading cluster.yaml")
	}
	var b bytes.Buffer
	err = t.Execute(&b, struct {
		Folders     []string
		GracePeriod time.Duration
	}{folders, grace})
	return b.Bytes(), errors.Wrap(err, "filling cluster.yaml")
}
