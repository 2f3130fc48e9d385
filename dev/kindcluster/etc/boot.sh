# Makes a Bottlerocket host of a kind node, as far as the operator can tell. It runs before each start of the
# kubelet: the first time while the node joins, and after each boot, which empties /run.
set -eu
host=/bottlerocket
# The group of sockets to come is the folder's, so that who makes them needs no right to choose it.
chgrp 274 $host $host/api.sock
chmod g+s $host
# A link, not a mount: a mount would keep the old socket when the host makes a new one. The kubelet's check of
# a hostPath and containerd's mount follow it.
ln -sfn $host/api.sock /run/api.sock
ln -sfn $host/os-release /etc/os-release
ln -sfn $host/boot-id /etc/boot-id
# The kubelet reads it as the Node's bootID.
boot_id=/proc/sys/kernel/random/boot_id
grep -q " $boot_id " /proc/mounts || mount --bind $host/boot-id $boot_id
