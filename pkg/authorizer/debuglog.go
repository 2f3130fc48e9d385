package authorizer

import (
	"io"
	"log"

	"github.com/sirupsen/logrus"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

// debugLog returns a log for net/http's messages about failed handshakes, which any client can cause at will: they are
// logged for debugging only.
func debugLog(l logrus.FieldLogger) *log.Logger { return log.New(debugWriter{l}, "", 0) }

type debugWriter struct{ log logrus.FieldLogger }

var _ io.Writer = debugWriter{}

func (d debugWriter) Write(line []byte) (int, error) {
	d.log.WithField("message", plain.Line(string(line), maxMessage)).Debug("A connection failed")
	return len(line), nil
}
