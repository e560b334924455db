#!/usr/bin/env bash
# Installs what this project needs and is not there yet: Debian packages through apt-get, and torch
# and plotly into .venv. What is present is left alone, without touching the network.
#
#   scripts/setup.sh demo   to build and run `aah`
#   scripts/setup.sh test   that, and what its tests need
#   scripts/setup.sh ci     that, and clang's tools
set -euo pipefail
cd "$(dirname "$0")/.."

readonly PYTHON_PACKAGES=(torch==2.13.0 plotly==7.1.0)

packages=(g++ cmake ninja-build pkg-config python3 python3-venv
  libhwy-dev libcli11-dev libyaml-cpp-dev nlohmann-json3-dev libpcre2-dev libssl-dev libicu-dev
  bible-kjv)
tools=(g++ cmake ninja pkg-config python3 bible)
case "${1:-}" in
  demo) ;;
  test) packages+=(libgtest-dev libgmock-dev) ;;
  ci)
    packages+=(libgtest-dev libgmock-dev clang-19 clang-tidy-19 clang-format-19 libclang-rt-19-dev
      libomp-19-dev g++-12-aarch64-linux-gnu git)
    tools+=(clang++-19 clang-tidy-19 clang-format-19)
    ;;
  *)
    echo "setup: expected demo, test or ci, got '${1:-}'" >&2
    exit 2
    ;;
esac

install_debian_packages() {
  local missing=() package status
  for package in "${packages[@]}"; do
    status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$status" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0

  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "setup: expected to be root or to find sudo; have these packages installed, then run" \
        "this again: ${missing[*]}" >&2
      exit 2
    fi
    as_root=(sudo)
  fi
  echo "setup: installing ${missing[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq
    -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0)
  "${apt[@]}" update
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null >/dev/null
}

# Without apt-get we can only look: the names differ from one system to the next.
check_other_system() {
  local missing=() tool
  for tool in "${tools[@]}"; do
    command -v "$tool" >/dev/null || missing+=("$tool")
  done
  echo "setup: not a Debian system, so nothing was installed; needed are what Debian calls:" \
    "${packages[*]}" >&2
  if [ ${#missing[@]} -gt 0 ]; then
    echo "setup: these programs are missing, install them and run this again: ${missing[*]}" >&2
    exit 2
  fi
}

# Prints those of PYTHON_PACKAGES that .venv does not hold; a build such as 2.13.0+cpu counts.
missing_python_packages() {
  .venv/bin/python3 - "${PYTHON_PACKAGES[@]}" <<'PYTHON'
import importlib.metadata
import sys

for requirement in sys.argv[1:]:
    name, version = requirement.split("==")
    try:
        installed = importlib.metadata.version(name).split("+")[0]
    except importlib.metadata.PackageNotFoundError:
        installed = None
    if installed != version:
        print(requirement)
PYTHON
}

set_up_python() {
  local missing
  if ! .venv/bin/python3 -m pip --version >/dev/null 2>&1; then
    echo "setup: making the virtual environment .venv"
    python3 -m venv --clear .venv
  fi
  missing=$(missing_python_packages)
  [ -n "$missing" ] || return 0
  echo "setup: installing" $missing "into .venv (torch is large: this may take some minutes)"
  # shellcheck disable=SC2086  # one requirement a word
  .venv/bin/python3 -m pip install --quiet --disable-pip-version-check $missing </dev/null
}

if command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; then
  install_debian_packages
else
  check_other_system
fi
set_up_python
