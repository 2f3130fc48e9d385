// Package apiserver is a Kubernetes API server in memory, for simulations on a virtual clock. It is
// test support and no part of the product.
//
// It imports client-go's typed interfaces and nothing of the operator, so that a mistake over there
// can't hide itself in here.
//
// What it promises:
//
//   - The same requests at the same times give the same answers, UIDs and resourceVersions included. It
//     has no goroutine, no lock and no randomness, and reads no clock but the one it is given. It is
//     used by one goroutine at a time.
//   - Nodes, Pods, PodTemplates, ConfigMaps, Secrets, Leases, PodDisruptionBudgets, DaemonSets, ReplicaSets,
//     VolumeAttachments and PersistentVolumeClaims behave as on a real server, as far as they are simulated: optimistic
//     locking, preconditions, writes that change nothing, status apart from the rest, graceful deletion,
//     finalizers, creations that are a dry run, evictions, watches, compaction. The differential test holds it against a real kube-apiserver; where
//     the two differ this one is wrong.
//   - What isn't simulated panics and names the request. Nothing is ignored silently, but for what this
//     list names.
//   - What goes in and out through a Client is a copy. The Server's own accessors return what is stored,
//     which is never changed once it is stored: read only.
//
// An eviction is several writes, as on a real server: the budget's status, the pod's condition, the
// pod's deletion. Nothing comes between them here, since no second request runs meanwhile.
//
// Not simulated: namespaces (all exist), authorization and admission but for OnCreate (no taint on a new Node, no
// tolerations or service account on a new Pod, no finalizer on a new PersistentVolumeClaim), defaults but
// for a Pod's grace period and a ReplicaSet's replicas, validation of specs beyond what an update may not
// change, managed fields, QoS classes, garbage collection, generateName, server-side apply, strategic and
// JSON patches, pages of a list. A real server tries an eviction of a finished or pending pod again for
// ten seconds after a conflict; here it conflicts at once. A real server drops unknown fields of a patch
// with a warning; here they panic.
package apiserver
