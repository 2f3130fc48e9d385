package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Notify is where messages about a rollout are sent, and which.
type Notify struct {
	// URLKey is the key of the Secret update-notify whose value is the URL; empty: nothing is sent.
	URLKey string `yaml:"urlKey"`
	// Cluster stands in each message.
	Cluster string `yaml:"cluster"`
	// Occasions are those that a message is sent on; empty: all.
	Occasions []Occasion `yaml:"occasions" words:"RolloutBegan,RolloutEnded,NodeFailed,NodeLost,VersionStopped"`
}

// Occasion is what a message is sent on.
type Occasion string

// The occasions.
const (
	// RolloutBegan: the first node is asked for a version.
	RolloutBegan Occasion = "RolloutBegan"
	// RolloutEnded: no node is on its way to that version any more, and those that don't run it wait for a user.
	RolloutEnded Occasion = "RolloutEnded"
	// NodeFailed: a node's attempt failed.
	NodeFailed Occasion = "NodeFailed"
	// NodeLost: a node did not come back.
	NodeLost Occasion = "NodeLost"
	// VersionStopped: a version failed on too many nodes.
	VersionStopped Occasion = "VersionStopped"
)

// Occasions is the closed list.
func Occasions() []Occasion {
	return []Occasion{RolloutBegan, RolloutEnded, NodeFailed, NodeLost, VersionStopped}
}

// Wants reports whether messages are sent on an occasion.
func (n *Notify) Wants(o Occasion) bool {
	return n.URLKey != "" && (len(n.Occasions) == 0 || slices.Contains(n.Occasions, o))
}

// maxCluster is how long the name of a cluster may be in messages, in bytes.
const maxCluster = 100

// secretKey is what the API server lets the key of a Secret be.
var secretKey = regexp.MustCompile(`^[-._a-zA-Z0-9]{1,253}$`)

func (n *Notify) validate(m *mistakes) {
	switch {
	case n.URLKey == "" && (n.Cluster != "" || len(n.Occasions) > 0):
		m.add("notify.urlKey", "is missing: give the key of the Secret update-notify that holds the URL")
	case n.URLKey != "" && (!secretKey.MatchString(n.URLKey) || strings.HasPrefix(n.URLKey, ".")):
		// The kubelet keeps files of its own whose names begin with two dots.
		m.add("notify.urlKey", "is %q: give the key of the Secret update-notify that holds the URL, not the URL itself", n.URLKey)
	}
	if len(n.Cluster) > maxCluster {
		m.add("notify.cluster", "is longer than %d bytes: give a shorter name", maxCluster)
	}
	for i, o := range n.Occasions {
		if !slices.Contains(Occasions(), o) {
			m.add(fmt.Sprintf("notify.occasions[%d]", i), "is %q: give one of %v", string(o), Occasions())
		}
	}
}
