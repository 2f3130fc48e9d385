package image

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/controlplane"
)

// dockerfile is what the Dockerfile's last stage says.
type dockerfile struct {
	// text has each instruction on one line.
	text       string
	places     []string
	user       string
	entrypoint []string
	// others are instructions that the image knows nothing of.
	others []string
}

func readDockerfile(t *testing.T) dockerfile {
	t.Helper()
	root, err := controlplane.Root()
	assert.NilError(t, err)
	content, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	assert.NilError(t, err)
	d := dockerfile{text: strings.ReplaceAll(string(content), "\\\n", " ")}
	for _, line := range strings.Split(d.text, "\n") {
		word, rest, _ := strings.Cut(line, " ")
		fields := strings.Fields(rest)
		switch {
		case word == "" || strings.HasPrefix(word, "#"):
		case word == "FROM":
			d = dockerfile{text: d.text}
			if len(fields) == 1 {
				assert.Equal(t, fields[0], "scratch")
			}
		case word == "COPY":
			from, to := fields[:len(fields)-1], fields[len(fields)-1]
			for _, f := range from {
				switch {
				case strings.HasPrefix(f, "--"):
				case strings.HasSuffix(to, "/"):
					d.places = append(d.places, path.Join(to, path.Base(f)))
				default:
					d.places = append(d.places, to)
				}
			}
		case word == "USER":
			d.user = rest
		case word == "ENTRYPOINT":
			assert.NilError(t, json.Unmarshal([]byte(rest), &d.entrypoint))
		default:
			d.others = append(d.others, line)
		}
	}
	return d
}

// Both images hold the same bytes only if they are compiled by the same words.
func TestDockerfileCompilesLikeThis(t *testing.T) {
	want := `go build -trimpath -buildvcs=false -ldflags "` + Build{"$VERSION", "$COMMIT", "$DATE"}.ldflags() + `"`
	got := strings.Join(strings.Fields(readDockerfile(t).text), " ")
	assert.Assert(t, strings.Contains(got, want), want)
}
