package hostsim

// Set is one partition set with the GPT attribute bits that the boot loader goes by.
type Set struct {
	// Version is the release written to the set; empty when the set is blank.
	Version string `json:"version"`
	// Priority 0 is never booted; of the others, the highest goes first.
	Priority int `json:"priority"`
	// Tries is the number of boots that are left to a set that was never successful.
	Tries int `json:"tries"`
	// Successful: the set has booted up to preconfigured.target.
	Successful bool `json:"successful"`
	// Good: the content can boot. A set that isn't good fails in the boot loader.
	Good bool `json:"good"`
}

// bootable is the boot loader's view.
func (s Set) bootable() bool { return s.Priority > 0 && (s.Tries > 0 || s.Successful) }

// sets are the partition sets A and B and the running one of them.
type sets struct {
	set    [2]Set
	active int
}

func (p *sets) running() *Set  { return &p.set[p.active] }
func (p *sets) inactive() *Set { return &p.set[1-p.active] }

// next is the set that the boot loader would pick: A of two equals, the running one when none can boot
// (a real machine would be lost then).
func (p *sets) next() int {
	pick := -1
	for i, s := range p.set {
		if s.bootable() && (pick < 0 || s.Priority > p.set[pick].Priority) {
			pick = i
		}
	}
	if pick < 0 {
		return p.active
	}
	return pick
}

// clearInactive is the first thing that a prepare does to the disk.
func (p *sets) clearInactive() { *p.inactive() = Set{} }

// write is the last thing that a prepare does to the disk.
func (p *sets) write(version string) {
	*p.inactive() = Set{Version: version, Tries: 1, Good: true}
}

// activate makes the inactive set the next to boot; the text is updog's complaint, empty when it did.
func (p *sets) activate() string {
	in := p.inactive()
	switch {
	case in.Priority != 0 || in.Successful:
		return stderrAlreadyMarked
	case in.Tries == 0:
		return stderrNotValid
	}
	in.Priority, in.Tries, in.Successful = 2, 1, false
	p.running().Priority = 1
	return ""
}

// deactivate makes the running set the next to boot again.
func (p *sets) deactivate() {
	in := p.inactive()
	in.Priority, in.Tries, in.Successful = 0, 1, false
	p.running().Priority = 2
}

// load is the boot loader: it picks a set, takes a try from it and makes it the running one.
func (p *sets) load() {
	p.active = p.next()
	if s := p.running(); s.Tries > 0 {
		s.Tries--
	}
}
