#!/usr/bin/env bash
# slurmctld runs this, as its own user, when it takes charge of the cluster and when it ends that (SlurmctldPrimaryOnProg
# and SlurmctldPrimaryOffProg of slurm.conf), and this tells the SNS topic of the environment. slurmctld does not wait for
# it; a topic that is out of reach is a line in slurmctld's log. Sources: slurm.conf(5); SageMaker Developer Guide, "Multiple
# controller nodes", where lifecycle scripts do this too.
set -euo pipefail

# Topic and cluster; the step slurm-failover wrote it.
HERE="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"
readonly HERE
# shellcheck source=/dev/null
source "${HERE}/podwright-failover.conf"
# slurmctld hands on next to no environment.
export PATH="${PATH:-}:/usr/local/bin:/usr/bin:/bin"

main() {
  local host subject region
  host="$(uname -n)"
  case "${BASH_SOURCE[0]##*/}" in
    *-on.sh) subject="${CLUSTER}: ${host} is the Slurm controller in charge" ;;
    *) subject="${CLUSTER}: ${host} is no longer the Slurm controller in charge" ;;
  esac
  # arn:PARTITION:sns:REGION:ACCOUNT:NAME; a subject has 100 characters at most.
  region="$(cut -d : -f 4 <<<"${TOPIC}")"
  timeout 60 aws sns publish --region "${region}" --topic-arn "${TOPIC}" --subject "${subject:0:100}" \
    --message "${subject}, since $(date -u +%Y-%m-%dT%H:%M:%SZ). \`scontrol ping\` shows all controllers." \
    --cli-connect-timeout 5 --cli-read-timeout 20
}

main "$@"
