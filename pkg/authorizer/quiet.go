package authorizer

import (
	"io"
	"log"
	"strings"

	"github.com/sirupsen/logrus"
)

// quiet keeps net/http's words on failed handshakes, which strangers and probes cause at will, out of
// the log unless somebody looks for them.
func quiet(l logrus.FieldLogger) *log.Logger { return log.New(debugWriter{l}, "", 0) }

type debugWriter struct{ log logrus.FieldLogger }

var _ io.Writer = debugWriter{}

func (d debugWriter) Write(line []byte) (int, error) {
	d.log.WithField("message", shown(strings.TrimSpace(string(line)), maxMessage)).Debug("A connection failed")
	return len(line), nil
}
