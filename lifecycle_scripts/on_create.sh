#!/usr/bin/env bash
# HyperPod runs this as root on every new node, before the node takes work. It starts the steps in podwright_node and
# keeps what they say where HyperPod's agent picks it up for CloudWatch (stream LifecycleConfig/GROUP/INSTANCE).
# Its argument is the name that it has in the log; on_init_complete.sh gives its own.
set -euo pipefail

# Only tests set these: the root of the file system, and the time that the agent gets to ship the log of a node that
# failed, before HyperPod takes the node away.
readonly ROOT="${PODWRIGHT_ROOT:-/}"
readonly LOG_FLUSH_SECONDS="${PODWRIGHT_LOG_FLUSH_SECONDS:-60}"
readonly LOG="${ROOT%/}/var/log/provision/provisioning.log"
readonly NAME="${1:-on_create}"
# What the agent's own path holds is not documented.
export PATH="${PATH}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# What goes to the log goes to standard error as well: a full disk takes only one of them.
say() {
  printf '%s %s: %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "${NAME}" "$*" | tee -a "${LOG}" >&2
}

finish() {
  local -r status=$?
  if ((status != 0)); then
    say "failed with status ${status}; waiting ${LOG_FLUSH_SECONDS} s for the log to reach CloudWatch" || true
    sync
    sleep "${LOG_FLUSH_SECONDS}"
  fi
}

main() {
  trap finish EXIT
  mkdir -p "$(dirname -- "${LOG}")"
  local here
  here="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"
  cd -- "${here}"
  say "starts in ${here}"
  # -B: the folder stays exactly what was published.
  python3 -B -m podwright_node --root "${ROOT}" 2>&1 | tee -a "${LOG}" >&2
  say "done"
}

main "$@"
