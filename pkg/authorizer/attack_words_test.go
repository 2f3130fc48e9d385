package authorizer

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode"

	"github.com/sirupsen/logrus"
	"github.com/sirupsen/logrus/hooks/test"
	"golang.org/x/time/rate"
	"gotest.tools/v3/assert"
)

// TestAttackWords holds that what is refused is quoted shortened, and without what a terminal takes for more than a
// sign, wherever it is quoted: in the answer and in the log.
func TestAttackWords(t *testing.T) {
	log, hook := test.NewNullLogger()
	log.SetLevel(logrus.DebugLevel)
	// Every refusal has its line.
	b := newBattlefield(t, func(p *Proxy) {
		p.handler.audit = newAuditor(log, NewMetrics(nil))
		p.handler.audit.rates = newLRUMap[string](func() *logRate { return &logRate{limiter: rate.NewLimiter(rate.Inf, 0)} })
	})
	long := strings.Repeat("a", 3000)
	const odd = "%1b%5b31m%e2%80%ae%c2%9b"
	for _, a := range []attack{
		{name: "a long method", method: strings.Repeat("A", 3000), target: ownPath},
		{name: "a long path", method: "GET", target: "/" + long},
		{name: "an odd path", method: "GET", target: "/" + odd},
		{name: "a long name", method: "GET", target: "/api/v1/nodes/" + long},
		{name: "an odd name", method: "GET", target: "/api/v1/nodes/" + odd},
		{name: "a long parameter", method: "GET", target: ownPath + "?" + long + "=1"},
		{name: "a long type", method: "PATCH", target: ownPath, headers: []string{"Content-Type: " + long}, body: factBody},
		{name: "a long key", method: "PATCH", target: ownPath, body: annotationsPatch(`"` + long + `":"b"`)},
		{name: "an odd key", method: "PATCH", target: ownPath, body: annotationsPatch(`"\u202e\u009b\u001b[31m":"b"`)},
		{name: "a long number", method: "PATCH", target: ownPath, body: `{"metadata":{"resourceVersion":` + strings.Repeat("1", 3000) + `}}`},
		{name: "a number that is none", method: "PATCH", target: ownPath, body: `{"metadata":{"resourceVersion":-` + long + `}}`},
		{name: "a long version", method: "PATCH", target: ownPath, body: annotationsPatch(`"bottlerocket.aws/current-version":"` + strings.Repeat("1", 1000) + `"`)},
		{name: "a long kind", method: "PATCH", target: ownPath, body: `{"kind":"` + strings.Repeat("k", 1000) + `"}`},
	} {
		for _, token := range []string{b.token, "nonsense"} {
			hook.Reset()
			t.Run(a.name, func(t *testing.T) {
				code, answer := b.with(token).sendAttack(t, a)
				assert.Assert(t, code == no || code == http.StatusUnauthorized, "%d %s", code, answer)
				assert.Assert(t, len(answer) < 1500, "%d bytes are answered", len(answer))
				shownWell(t, answer)
				assert.Assert(t, len(hook.AllEntries()) > 0)
				for _, e := range hook.AllEntries() {
					for k, v := range e.Data {
						assert.Assert(t, len(fmt.Sprint(v)) < 500, "%s is %d bytes long", k, len(fmt.Sprint(v)))
						shownWell(t, fmt.Sprint(v))
					}
				}
			})
		}
	}
}

func shownWell(t *testing.T, text string) {
	t.Helper()
	for _, r := range text {
		assert.Assert(t, unicode.IsPrint(r) || r == unicode.ReplacementChar, "%U", r)
	}
}
