package dist

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"strings"

	"github.com/pkg/errors"
)

// sumsFile has the checksums of all others.
const sumsFile = "SHA256SUMS"

func sha256Of(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// sums returns the checksums of all files of a folder in their order, as sha256sum prints and checks them.
func sums(folder fs.FS) (string, error) {
	files, err := entriesOf(folder, "", modeFile)
	var out strings.Builder
	for _, f := range files {
		if f.name != sumsFile {
			out.WriteString(sha256Of(f.content) + "  " + f.name + "\n")
		}
	}
	return out.String(), errors.WithMessage(err, "computing checksums")
}
