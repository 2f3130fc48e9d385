package file

import (
	"go.yaml.in/yaml/v3"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// Pause reads the pause of the fleet alone, which holds also while the rest of the file has a mistake: to have nothing
// start, the mistake needn't be found first. Any pause that stands there is one, be it written wrongly itself; nil if
// there is none, or the text is no YAML.
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

// anyPause returns what can be read of a pause.
func anyPause(n *yaml.Node) *policy.Pause {
	var p policy.Pause
	_ = n.Decode(&p)
	if p.InFlight != policy.Return {
		p.InFlight = policy.Finish
	}
	return &p
}
