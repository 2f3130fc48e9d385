package controller

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// PlanHandler serves GET /plan: text, or JSON with ?format=json or Accept: application/json. It writes
// nothing anywhere.
func PlanHandler(plan func(context.Context) (policy.Outcome, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			http.Error(w, "only GET", http.StatusMethodNotAllowed)
			return
		}
		out, err := plan(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		if r.URL.Query().Get("format") == "json" || strings.Contains(r.Header.Get("Accept"), "application/json") {
			w.Header().Set("Content-Type", "application/json")
			body, err := json.MarshalIndent(out, "", "  ")
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			_, _ = w.Write(append(body, '\n'))
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, out.String())
	})
}
