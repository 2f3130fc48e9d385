package alert_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/alert"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
)

// What a Prometheus says is read as it is meant, and what isn't a whole answer is an error (S8).
func TestAsk(t *testing.T) {
	for _, tc := range []struct {
		name, query string
		status      int
		body        string
		want        []fleet.Alert
		err         string
	}{
		{"none", "", 200, `{"status":"success","data":{"alerts":[]}}`, nil, ""},
		{"some", "", 200, `{"status":"success","data":{"alerts":[
			{"labels":{"alertname":"Watchdog","severity":"none"},"annotations":{},"state":"firing","activeAt":"2026-01-01T00:00:00Z","value":"1e+00"},
			{"labels":{"alertname":"NodeDown"},"state":"pending"}]}}`, []fleet.Alert{{Name: "NodeDown", Pending: true}, {Name: "Watchdog"}}, ""},
		{"one without a name", "", 200, `{"status":"success","data":{"alerts":[{"labels":{"b":"2","a":"1"},"state":"firing"}]}}`, []fleet.Alert{{Name: `{a="1", b="2"}`}}, ""},
		{"an unknown state counts", "", 200, `{"status":"success","data":{"alerts":[{"labels":{"alertname":"A"},"state":"smouldering"}]}}`, []fleet.Alert{{Name: "A"}}, ""},
		{"a query that finds nothing", "up == 0", 200, `{"status":"success","data":{"resultType":"vector","result":[]}}`, nil, ""},
		{"a query that finds something", "up == 0", 200, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"job":"etcd"},"value":[1,"0"]}]}}`, []fleet.Alert{{Name: `{job="etcd"}`}}, ""},
		{"a query that gives no vector", "1", 200, `{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`, nil, "reading the alerts"},
		{"a mistake in the query", "up ==", 400, `{"status":"error","errorType":"bad_data","error":"parse error"}`, nil, "400 Bad Request: parse error"},
		{"a query that not all have answered", "up == 0", 200, `{"status":"success","data":{"resultType":"vector","result":[]},"warnings":["partial response: no store"]}`, nil,
			`the warning "partial response: no store"`},
		{"alerts that not all have told", "", 200, `{"status":"success","data":{"alerts":[]},"warnings":["partial response: no rule","no other"]}`, nil, `the warning "partial response: no rule"`},
		{"a long warning", "", 200, `{"status":"success","data":{"alerts":[]},"warnings":["` + strings.Repeat("x", 1000) + `"]}`, nil, `warning "` + strings.Repeat("x", 197) + "..." + `"`},
		{"no warning, but a remark", "up == 0", 200, `{"status":"success","data":{"resultType":"vector","result":[]},"warnings":[],"infos":["PromQL info: metric might not be a counter"]}`, nil, ""},
		{"no list", "", 200, `{"status":"success","data":{}}`, nil, "has no list of alerts"},
		{"no data", "", 200, `{"status":"success"}`, nil, "no success"},
		{"an error", "", 200, `{"status":"error"}`, nil, "no success"},
		{"something else", "", 200, `<html>`, nil, "reading the alerts"},
		{"half of it", "", 200, `{"status":"success","data":{"alerts":[`, nil, "reading the alerts"},
		{"a server that is ill", "", 503, ``, nil, "503"},
		{"a server that is ill, with alerts", "", 500, `{"status":"success","data":{"alerts":[]}}`, nil, "500"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				want := "/prefix/api/v1/alerts"
				if tc.query != "" {
					want = "/prefix/api/v1/query"
				}
				if r.URL.Path != want || r.URL.Query().Get("query") != tc.query {
					w.WriteHeader(http.StatusNotFound)
					return
				}
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.body))
			}))
			defer server.Close()
			got, err := alert.Prometheus{Client: server.Client()}.Ask(t.Context(), server.URL+"/prefix/", tc.query)
			if tc.err != "" {
				assert.ErrorContains(t, err, tc.err)
				return
			}
			assert.NilError(t, err)
			assert.DeepEqual(t, got, tc.want)
		})
	}
	t.Run("no server", func(t *testing.T) {
		server := httptest.NewServer(nil)
		server.Close()
		_, err := alert.Prometheus{Client: http.DefaultClient}.Ask(t.Context(), server.URL, "")
		assert.ErrorContains(t, err, "asking for alerts")
	})
}
