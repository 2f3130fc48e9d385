package marker

import "unicode/utf8"

// Marks that others read: keys that aren't the operator's. It puts them on a node that it takes out of service, with
// the value OthersValue, and notes in Disruption.Before what stood there.
const (
	// LabelExcluded keeps a node out of the load balancers of its cloud; what counts is that it is there.
	LabelExcluded = "node.kubernetes.io/exclude-from-external-load-balancers"
	// AnnotationScaleDown tells the cluster autoscaler not to remove a node.
	AnnotationScaleDown = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	// AnnotationDisrupt tells Karpenter not to.
	AnnotationDisrupt = "karpenter.sh/do-not-disrupt"
)

// OthersValue is what the operator writes into them.
const OthersValue = "true"

// AutoscalerMarks are those of the autoscalers.
func AutoscalerMarks() []string { return []string{AnnotationScaleDown, AnnotationDisrupt} }

// CanStandBefore reports whether a value can be noted in Disruption.Before and put back as it was.
func CanStandBefore(value string) bool { return len(value) <= maxToken && utf8.ValidString(value) }
