package controller

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// maxProblem is how much is shown of why there is no plan, in bytes.
const maxProblem = 1024

// PlanHandler serves GET /plan: text, or JSON with ?format=json or Accept: application/json, both without a character
// that a terminal obeys. It writes nothing anywhere.
func PlanHandler(plan func(context.Context) (plan.Plan, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			http.Error(w, "only GET", http.StatusMethodNotAllowed)
			return
		}
		out, err := plan(r.Context())
		if err != nil {
			http.Error(w, plain.Line(err.Error(), maxProblem), http.StatusServiceUnavailable)
			return
		}
		if r.URL.Query().Get("format") == "json" || strings.Contains(r.Header.Get("Accept"), "application/json") {
			w.Header().Set("Content-Type", "application/json")
			body, err := json.MarshalIndent(out, "", "  ")
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			_, _ = plain.JSON(w).Write(append(body, '\n'))
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(plain.Text(w), out.String())
	})
}
