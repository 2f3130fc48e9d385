package controller

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/file"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/telemetry"
)

// fixed answers every request for a plan with the same one.
type fixed struct {
	out plan.Plan
	err error
}

func (f fixed) Plan(context.Context) (plan.Plan, error) { return f.out, f.err }

// PlanBy plans by no policy that has a mistake.
func (f fixed) PlanBy(_ context.Context, content []byte) (plan.Plan, error) {
	if _, err := file.Decode(content, policy.DefaultSettings(), time.LoadLocation); err != nil {
		return plan.Plan{}, err
	}
	return f.out, f.err
}

// A policy file is planned by, or all its mistakes are the answer; more than any policy is not read.
func TestPlanHandler(t *testing.T) {
	h := PlanHandler(fixed{plan.Plan{Policy: "this"}, nil})
	for _, tc := range []struct {
		name, method, path, body string
		status                   int
		says                     string
	}{
		{"in force", http.MethodGet, "/plan?format=json", "", http.StatusOK, `"policy": "this"`},
		{"a file", http.MethodPost, "/plan?format=json", "version: 1\n", http.StatusOK, `"policy": "this"`},
		{"mistakes", http.MethodPost, "/plan", "version: 1\nmaxUnavailabel: 3\nsoak: 5\n", http.StatusUnprocessableEntity,
			"line 2: there is no field maxUnavailabel: the nearest is maxUnavailable\nline 3: soak \"5\" is no duration: give one such as 90s, 30m or 4h\n"},
		{"mistakes in JSON", http.MethodPost, "/plan?format=json", "version: 1\nsoka: 3\n", http.StatusUnprocessableEntity,
			"{\n  \"problems\": [\n    \"line 2: there is no field soka: the nearest is soak\"\n  ]\n}\n"},
		{"no file", http.MethodPost, "/plan?format=json", "", http.StatusUnprocessableEntity, "the policy is empty: "},
		{"too long", http.MethodPost, "/plan?format=json", strings.Repeat("#", telemetry.MaxBody+1), http.StatusRequestEntityTooLarge, "too large"},
		{"another verb", http.MethodPut, "/plan?format=json", "version: 1\n", http.StatusMethodNotAllowed, "only GET, and POST of a policy file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(tc.method, tc.path, strings.NewReader(tc.body)))
			assert.Equal(t, w.Code, tc.status)
			assert.Assert(t, strings.Contains(w.Body.String(), tc.says), w.Body.String())
		})
	}
}
