package telemetry

import (
	"bytes"
	"fmt"
	"io"

	"github.com/sirupsen/logrus"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

// maxWords is how much of a message or a field stands in a log line, in bytes, and maxName how much of a field's name.
const maxWords, maxName = 1024, 128

// plainly writes log lines in which nothing but the newline at the end is no printable character: what is logged quotes
// nodes, hosts and the API server.
type plainly struct {
	in logrus.Formatter
	// out is the way out of the format.
	out func(io.Writer) io.Writer
}

// Format is for logrus.Formatter.
func (p plainly) Format(e *logrus.Entry) ([]byte, error) {
	shown := *e
	shown.Message = plain.Line(e.Message, maxWords)
	shown.Data = make(logrus.Fields, len(e.Data))
	for name, value := range e.Data {
		shown.Data[plain.Line(name, maxName)] = words(value)
	}
	line, err := p.in.Format(&shown)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	_, err = p.out(&out).Write(line)
	return out.Bytes(), err
}

// words is a field's value, of its own type if its text is one short line.
func words(value any) any {
	text := fmt.Sprint(value)
	if line := plain.Line(text, maxWords); line != text {
		return line
	}
	return value
}
