package telemetry

import (
	"flag"
	"io"
	"net"

	"github.com/pkg/errors"
	"github.com/sirupsen/logrus"
)

// Options are the flags that every loop has.
type Options struct {
	// ListenAddress serves metrics, probes and a loop's further paths. Default :8080.
	ListenAddress string
	// LogLevel is one of Levels, LogFormat one of Formats. Defaults info and text.
	LogLevel, LogFormat string
}

// DefaultOptions returns the defaults.
func DefaultOptions() Options {
	return Options{ListenAddress: ":8080", LogLevel: "info", LogFormat: FormatText}
}

// AddFlags binds the options to fs; serves names what is served on the address, for the help text.
func (o *Options) AddFlags(fs *flag.FlagSet, serves string) {
	fs.StringVar(&o.ListenAddress, "listen", o.ListenAddress, "address for "+serves)
	fs.StringVar(&o.LogLevel, "log-level", o.LogLevel, "one of: "+Levels)
	fs.StringVar(&o.LogFormat, "log-format", o.LogFormat, "one of: "+Formats)
}

// Validate returns the first mistake, with the remedy.
func (o Options) Validate() error {
	if o.ListenAddress == "" {
		return errors.New("flag -listen is empty: give an address like :8080")
	}
	if _, port, err := net.SplitHostPort(o.ListenAddress); err != nil || port == "" {
		return errors.Errorf("flag -listen is %q: give HOST:PORT, or :PORT for all addresses", o.ListenAddress)
	}
	_, err := NewLogger(io.Discard, o.LogLevel, o.LogFormat)
	return errors.WithMessage(err, "flags -log-level and -log-format")
}

// Logger returns the logger of valid options, and redirects what client-go logs to it.
func (o Options) Logger(out io.Writer) (*logrus.Logger, error) {
	log, err := NewLogger(out, o.LogLevel, o.LogFormat)
	if err == nil {
		RedirectKlog(log)
	}
	return log, err
}
