package telemetry

import (
	"flag"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// variables begins the name of every environment variable that sets a flag.
const variables = "UPDATE_OPERATOR_"

// FlagsInEnvironment says so in the help of a command.
const FlagsInEnvironment = "Each flag can be set in the environment too, -log-level by " + variables + "LOG_LEVEL; the command line wins."

// Variable returns the environment variable that sets a flag: -log-level is UPDATE_OPERATOR_LOG_LEVEL. It is the same
// rule for every flag of every command, so that none has to be looked up.
func Variable(flag string) string {
	return variables + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// Environment are the flags that took their values from the environment, by their names.
type Environment []string

// ParseFlags parses args, and sets each flag that they don't give from its variable, unless that is empty. Variables of
// no flag mean nothing: Kubernetes itself sets some that begin alike, for the Service update-operator-proxy.
func ParseFlags(fs *flag.FlagSet, args []string, getenv func(string) string) (Environment, error) {
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	var given, taken []string
	var wrong error
	fs.Visit(func(f *flag.Flag) { given = append(given, f.Name) })
	fs.VisitAll(func(f *flag.Flag) {
		value := getenv(Variable(f.Name))
		if value == "" || wrong != nil || slices.Contains(given, f.Name) {
			return
		}
		taken = append(taken, f.Name)
		if fs.Set(f.Name, value) != nil {
			wrong = BadVariable(f.Name, value, f.DefValue)
		}
	})
	return taken, wrong
}

// BadVariable returns the error of a value that its flag can't have, with one that it can.
func BadVariable(flag, value, good string) error {
	return errors.Errorf("%s is %q in the environment: give what flag -%s takes, like %q, or unset it", Variable(flag), value, flag, good)
}

// Explain adds to an error which of the flags in it were set by variables: what names a flag alone would be looked for
// on the command line.
func (e Environment) Explain(err error) error {
	if err == nil {
		return nil
	}
	named := strings.FieldsFunc(err.Error(), func(r rune) bool { return strings.ContainsRune(" :,;()", r) })
	var set []string
	for _, name := range e {
		if slices.Contains(named, "-"+name) {
			set = append(set, "-"+name+" is set by "+Variable(name)+" in the environment")
		}
	}
	if len(set) == 0 {
		return err
	}
	return errors.Errorf("%v (%s)", err, strings.Join(set, ", "))
}
