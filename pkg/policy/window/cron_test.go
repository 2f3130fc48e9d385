package window_test

import (
	"strconv"
	"testing"
	"time"

	"gotest.tools/v3/assert"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/window"
)

func cron(t testing.TB, text string) window.Cron {
	t.Helper()
	c, err := window.ParseCron(text)
	assert.NilError(t, err)
	return c
}

// starts are the first n starts of a schedule in UTC, from a moment on, told by a window of one second.
func starts(t *testing.T, text, from string, n int) []string {
	t.Helper()
	c := window.Calendar{Windows: []window.Window{{Schedule: cron(t, text), Duration: time.Second, Zone: time.UTC}}}
	var all []string
	for at := moment(t, from).Add(-time.Second); len(all) < n; {
		state := c.At(at)
		if state.Open {
			at = state.Ends
			continue
		}
		at = state.Opens
		all = append(all, at.Format("2006-01-02 15:04 Mon"))
	}
	return all
}

func moment(t testing.TB, text string) time.Time {
	t.Helper()
	m, err := time.Parse(time.RFC3339, text)
	assert.NilError(t, err)
	return m
}

func TestSchedules(t *testing.T) {
	const from = "2024-01-01T00:00:00Z" // A Monday.
	for _, tc := range []struct {
		text string
		want []string
	}{
		{"* * * * *", []string{"2024-01-01 00:00 Mon", "2024-01-01 00:01 Mon"}},
		{"? ? ? ? ?", []string{"2024-01-01 00:00 Mon", "2024-01-01 00:01 Mon"}},
		{"30 2 * * *", []string{"2024-01-01 02:30 Mon", "2024-01-02 02:30 Tue"}},
		{"  30\t2 *  * * ", []string{"2024-01-01 02:30 Mon", "2024-01-02 02:30 Tue"}},
		{"05,07 002 * * *", []string{"2024-01-01 02:05 Mon", "2024-01-01 02:07 Mon", "2024-01-02 02:05 Tue"}},
		{"59 23 31 12 *", []string{"2024-12-31 23:59 Tue", "2025-12-31 23:59 Wed"}},
		{"*/25 0 * * *", []string{"2024-01-01 00:00 Mon", "2024-01-01 00:25 Mon", "2024-01-01 00:50 Mon", "2024-01-02 00:00 Tue"}},
		{"40/15 0 * * *", []string{"2024-01-01 00:40 Mon", "2024-01-01 00:55 Mon", "2024-01-02 00:40 Tue"}},
		{"10-20/4,50 0 * * *", []string{"2024-01-01 00:10 Mon", "2024-01-01 00:14 Mon", "2024-01-01 00:18 Mon", "2024-01-01 00:50 Mon"}},
		{"*/2147483647 0 * * *", []string{"2024-01-01 00:00 Mon", "2024-01-02 00:00 Tue"}},
		{"0 22-23 * * *", []string{"2024-01-01 22:00 Mon", "2024-01-01 23:00 Mon", "2024-01-02 22:00 Tue"}},
		{"0 0 31 * *", []string{"2024-01-31 00:00 Wed", "2024-03-31 00:00 Sun", "2024-05-31 00:00 Fri"}},
		{"0 0 * * SAT,sun", []string{"2024-01-06 00:00 Sat", "2024-01-07 00:00 Sun", "2024-01-13 00:00 Sat"}},
		{"0 0 * * Mon-Wed/2", []string{"2024-01-01 00:00 Mon", "2024-01-03 00:00 Wed", "2024-01-08 00:00 Mon"}},
		{"0 0 * * fri/1", []string{"2024-01-05 00:00 Fri", "2024-01-06 00:00 Sat", "2024-01-12 00:00 Fri"}},
		{"0 0 1 feb,Oct *", []string{"2024-02-01 00:00 Thu", "2024-10-01 00:00 Tue", "2025-02-01 00:00 Sat"}},
		{"0 0 29 2 *", []string{"2024-02-29 00:00 Thu", "2028-02-29 00:00 Tue"}},
		// Both day fields are restricted: one is enough.
		{"0 0 13 * 5", []string{"2024-01-05 00:00 Fri", "2024-01-12 00:00 Fri", "2024-01-13 00:00 Sat", "2024-01-19 00:00 Fri"}},
		{"0 0 */20 * 5", []string{"2024-01-01 00:00 Mon", "2024-01-05 00:00 Fri"}},
		{"0 0 30 2 0", []string{"2024-02-04 00:00 Sun", "2024-02-11 00:00 Sun"}},
		{"0 0 1-31 * 5", []string{"2024-01-01 00:00 Mon", "2024-01-02 00:00 Tue"}},
		// One of them has a *: the other decides.
		{"0 0 13 * *", []string{"2024-01-13 00:00 Sat", "2024-02-13 00:00 Tue"}},
		{"0 0 13 * */1", []string{"2024-01-13 00:00 Sat", "2024-02-13 00:00 Tue"}},
		{"0 0 ? * 5", []string{"2024-01-05 00:00 Fri", "2024-01-12 00:00 Fri"}},
		{"0 0 7,* * 5", []string{"2024-01-05 00:00 Fri", "2024-01-12 00:00 Fri"}},
		{"@yearly", []string{"2024-01-01 00:00 Mon", "2025-01-01 00:00 Wed"}},
		{"@annually", []string{"2024-01-01 00:00 Mon", "2025-01-01 00:00 Wed"}},
		{"@monthly", []string{"2024-01-01 00:00 Mon", "2024-02-01 00:00 Thu"}},
		{"@weekly", []string{"2024-01-07 00:00 Sun", "2024-01-14 00:00 Sun"}},
		{"@daily", []string{"2024-01-01 00:00 Mon", "2024-01-02 00:00 Tue"}},
		{"@midnight", []string{"2024-01-01 00:00 Mon", "2024-01-02 00:00 Tue"}},
		{"@hourly", []string{"2024-01-01 00:00 Mon", "2024-01-01 01:00 Mon"}},
	} {
		t.Run(tc.text, func(t *testing.T) {
			assert.Equal(t, cron(t, tc.text).String(), tc.text)
			assert.DeepEqual(t, starts(t, tc.text, from, len(tc.want)), tc.want)
		})
	}
	t.Run("no leap year in 2100", func(t *testing.T) {
		assert.DeepEqual(t, starts(t, "0 0 29 2 *", "2096-02-29T00:00:00Z", 2),
			[]string{"2096-02-29 00:00 Wed", "2104-02-29 00:00 Fri"})
	})
	t.Run("before 1970", func(t *testing.T) {
		assert.DeepEqual(t, starts(t, "30 2 * * *", "1969-12-30T00:00:00Z", 3),
			[]string{"1969-12-30 02:30 Tue", "1969-12-31 02:30 Wed", "1970-01-01 02:30 Thu"})
	})
}

func TestRefusedSchedules(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", "it has 0 fields"},
		{"0 2 * *", "it has 4 fields"},
		{"0 0 2 * * *", "it has 6 fields"},
		{" @daily", "it has 1 fields"},
		{"@daily ", "no such macro"},
		{"@Daily", "no such macro"},
		{"@reboot", "no such macro"},
		{"@every 1h", "or five fields such as 0 */6 * * *"},
		{"TZ=UTC 0 2 * * *", "use timeZone"},
		{"CRON_TZ=Europe/Berlin 0 2 * * *", "use timeZone"},
		{"TZ=UTC", "use timeZone"},
		{"TZ= TZ= TZ= TZ= TZ=", "use timeZone"},
		{"60 * * * *", `minute: "60" is not valid: give 0 to 59, a range`},
		{"-1 * * * *", `minute: "-1" is not valid`},
		{"+1 * * * *", `minute: "+1" is not valid`},
		{"x * * * *", `minute: "x" is not valid`},
		{"@daily * * * *", "no such macro"},
		{"* @daily * * *", `hour: "@daily" is not valid`},
		{"1.5 * * * *", `minute: "1.5" is not valid`},
		{"99999999999999999999 * * * *", `minute: "99999999999999999999" is not valid`},
		{", * * * *", `minute: "" is not valid`},
		{"1,,2 * * * *", `minute: "" is not valid`},
		{"1-2-3 * * * *", `minute: "1-2-3" is not valid`},
		{"*-5 * * * *", `minute: "*-5" is not valid`},
		{"** * * * *", `minute: "**" is not valid`},
		{"*/0 * * * *", `minute: "*/0" is not valid`},
		{"*/ * * * *", `minute: "*/" is not valid`},
		{"*/1/2 * * * *", `minute: "*/1/2" is not valid`},
		{"*/-2 * * * *", `minute: "*/-2" is not valid`},
		{"*/99999999999999999999 * * * *", `minute: "*/99999999999999999999" is not valid`},
		{"jan * * * *", `minute: "jan" is not valid`},
		{"* 24 * * *", `hour: "24" is not valid: give 0 to 23`},
		{"* 1,20-4,7 * * *", `hour: "20-4" is not valid: give 0 to 23, a range such as 1-5 that begins before its end`},
		{"* * 0 * *", `day of month: "0" is not valid: give 1 to 31`},
		{"* * L * *", `day of month: "L" is not valid`},
		{"* * * 13 *", `month: "13" is not valid: give 1 to 12 or jan to dec`},
		{"* * * sun *", `month: "sun" is not valid`},
		{"* * * january *", `month: "january" is not valid`},
		{"* * * * 7", `day of week: "7" is not valid: give 0, which is Sunday, to 6 or sun to sat`},
		{"* * * * 5-7", `day of week: "5-7" is not valid`},
		{"* * * * sat-mon", `day of week: "sat-mon" is not valid`},
		{"* * * * 5#2", `day of week: "5#2" is not valid`},
		{"0 0 30 2 *", "day of month: no month of the schedule has such a day"},
		{"0 0 31 2,4,6,9,11 *", "day of month: no month of the schedule has such a day"},
		{"0 0 30/1 feb ?", "day of month: no month of the schedule has such a day"},
	} {
		t.Run(tc.text, func(t *testing.T) {
			c, err := window.ParseCron(tc.text)
			assert.ErrorContains(t, err, tc.want)
			assert.ErrorContains(t, err, strconv.Quote(tc.text)+": ")
			assert.Equal(t, c, window.Cron{})
		})
	}
}
