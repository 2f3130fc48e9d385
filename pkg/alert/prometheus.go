package alert

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plain"
)

const (
	// timeout bounds one question.
	timeout = 10 * time.Second
	// maxAnswer is far above what thousands of alerts take.
	maxAnswer = 16 << 20
	// maxWords is how much people read of an error, a warning or an alert's name, in bytes.
	maxWords = 200
)

// Prometheus asks by HTTP.
type Prometheus struct{ Client *http.Client }

// answer is what both requests have in common, as far as anybody looks.
type answer struct {
	Status string `json:"status"`
	Error  string `json:"error"`
	// Warnings say what is missing in an answer that is given all the same, for example by Thanos without one of its stores.
	Warnings []string `json:"warnings"`
	Data     *struct {
		// Alerts are the answer to the question for alerts.
		Alerts []struct {
			Labels map[string]string `json:"labels"`
			State  string            `json:"state"`
		} `json:"alerts"`
		// ResultType and Result are the answer to a query.
		ResultType string `json:"resultType"`
		Result     []struct {
			Metric map[string]string `json:"metric"`
		} `json:"result"`
	} `json:"data"`
}

// Ask returns the alerts that stand in the Prometheus at base; or, with a query, what that finds: each of its series is
// an alert that fires.
func (p Prometheus) Ask(ctx context.Context, base, query string) ([]fleet.Alert, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	at := strings.TrimSuffix(base, "/") + "/api/v1/alerts"
	if query != "" {
		at = strings.TrimSuffix(base, "/") + "/api/v1/query?" + url.Values{"query": {query}}.Encode()
	}
	a, err := p.get(ctx, at)
	if err != nil {
		return nil, err
	}
	var found []fleet.Alert
	if query == "" {
		if a.Data.Alerts == nil {
			return nil, errors.New("the answer holds no list of alerts")
		}
		for _, one := range a.Data.Alerts {
			found = append(found, fleet.Alert{Name: named(one.Labels), Pending: one.State == "pending"})
		}
	} else {
		if a.Data.ResultType != "vector" || a.Data.Result == nil {
			return nil, errors.Errorf("the query gives a %s: let it give a vector", cmp.Or(words(a.Data.ResultType), "result of no type"))
		}
		for _, one := range a.Data.Result {
			found = append(found, fleet.Alert{Name: named(one.Metric)})
		}
	}
	slices.SortFunc(found, func(a, b fleet.Alert) int { return cmp.Compare(a.Name, b.Name) })
	return found, nil
}

func (p Prometheus) get(ctx context.Context, at string) (*answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, errors.Wrap(err, "asking for alerts")
	}
	resp, err := p.Client.Do(req)
	if err != nil {
		return nil, errors.Wrap(err, "asking for alerts")
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, errors.Wrap(err, "reading the alerts")
	case len(body) > maxAnswer:
		return nil, errors.Errorf("the answer is longer than %d bytes", maxAnswer)
	}
	var a answer
	err = json.Unmarshal(body, &a)
	switch {
	case err == nil && a.Error != "":
		return nil, errors.New(words(resp.Status + ": " + a.Error))
	case resp.StatusCode != http.StatusOK:
		return nil, errors.Errorf("the answer is %s", words(resp.Status))
	case err != nil:
		return nil, errors.Errorf("reading the alerts: %s", words(err.Error()))
	case a.Status != "success" || a.Data == nil:
		return nil, errors.Errorf("the answer is no success: %q", words(a.Status))
	case len(a.Warnings) > 0:
		return nil, errors.Errorf("the answer may not be whole, it comes with the warning %q", words(a.Warnings[0]))
	}
	return &a, nil
}

// words is what Prometheus says, in one line.
func words(said string) string { return plain.Line(said, maxWords) }

// named is an alert's name, or all its labels if it has none.
func named(labels map[string]string) string {
	if name := labels["alertname"]; name != "" {
		return words(name)
	}
	var pairs []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, fmt.Sprintf("%s=%q", k, labels[k]))
	}
	return words("{" + strings.Join(pairs, ", ") + "}")
}
