#!/usr/bin/env bash
# Like AWS's installer, from its own folder only: packages, kernel module and, last, the list of what it installed.
set -euo pipefail
[[ -e env.sh ]]
# shellcheck source=/dev/null
source ./env.sh
cd "${PODWRIGHT_ROOT}"
echo "efa_installer.sh ${EFA_INSTALLER_VERSION} $*" >>run/fake/calls
shopt -s nullglob
repositories=(etc/yum.repos.d/[!n]* etc/apt/sources.list.d/*)
if ((${#repositories[@]})) || [[ -s etc/apt/sources.list ]]; then
  echo "there is a repository, and packages could come from it" >&2
  exit 1
fi
if [[ " $* " == *" --uninstall "* ]]; then
  rm -rf opt/amazon/efa_installed_packages opt/amazon/efa opt/amazon/ofi-nccl
  exit
fi
if [[ -e opt/amazon/efa_installed_packages ]] && [[ "$(<opt/amazon/efa_installed_packages)" == *"version: 1.51.0"* ]]; then
  echo "newer packages stay" >&2
  exit
fi
mkdir -p opt/amazon sys/module/efa
echo "${EFA_DRIVER}g" >sys/module/efa/version
packages="efa-config-1.18-1.amzn2023.noarch efa-${EFA_DRIVER}-1.amzn2023.x86_64"
if [[ " $* " != *" --minimal "* ]]; then
  mkdir -p opt/amazon/efa/bin opt/amazon/efa/include/rdma opt/amazon/ofi-nccl/lib opt/amazon/openmpi/bin
  touch opt/amazon/efa/bin/fi_info opt/amazon/efa/include/rdma/fabric.h opt/amazon/openmpi/bin/mpirun
  printf 'Initializing aws-ofi-nccl %s\0' "${PLUGIN}" >opt/amazon/ofi-nccl/lib/libnccl-net-ofi.so
  packages+=" libfabric-aws-${LIBFABRIC}-1.amzn2023.x86_64 libnccl-ofi-${PLUGIN}-1.amzn2023.x86_64"
fi
cat >opt/amazon/efa_installed_packages <<END
# EFA installer version: ${EFA_INSTALLER_VERSION}
# Debug packages installed: no
# Packages installed:
${packages}
END
