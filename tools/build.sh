#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# build.sh PRESET [TARGET...]: configures a preset when needed and builds it. All output goes to stderr, so that callers
# whose stdout is data stay clean. SHW_JOBS limits the compile jobs (default: the processors of this machine).
set -euo pipefail
exec 1>&2
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH="$PWD/.venv/bin:$PATH:$HOME/.cargo/bin"

# The trees of one clone, and clones in other folders, share their objects: none holds the folder that it was compiled in.
export CCACHE_NOHASHDIR=1 CCACHE_BASEDIR="$PWD"
# Headers of tests that the sanitizer trees compile once.
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_ctime,include_file_mtime

preset=${1:-dev}
shift || true
case "$preset" in dev) tree=build ;; *) tree=build/$preset ;; esac

if [ ! -e "$tree/build.ninja" ] || [ CMakePresets.json -nt "$tree/build.ninja" ]; then
  cmake --preset "$preset" -B "$tree"
fi
# PyTorch installs in the background; what needs it was left out when it was not there yet.
if grep -qs '^SHW_TORCH_LEFT_OUT:INTERNAL=TRUE' "$tree/CMakeCache.txt" && compgen -G '.venv/stamps/torch-*' >/dev/null; then
  cmake "$tree"
fi
# CUDA likewise, in a folder of its own.
if grep -qs '^SHW_CUDA_LEFT_OUT:INTERNAL=TRUE' "$tree/CMakeCache.txt" &&
  compgen -G "${SHW_CUDA_WHEELS:-.venv/cuda}/.installed-*" >/dev/null; then
  cmake "$tree" ${SHW_CUDA_WHEELS:+-DSHW_CUDA_WHEELS="$SHW_CUDA_WHEELS"}
fi
targets=()
[ $# -eq 0 ] || targets=(--target "$@")
# nproc would follow OMP_NUM_THREADS, which the tests set to 1.
cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
cmake --build "$tree" --parallel "${SHW_JOBS:-$cores}" "${targets[@]}"
