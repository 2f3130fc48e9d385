package telemetry

// Names of log fields. Messages are constant; what varies is in a field.
const (
	FieldNode      = "node"
	FieldPhase     = "phase"
	FieldReason    = "reason"
	FieldAct       = "act"
	FieldAction    = "action"
	FieldState     = "state"
	FieldIntent    = "intent"
	FieldTarget    = "target"
	FieldVersion   = "version"
	FieldAvailable = "available"
	FieldCommand   = "command"
	FieldMessage   = "message"
	FieldPod       = "pod"
	FieldAddress   = "address"
	FieldPath      = "path"
	FieldMethod    = "method"
	FieldStatus    = "status"
	FieldCount     = "count"
	FieldError     = "error"
)
