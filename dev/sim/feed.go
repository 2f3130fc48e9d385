package sim

import (
	"context"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/bottlerocket-os/bottlerocket-update-operator/dev/sim/apiserver"
)

// feed is one watch of one process: it shows what happened in the order in which it did, but late, in
// bursts, twice, from anew, or not for a while. A reflector makes of it what an informer sees.
type feed struct {
	p     *process
	sel   apiserver.Selection
	watch *apiserver.Watch
	// stuck is until when nothing is shown.
	stuck time.Time
	// due tells that a delivery is on its way; upTo is then up to when all was shown.
	due  bool
	upTo time.Time
	sink sink
	// last is the event that was shown last, to be shown twice.
	last *apiserver.Event
}

// sink takes what a feed shows.
type sink interface {
	// replace is a list: what isn't in it is gone.
	replace(objects []runtime.Object)
	event(e apiserver.Event)
}

// open begins a feed with a list; lists may be old, as from a cache of the API server that lags.
func (w *world) open(p *process, sel apiserver.Selection, s sink) *feed {
	f := &feed{p: p, sel: sel, sink: s}
	w.watches = append(w.watches, f)
	f.list(true)
	return f
}

// list shows how things are, or were a while ago, and watches from there.
func (f *feed) list(old bool) {
	w := f.p.w
	// What came before a list isn't shown once more after it.
	f.last = nil
	rv := w.server.Revision()
	if old && !w.calm && w.chance(3) {
		if back := rv - int64(w.rng.IntN(12)); back > 0 && back < rv {
			if objects, err := w.server.ListAt(f.sel, back); err == nil {
				if f.watch, err = w.server.Watch(f.sel, strconv.FormatInt(back, 10)); err == nil {
					w.strike(StaleList)
					f.sink.replace(objects)
					f.schedule()
					f.upTo = w.checks.when(back)
					return
				}
			}
		}
	}
	version := strconv.FormatInt(rv, 10)
	objects, err := w.server.ListAt(f.sel, rv)
	if err == nil {
		f.watch, err = w.server.Watch(f.sel, version)
	}
	if err != nil {
		panic("sim: " + err.Error())
	}
	f.sink.replace(objects)
}

// schedule lets what is new be shown soon.
func (f *feed) schedule() {
	w := f.p.w
	if f.due || f.p.dead {
		return
	}
	f.due, f.upTo = true, w.now
	lag := w.between(time.Millisecond, 30*time.Millisecond)
	if !w.calm && w.chance(50) {
		lag = w.between(30*time.Millisecond, 2*time.Second)
	}
	if late := f.stuck.Sub(w.now); late > lag {
		lag = late
	}
	w.after(lag, f.deliver)
}

func (f *feed) deliver() {
	w := f.p.w
	f.due = false
	if f.p.dead {
		return
	}
	if f.p.stopped {
		// It reads what is in its socket once it is woken.
		f.due = true
		w.after(time.Second, f.deliver)
		return
	}
	if w.now.Before(f.stuck) || w.now.Before(w.apiDown) {
		f.stuck = maxTime(f.stuck, w.apiDown)
		upTo := f.upTo
		f.schedule()
		f.upTo = upTo
		return
	}
	upTo := f.upTo
	for range 1 + w.rng.IntN(4) {
		e, ok := f.watch.Next()
		if !ok {
			return
		}
		if e.Type == watch.Error {
			// What it wanted to go on from is compacted away: from anew.
			w.strike(Compaction)
			f.list(false)
			return
		}
		f.last, upTo = &e, e.At
		f.sink.event(e)
	}
	f.schedule()
	f.upTo = upTo
}

// shown is up to when the process has been shown all that happened.
func (f *feed) shown() time.Time {
	if f.due {
		return f.upTo
	}
	return f.p.w.now
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// informer is what a reflector and an indexer make of a feed, as kube.Informer.
type informer struct {
	indexer cache.Indexer
	handler cache.ResourceEventHandler
	// strip is what is kept of an object; nil: all of it.
	strip func(any) any
}

func newInformer(indexers cache.Indexers) *informer {
	return &informer{indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)}
}

// AddEventHandler is for kube.Informer.
func (i *informer) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.handler = h
	return i, nil
}

// GetIndexer is for kube.Informer.
func (i *informer) GetIndexer() cache.Indexer { return i.indexer }

// HasSynced is for kube.Informer.
func (i *informer) HasSynced() bool { return true }

// HasSyncedChecker is for cache.ResourceEventHandlerRegistration.
func (i *informer) HasSyncedChecker() cache.DoneChecker { panic("not simulated") }

// RunWithContext is for kube.Informer; the feed drives this one.
func (i *informer) RunWithContext(context.Context) {}

func (i *informer) replace(objects []runtime.Object) {
	here := map[string]bool{}
	for _, o := range objects {
		key, _ := cache.MetaNamespaceKeyFunc(o)
		here[key] = true
		i.set(o)
	}
	keys := i.indexer.ListKeys()
	slices.Sort(keys)
	for _, key := range keys {
		if here[key] {
			continue
		}
		if old, ok, _ := i.indexer.GetByKey(key); ok {
			_ = i.indexer.Delete(old)
			i.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: key, Obj: old})
		}
	}
}

func (i *informer) event(e apiserver.Event) {
	if e.Type != watch.Deleted {
		i.set(e.Object)
		return
	}
	if old, ok, _ := i.indexer.Get(e.Object); ok {
		_ = i.indexer.Delete(old)
		i.handler.OnDelete(e.Object)
	}
}

func (i *informer) set(o runtime.Object) {
	if i.strip != nil {
		o = i.strip(o).(runtime.Object)
	}
	old, had, _ := i.indexer.Get(o)
	_ = i.indexer.Add(o)
	if had {
		i.handler.OnUpdate(old, o)
	} else {
		i.handler.OnAdd(o, false)
	}
}
