package telemetry

import (
	"bytes"
	"fmt"
	"io"

	"github.com/sirupsen/logrus"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

// maxText limits a message or a field's value in a log line, in bytes, and maxName a field's name.
const maxText, maxName = 1024, 128

// printable formats log lines of printable characters and a newline at the end: messages and fields quote text from
// nodes, hosts and the API server.
type printable struct {
	in logrus.Formatter
	// out escapes or replaces what the format leaves unprintable.
	out func(io.Writer) io.Writer
}

// Format implements logrus.Formatter.
func (p printable) Format(e *logrus.Entry) ([]byte, error) {
	shown := *e
	shown.Message = plain.Line(e.Message, maxText)
	shown.Data = make(logrus.Fields, len(e.Data))
	for name, value := range e.Data {
		shown.Data[plain.Line(name, maxName)] = fieldValue(value)
	}
	line, err := p.in.Format(&shown)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	_, err = p.out(&out).Write(line)
	return out.Bytes(), err
}

// fieldValue returns a field's value, with its own type if its text is one short line.
func fieldValue(value any) any {
	text := fmt.Sprint(value)
	if line := plain.Line(text, maxText); line != text {
		return line
	}
	return value
}
