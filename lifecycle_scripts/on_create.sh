#!/usr/bin/env bash
# HyperPod runs this as root on every new node, before the node takes work. It starts the steps in podwright_node and
# keeps what they say where HyperPod's agent picks it up for CloudWatch (stream LifecycleConfig/GROUP/INSTANCE).
set -euo pipefail

# Only tests set these: the root of the file system, and the time that the agent gets to ship the log of a node that
# failed, before HyperPod takes the node away.
readonly ROOT="${PODWRIGHT_ROOT:-/}"
readonly LOG_FLUSH_SECONDS="${PODWRIGHT_LOG_FLUSH_SECONDS:-60}"
readonly LOG="${ROOT%/}/var/log/provision/provisioning.log"

say() {
  printf '%s on_create: %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$*" >>"${LOG}"
}

finish() {
  local -r status=$?
  if ((status != 0)); then
    say "failed with status ${status}; waiting ${LOG_FLUSH_SECONDS} s for the log to reach CloudWatch"
    sync
    sleep "${LOG_FLUSH_SECONDS}"
  fi
}

main() {
  mkdir -p "$(dirname -- "${LOG}")"
  trap finish EXIT
  local here
  here="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"
  cd -- "${here}"
  say "starts in ${here}"
  # -B: the folder stays exactly what was published.
  python3 -B -m podwright_node --root "${ROOT}" >>"${LOG}" 2>&1
  say "done"
}

main "$@"
