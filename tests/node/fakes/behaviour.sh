# shellcheck shell=bash
# What all stand-ins share. Each notes its call, and does as the lines `PATTERN|ACTION` in run/fake/behaviour say:
# ACTION is a number of seconds to take, `hang`, or words to fail with. Sourced with the words of the call.
readonly STATE="${PODWRIGHT_ROOT}/run/fake"
mkdir -p "${STATE}"
echo "${0##*/} $*" >>"${STATE}/calls"
if [[ -e "${STATE}/behaviour" ]]; then
  while IFS='|' read -r pattern action; do
    # shellcheck disable=SC2053  # it is a pattern
    [[ "${0##*/} $*" == ${pattern} ]] || continue
    case "${action}" in
      hang) exec sleep 1000 ;;
      [0-9]*) sleep "${action}" ;;
      *)
        echo "${action}" >&2
        exit 1
        ;;
    esac
  done <"${STATE}/behaviour"
fi
