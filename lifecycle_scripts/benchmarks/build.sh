#!/usr/bin/env bash
# Compiles the benchmark programs into DIR/bin, where they look for their libraries in DIR/lib.
#   build.sh DIR
# Read from the environment (not LIBRARIES and INCLUDES, which nvcc itself takes from there):
#   TOOLKIT          the CUDA toolkit that compiles (default /usr/local/cuda)
#   HEADER_FOLDERS   folders with further headers, separated by blanks
#   LIBRARY_FOLDERS  folders with cuBLASLt, NCCL and libcudart_static.a of the machine that runs the programs
#   RUN_FROM_THERE   not empty: programs look in LIBRARY_FOLDERS too, because nothing is shipped beside them
#   HOST_COMPILER    C++ compiler for that machine (default g++)
#   GPUS             compute capabilities to compile for (default: of all GPUs on HyperPod that CUDA 13 knows)
#   PROGRAMS         which ones (default all)
set -euo pipefail

here="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)"

# The file name of a shared library in the first of the folders that holds it: with or without a development link.
shared() {
  local -r name="$1"
  shift
  local folder file
  for folder in "$@"; do
    for file in "${folder}/${name}".so*; do
      [[ -e ${file} ]] && basename -- "${file}" && return
    done
  done
  echo "build.sh: no ${name}.so in $*" >&2
  return 1
}

main() {
  local -r target="$1" toolkit="${TOOLKIT:-/usr/local/cuda}" compiler="${HOST_COMPILER:-g++}"
  local -a gpus programs includes libraries options=() folders=() codes=()
  read -ra gpus <<<"${GPUS:-80 90 100 103 120}"
  read -ra programs <<<"${PROGRAMS:-gemm memory transfer collectives}"
  read -ra includes <<<"${HEADER_FOLDERS:-}"
  read -ra libraries <<<"${LIBRARY_FOLDERS:-${toolkit}/lib64 ${toolkit}/lib /usr/lib/$(uname -m)-linux-gnu /usr/lib64}"

  local gpu folder program
  # shellcheck disable=SC2016 # the loader expands it, not this shell
  local -r beside='-rpath=$ORIGIN/../lib'
  for gpu in "${gpus[@]}"; do
    codes+=(-gencode "arch=compute_${gpu},code=sm_${gpu}")
  done
  # GPUs that are newer than all of these start from the intermediate code of the last.
  codes+=(-gencode "arch=compute_${gpus[-1]},code=compute_${gpus[-1]}")
  for folder in "${includes[@]}"; do
    options+=("-I${folder}")
  done
  for folder in "${libraries[@]}"; do
    folders+=("-L${folder}")
    [[ -z ${RUN_FROM_THERE:-} ]] || folders+=(-Xlinker "-rpath=${folder}")
  done

  mkdir -p "${target}/bin"
  for program in "${programs[@]}"; do
    local -a needs=()
    [[ ${program} == gemm ]] && needs=("-l:$(shared libcublasLt "${libraries[@]}")")
    [[ ${program} == collectives ]] && needs=("-l:$(shared libnccl "${libraries[@]}")")
    "${toolkit}/bin/nvcc" -std=c++17 -O3 --threads 2 -ccbin "${compiler}" -Xcompiler -Wall,-Wextra,-Werror \
      "${codes[@]}" "${options[@]}" "${here}/${program}.cu" -o "${target}/bin/${program}" \
      "${folders[@]}" -Xlinker "${beside}" "${needs[@]}" -cudart none -l:libcudart_static.a -lpthread -ldl -lrt
  done
}

main "$@"
