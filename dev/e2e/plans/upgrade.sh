#!/bin/sh
# What rancher/k3s-upgrade does to a host, done to its kubelet: it replaces the binary below /host by the one that it
# brings, and ends the process, which the host's service manager starts anew.
set -eu
[ "$*" = upgrade ] || { echo "asked for $*" >&2; exit 1; }
brings=$(/opt/kubelet --version)
brings=${brings#Kubernetes }
# As tags of images are written.
if [ "${brings%+*}-${brings#*+}" != "$SYSTEM_UPGRADE_PLAN_LATEST_VERSION" ]; then
  echo "this image brings $brings, not $SYSTEM_UPGRADE_PLAN_LATEST_VERSION" >&2
  exit 1
fi
pid=
for process in /proc/[0-9]*; do
  if read -r name <"$process/comm" && [ "$name" = kubelet ]; then pid=${process#/proc/}; fi
done 2>/dev/null
[ -n "$pid" ] || { echo "the host has no kubelet" >&2; exit 1; }
binary=$(readlink "/proc/$pid/exe")
cp /opt/kubelet "/host$binary.new"
mv "/host$binary.new" "/host$binary"
kill "$pid"
