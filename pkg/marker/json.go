package marker

import (
	"encoding/json"
	"reflect"
	"strings"
)

// extra holds the fields of a JSON object that this build doesn't know.
type extra map[string]json.RawMessage

// unmarshal decodes one JSON object and returns the fields that into's type doesn't have.
func unmarshal(value string, into any) (extra, error) {
	if err := json.Unmarshal([]byte(value), into); err != nil {
		return nil, err
	}
	var unknown extra
	if err := json.Unmarshal([]byte(value), &unknown); err != nil {
		return nil, err
	}
	t := reflect.TypeOf(into).Elem()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		delete(unknown, name)
	}
	if len(unknown) == 0 {
		return nil, nil
	}
	return unknown, nil
}

// marshal encodes v's fields in their order, then the unknown ones in the order of their names. The
// types given to it always encode, so a failure is a programming error.
func marshal(v any, unknown extra) string {
	out, err := json.Marshal(v)
	if err != nil {
		panic("marker: " + err.Error())
	}
	if len(unknown) == 0 {
		return string(out)
	}
	rest, err := json.Marshal(unknown)
	if err != nil {
		panic("marker: " + err.Error())
	}
	return strings.TrimSuffix(string(out), "}") + "," + strings.TrimPrefix(string(rest), "{")
}
