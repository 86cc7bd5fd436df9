#!/usr/bin/env bash
# slurmd runs this before every job, as root, on nodes whose NVLink leaves the instance (Prolog of slurm.conf, by its
# folder prolog.d). It tells NVIDIA's IMEX service which nodes the job has, so that their GPUs can map each other's
# memory and no other job's, and waits until the service is ready. Otherwise it drains the node with the reason, and
# Slurm queues the job again. Sources: AWS PCS User Guide, "Configure UltraServer instances"; NVIDIA IMEX guide, per job.
set -euo pipefail

# Where things are on this node; the step slurm-imex wrote it.
HERE="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"
readonly HERE
# shellcheck source=/dev/null
source "${HERE}/../podwright-imex.conf"

bad() {
  local -r reason="podwright: $*"
  "${SCONTROL}" update "NodeName=${SLURMD_NODENAME}" State=DRAIN "Reason=${reason}" || true
  echo "${reason}" >&2
  exit 1
}

# Nodes of the job. A prolog does not have the list in its environment in every release of Slurm.
job_nodes() {
  local nodes="${SLURM_JOB_NODELIST:-${SLURM_NODELIST:-}}"
  [[ -n "${nodes}" ]] || nodes="$("${SQUEUE}" --noheader --jobs "${SLURM_JOB_ID}" --format %N)"
  "${SCONTROL}" show hostnames "${nodes}"
}

address_of() {
  local -r text="$("${SCONTROL}" --oneliner show node "$1" | grep -oP '(?<=\bNodeAddr=)\S+')"
  if [[ "${text}" =~ ^[0-9]+(\.[0-9]+){3}$ ]]; then
    echo "${text}"
  else
    getent ahostsv4 "${text}" | awk 'NR == 1 { print $1 }'
  fi
}

addresses() {
  local node address
  while read -r node; do
    address="$(address_of "${node}")" || address=""
    [[ -n "${address}" ]] || bad "no address of ${node}, which IMEX has to know"
    echo "${address}"
  done < <(job_nodes) | sort --unique --version-sort
}

others_here() {
  "${SQUEUE}" --noheader --nodelist "${SLURMD_NODENAME}" --states R --format %A | grep -vx "${SLURM_JOB_ID}" || true
}

ready() { [[ "$(timeout 10 nvidia-imex-ctl -q 2>/dev/null || true)" == READY ]]; }

main() {
  local wanted second
  wanted="$(addresses)"
  [[ -n "${wanted}" ]] || bad "job ${SLURM_JOB_ID} has no nodes that Slurm could name"
  if [[ -f "${NODES_CONFIG}" && "$(<"${NODES_CONFIG}")" == "${wanted}" ]] && ready; then
    return
  fi
  if [[ -n "$(others_here)" ]]; then
    # A restart would take the other job's mappings away; this one then has NVLink inside its instances alone.
    echo "podwright: another job runs here, so IMEX keeps its nodes" >&2
    return
  fi
  mkdir -p "$(dirname -- "${NODES_CONFIG}")"
  printf '%s\n' "${wanted}" >"${NODES_CONFIG}.new"
  mv "${NODES_CONFIG}.new" "${NODES_CONFIG}"
  timeout 60 systemctl restart nvidia-imex.service || bad "nvidia-imex.service does not restart"
  for ((second = 0; second < PATIENCE_SECONDS; second++)); do
    ready && return
    sleep 1
  done
  bad "IMEX is not ready after ${PATIENCE_SECONDS} s with $(wc -l <"${NODES_CONFIG}") nodes"
}

main "$@"
