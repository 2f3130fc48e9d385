package chaos

import (
	"math/rand/v2"
	"time"
)

// Fault is a kind of fault.
type Fault string

// The faults. Those of the first group strike what the operator stands on, the others the operator itself.
const (
	// APIServerKilled: kill -9, and another one on the same port.
	APIServerKilled Fault = "kube-apiserver killed"
	// EtcdKilled: kill -9, and another one on the same data.
	EtcdKilled Fault = "etcd killed"
	// EtcdCompacted: etcd forgets all history while the API server's watches are away, so they expire.
	EtcdCompacted Fault = "etcd compacted under watches"
	// CertificateExpired: the proxies' certificate is replaced by one that has ended.
	CertificateExpired Fault = "certificate expired"
	// AuthorityExpired: their CA too, and the proxies are killed, so that nothing in memory helps.
	AuthorityExpired Fault = "authority expired"

	LeaderKilled Fault = "leading controller killed"
	ProxyKilled  Fault = "proxy killed"
	AgentKilled  Fault = "agent killed"
	// LeaderPaused: SIGSTOP until another one leads, then SIGCONT: two believe that they lead.
	LeaderPaused Fault = "leading controller paused"
	ProxyPaused  Fault = "proxy paused"
	AgentPaused  Fault = "agent paused"
	// NetworkCut: between one agent and the proxies. What is under way freezes, and nothing new gets through.
	NetworkCut Fault = "network cut"
)

// platformFaults and operatorFaults strike side by side, each one after the other.
var (
	platformFaults = []Fault{APIServerKilled, EtcdKilled, EtcdCompacted, CertificateExpired, AuthorityExpired}
	operatorFaults = []Fault{LeaderKilled, ProxyKilled, AgentKilled, LeaderPaused, ProxyPaused, AgentPaused, NetworkCut}
)

// Faults is the closed list.
func Faults() []Fault { return append(append([]Fault{}, platformFaults...), operatorFaults...) }

// Strike is one fault to come.
type Strike struct {
	Fault Fault
	// After is the pause before it, Hold how long it lasts where that is a choice.
	After, Hold time.Duration
	// Target chooses what it hits, where there is a choice.
	Target int
}

// Plan is what strikes, side by side.
type Plan struct{ Platform, Operator []Strike }

// leaseDuration is that of the controllers; a process that is paused is paused for longer.
const leaseDuration = 3 * time.Second

// Draw draws a plan in which each fault strikes times times.
func Draw(seed uint64, times int) Plan {
	random := rand.New(rand.NewPCG(seed, 0))
	draw := func(of []Fault) []Strike {
		var out []Strike
		for range times {
			for _, i := range random.Perm(len(of)) {
				out = append(out, Strike{
					Fault:  of[i],
					After:  300*time.Millisecond + time.Duration(random.Int64N(int64(2*time.Second))),
					Hold:   leaseDuration + time.Second + time.Duration(random.Int64N(int64(2*time.Second))),
					Target: random.IntN(1 << 16),
				})
			}
		}
		return out
	}
	return Plan{Platform: draw(platformFaults), Operator: draw(operatorFaults)}
}
