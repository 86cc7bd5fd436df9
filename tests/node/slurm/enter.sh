#!/usr/bin/env bash
# Makes a machine of its own out of this one, for as long as it runs: a throw-away layer over the file system, its own
# processes, network and host name. enter.sh FOLDER BUNDLE
# PARTS: the two others appear in it as /bundle and /parts. It ends with its standard input.
set -euo pipefail

readonly FOLDER="$1" BUNDLE="$2" PARTS="$3"
readonly ROOT="${FOLDER}/root"

mount -t tmpfs tmpfs "${FOLDER}"
mkdir "${FOLDER}/upper" "${FOLDER}/work" "${ROOT}"
mount -t overlay overlay -o "lowerdir=/,upperdir=${FOLDER}/upper,workdir=${FOLDER}/work" "${ROOT}"
mount -t proc proc "${ROOT}/proc"
mount --rbind /dev "${ROOT}/dev"
mount --rbind /sys "${ROOT}/sys"
mount -t tmpfs tmpfs "${ROOT}/run"
mkdir "${ROOT}/bundle" "${ROOT}/parts"
mount --bind "${BUNDLE}" "${ROOT}/bundle"
mount --bind "${PARTS}" "${ROOT}/parts"
mount -t tmpfs -o mode=1777 tmpfs "${ROOT}/tmp"

hostname ip-10-16-5-9
ip link set lo up
ip link add eth0 type veth peer name eth1
for address in 9 11 12 13 14; do ip address add "10.16.5.${address}/24" dev eth0; done
ip link set eth0 up
ip link set eth1 up

cd "${ROOT}"
exec chroot "${ROOT}" bash -c 'cd /; echo ready; read -r'
