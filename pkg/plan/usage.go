package plan

// Usage is how much of one limit is used.
type Usage struct {
	// Of says what the limit is about: "the fleet", "group canary", "zone=a", "staging".
	Of string `json:"of"`
	// Rule is the limit as the policy has it, and Limit what that comes to.
	Rule  string `json:"rule"`
	Limit int    `json:"limit"`
	// Used is the sum of those that the operator took out of service and, if the policy counts them, of those that others
	// took out of service.
	Used      int `json:"used"`
	Disrupted int `json:"disrupted"`
	ByOthers  int `json:"byOthers"`
}
