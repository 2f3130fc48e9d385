// Package file reads the policy file: policy.yaml in the ConfigMap update-policy.
//
// It is for the controller, for `-check-policy`, and for the kubectl plugin. It promises that the settings it returns
// are valid as a whole: an unknown or repeated field, a value that can't be read, and a policy that contradicts itself
// are mistakes. It returns all of them at once, each with its line, its field and the remedy, but none that merely
// follows from another one. A missing field has its default.
//
// It fills policy.Settings by the tags of their fields: a new field is one line there. It imports policy,
// policy/window, marker, a YAML decoder and a library for ranges of versions, and is pure: the caller gives the
// function that finds time zones.
package file
