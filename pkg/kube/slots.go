package kube

import (
	"context"
	"encoding/json"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/fleet"
	"github.com/bottlerocket-os/bottlerocket-update-operator/pkg/intent"
)

// StateConfigMap is the controller's own object in the operator's namespace.
const StateConfigMap = "update-state"

// slotsKey holds a JSON object: the UIDs of the nodes that hold a slot, each with its node's name.
const slotsKey = "slots"

// SlotsUnreadableError means that the list of slots stands there and can't be read. Nothing may start.
type SlotsUnreadableError struct{ Err error }

func (e *SlotsUnreadableError) Error() string {
	return "ConfigMap " + StateConfigMap + ", key " + slotsKey + ": " + e.Err.Error() +
		"; correct it, or delete the ConfigMap and it is rebuilt from the nodes"
}

// Unwrap returns the cause.
func (e *SlotsUnreadableError) Unwrap() error { return e.Err }

// takesKey counts the writes that took slots: a write that changes nothing leaves the resourceVersion as
// it is, and then no write from an older read would fail.
const takesKey = "takes"

// slots is the list of slot holders as it was last read or written. It may be old; every change is a
// compare-and-swap on the resourceVersion, so an old list can't be written from.
type slots struct {
	client    kubernetes.Interface
	namespace string

	mu     sync.Mutex
	object *corev1.ConfigMap
}

// ForgetSlots makes the next look a live one: for a new leader, and after an error.
func (k *Cluster) ForgetSlots() {
	k.slots.mu.Lock()
	defer k.slots.mu.Unlock()
	k.slots.object = nil
}

// State is what the controller's own object says, by one look at it.
type State struct {
	// Slots are the holders, by UID with their node's name.
	Slots map[string]string
	// FirstSeen is since when each version has been known. What can't be read is no version's age: it begins anew.
	FirstSeen map[string]time.Time
	// HadPolicy reports whether this cluster has had a policy.
	HadPolicy bool
	// Notices is what pkg/notice keeps there; empty if nothing is kept.
	Notices string
	// Rollouts is what pkg/rollout keeps there; empty if nothing is kept.
	Rollouts string
}

// State returns what the object says. The rest of it stands also beside a SlotsUnreadableError.
func (k *Cluster) State(ctx context.Context) (State, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	s := &k.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.object == nil {
		if err := s.load(ctx); err != nil {
			return State{}, err
		}
	}
	held, err := holders(s.object)
	return State{Slots: held, FirstSeen: firstSeen(s.object.Data[seenKey]), HadPolicy: s.object.Data[hadPolicyKey] != "",
		Notices: s.object.Data[noticesKey], Rollouts: s.object.Data[rolloutsKey]}, err
}

// ChangeSlots adds and removes holders in one compare-and-swap. Adding is always a write, also of one that
// holds a slot already: then a process that is about to free it from an older read can't. After ErrConflict look
// again: another leader has written.
func (k *Cluster) ChangeSlots(ctx context.Context, add map[string]string, remove []string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	s := &k.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.object == nil {
		return errors.WithMessage(ErrConflict, "writing slots")
	}
	held, err := holders(s.object)
	if err != nil {
		return err
	}
	after := maps.Clone(held)
	for uid, name := range add {
		after[uid] = name
	}
	for _, uid := range remove {
		delete(after, uid)
	}
	if len(add) == 0 && maps.Equal(held, after) {
		return nil
	}
	value, err := json.Marshal(after)
	if err != nil {
		return errors.Wrap(err, "encoding slots")
	}
	values := map[string]string{slotsKey: string(value)}
	if len(add) > 0 {
		// What isn't a number begins anew; it differs all the same.
		takes, _ := strconv.ParseUint(s.object.Data[takesKey], 10, 32)
		values[takesKey] = strconv.FormatUint(takes+1, 10)
	}
	return s.put(ctx, "writing slots", values)
}

// record gives one key the value that change makes of the one that stands there, by compare-and-swap.
func (s *slots) record(ctx context.Context, doing, key string, change func(stands string) (string, error)) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.object == nil {
		return errors.WithMessage(ErrConflict, doing)
	}
	value, err := change(s.object.Data[key])
	if err != nil {
		return err
	}
	return s.put(ctx, doing, map[string]string{key: value})
}

// put writes values into the object as it was read last, if it was not written to since. Whatever comes of it, the
// object is read again before it is written again, unless it was written now.
func (s *slots) put(ctx context.Context, doing string, values map[string]string) error {
	object := s.object.DeepCopy()
	if object.Data == nil {
		object.Data = map[string]string{}
	}
	maps.Copy(object.Data, values)
	s.object = nil
	written, err := s.client.CoreV1().ConfigMaps(s.namespace).Update(ctx, object, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return errors.WithMessage(ErrConflict, doing)
	}
	if err != nil {
		return errors.Wrapf(err, "writing ConfigMap %s/%s", s.namespace, StateConfigMap)
	}
	s.object = written
	return nil
}

func holders(object *corev1.ConfigMap) (map[string]string, error) {
	held := map[string]string{}
	value, ok := object.Data[slotsKey]
	if !ok {
		return held, nil
	}
	if err := json.Unmarshal([]byte(value), &held); err != nil {
		return nil, &SlotsUnreadableError{Err: err}
	}
	if held == nil {
		return nil, &SlotsUnreadableError{Err: errors.New("it is null, and no list of holders")}
	}
	return held, nil
}

// mayHold reports whether a node may have held a slot in a list that is gone.
func mayHold(n *fleet.Node) bool { return n.Disrupted() || n.Phase() == intent.PhaseStaged }

// load reads the object live. One that is missing, or has no list, is rebuilt from a live list of nodes.
func (s *slots) load(ctx context.Context) error {
	maps := s.client.CoreV1().ConfigMaps(s.namespace)
	object, err := maps.Get(ctx, StateConfigMap, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return errors.Wrapf(err, "reading ConfigMap %s/%s", s.namespace, StateConfigMap)
	}
	if !missing {
		if _, ok := object.Data[slotsKey]; ok {
			s.object = object
			return nil
		}
	}
	held, err := s.rebuilt(ctx)
	if err != nil {
		return err
	}
	value, err := json.Marshal(held)
	if err != nil {
		return errors.Wrap(err, "encoding slots")
	}
	if missing {
		object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: StateConfigMap},
			Data: map[string]string{slotsKey: string(value)}}
		object, err = maps.Create(ctx, object, metav1.CreateOptions{})
	} else {
		if object.Data == nil {
			object.Data = map[string]string{}
		}
		object.Data[slotsKey] = string(value)
		object, err = maps.Update(ctx, object, metav1.UpdateOptions{})
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return errors.WithMessage(ErrConflict, "rebuilding slots")
	}
	if err != nil {
		return errors.Wrapf(err, "rebuilding ConfigMap %s/%s", s.namespace, StateConfigMap)
	}
	s.object = object
	return nil
}

// rebuilt lists live, page by page, which nodes must be taken for holders: those that show a disruption, and those that
// are staged. One of the latter may have had a slot in the list that is gone, and its cordon may be under way from a
// leader that was held up in between. The plan finds that it shows no disruption, and fences it (S1).
func (s *slots) rebuilt(ctx context.Context) (map[string]string, error) {
	held := map[string]string{}
	_, err := inPages(ctx, pageSize, metav1.ListOptions{}, s.client.CoreV1().Nodes().List, func(page *corev1.NodeList) {
		for i := range page.Items {
			if n := View(&page.Items[i]); mayHold(&n) {
				held[n.UID] = n.Name
			}
		}
	})
	return held, errors.Wrap(err, "listing nodes")
}
