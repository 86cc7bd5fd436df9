#!/usr/bin/env bash
# Makes a machine of its own out of this one, for as long as it runs: a throw-away layer over the file system, its own
# processes, network and host name. enter.sh FOLDER BUNDLE PARTS NAME ADDRESS...
# BUNDLE and PARTS appear in it as /bundle and /parts; nobody outside reaches its addresses. It ends with its standard
# input.
set -euo pipefail

readonly FOLDER="$1" BUNDLE="$2" PARTS="$3" NAME="$4"
shift 4
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

hostname "${NAME}"
ip link set lo up
ip link add eth0 type veth peer name eth1
for address in "$@"; do ip address add "${address}/32" dev eth0; done
ip link set eth0 up
ip link set eth1 up

cd "${ROOT}"
exec chroot "${ROOT}" bash -c 'cd /; echo ready; read -r'
