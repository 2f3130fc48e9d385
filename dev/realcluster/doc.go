// Package realcluster runs a real Kubernetes cluster of several nodes on one Linux machine, without a
// container engine, for dev/e2e: kubelet, containerd, runc, kube-proxy and CoreDNS on every node, each node in
// namespaces of its own, whose power can be cut at any time; dev/simcluster needs none of these. The hosts behind the nodes' /run/api.sock are
// simulated (dev/hostsim); a reboot that is asked of one is a power cut of its node, and a boot with a
// new boot ID and the os-release of what the host booted.
//
// Nodes of Debian can join, for what plans do: without a host's API, and with a /usr/local of their own, in which a pod
// may replace what the node runs, the kubelet too. The images that public ones stand for are made of programs of the
// machine (System).
//
// It promises:
//
//   - Everything is built from the modules pinned in dev/controlplane/programs and programs, but for
//     Debian's runc, as a runc that is built without libseccomp can't run the operator's pods, and what a System holds.
//   - No node has a way to the machine's own network, or to another cluster's: one network namespace holds
//     the bridge, and the API server.
//   - No pod reaches a process, a disk or a file of the machine that it could change by mistake, however privileged it is:
//     / of a node is a folder, with the machine's /usr to read; its PID namespace holds the node's own processes, so that
//     kill and reboot(2) end at the node; and /dev has no disk. A pod that is out for harm is not held back: a
//     privileged one can make the devices that it misses. A test runs its own programs only.
//   - Nothing outlives the program that started it, however it ends: all processes of a node are in a
//     PID namespace whose first process ends with its parent (see dev/process), its mounts and links end
//     with its namespaces. What is left of a program that was killed, empty cgroups and a folder in the
//     cache, is removed by the next start.
//
// What it changes on the machine itself: fs.inotify.max_user_instances while it runs, which a program that is
// killed leaves raised; and a kubelet sets
// vm.overcommit_memory, kernel.panic and kernel.panic_on_oops, which are the kernel's and not a namespace's.
//
// It needs root and cgroups of version 1; Missing says what else, and what isn't there.
//
// It imports dev/controlplane, dev/hostsim, dev/image and dev/process, client-go, pkg/errors, x/sys, and nothing
// else of this repository.
package realcluster
