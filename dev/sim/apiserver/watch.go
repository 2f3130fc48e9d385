package apiserver

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Event is one event of a watch.
type Event struct {
	// Type is Added, Modified or Deleted; or Error, after which the watch has ended, with a metav1.Status.
	Type   watch.EventType
	Object runtime.Object
	// Revision is that of the write, and At when it was.
	Revision int64
	At       time.Time
}

// Watch is a watch that is pulled.
type Watch struct {
	s *Server
	r *resource
	p *selector
	// first are the objects that were there at the start, if the watch didn't start from a revision.
	first []Event
	// next is the number of the next change to look at.
	next  int
	ended bool
}

// Watch starts a watch after a resourceVersion. From none, or "0", it first shows as Added what is
// there. One that is compacted away is answered with 410.
func (s *Server) Watch(sel Selection, fromRV string) (*Watch, error) {
	p, err := s.selector(sel)
	if err != nil {
		return nil, err
	}
	r := s.resources[sel.Resource]
	w := &Watch{s: s, r: r, p: p, next: r.base + len(r.log)}
	if fromRV == "" || fromRV == "0" {
		for _, o := range s.find(r, p) {
			rev, _ := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
			w.first = append(w.first, Event{Type: watch.Added, Object: o, Revision: rev, At: s.now()})
		}
		return w, nil
	}
	from, err := strconv.ParseInt(fromRV, 10, 64)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if from < s.compacted {
		return nil, apierrors.NewResourceExpired("too old resource version: " + fromRV)
	}
	// A revision of the future has no changes yet; those up to it are not shown.
	if from > s.revision {
		notSimulated("a watch from the future")
	}
	n, _ := slices.BinarySearchFunc(r.log, from+1, func(c change, rev int64) int { return cmp.Compare(c.revision, rev) })
	w.next = r.base + n
	return w, nil
}

// Next returns the next event, or false if there is none yet, or no more after an Error.
func (w *Watch) Next() (Event, bool) {
	if w.ended {
		return Event{}, false
	}
	if len(w.first) > 0 {
		e := w.first[0]
		w.first = w.first[1:]
		e.Object = e.Object.DeepCopyObject()
		return e, true
	}
	if w.next < w.r.base {
		w.ended = true
		status := apierrors.NewResourceExpired("too old resource version").ErrStatus
		return Event{Type: watch.Error, Object: &status, Revision: w.s.revision, At: w.s.now()}, true
	}
	for w.next-w.r.base < len(w.r.log) {
		c := &w.r.log[w.next-w.r.base]
		w.next++
		had, has := w.p.matches(c.before), c.after != nil && w.p.matches(c.after)
		e := Event{Revision: c.revision, At: c.at}
		switch {
		case had && has:
			e.Type, e.Object = watch.Modified, c.after.DeepCopyObject()
		case has:
			e.Type, e.Object = watch.Added, c.after.DeepCopyObject()
		case had:
			// What it was when it last matched, with the revision of what ended that.
			last := c.last
			if last == nil {
				last = w.r.shallow(c.before)
				last.SetResourceVersion(c.after.GetResourceVersion())
			}
			e.Type, e.Object = watch.Deleted, last.DeepCopyObject()
		default:
			continue
		}
		return e, true
	}
	return Event{}, false
}
