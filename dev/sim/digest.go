package sim

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"maps"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/sim/apiserver"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/marker"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/plan"
)

// Digest is the sum of what runs did. Two versions of the operator with the same Acts made the same requests and writes
// at the same moments, for the same reasons; with the same Words they said the same of them.
type Digest struct {
	Acts, Words [sha256.Size]byte
}

// String is the line that is compared.
func (d Digest) String() string { return fmt.Sprintf("acts %x words %x", d.Acts[:12], d.Words[:12]) }

// Digests runs n seeds from the first one on, several at once, and returns the digest of all and, by report, of each
// thousand in turn.
func Digests(first, n uint64, workers int, report func(first, n uint64, d Digest)) Digest {
	const block = 1000
	acts, words := sha256.New(), sha256.New()
	for begin := first; begin < first+n; begin += block {
		size := min(block, first+n-begin)
		each := make([]Digest, size)
		var wg sync.WaitGroup
		next := make(chan uint64)
		for range workers {
			wg.Go(func() {
				for i := range next {
					each[i] = DigestOf(Generate(begin + i))
				}
			})
		}
		for i := range size {
			next <- i
		}
		close(next)
		wg.Wait()
		blockActs, blockWords := sha256.New(), sha256.New()
		for i := range each {
			blockActs.Write(each[i].Acts[:])
			blockWords.Write(each[i].Words[:])
		}
		d := Digest{Acts: [sha256.Size]byte(blockActs.Sum(nil)), Words: [sha256.Size]byte(blockWords.Sum(nil))}
		acts.Write(d.Acts[:])
		words.Write(d.Words[:])
		report(begin, size, d)
	}
	return Digest{Acts: [sha256.Size]byte(acts.Sum(nil)), Words: [sha256.Size]byte(words.Sum(nil))}
}

// DigestOf returns the digest of one scenario.
func DigestOf(s Scenario) Digest {
	acts, words := sha256.New(), sha256.New()
	Transcribe(s, acts, words)
	return Digest{Acts: sum(acts), Words: sum(words)}
}

func sum(h hash.Hash) [sha256.Size]byte { return [sha256.Size]byte(h.Sum(nil)) }

// Transcribe plays a scenario and writes down what the digest is made of: what was done, and what was said.
func Transcribe(s Scenario, acts, words io.Writer) {
	w := newWorld(s)
	w.transcript = &transcript{w: w, acts: acts, words: words}
	w.server.OnRequest(w.transcript.request)
	w.server.OnWrite(func(actor string, r apiserver.Request, before, after runtime.Object) {
		w.transcript.wrote(actor, r, after)
		w.wrote(actor, r, before, after)
	})
	w.play()
	r := w.result()
	fmt.Fprintf(acts, "ends after %s, %d updated, %q\n", r.Took, r.Updated, r.Violation)
	r.Trace(words, 0)
}

// transcript writes down a run; nil writes nothing.
type transcript struct {
	w           *world
	acts, words io.Writer
}

func (t *transcript) act(format string, args ...any) {
	if t == nil {
		return
	}
	fmt.Fprintf(t.acts, "%d ", t.w.now.Sub(t.w.begun()))
	fmt.Fprintf(t.acts, format+"\n", args...)
}

// request notes each request of any process, and how it ended.
func (t *transcript) request(actor string, r apiserver.Request, err error) {
	ended := "done"
	if err != nil {
		ended = "failed " + string(apierrors.ReasonForError(err))
	}
	t.act("%s %s: %s", actor, r, ended)
}

// wrote notes what stands after a write, apart from its messages.
func (t *transcript) wrote(actor string, r apiserver.Request, after runtime.Object) {
	if after == nil {
		t.act("%s %s: gone", actor, r)
		return
	}
	if n, ok := after.(*corev1.Node); ok {
		shown := n.DeepCopy()
		t.mute(shown.Annotations)
		after = shown
	}
	text, err := json.Marshal(after)
	if err != nil {
		panic(err)
	}
	t.act("%s %s: %s", actor, r, text)
}

// mute takes what is said out of a node's annotations, and writes it down as that.
func (t *transcript) mute(annotations map[string]string) {
	said := map[string]string{}
	for _, k := range []marker.Key{marker.KeyMessage, marker.KeyWaitingFor, marker.KeyFailure} {
		if value, stands := annotations[string(k)]; stands {
			said[string(k)] = value
		}
	}
	delete(annotations, string(marker.KeyMessage))
	if reason, _, found := strings.Cut(said[string(marker.KeyWaitingFor)], ": "); found {
		annotations[string(marker.KeyWaitingFor)] = reason
	}
	if f := said[string(marker.KeyFailure)]; f != "" {
		var fields map[string]json.RawMessage
		if json.Unmarshal([]byte(f), &fields) == nil {
			maps.DeleteFunc(fields, func(name string, _ json.RawMessage) bool { return name == "message" })
			muted, err := json.Marshal(fields)
			if err != nil {
				panic(err)
			}
			annotations[string(marker.KeyFailure)] = string(bytes.TrimSpace(muted))
		}
	}
	text, err := json.Marshal(said)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(t.words, "%s\n", text)
}

// plan notes what is said of every node.
func (t *transcript) plan(out plan.Plan) {
	if t == nil {
		return
	}
	for _, n := range out.Nodes {
		t.act("plan: %s %s %s %s %s", n.Node, n.Phase, n.Act, n.Reason, n.NotBefore)
		fmt.Fprintf(t.words, "%s: %s\n", n.Node, n.Message)
	}
}
