#!/usr/bin/env bash
# slurmd runs this before and after every job, as root (Prolog and Epilog of slurm.conf, by their folders prolog.d and
# epilog.d). It looks at what a job would trip over, takes some tenths of a second, and drains the node with the reason
# when something is missing: Slurm then queues the job again, for other nodes.
set -euo pipefail

# What this node has to have; the step slurm-health wrote it.
HERE="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"
readonly HERE
# shellcheck source=/dev/null
source "${HERE}/../podwright-health.conf"

readonly PATIENCE_SECONDS=20

bad() {
  local -r reason="podwright: $*"
  "${SCONTROL}" update "NodeName=${SLURMD_NODENAME}" State=DRAIN "Reason=${reason}" || true
  echo "${reason}" >&2
  exit 1
}

check_gpus() {
  local listed
  ((GPUS > 0)) || return 0
  listed="$(timeout "${PATIENCE_SECONDS}" nvidia-smi --list-gpus 2>&1)" ||
    bad "nvidia-smi says: $(head -n 1 <<<"${listed}")"
  local -r count="$(grep -c '^GPU ' <<<"${listed}" || true)"
  ((count >= GPUS)) || bad "${count} of ${GPUS} GPUs"
}

check_neuron() {
  local devices=()
  ((NEURON > 0)) || return 0
  mapfile -t devices < <(compgen -G "${NEURON_DEVICES}" || true)
  ((${#devices[@]} >= NEURON)) || bad "${#devices[@]} of ${NEURON} Neuron devices"
}

check_efa() {
  local device
  for device in "${EFA_DEVICES[@]}"; do
    [[ -e "${EFA_FOLDER}/${device}" ]] || bad "EFA device ${device} is gone"
  done
}

check_mounts() {
  local mount
  for mount in "${MOUNTS[@]}"; do
    timeout "${PATIENCE_SECONDS}" mountpoint --quiet "${mount}" || bad "${mount} is not mounted or hangs"
  done
}

check_space() {
  local free
  free="$(df --output=avail --block-size=1M "${SPACE_FOLDER}" | tail -n 1)"
  ((free >= SPACE_MIB)) || bad "${free} MiB free in ${SPACE_FOLDER}, ${SPACE_MIB} needed"
}

main() {
  check_gpus
  check_neuron
  check_efa
  check_mounts
  check_space
}

main "$@"
