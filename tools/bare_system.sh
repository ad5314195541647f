# SPDX-License-Identifier: Apache-2.0
# Sourced by what tries things on a bare Debian 12 (check_bare_debian, tests/packages/check). Needs root, debootstrap and a network.
# The caller sets scratch; base is bootstrapped there once, and system is a copy of it in which things happen.
base=$scratch/base system=$scratch/system
mkdir -p "$scratch"

# What is missing here to have one: a sentence, or nothing.
bare_missing() {
  if ((EUID != 0)); then
    echo "chroot and mounts need root: run this as root"
  elif ! command -v debootstrap >/dev/null; then
    echo "install debootstrap first: apt-get install debootstrap"
  elif ! unshare --mount true 2>/dev/null; then
    echo "nothing may be mounted here"
  elif [[ ! $(bare_mirror) ]]; then
    echo "no Debian mirror found in /etc/apt: name one in sources.list"
  fi
}

# The mirror this machine itself uses, in either of apt's two formats.
bare_mirror() {
  { cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null || true; } |
    sed -nE 's/^(URIs:|deb( \[[^]]*\])?)[[:space:]]+([a-z]+:[^[:space:]]*debian\/?)([[:space:]].*)?$/\3/p' | head -n 1
}

bare_unmount() {
  local point
  for point in dev/shm dev sys proc; do
    if mountpoint -q "$system/$point"; then umount "$system/$point"; fi
  done
}
trap bare_unmount EXIT

# A base once, and of it a system anew, with what every container has: /proc, /sys, /dev, its own name for itself.
bare_fresh() {
  if [[ ! -f $base/etc/debian_version ]]; then
    echo "==> bootstrapping bookworm (once) into $base"
    rm -rf "$base" "$base.part"
    debootstrap --variant=minbase bookworm "$base.part" "$(bare_mirror)" >"$scratch/debootstrap.log" 2>&1 ||
      { tail -n 20 "$scratch/debootstrap.log"; return 1; }
    mv "$base.part" "$base"
  fi
  bare_unmount
  rm -rf --one-file-system "$system" # whatever is still mounted there
  cp -a --reflink=auto "$base" "$system"
  cp -L /etc/resolv.conf "$system/etc/resolv.conf" 2>/dev/null || true
  echo "127.0.0.1 localhost" >"$system/etc/hosts"
  mount -t proc proc "$system/proc"
  mount -t sysfs -o ro sysfs "$system/sys"
  mount -t tmpfs -o mode=755 tmpfs "$system/dev"
  mkdir -p "$system/dev/shm"
  local node
  for node in "null 3" "zero 5" "full 7" "random 8" "urandom 9"; do
    mknod -m 666 "$system/dev/${node% *}" c 1 "${node#* }"
  done
  ln -s /proc/self/fd "$system/dev/fd"
  ln -s /proc/self/fd/0 "$system/dev/stdin"
  ln -s /proc/self/fd/1 "$system/dev/stdout"
  ln -s /proc/self/fd/2 "$system/dev/stderr"
  mount -t tmpfs -o mode=1777 tmpfs "$system/dev/shm"
  local missing
  for missing in gcc g++ cmake ninja; do
    if chroot "$system" sh -c "command -v $missing" >/dev/null; then
      echo "error: the base is not bare, it has $missing; remove $base"
      return 1
    fi
  done
}

# bare_run COMMAND: in the system, as root and without a terminal, as in a build container.
bare_run() {
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb chroot "$system" setsid -w bash -c "$1" </dev/null
}
