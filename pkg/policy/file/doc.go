// Package file reads the policy file: policy.yaml in the ConfigMap update-policy.
//
// It is for the controller, for `-check-policy`, and for the kubectl plugin. It promises that what it returns is
// valid as a whole: a field that isn't known, or stands there twice, a value that can't be read, and a policy that
// contradicts itself are mistakes. All of them are told at once, each with its line, its field and the remedy, but none
// that merely follows from another. What the file leaves out is the default.
//
// It fills policy.Settings by the tags of their fields: a new field is one line there. It imports policy,
// policy/window, a YAML decoder and a library for ranges of versions, and is pure: time zones come from a function
// that it is given.
package file
