// Package policy is what an administrator decides: settings, rules of groups, limits and selectors, with their defaults
// and their validation.
//
// It is for the planner, which goes by it, for the policy file (pkg/policy/file), and for all that carries out what a
// rule says, such as a drain. It promises that settings without a Mistake can be planned with.
//
// It is pure: it imports policy/window, intent, marker and the standard library's data types, no client, no clock, no
// context.
package policy
