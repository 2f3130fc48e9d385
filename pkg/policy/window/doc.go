// Package window has maintenance windows: when nodes may be disrupted, by schedules in time zones and by freezes, which
// take precedence.
//
// It is for the planner, which asks a Calendar in each plan, and for package file. It promises that an answer depends
// on the calendar and the given time alone, that it is exact, also around clock changes, and that it costs little
// however rare a schedule is, since nothing steps through minutes. A window that Validate refuses never opens.
//
// It is pure: it imports pkg/errors, a library that parses schedules, and the standard library's data types. The caller
// gives the time and the time zones.
package window
