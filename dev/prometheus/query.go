package prometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/pkg/errors"
)

// Series is one of those that a query found.
type Series struct {
	Labels map[string]string
	// Values are in the order of time, one for an instant query. A native histogram has its count of observations here.
	Values []float64
	// Native: the values are of native histograms.
	Native bool
}

// Alert is a pending or firing one.
type Alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	State       string            `json:"state"`
}

// Name is the alert's.
func (a Alert) Name() string { return a.Labels["alertname"] }

// Query asks for an expression as it is now.
func (p *Prometheus) Query(ctx context.Context, expr string) ([]Series, error) {
	return p.query(ctx, "query", url.Values{"query": {expr}})
}

// QueryRange asks for an expression from one moment to another, in steps.
func (p *Prometheus) QueryRange(ctx context.Context, expr string, from, to time.Time, step time.Duration) ([]Series, error) {
	at := func(t time.Time) []string { return []string{t.Format(time.RFC3339Nano)} }
	return p.query(ctx, "query_range", url.Values{"query": {expr}, "start": at(from), "end": at(to), "step": {fmt.Sprint(step.Seconds())}})
}

// Value asks for an expression that has one value; 0 if it has none.
func (p *Prometheus) Value(ctx context.Context, expr string) (float64, error) {
	found, err := p.Query(ctx, expr)
	switch {
	case err != nil || len(found) == 0:
		return 0, err
	case len(found) > 1:
		return 0, errors.Errorf("%s has %d values", expr, len(found))
	}
	return found[0].Values[0], nil
}

// Alerts returns those that are pending or firing.
func (p *Prometheus) Alerts(ctx context.Context) ([]Alert, error) {
	var answer struct{ Alerts []Alert }
	err := p.get(ctx, "alerts", nil, &answer)
	return answer.Alerts, err
}

// Rule is one that is evaluated.
type Rule struct {
	Name string `json:"name"`
	// Health is ok once it was evaluated, err with LastError if it can't be, and unknown before.
	Health    string `json:"health"`
	LastError string `json:"lastError"`
}

// Rules returns all that are loaded.
func (p *Prometheus) Rules(ctx context.Context) ([]Rule, error) {
	var answer struct{ Groups []struct{ Rules []Rule } }
	if err := p.get(ctx, "rules", nil, &answer); err != nil {
		return nil, err
	}
	var out []Rule
	for _, g := range answer.Groups {
		out = append(out, g.Rules...)
	}
	return out, nil
}

func (p *Prometheus) query(ctx context.Context, what string, values url.Values) ([]Series, error) {
	var answer struct {
		ResultType string
		Result     json.RawMessage
	}
	if err := p.get(ctx, what, values, &answer); err != nil {
		return nil, errors.WithMessage(err, values.Get("query"))
	}
	if answer.ResultType == "scalar" {
		var v point
		if err := json.Unmarshal(answer.Result, &v); err != nil {
			return nil, errors.Wrap(err, "reading an answer of Prometheus")
		}
		return []Series{{Values: []float64{float64(v)}}}, nil
	}
	var found []struct {
		Metric     map[string]string
		Value      *point
		Values     []point
		Histogram  *observations
		Histograms []observations
	}
	if err := json.Unmarshal(answer.Result, &found); err != nil {
		return nil, errors.Wrap(err, "reading an answer of Prometheus")
	}
	var out []Series
	for _, f := range found {
		s := Series{Labels: f.Metric, Native: f.Histogram != nil || len(f.Histograms) > 0}
		if f.Value != nil {
			f.Values = append(f.Values, *f.Value)
		}
		if f.Histogram != nil {
			f.Histograms = append(f.Histograms, *f.Histogram)
		}
		for _, v := range f.Values {
			s.Values = append(s.Values, float64(v))
		}
		for _, h := range f.Histograms {
			s.Values = append(s.Values, float64(h))
		}
		out = append(out, s)
	}
	return out, nil
}

// get asks the API and reads the data of its answer.
func (p *Prometheus) get(ctx context.Context, what string, values url.Values, data any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL()+"/api/v1/"+what+"?"+values.Encode(), nil)
	if err != nil {
		return errors.Wrap(err, "asking Prometheus")
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return errors.Wrap(err, "asking Prometheus")
	}
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return errors.Wrap(err, "reading an answer of Prometheus")
	}
	if answer.Status != "success" {
		return errors.Errorf("prometheus refuses: %s", answer.Error)
	}
	return errors.Wrap(json.Unmarshal(answer.Data, data), "reading an answer of Prometheus")
}

// point is the value of a pair of a time and a value as text.
type point float64

// UnmarshalJSON implements json.Unmarshaler.
func (v *point) UnmarshalJSON(text []byte) error {
	var value string
	if err := json.Unmarshal(text, &[]any{new(float64), &value}); err != nil {
		return errors.Wrap(err, "reading a value")
	}
	f, err := strconv.ParseFloat(value, 64)
	*v = point(f)
	return errors.Wrap(err, "reading a value")
}

// observations is the count of a native histogram, of a pair with its time.
type observations float64

// UnmarshalJSON implements json.Unmarshaler.
func (v *observations) UnmarshalJSON(text []byte) error {
	var histogram struct{ Count string }
	if err := json.Unmarshal(text, &[]any{new(float64), &histogram}); err != nil {
		return errors.Wrap(err, "reading a native histogram")
	}
	f, err := strconv.ParseFloat(histogram.Count, 64)
	*v = observations(f)
	return errors.Wrap(err, "reading a native histogram")
}
