#!/usr/bin/env bash
# Lays out a node in its new namespaces: file system, devices, control groups and network.
# layout.sh ROOT DISK HARDWARE FILE_SYSTEMS NAME ADDRESS PODS LINK NETWORK PATH...
# ROOT and DISK are folders: where the node's root is mounted, and its configuration and logs. DISK.img is its disk: a
# file system in a file, so that it can be full while this machine's disk is not. Without loop devices, a folder of DISK
# takes its place. HARDWARE has the files of hardware.py, FILE_SYSTEMS a folder for each file system of FSx. ADDRESS is the
# node's, PODS the network of its pods. LINK becomes the other end of its network card, in the network namespace of the
# file descriptor NETWORK, which routes between nodes. Each PATH of this machine appears in the node, read-only.
set -euo pipefail

readonly ROOT="$1" DISK="$2" HARDWARE="$3" FILE_SYSTEMS="$4" NAME="$5" ADDRESS="$6" PODS="$7" LINK="$8" NETWORK="$9"
readonly GATEWAY=169.254.1.1
shift 9

mount --make-rprivate /
mount -t tmpfs -o mode=755,size=32m tmpfs "${ROOT}"
cd "${ROOT}"
mkdir -p dev etc home mnt opt proc root run sys tmp var/lib var/tmp usr
chmod 1777 tmp var/tmp

for path in "$@"; do
  if [[ -d "${path}" ]]; then mkdir -p ".${path}"; else mkdir -p ".${path%/*}" && touch ".${path}"; fi
  mount --rbind "${path}" ".${path}"
  mount -o remount,bind,ro ".${path}"
done
for path in /bin /sbin /lib /lib32 /lib64 /libx32; do
  if [[ -L "${path}" ]]; then cp --no-dereference "${path}" ".${path}"; fi
done
cp /etc/passwd /etc/group /etc/nsswitch.conf /etc/os-release etc/
printf '127.0.0.1 localhost\n%s %s\n' "${ADDRESS}" "${NAME}" >etc/hosts
: >etc/resolv.conf
printf '%s' "${NAME}" | sha256sum | cut -c 1-32 >etc/machine-id
cp --recursive "${DISK}/etc/." etc/
mkdir -p "${DISK}/log"
mkdir var/log
mount --bind "${DISK}/log" var/log
# A crash of this machine may damage the disk, so nothing waits for its data to be written.
if [[ ! -e "${DISK}.img" ]] || ! mount -o loop,discard,noatime,nobarrier,noinit_itable "${DISK}.img" var/lib; then
  mkdir -p "${DISK}/lib"
  mount --bind "${DISK}/lib" var/lib
fi
# No container outlives the node's processes, and images may be others now.
rm -rf var/lib/containerd
mkdir fsx
mount --bind "${FILE_SYSTEMS}" fsx
mount -t tmpfs -o mode=755 tmpfs run

mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mknod -m 666 dev/null c 1 3
mknod -m 666 dev/zero c 1 5
mknod -m 666 dev/full c 1 7
mknod -m 666 dev/random c 1 8
mknod -m 666 dev/urandom c 1 9
mknod -m 666 dev/tty c 5 0
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
for number in 0 1 2; do ln -s "/proc/self/fd/${number}" "dev/$(printf 'stdin\nstdout\nstderr' | sed -n "$((number + 1))p")"; done
# What would be the kernel's log: this machine's own stays out of reach.
: >dev/kmsg

mount -t proc proc proc
mount -t sysfs sysfs sys
mount --bind "${HARDWARE}/meminfo" proc/meminfo
mount --bind "${HARDWARE}/cpuinfo" proc/cpuinfo
mount --bind "${HARDWARE}/boot_id" proc/sys/kernel/random/boot_id
mount --bind "${HARDWARE}/cpu" sys/devices/system/cpu
if [[ -d sys/kernel/mm/hugepages ]]; then mount --bind "${HARDWARE}/hugepages" sys/kernel/mm/hugepages; fi
if [[ -d sys/devices/system/node ]]; then mount -t tmpfs tmpfs sys/devices/system/node; fi

if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
  mount -t cgroup2 cgroup2 sys/fs/cgroup
  # Groups with processes have no controllers for others below them.
  mkdir sys/fs/cgroup/system
  echo 0 >sys/fs/cgroup/system/cgroup.procs
  echo "$PPID" >sys/fs/cgroup/system/cgroup.procs
  sed 's/\</+/g' sys/fs/cgroup/cgroup.controllers >sys/fs/cgroup/cgroup.subtree_control
else
  mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup
  while IFS=: read -r _ controllers _; do
    if [[ -z "${controllers}" || "${controllers}" == name=* ]]; then continue; fi
    mkdir "sys/fs/cgroup/${controllers}"
    mount -t cgroup -o "${controllers}" cgroup "sys/fs/cgroup/${controllers}"
    for controller in ${controllers//,/ }; do
      [[ -e "sys/fs/cgroup/${controller}" ]] || ln -s "${controllers}" "sys/fs/cgroup/${controller}"
    done
  done </proc/self/cgroup
fi

hostname "${NAME}"
ip link set lo up
# The Services of Kubernetes' API and of names: the node itself answers for both.
ip address add 10.96.0.1/32 dev lo
ip address add 10.96.0.10/32 dev lo
ip link add eth0 type veth peer name "${LINK}" netns "/proc/self/fd/${NETWORK}"
ip link set eth0 up
ip address add "${ADDRESS}/32" dev eth0
ip route add "${GATEWAY}" dev eth0 scope link
ip route add default via "${GATEWAY}" dev eth0 src "${ADDRESS}"
nsenter --net="/proc/self/fd/${NETWORK}" bash -euc "
  ip link set lo up
  ip address replace ${GATEWAY}/32 dev lo
  echo 1 >/proc/sys/net/ipv4/ip_forward
  ip link set ${LINK} up
  ip route replace ${ADDRESS}/32 dev ${LINK}
  ip route replace ${PODS} via ${ADDRESS} dev ${LINK} onlink"
echo 1 >proc/sys/net/ipv4/ip_forward
