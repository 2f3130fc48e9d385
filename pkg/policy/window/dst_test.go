package window_test

import (
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/window"
)

// stretches are the first n open stretches from a moment at which the calendar is closed, in its zone.
func stretches(t *testing.T, c window.Calendar, from time.Time, n int, zone *time.Location) []string {
	t.Helper()
	var all []string
	for at := from; len(all) < n; {
		state := c.At(at)
		assert.Assert(t, !state.Open && state.Opens.After(at), "%s: %+v", at, state)
		opens := c.At(state.Opens)
		assert.Assert(t, opens.Open && opens.Ends.After(state.Opens), "%s: %+v", state.Opens, opens)
		all = append(all, state.Opens.In(zone).Format(time.RFC3339)+" "+opens.Ends.In(zone).Format(time.RFC3339))
		at = opens.Ends
	}
	return all
}

func TestClockChanges(t *testing.T) {
	for _, tc := range []struct {
		name, zone, schedule string
		duration             time.Duration
		from                 string
		want                 []string
	}{
		{"forward: a start that is left out comes at the change", "Europe/Berlin", "30 2 * * *", time.Hour, "2025-03-29T00:00:00Z", []string{
			"2025-03-29T02:30:00+01:00 2025-03-29T03:30:00+01:00",
			"2025-03-30T03:00:00+02:00 2025-03-30T04:00:00+02:00",
			"2025-03-31T02:30:00+02:00 2025-03-31T03:30:00+02:00"}},
		{"forward: several starts that are left out come once", "Europe/Berlin", "*/15 2 * * *", time.Minute, "2025-03-29T02:00:00Z", []string{
			"2025-03-30T03:00:00+02:00 2025-03-30T03:01:00+02:00",
			"2025-03-31T02:00:00+02:00 2025-03-31T02:01:00+02:00"}},
		{"forward: a start at the change comes once", "Europe/Berlin", "0 2-3 * * *", 30 * time.Minute, "2025-03-29T12:00:00Z", []string{
			"2025-03-30T03:00:00+02:00 2025-03-30T03:30:00+02:00",
			"2025-03-31T02:00:00+02:00 2025-03-31T02:30:00+02:00"}},
		{"forward: the duration is elapsed time", "Europe/Berlin", "0 22 * * sat", 8 * time.Hour, "2025-03-29T12:00:00Z", []string{
			"2025-03-29T22:00:00+01:00 2025-03-30T07:00:00+02:00"}},
		{"forward: the last minute before", "Europe/Berlin", "59 1 * * *", time.Hour, "2025-03-29T12:00:00Z", []string{
			"2025-03-30T01:59:00+01:00 2025-03-30T03:59:00+02:00"}},
		{"back: a start that comes twice comes the first time", "Europe/Berlin", "30 2 * * *", 10 * time.Minute, "2025-10-25T12:00:00Z", []string{
			"2025-10-26T02:30:00+02:00 2025-10-26T02:40:00+02:00",
			"2025-10-27T02:30:00+01:00 2025-10-27T02:40:00+01:00"}},
		{"back: the duration is elapsed time", "Europe/Berlin", "0 22 * * sat", 8 * time.Hour, "2025-10-25T12:00:00Z", []string{
			"2025-10-25T22:00:00+02:00 2025-10-26T05:00:00+01:00"}},
		{"back: a start at the change comes the first time", "Europe/Berlin", "0 2,3 * * *", time.Minute, "2025-10-25T12:00:00Z", []string{
			"2025-10-26T02:00:00+02:00 2025-10-26T02:01:00+02:00",
			"2025-10-26T03:00:00+01:00 2025-10-26T03:01:00+01:00"}},
		{"back: an hourly schedule leaves an hour out", "Europe/Berlin", "@hourly", time.Minute, "2025-10-25T23:30:00Z", []string{
			"2025-10-26T02:00:00+02:00 2025-10-26T02:01:00+02:00",
			"2025-10-26T03:00:00+01:00 2025-10-26T03:01:00+01:00"}},
		{"back: what is open all day long isn't for an hour", "Europe/Berlin", "0 0 26-27 10 *", 24 * time.Hour, "2025-10-25T12:00:00Z", []string{
			"2025-10-26T00:00:00+02:00 2025-10-26T23:00:00+01:00",
			"2025-10-27T00:00:00+01:00 2025-10-28T00:00:00+01:00"}},
		{"forward at midnight", "America/Santiago", "0 0 * * *", time.Hour, "2024-09-07T12:00:00Z", []string{
			"2024-09-08T01:00:00-03:00 2024-09-08T02:00:00-03:00",
			"2024-09-09T00:00:00-03:00 2024-09-09T01:00:00-03:00"}},
		{"forward at midnight: the weekday is that of what is left out", "America/Santiago", "30 0 * * sun", time.Hour, "2024-09-07T12:00:00Z", []string{
			"2024-09-08T01:00:00-03:00 2024-09-08T02:00:00-03:00"}},
		{"back at midnight", "America/Santiago", "30 23 * * *", 10 * time.Minute, "2024-04-06T12:00:00Z", []string{
			"2024-04-06T23:30:00-03:00 2024-04-06T23:40:00-03:00",
			"2024-04-07T23:30:00-04:00 2024-04-07T23:40:00-04:00"}},
		{"back at midnight: the new day begins once", "America/Santiago", "0 0 * * *", 10 * time.Minute, "2024-04-06T12:00:00Z", []string{
			"2024-04-07T00:00:00-04:00 2024-04-07T00:10:00-04:00",
			"2024-04-08T00:00:00-04:00 2024-04-08T00:10:00-04:00"}},
		{"forward at midnight in Cairo", "Africa/Cairo", "0 0 * * fri", 2 * time.Hour, "2024-04-25T12:00:00Z", []string{
			"2024-04-26T01:00:00+03:00 2024-04-26T03:00:00+03:00"}},
		{"back at midnight in Cairo", "Africa/Cairo", "30 23 31 10 *", 2 * time.Hour, "2024-10-31T12:00:00Z", []string{
			"2024-10-31T23:30:00+03:00 2024-11-01T00:30:00+02:00"}},
		{"half an hour forward", "Australia/Lord_Howe", "15 2 * * *", time.Hour, "2025-10-04T00:00:00Z", []string{
			"2025-10-05T02:30:00+11:00 2025-10-05T03:30:00+11:00"}},
		{"half an hour back", "Australia/Lord_Howe", "*/15 1 * * *", time.Minute, "2025-04-05T14:31:00Z", []string{
			"2025-04-06T01:45:00+11:00 2025-04-06T01:46:00+11:00",
			"2025-04-07T01:00:00+10:30 2025-04-07T01:01:00+10:30"}},
		{"a day left out", "Pacific/Apia", "0 12 * * *", time.Hour, "2011-12-29T08:00:00Z", []string{
			"2011-12-29T12:00:00-10:00 2011-12-29T13:00:00-10:00",
			"2011-12-31T00:00:00+14:00 2011-12-31T01:00:00+14:00",
			"2011-12-31T12:00:00+14:00 2011-12-31T13:00:00+14:00"}},
		{"far in the future", "America/New_York", "30 2 * * *", time.Hour, "2100-03-13T12:00:00Z", []string{
			"2100-03-14T03:00:00-04:00 2100-03-14T04:00:00-04:00",
			"2100-03-15T02:30:00-04:00 2100-03-15T03:30:00-04:00"}},
		{"the last day of a leap year in the future", "America/New_York", "0 * 31 12 *", 30 * time.Minute, "2048-12-31T03:00:00Z", []string{
			"2048-12-31T00:00:00-05:00 2048-12-31T00:30:00-05:00",
			"2048-12-31T01:00:00-05:00 2048-12-31T01:30:00-05:00"}},
		{"the last of the month", "Asia/Kolkata", "0 20 31 * *", 8 * time.Hour, "2025-02-01T00:00:00Z", []string{
			"2025-03-31T20:00:00+05:30 2025-04-01T04:00:00+05:30",
			"2025-05-31T20:00:00+05:30 2025-06-01T04:00:00+05:30"}},
		{"29 February", "Europe/Berlin", "0 22 29 2 *", 4 * time.Hour, "2025-01-01T00:00:00Z", []string{
			"2028-02-29T22:00:00+01:00 2028-03-01T02:00:00+01:00",
			"2032-02-29T22:00:00+01:00 2032-03-01T02:00:00+01:00"}},
		{"a duration longer than the interval stays open", "UTC", "0 8-12 * * *", 90 * time.Minute, "2025-01-01T00:00:00Z", []string{
			"2025-01-01T08:00:00Z 2025-01-01T13:30:00Z"}},
		{"a duration of less than a minute", "UTC", "* 8 * * *", 1500 * time.Millisecond, "2025-01-01T00:00:00Z", []string{
			"2025-01-01T08:00:00Z 2025-01-01T08:00:01Z",
			"2025-01-01T08:01:00Z 2025-01-01T08:01:01Z"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := window.Calendar{Windows: []window.Window{in(t, tc.schedule, tc.duration, tc.zone)}}
			valid(t, c)
			assert.DeepEqual(t, stretches(t, c, moment(t, tc.from), len(tc.want), zone(t, tc.zone)), tc.want)
		})
	}
}
