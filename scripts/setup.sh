#!/usr/bin/env bash
# Installs what a stage needs and is missing: `setup.sh build` the compiler and libraries (Debian packages), `setup.sh test`
# some more of those and the Python environment of the tests in build/venv (PyPI) with its test data.
set -euo pipefail
cd "$(dirname "$0")/.."

build_packages=(
  g++ cmake ninja-build
  libfmt-dev nlohmann-json3-dev libcli11-dev libprotozero-dev libxxhash-dev libsqlite3-dev
  libgtest-dev libgmock-dev
  python3 python3-venv
)

# pkg-config for programs that use an installed Heddle; shells and groff read what the command prints for them.
# python3-dev for the Python package, libpng-dev for an example. clang-19, lld-19 and rocm-device-libs compile kernels for AMD GPUs.
test_packages=(pkg-config zsh fish groff-base python3-dev libpng-dev clang-19 lld-19 rocm-device-libs)

install_packages() {
  local missing=()
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  if ! command -v apt-get >/dev/null; then
    echo "setup: this is no Debian; install the equivalents of: ${missing[*]}" >&2
    exit 1
  fi
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "setup: run 'apt-get install ${missing[*]}' as root, then again" >&2; exit 1; }
    as_root=(sudo)
  fi
  echo "setup: installing ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

case "${1:-}" in
  build) install_packages "${build_packages[@]}" ;;
  test)
    install_packages "${test_packages[@]}"
    # Marked by the hash of the requirements, so that a change of them is installed and nothing else is repeated.
    mark="build/venv/.requirements-$(sha256sum tests/requirements.txt | cut -c1-16)"
    if [ ! -e "$mark" ]; then
      echo "setup: Python packages of the tests into build/venv"
      python3 -m venv build/venv
      build/venv/bin/pip install --quiet --disable-pip-version-check -r tests/requirements.txt
      touch "$mark"
    fi
    # In an environment of its own, since other tests would find the libraries that stand in for NVIDIA's. PyTorch has half
    # a gigabyte; without it its tests are skipped, and say so.
    mark="build/venv-torch/.requirements-$(cat tests/requirements-torch.txt scripts/torch_stubs.py | sha256sum | cut -c1-16)"
    if [ ! -e "$mark" ]; then
      echo "setup: PyTorch into build/venv-torch"
      python3 -m venv build/venv-torch
      if build/venv-torch/bin/pip install --quiet --disable-pip-version-check --no-deps -r tests/requirements-torch.txt &&
        build/venv-torch/bin/python scripts/torch_stubs.py build/venv-torch; then
        touch "$mark"
      else
        echo "setup: PyTorch could not be installed; its tests will be skipped" >&2
      fi
    fi
    build/venv/bin/python scripts/fetch_test_data.py --into build/test-data
    ;;
  *) echo "usage: setup.sh build|test" >&2; exit 2 ;;
esac
