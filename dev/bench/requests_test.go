package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"
)

// auditLog is the API server's own record of its requests.
type auditLog struct {
	path string
	from int64
}

// request is a kind of request: "update leases". A watch counts when it begins.
type request string

// mark lets the next count begin here.
func (a *auditLog) mark(b *testing.B) {
	b.Helper()
	info, err := os.Stat(a.path)
	assert.NilError(b, err)
	a.from = info.Size()
}

// count returns what users were answered since the mark, by kind; users are told by their names' end.
func (a *auditLog) count(b *testing.B, user string) map[request]int {
	b.Helper()
	f, err := os.Open(a.path)
	assert.NilError(b, err)
	defer f.Close()
	_, err = f.Seek(a.from, io.SeekStart)
	assert.NilError(b, err)
	out := map[request]int{}
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return out // what has no end yet is being written
		}
		assert.NilError(b, err)
		var e struct {
			Stage, Verb string
			User        struct{ Username string }
			ObjectRef   *struct{ Resource, Subresource string }
			RequestURI  string
		}
		assert.NilError(b, json.Unmarshal(line, &e))
		ends := e.Stage == "ResponseComplete" && e.Verb != "watch"
		if !strings.HasSuffix(e.User.Username, user) || !ends && e.Stage != "ResponseStarted" {
			continue
		}
		what := e.RequestURI
		if e.ObjectRef != nil {
			what = strings.TrimSuffix(e.ObjectRef.Resource+"/"+e.ObjectRef.Subresource, "/")
		}
		out[request(e.Verb+" "+what)]++
	}
}

// reportRequests reports how many requests came in d, and fails where one is of no kind that may be.
func reportRequests(b *testing.B, program string, got map[request]int, d time.Duration, may ...request) {
	b.Helper()
	all := 0
	for _, kind := range slices.Sorted(maps.Keys(got)) {
		all += got[kind]
		if !slices.Contains(may, kind) {
			b.Errorf("%s at rest: %d times %q in %s", program, got[kind], kind, d)
		}
	}
	b.Logf("%s at rest, %s: %s", program, d, kinds(got))
	b.ReportMetric(float64(all)/d.Minutes(), "requests/min")
}

// counted returns what a process of the product counts under one name, by the value of its only label; without
// a label by "".
func counted(b *testing.B, url, name string) map[string]int {
	b.Helper()
	code, text, err := get(b.Context(), url+"/metrics")
	assert.NilError(b, err)
	assert.Equal(b, code, 200)
	out := map[string]int{}
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		labels, value, _ := strings.Cut(rest, " ")
		_, label, _ := strings.Cut(labels, `="`)
		n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		assert.NilError(b, err)
		out[strings.TrimSuffix(label, `"}`)] += int(n)
	}
	return out
}

func kinds(got map[request]int) string {
	if len(got) == 0 {
		return "no request"
	}
	var list []string
	for _, kind := range slices.Sorted(maps.Keys(got)) {
		list = append(list, fmt.Sprintf("%d %s", got[kind], kind))
	}
	return strings.Join(list, ", ")
}
