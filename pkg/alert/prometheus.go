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
	// timeout bounds one request.
	timeout = 10 * time.Second
	// maxAnswer is far above the size of thousands of alerts.
	maxAnswer = 16 << 20
	// maxText limits an error, a warning or an alert's name in messages, in bytes.
	maxText = 200
)

// Prometheus is a client of Prometheus' HTTP API.
type Prometheus struct{ Client *http.Client }

// answer is the part of both requests' answers that is read.
type answer struct {
	Status string `json:"status"`
	Error  string `json:"error"`
	// Warnings name what an incomplete answer lacks, for example that of Thanos without one of its stores.
	Warnings []string `json:"warnings"`
	Data     *struct {
		// Alerts answers a request for alerts.
		Alerts []struct {
			Labels map[string]string `json:"labels"`
			State  string            `json:"state"`
		} `json:"alerts"`
		// ResultType and Result answer a query.
		ResultType string `json:"resultType"`
		Result     []struct {
			Metric map[string]string `json:"metric"`
		} `json:"result"`
	} `json:"data"`
}

// Ask returns the pending and firing alerts of the Prometheus at the URL base, sorted by name. With a query, each
// series of its result is a firing alert.
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
			return nil, errors.New("the answer has no list of alerts")
		}
		for _, one := range a.Data.Alerts {
			found = append(found, fleet.Alert{Name: nameOf(one.Labels), Pending: one.State == "pending"})
		}
	} else {
		if a.Data.ResultType != "vector" || a.Data.Result == nil {
			return nil, errors.Errorf("the query returns a %s: write one that returns a vector",
				cmp.Or(line(a.Data.ResultType), "result without a type"))
		}
		for _, one := range a.Data.Result {
			found = append(found, fleet.Alert{Name: nameOf(one.Metric)})
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
		return nil, errors.New(line(resp.Status + ": " + a.Error))
	case resp.StatusCode != http.StatusOK:
		return nil, errors.Errorf("the answer is %s", line(resp.Status))
	case err != nil:
		return nil, errors.Errorf("reading the alerts: %s", line(err.Error()))
	case a.Status != "success" || a.Data == nil:
		return nil, errors.Errorf("the answer is no success: %q", line(a.Status))
	case len(a.Warnings) > 0:
		return nil, errors.Errorf("the answer may be incomplete, it has the warning %q", line(a.Warnings[0]))
	}
	return &a, nil
}

// line returns a text of Prometheus as one short line.
func line(text string) string { return plain.Line(text, maxText) }

// nameOf returns an alert's name, or all its labels if it has none.
func nameOf(labels map[string]string) string {
	if name := labels["alertname"]; name != "" {
		return line(name)
	}
	var pairs []string
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, fmt.Sprintf("%s=%q", k, labels[k]))
	}
	return line("{" + strings.Join(pairs, ", ") + "}")
}
