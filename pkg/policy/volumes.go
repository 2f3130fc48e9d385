package policy

import "time"

// Volumes is what is made of volumes of evicted pods that are still attached.
type Volumes struct {
	// Wait is how long they may take; with 0 they are not looked at. Default 5 min.
	Wait time.Duration `yaml:"wait"`
	// OnTimeout is what becomes of the node then. Default Ignore.
	OnTimeout OnTimeout `yaml:"onTimeout" words:"abort,ignore"`
}
