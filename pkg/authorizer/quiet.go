package authorizer

import (
	"io"
	"log"

	"github.com/sirupsen/logrus"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

// quiet keeps net/http's words on failed handshakes, which strangers and probes cause at will, out of
// the log unless somebody looks for them.
func quiet(l logrus.FieldLogger) *log.Logger { return log.New(debugWriter{l}, "", 0) }

type debugWriter struct{ log logrus.FieldLogger }

var _ io.Writer = debugWriter{}

func (d debugWriter) Write(line []byte) (int, error) {
	d.log.WithField("message", plain.Line(string(line), maxMessage)).Debug("A connection failed")
	return len(line), nil
}
