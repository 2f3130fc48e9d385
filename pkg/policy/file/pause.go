package file

import (
	"go.yaml.in/yaml/v3"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// Pause returns the fleet's pause; nil if there is none, or if the text is no YAML. A pause holds even if it or the
// rest of the file has mistakes, so that a user can stop the operator without correcting them first.
func Pause(content []byte) *policy.Pause {
	var doc yaml.Node
	if len(content) > maxSize || yaml.Unmarshal(content, &doc) != nil || len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		return nil
	}
	fields := doc.Content[0].Content
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i].Value == "pause" && !isNull(fields[i+1]) {
			return anyPause(fields[i+1])
		}
	}
	return nil
}

// anyPause returns a pause with those of its fields that can be read.
func anyPause(n *yaml.Node) *policy.Pause {
	var p policy.Pause
	_ = n.Decode(&p)
	if p.InFlight != policy.Return {
		p.InFlight = policy.Finish
	}
	return &p
}
