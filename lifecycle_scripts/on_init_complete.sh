#!/usr/bin/env bash
# HyperPod runs this as root after the image's own initialisation, for groups whose life cycle begins with that. The
# steps are those of on_create.sh: each looks first what the image has done already.
set -euo pipefail

main() {
  local here
  here="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"
  exec bash "${here}/on_create.sh" on_init_complete
}

main "$@"
