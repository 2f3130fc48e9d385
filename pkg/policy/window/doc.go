// Package window holds maintenance windows: when nodes may be disrupted, by schedules in time zones, and
// by freezes, which win.
//
// It is for the policy, which asks a Calendar at each plan, and for whoever reads one from a file. It
// promises that an answer depends on the calendar and the time that is asked for alone, that each answer is
// exact, also where clocks are changed, and that it costs little however rare a schedule is: nothing steps
// through minutes. What Validate refuses never opens anything.
//
// It is pure: it imports pkg/errors, a library that reads schedules, and the standard library's data types. It
// reads no clock and loads no time zones: the caller gives both.
package window
