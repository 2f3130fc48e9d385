package marker

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"unicode"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

// extra holds the fields of a JSON object that this build doesn't know.
type extra map[string]json.RawMessage

// unmarshal decodes one JSON object and returns the fields that into's type doesn't have. Names count
// exactly: encoding/json would take "Since" for "since" too, and it would then stand there twice.
func unmarshal(value []byte, into any) (extra, error) {
	var all extra
	if err := json.Unmarshal(value, &all); err != nil {
		return nil, err
	}
	if all == nil {
		return nil, errors.New("is not a JSON object")
	}
	known, t := extra{}, reflect.TypeOf(into).Elem()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if field, ok := all[name]; ok && name != "" {
			known[name] = field
			delete(all, name)
		}
	}
	if len(all) == 0 {
		return nil, json.Unmarshal(value, into)
	}
	exact, err := json.Marshal(known)
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(exact, into)
}

// marshal encodes v's fields in their order, then the unknown ones in the order of their names, as one line that can be
// printed: admission refuses others. The types given to it always encode, so a failure is a programming error.
func marshal(v any, unknown extra) string {
	out, err := json.Marshal(v)
	if err != nil {
		panic("marker: " + err.Error())
	}
	if len(unknown) == 0 {
		return printable(string(out))
	}
	rest, err := json.Marshal(unknown)
	if err != nil {
		panic("marker: " + err.Error())
	}
	return printable(strings.TrimSuffix(string(out), "}") + "," + strings.TrimPrefix(string(rest), "{"))
}

// printable escapes what can't be printed.
func printable(encoded string) string {
	if !strings.ContainsFunc(encoded, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return encoded
	}
	var out strings.Builder
	if _, err := plain.JSON(&out).Write([]byte(encoded)); err != nil {
		panic("marker: " + err.Error())
	}
	return out.String()
}
