package window_test

import (
	"testing"
	"time"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy/window"
)

// BenchmarkAt: three windows and two freezes, from everyday ones to those that take the longest.
func BenchmarkAt(b *testing.B) {
	for _, bc := range []struct {
		name, now string
		windows   [3]window.Window
	}{
		{"everyday closed", "2025-06-11T12:00:00Z", [3]window.Window{
			in(b, "0 2 * * sat", 4*time.Hour, "Europe/Berlin"), in(b, "0 22 * * mon-fri", 6*time.Hour, "America/New_York"),
			in(b, "@monthly", 24*time.Hour, "Asia/Kolkata")}},
		{"everyday open", "2025-06-11T03:00:00Z", [3]window.Window{
			in(b, "0 2 * * sat", 4*time.Hour, "Europe/Berlin"), in(b, "0 22 * * mon-fri", 6*time.Hour, "America/New_York"),
			in(b, "@monthly", 24*time.Hour, "Asia/Kolkata")}},
		{"rare closed", "2096-03-01T12:00:00Z", [3]window.Window{
			in(b, "0 0 29 2 *", time.Hour, "Europe/Berlin"), in(b, "0 0 29 2 *", time.Hour, "America/New_York"),
			in(b, "0 0 29 2 *", time.Hour, "UTC")}},
		{"each minute in UTC", "2025-06-11T12:00:30Z", [3]window.Window{
			in(b, "* * * * *", time.Minute, "UTC"), in(b, "0 0 29 2 *", time.Hour, "America/New_York"),
			in(b, "0 0 29 2 *", time.Hour, "UTC")}},
		{"each minute up to autumn", "2025-11-03T12:00:30Z", [3]window.Window{
			in(b, "* * * * *", time.Minute, "America/New_York"), in(b, "0 0 29 2 *", time.Hour, "America/New_York"),
			in(b, "0 0 29 2 *", time.Hour, "UTC")}},
		{"months joined", "2025-06-11T12:00:30Z", [3]window.Window{
			in(b, "0 0 1 * *", 31*24*time.Hour, "America/New_York"), in(b, "0 0 29 2 *", time.Hour, "America/New_York"),
			in(b, "0 0 29 2 *", time.Hour, "UTC")}},
		{"most days joined", "2026-03-01T12:00:30Z", [3]window.Window{
			in(b, "0 0 * 1,3-12 *", 24*time.Hour, "UTC"), in(b, "0 0 1-28 2 *", 24*time.Hour, "UTC"),
			in(b, "0 0 29 2 *", time.Hour, "UTC")}},
		{"day and night", "2025-03-01T12:00:30Z", [3]window.Window{
			in(b, "0 0 * * *", 12*time.Hour, "UTC"), in(b, "0 12 * * *", 12*time.Hour, "UTC"),
			in(b, "0 0 29 2 *", time.Hour, "UTC")}},
		{"half hours in turn", "2025-03-01T12:00:30Z", [3]window.Window{
			in(b, "0 * * * *", 30*time.Minute, "Europe/Berlin"), in(b, "30 * * * *", 30*time.Minute, "America/New_York"),
			in(b, "0 0 29 2 *", time.Hour, "UTC")}},
		{"half hours for ever", "2025-03-01T12:00:30Z", [3]window.Window{
			in(b, "0 * * * *", 30*time.Minute, "UTC"), in(b, "30 * * * *", 30*time.Minute, "UTC"),
			in(b, "0 0 29 2 *", time.Hour, "UTC")}},
	} {
		b.Run(bc.name, func(b *testing.B) {
			now := moment(b, bc.now)
			c := window.Calendar{Windows: bc.windows[:], Freezes: []window.Freeze{
				{From: now.AddDate(-1, 0, 0), To: now.AddDate(-1, 1, 0), Reason: "last year's"},
				{From: now.AddDate(20, 0, 0), To: now.AddDate(20, 0, 1), Reason: "far away"},
			}}
			b.ReportAllocs()
			for b.Loop() {
				c.At(now)
			}
		})
	}
}
