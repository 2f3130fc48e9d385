package controller

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/file"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// maxProblem is how much is shown of why there is no plan, in bytes.
const maxProblem = 1024

// Planner makes the plans that are served; *Controller is one.
type Planner interface {
	Plan(ctx context.Context) (plan.Plan, error)
	PlanBy(ctx context.Context, content []byte) (plan.Plan, error)
}

// Refusal is why there is no plan, in JSON: the mistakes of a policy file, or one problem.
type Refusal struct {
	Problems []string `json:"problems"`
}

// PlanHandler serves /plan: the plan by what is in force to GET, and that by the policy file in the body to POST. It is
// text, or JSON with ?format=json or Accept: application/json, both without a character that a terminal obeys. All
// mistakes of a file are answered with 422. Nothing is written anywhere.
func PlanHandler(p Planner) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var out plan.Plan
		var err error
		switch r.Method {
		case http.MethodGet:
			out, err = p.Plan(r.Context())
		case http.MethodPost:
			var content []byte
			if content, err = io.ReadAll(http.MaxBytesReader(w, r.Body, telemetry.MaxBody)); err != nil {
				refuse(w, r, http.StatusRequestEntityTooLarge, "reading the policy file: "+err.Error())
				return
			}
			out, err = p.PlanBy(r.Context(), content)
		default:
			refuse(w, r, http.StatusMethodNotAllowed, "only GET, and POST of a policy file")
			return
		}
		switch mistakes := (file.Mistakes)(nil); {
		case errors.As(err, &mistakes):
			refuse(w, r, http.StatusUnprocessableEntity, file.Lines(err)...)
		case err != nil:
			refuse(w, r, http.StatusServiceUnavailable, err.Error())
		case wantsJSON(r):
			writeJSON(w, http.StatusOK, out)
		default:
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = io.WriteString(plain.Text(w), out.String())
		}
	})
}

func wantsJSON(r *http.Request) bool {
	return r.URL.Query().Get("format") == "json" || strings.Contains(r.Header.Get("Accept"), "application/json")
}

func refuse(w http.ResponseWriter, r *http.Request, status int, problems ...string) {
	for i := range problems {
		problems[i] = plain.Line(problems[i], maxProblem)
	}
	if wantsJSON(r) {
		writeJSON(w, status, Refusal{problems})
		return
	}
	http.Error(w, strings.Join(problems, "\n"), status)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = plain.JSON(w).Write(append(body, '\n'))
}
