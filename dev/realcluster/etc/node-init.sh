#!/bin/bash
# The first process of a node. "node-init ROOT" makes the node's file system of the folder ROOT and moves
# into it; then it runs itself again without an argument: network, containerd, kubelet and kube-proxy.
# From the environment: NODE ADDRESS GATEWAY BIN ROUTES
set -u
if [ $# -eq 1 ]; then
  set -e
  mount --bind "$1" "$1"
  cd "$1"
  hierarchies=$(awk -F: '$1 != 0 {print $2}' /proc/self/cgroup)
  # Of the machine's devices these alone: a privileged pod gets all that its node has, and is to see no disk.
  mount -t tmpfs -o mode=755 dev dev
  for device in null zero full random urandom tty kmsg; do
    touch "dev/$device"
    mount --bind "/dev/$device" "dev/$device"
  done
  mkdir dev/pts dev/shm dev/mqueue
  mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts dev/pts
  ln -s pts/ptmx dev/ptmx
  mount -t tmpfs -o mode=1777 shm dev/shm
  for link in fd:/proc/self/fd stdin:/proc/self/fd/0 stdout:/proc/self/fd/1 stderr:/proc/self/fd/2; do
    ln -s "${link#*:}" "dev/${link%%:*}"
  done
  mount -t proc proc proc
  mount -t sysfs sysfs sys
  mount -t tmpfs cgroup sys/fs/cgroup
  for h in $hierarchies; do # in a cgroup namespace these show the node's own alone
    mkdir "sys/fs/cgroup/${h#name=}"
    case $h in name=*) options=none,$h ;; *) options=$h ;; esac
    mount -t cgroup -o "$options" cgroup "sys/fs/cgroup/${h#name=}"
  done
  mount --bind /usr usr
  mount -o remount,bind,ro usr
  local=
  if [ -d opt/local ]; then # software of its own, which a pod may replace
    mount --bind opt/local usr/local
    local=/usr/local/bin:
  fi
  mount --bind /etc/alternatives etc/alternatives
  mount -o remount,bind,ro etc/alternatives
  mount --bind "$BIN" opt/bin
  mount -o remount,bind,ro opt/bin
  mount -t tmpfs tmpfs tmp
  # The kubelet reads it as the Node's bootID.
  mount --bind etc/boot-id proc/sys/kernel/random/boot_id
  hostname "$NODE"
  pivot_root . oldroot
  cd /
  umount -l /oldroot
  # Pods see what is mounted later.
  mount --make-rshared /
  PATH=$local/opt/bin:/usr/sbin:/usr/bin:/sbin:/bin exec /bin/bash /etc/node-init
fi

ip link set lo up
until ip link show eth0 >/dev/null 2>&1; do sleep 0.05; done
ip addr add "$ADDRESS/24" dev eth0
ip link set eth0 up
ip route add default via "$GATEWAY"
echo 1 >/proc/sys/net/ipv4/ip_forward
ip -batch - <<<"$ROUTES"

# Runs a program again and again; its process ID is in /run/NAME.pid.
keep() {
  local name=$1
  shift
  while :; do
    "$@" >>"/var/log/$name.log" 2>&1 &
    echo $! >"/run/$name.pid"
    wait $!
    echo "--- $name ended with $?" >>"/var/log/$name.log"
    sleep 1
  done &
}
export HOME=/
keep containerd containerd -c /etc/containerd/config.toml
until ctr -a /run/containerd/containerd.sock version >/dev/null 2>&1; do sleep 0.1; done
keep kubelet kubelet --config /etc/kubernetes/kubelet.yaml --kubeconfig /etc/kubernetes/kubelet.kubeconfig \
  --hostname-override "$NODE" --node-ip "$ADDRESS"
keep kube-proxy kube-proxy --config /etc/kubernetes/kube-proxy.yaml
# As the first process it has orphans to wait for, too.
while :; do
  wait
  sleep 1
done
