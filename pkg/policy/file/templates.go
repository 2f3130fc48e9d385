package file

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/policy"
)

// namesTemplate is a line that names a PodTemplate, as the admission policy update-operator-runner-plans of
// components/plans/plans.yaml looks for one, which reads lines and no YAML.
const namesTemplate = `^([^#]*[\s{,])?["']?(apply|prepare)["']?\s*:\s*["']?%s["']?\s*([,}\s].*)?$`

// templates adds a mistake for each template whose name that policy would not find: its pods would be refused, on nodes
// that are drained by then.
func (r *reader) templates(content string, set *policy.Settings) {
	for i := range set.Plans {
		for field, name := range map[string]string{"apply": set.Plans[i].Apply, "prepare": set.Plans[i].Prepare} {
			at := fmt.Sprintf("plans[%d].%s", i, field)
			if name != "" && r.has(at) && !named(content, name) {
				r.wrong(policy.Mistake{Field: at, Says: fmt.Sprintf("is written so that the admission policies of plans don't find it: write %s: %s on one line", field, name)})
			}
		}
	}
}

func named(content, name string) bool {
	line := regexp.MustCompile(fmt.Sprintf(namesTemplate, regexp.QuoteMeta(name)))
	for l := range strings.Lines(content) {
		if strings.Contains(l, name) && line.MatchString(strings.TrimSuffix(l, "\n")) {
			return true
		}
	}
	return false
}
