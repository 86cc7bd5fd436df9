#!/usr/bin/env bats
# The two scripts that HyperPod runs, with a stand-in for Python.

setup() {
  export PODWRIGHT_ROOT="${BATS_TEST_TMPDIR}/root" PODWRIGHT_LOG_FLUSH_SECONDS=0
  bundle="${BATS_TEST_TMPDIR}/bundle"
  mkdir -p "${PODWRIGHT_ROOT}" "${bundle}" "${BATS_TEST_TMPDIR}/bin"
  cp "${BATS_TEST_DIRNAME}/../../lifecycle_scripts/"*.sh "${bundle}"
  python 'echo "$@ in ${PWD##*/}"'
  PATH="${BATS_TEST_TMPDIR}/bin:${PATH}"
  log="${PODWRIGHT_ROOT}/var/log/provision/provisioning.log"
}

# Let Python be these lines.
python() {
  printf '#!/usr/bin/env bash\n%s\n' "$1" >"${BATS_TEST_TMPDIR}/bin/python3"
  chmod +x "${BATS_TEST_TMPDIR}/bin/python3"
}

@test "runs the steps in the folder that was published, and leaves no caches there" {
  run bash "${bundle}/on_create.sh"
  [ "${status}" -eq 0 ]
  grep -qx -- "-B -m podwright_node --root ${PODWRIGHT_ROOT} in bundle" "${log}"
  grep -q "on_create: starts in ${bundle}$" "${log}"
  tail -1 "${log}" | grep -q "on_create: done$"
}

@test "says the same on standard error" {
  bash "${bundle}/on_create.sh" 2>"${BATS_TEST_TMPDIR}/errors"
  diff "${log}" "${BATS_TEST_TMPDIR}/errors"
}

@test "on_init_complete does the same under its own name" {
  run bash "${bundle}/on_init_complete.sh"
  [ "${status}" -eq 0 ]
  grep -q -- "-B -m podwright_node" "${log}"
  grep -q "on_init_complete: done$" "${log}"
}

@test "passes a failure on, after the log had time to be shipped" {
  python 'echo "the reason"; exit 3'
  export PODWRIGHT_LOG_FLUSH_SECONDS=2
  SECONDS=0
  run bash "${bundle}/on_init_complete.sh"
  [ "${status}" -eq 3 ]
  [ "${SECONDS}" -ge 2 ]
  grep -qx "the reason" "${log}"
  tail -1 "${log}" | grep -q "on_init_complete: failed with status 3; waiting 2 s for the log to reach CloudWatch$"
}

@test "a killed Python is a failure" {
  python 'kill -9 $$'
  run bash "${bundle}/on_create.sh"
  [ "${status}" -eq 137 ]
  grep -q "failed with status 137" "${log}"
}

@test "waits a minute when nobody says otherwise" {
  python 'exit 1'
  unset PODWRIGHT_LOG_FLUSH_SECONDS
  printf '#!/usr/bin/env bash\necho "$1" >"%s/slept"\n' "${BATS_TEST_TMPDIR}" >"${BATS_TEST_TMPDIR}/bin/sleep"
  chmod +x "${BATS_TEST_TMPDIR}/bin/sleep"
  run bash "${bundle}/on_create.sh"
  [ "${status}" -eq 1 ]
  [ "$(cat "${BATS_TEST_TMPDIR}/slept")" -eq 60 ]
}

@test "a log that cannot be written is a failure that standard error tells" {
  mkdir -p "${log}"
  run bash "${bundle}/on_create.sh"
  [ "${status}" -eq 1 ]
  [[ "${output}" == *"on_create: starts in"* ]]
}
