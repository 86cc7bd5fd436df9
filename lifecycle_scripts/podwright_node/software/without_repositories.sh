#!/usr/bin/env bash
# Runs a command that finds no package repository: without_repositories.sh ROOT FOLDER COMMAND...
#
# Started in a mount namespace of its own, so the lists of repositories are empty for the command and for nobody else.
# apt is content with no list. dnf refuses to work without a repository, even for what is installed already and for
# package files that it is handed, so it gets one that is empty.
set -euo pipefail

empty_repository() {
  local -r folder="$1"
  local -r common='http://linux.duke.edu/metadata'
  mkdir -p "${folder}/none/repodata"
  printf '<metadata xmlns="%s/common" packages="0"/>\n' "${common}" >"${folder}/none/repodata/primary.xml"
  local digest
  digest="$(sha256sum "${folder}/none/repodata/primary.xml" | cut -d ' ' -f 1)"
  cat >"${folder}/none/repodata/repomd.xml" <<END
<repomd xmlns="${common}/repo">
  <data type="primary">
    <checksum type="sha256">${digest}</checksum>
    <location href="repodata/primary.xml"/>
  </data>
</repomd>
END
  printf '[none]\nname=none\nbaseurl=file://%s/none\nenabled=1\n' "${folder}" >"${folder}/none.repo"
}

main() {
  local -r root="$1"
  local -r folder="$2"
  shift 2
  if [[ -d "${root}/etc/yum.repos.d" ]]; then
    mount -t tmpfs none "${root}/etc/yum.repos.d"
    empty_repository "${root}/etc/yum.repos.d"
  fi
  if [[ -d "${root}/etc/apt/sources.list.d" ]]; then
    mount -t tmpfs none "${root}/etc/apt/sources.list.d"
  fi
  if [[ -f "${root}/etc/apt/sources.list" ]]; then
    mount --bind /dev/null "${root}/etc/apt/sources.list"
  fi
  cd -- "${folder}"
  exec "$@"
}

main "$@"
