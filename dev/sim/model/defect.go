package model

// Defect is a mistake made on purpose in a modelled part, for the tests that show that the checks find it.
type Defect string

const (
	// DefectNoJudge: the proxy lets everything through that was made from the Node as it stands.
	DefectNoJudge Defect = "the proxy judges nothing"
	// DefectBlindSlots: the list of slots is written without a precondition.
	DefectBlindSlots Defect = "slots without compare-and-swap"
	// DefectBlindWrites: a controller writes to Nodes without a precondition.
	DefectBlindWrites Defect = "writes without a precondition"
	// DefectIdleTake: taking a slot that is held already is no write.
	DefectIdleTake Defect = "a held slot is taken without a write"
	// DefectNoLook: a reboot is asked for without a look for pods.
	DefectNoLook Defect = "no look for pods"
	// DefectDeafAgent: an agent takes its own `busy` for accepted whatever became of it.
	DefectDeafAgent Defect = "busy counts unheard"
)

// Defects returns all of them.
func Defects() []Defect {
	return []Defect{DefectNoJudge, DefectBlindSlots, DefectBlindWrites, DefectIdleTake, DefectNoLook, DefectDeafAgent}
}
