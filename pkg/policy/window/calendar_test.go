package window_test

import (
	"cmp"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/window"
)

func TestAt(t *testing.T) {
	at := func(text string) time.Time { return moment(t, text) }
	freeze := func(from, to, reason string) window.Freeze {
		return window.Freeze{From: at(from), To: at(to), Reason: reason}
	}
	night := in(t, "0 22 * * *", 6*time.Hour, "UTC")
	newYear := freeze("2025-12-30T00:00:00Z", "2026-01-02T00:00:00Z", "new year")
	for _, tc := range []struct {
		name    string
		windows []window.Window
		freezes []window.Freeze
		now     string
		want    window.State
	}{
		{"nothing is always open", nil, nil, "2025-06-01T00:00:00Z", window.State{Open: true}},
		{"freezes alone: open up to the next one", nil, []window.Freeze{freeze("2027-01-01T00:00:00Z", "2027-01-02T00:00:00Z", ""), newYear},
			"2025-06-01T00:00:00Z", window.State{Open: true, Ends: newYear.From}},
		{"freezes alone: closed in it", nil, []window.Freeze{newYear},
			"2025-12-30T00:00:00Z", window.State{Cause: window.CauseFrozen, Freeze: newYear, Opens: newYear.To}},
		{"freezes alone: open at its end", nil, []window.Freeze{newYear}, "2026-01-02T00:00:00Z", window.State{Open: true}},
		{"freezes alone: one far away isn't within the horizon", nil, []window.Freeze{newYear}, "1999-01-01T00:00:00Z", window.State{Open: true}},
		{"a freeze at the horizon", nil, []window.Freeze{newYear}, "2023-12-29T00:00:00Z", window.State{Open: true, Ends: newYear.From}},
		{"and one beyond it", nil, []window.Freeze{newYear}, "2023-12-28T23:59:59Z", window.State{Open: true}},
		{"open at the start", []window.Window{night}, nil, "2025-06-01T22:00:00Z", window.State{Open: true, Ends: at("2025-06-02T04:00:00Z")}},
		{"closed at the end", []window.Window{night}, nil, "2025-06-01T04:00:00Z",
			window.State{Cause: window.CauseOutside, Opens: at("2025-06-01T22:00:00Z")}},
		{"a freeze cuts the end", []window.Window{night}, []window.Freeze{newYear}, "2025-12-29T23:00:00Z",
			window.State{Open: true, Ends: newYear.From}},
		{"a freeze wins, and ends within a window", []window.Window{night}, []window.Freeze{newYear}, "2025-12-31T23:00:00Z",
			window.State{Cause: window.CauseFrozen, Freeze: newYear, Opens: newYear.To}},
		{"a freeze ends outside the windows", []window.Window{night}, []window.Freeze{freeze("2025-06-01T00:00:00Z", "2025-06-02T12:00:00Z", "x")},
			"2025-06-01T23:00:00Z", window.State{Cause: window.CauseFrozen,
				Freeze: freeze("2025-06-01T00:00:00Z", "2025-06-02T12:00:00Z", "x"), Opens: at("2025-06-02T22:00:00Z")}},
		{"the next window is frozen", []window.Window{night}, []window.Freeze{freeze("2025-06-01T20:00:00Z", "2025-06-02T10:00:00Z", "")},
			"2025-06-01T12:00:00Z", window.State{Cause: window.CauseOutside, Opens: at("2025-06-02T22:00:00Z")}},
		{"the next window's beginning is frozen", []window.Window{night}, []window.Freeze{freeze("2025-06-01T20:00:00Z", "2025-06-02T01:00:00Z", "")},
			"2025-06-01T12:00:00Z", window.State{Cause: window.CauseOutside, Opens: at("2025-06-02T01:00:00Z")}},
		{"of several freezes the one that ends last", []window.Window{night}, []window.Freeze{
			freeze("2025-06-01T00:00:00Z", "2025-06-02T00:00:00Z", "a"), freeze("2025-06-01T05:00:00Z", "2025-06-03T00:00:00Z", "b"),
			freeze("2025-06-03T00:00:00Z", "2025-06-04T00:00:00Z", "c")},
			"2025-06-01T12:00:00Z", window.State{Cause: window.CauseFrozen,
				Freeze: freeze("2025-06-01T05:00:00Z", "2025-06-03T00:00:00Z", "b"), Opens: at("2025-06-04T00:00:00Z")}},
		{"windows that meet are one", []window.Window{night, in(t, "0 4 * * *", time.Hour, "UTC")}, nil, "2025-06-01T23:00:00Z",
			window.State{Open: true, Ends: at("2025-06-02T05:00:00Z")}},
		{"windows that overlap are one", []window.Window{in(t, "0 3 * * *", 3*time.Hour, "UTC"), night, in(t, "0 5 * * *", time.Hour, "UTC")}, nil,
			"2025-06-01T23:00:00Z", window.State{Open: true, Ends: at("2025-06-02T06:00:00Z")}},
		{"always open without an end", []window.Window{in(t, "@hourly", time.Hour, "UTC")}, nil, "2025-06-01T23:00:00Z", window.State{Open: true}},
		{"always open together", []window.Window{in(t, "0 0 * * *", 12*time.Hour, "UTC"), in(t, "0 12 * * *", 12*time.Hour, "UTC")}, nil,
			"2025-06-01T23:00:00Z", window.State{Open: true}},
		{"day and night but for Sundays", []window.Window{in(t, "0 0 * * 1-6", 12*time.Hour, "UTC"), in(t, "0 12 * * 1-6", 12*time.Hour, "UTC")}, nil,
			"2025-06-02T01:00:00Z", window.State{Open: true, Ends: at("2025-06-08T00:00:00Z")}},
		{"the first day after a change isn't like the next", []window.Window{in(t, "30 2 * * *", 20*time.Hour, "Europe/Berlin"),
			in(t, "0 21 * * *", 315*time.Minute, "Europe/Berlin")}, nil,
			"2025-10-26T01:00:00Z", window.State{Open: true, Ends: at("2025-10-27T01:15:00Z")}},
		{"the first week after a change isn't like the next", []window.Window{in(t, "30 2 * * sun", 120*time.Hour, "Europe/Berlin"),
			in(t, "0 3 * * fri", 48*time.Hour, "Europe/Berlin")}, nil,
			"2025-03-30T01:00:00Z", window.State{Open: true, Ends: at("2025-04-11T00:30:00Z")}},
		{"always open by the month", []window.Window{in(t, "@monthly", 31*24*time.Hour, "UTC")}, nil, "2025-06-01T23:00:00Z", window.State{Open: true}},
		{"always open in a zone whose clock is changed", []window.Window{in(t, "@daily", 25*time.Hour, "Europe/Berlin")}, nil,
			"2025-06-01T23:00:00Z", window.State{Open: true}},
		{"always open but for an hour in autumn", []window.Window{in(t, "* * * * *", time.Minute, "Europe/Berlin")}, nil,
			"2025-10-27T00:00:00Z", window.State{Open: true, Ends: at("2026-10-25T01:00:00Z")}},
		{"always open but for 29 February", []window.Window{in(t, "0 0 * 1,3-12 *", 24*time.Hour, "UTC"),
			in(t, "0 0 1-28 2 *", 24*time.Hour, "UTC")}, nil, "2027-03-01T00:00:00Z", window.State{Open: true, Ends: at("2028-02-29T00:00:00Z")}},
		{"weeks and a month together", []window.Window{in(t, "0 0 1 * *", 48*time.Hour, "UTC"), in(t, "0 0 * * mon", 6*24*time.Hour, "UTC")}, nil,
			"2025-05-28T00:00:00Z", window.State{Open: true, Ends: at("2025-06-08T00:00:00Z")}},
		{"what Validate refuses never opens", []window.Window{{Duration: time.Hour, Zone: time.UTC}, {Schedule: night.Schedule, Duration: time.Hour},
			{Schedule: night.Schedule, Zone: time.UTC}}, nil, "2025-06-01T22:00:00Z", window.State{Cause: window.CauseOutside}},
		{"a freeze that Validate refuses holds never", []window.Window{night}, []window.Freeze{freeze("2025-06-02T00:00:00Z", "2025-06-01T00:00:00Z", "")},
			"2025-06-01T22:00:00Z", window.State{Open: true, Ends: at("2025-06-02T04:00:00Z")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := window.Calendar{Windows: tc.windows, Freezes: tc.freezes}
			assert.DeepEqual(t, c.At(at(tc.now)), tc.want)
			// The zone of the time that is asked for changes nothing.
			assert.DeepEqual(t, c.At(at(tc.now).In(zone(t, "Asia/Kolkata"))), tc.want)
		})
	}
}

func TestAtIsExactWithinASecond(t *testing.T) {
	c := window.Calendar{Windows: []window.Window{in(t, "0 22 * * *", time.Hour, "UTC")}, Freezes: []window.Freeze{
		{From: moment(t, "2025-06-01T22:10:00.5Z"), To: moment(t, "2025-06-01T22:20:00.25Z")}}}
	for _, tc := range []struct {
		now    string
		open   bool
		change string
	}{
		{"2025-06-01T21:59:59.999999999Z", false, "2025-06-01T22:00:00Z"},
		{"2025-06-01T22:00:00Z", true, "2025-06-01T22:10:00.5Z"},
		{"2025-06-01T22:10:00.499999999Z", true, "2025-06-01T22:10:00.5Z"},
		{"2025-06-01T22:10:00.5Z", false, "2025-06-01T22:20:00.25Z"},
		{"2025-06-01T22:20:00.249999999Z", false, "2025-06-01T22:20:00.25Z"},
		{"2025-06-01T22:59:59.999999999Z", true, "2025-06-01T23:00:00Z"},
		{"2025-06-01T23:00:00Z", false, "2025-06-02T22:00:00Z"},
	} {
		state := c.At(moment(t, tc.now))
		change := state.Opens
		if tc.open {
			change = state.Ends
		}
		assert.Assert(t, state.Open == tc.open && change.Equal(moment(t, tc.change)), "%s: %+v", tc.now, state)
	}
}

func TestValidate(t *testing.T) {
	good := in(t, "@daily", time.Hour, "UTC")
	now := moment(t, "2025-06-01T00:00:00Z")
	for _, tc := range []struct {
		name   string
		change func(w *window.Window, f *window.Freeze)
		want   string
	}{
		{"no schedule", func(w *window.Window, _ *window.Freeze) { w.Schedule = window.Cron{} }, "schedule is missing"},
		{"no duration", func(w *window.Window, _ *window.Freeze) { w.Duration = 0 }, "duration is 0s"},
		{"back in time", func(w *window.Window, _ *window.Freeze) { w.Duration = -1 }, "duration is -1ns"},
		{"too long", func(w *window.Window, _ *window.Freeze) { w.Duration = window.MaxDuration + 1 }, "at most 8784h0m0s"},
		{"no zone", func(w *window.Window, _ *window.Freeze) { w.Zone = nil }, "timeZone is missing"},
		{"an empty freeze", func(_ *window.Window, f *window.Freeze) { f.To = f.From }, "to is 2025-06-01T00:00:00Z, not after from"},
		{"a freeze back in time", func(_ *window.Window, f *window.Freeze) { f.To = f.From.Add(-1) }, "give an end after the beginning"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, f := good, window.Freeze{From: now, To: now.Add(1)}
			assert.NilError(t, cmp.Or(w.Validate(), f.Validate()))
			tc.change(&w, &f)
			assert.ErrorContains(t, cmp.Or(w.Validate(), f.Validate()), tc.want)
		})
	}
	longest := good
	longest.Duration = window.MaxDuration
	assert.NilError(t, longest.Validate())
}

// valid holds that a test means what it says.
func valid(t *testing.T, c window.Calendar) {
	t.Helper()
	for _, w := range c.Windows {
		assert.NilError(t, w.Validate())
	}
	for _, f := range c.Freezes {
		assert.NilError(t, f.Validate())
	}
}
