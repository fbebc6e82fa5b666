#!/usr/bin/env bash
# Makes the sdist and, from it, the wheels for x86-64 Linux in dist/ (heddle, and onnxruntime-ep-heddle), audits them and
# tries each in a bare environment.
#   scripts/wheel.sh [PYTHON...]
# PYTHON defaults to python3.11 (for that version) and the first of python3.12 to 3.14 (for 3.12 and all later ones), as far
# as they are here with their headers. The wheels need glibc 2.28 and nothing else: clang of the PyPI package ziglang targets
# that glibc and contains its own C++ library, fmt is compiled in, SQLite is Debian's static library. Compilers and libraries
# are put into build/wheel; nothing is installed and nothing needs root.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly glibc=2.28 most_megabytes=30 most_seconds=20
work=$PWD/build/wheel
libraries=(libfmt-dev libfmt9 nlohmann-json3-dev libcli11-dev libprotozero-dev libxxhash-dev libsqlite3-dev)

say() { printf '\n== %s\n' "$*"; }
fail() { echo "wheel: $*" >&2; exit 1; }

has_headers() {
  "$1" -c 'import pathlib, sysconfig; assert (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists()' 2>/dev/null
}

choose_pythons() {
  local name
  pythons=("$@")
  if [ ${#pythons[@]} -eq 0 ]; then
    ! has_headers python3.11 || pythons+=(python3.11)
    for name in python3.12 python3.13 python3.14; do
      has_headers $name && pythons+=("$name") && break
    done
  fi
  [ ${#pythons[@]} -gt 0 ] || fail "no Python with headers is here (Debian: apt install python3-dev python3-venv)"
  for name in "${pythons[@]}"; do
    has_headers "$name" || fail "$name is no Python with headers"
  done
}

install_tools() {
  say "tools into build/wheel/venv"
  local mark
  mark=$work/venv/.requirements-$(sha256sum scripts/wheel_requirements.txt | cut -c1-16)
  [ -e "$mark" ] || {
    rm -rf "$work/venv"
    "${pythons[0]}" -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet --disable-pip-version-check -r scripts/wheel_requirements.txt
    touch "$mark"
  }
  export PATH=$work/venv/bin:$PATH
  export ZIG_GLOBAL_CACHE_DIR=$work/zig ZIG_LOCAL_CACHE_DIR=$work/zig
  # zig makes its C++ library at the first call, one for each kind of -O: with -O2 the probes of CMake share that of the build.
  cat >"$work/c++" <<END
#!/bin/sh
exec "$work/venv/bin/python" -m ziglang c++ -target x86_64-linux-gnu.$glibc -O2 -ffile-prefix-map=$work/source/= "\$@"
END
  chmod +x "$work/c++"
}

# In a folder of their own: /usr/include has the headers of this machine's glibc beside theirs. An object of the static SQLite
# that needs a newer glibc than the target's would not link.
unpack_libraries() {
  say "libraries into build/wheel/root"
  command -v apt-get >/dev/null || fail "the libraries are Debian's packages, and this is no Debian: ${libraries[*]}"
  local package folder
  rm -rf "$work/debs" "$work/root"
  mkdir -p "$work/debs"
  (cd "$work/debs" && apt-get download -qq -o APT::Sandbox::User=root "${libraries[@]}") || fail "apt-get update, then again"
  for package in "$work"/debs/*.deb; do
    dpkg-deb -x "$package" "$work/root"
  done
  # Where Debian's own Python has its pyconfig.h.
  mkdir -p "$work/root/usr/include/x86_64-linux-gnu"
  for folder in /usr/include/x86_64-linux-gnu/python3.*; do
    [ ! -d "$folder" ] || ln -s "$folder" "$work/root/usr/include/x86_64-linux-gnu/"
  done
}

# Both wheels are made in one folder, so that only what knows Python is compiled twice.
build_wheels() {
  local python root=$work/root/usr
  say "sdist"
  rm -rf "$work/source" "$work/cmake" "$work/wheels" dist
  python -m build --sdist --outdir dist .
  mkdir -p "$work/source"
  tar -xzf dist/heddle-*.tar.gz --strip-components=1 -C "$work/source"
  export CMAKE_ARGS="-DCMAKE_CXX_COMPILER=$work/c++ -DCMAKE_PREFIX_PATH=$root -DHEDDLE_FMT=fmt::fmt-header-only
    -Dfmt_DIR=$root/lib/x86_64-linux-gnu/cmake/fmt -DSQLite3_INCLUDE_DIR=$root/include
    -DSQLite3_LIBRARY=$root/lib/x86_64-linux-gnu/libsqlite3.a -DCCACHE_PROGRAM= -DHEDDLE_PRECOMPILE_HEADERS=OFF
    -DHEDDLE_UNITY=ON"
  for python in "${pythons[@]}"; do
    say "wheel by $python"
    "$python" -m venv "$work/build-venv" --clear
    "$work/build-venv/bin/pip" wheel --quiet --disable-pip-version-check --no-deps "$work/source" -w "$work/wheels" \
      --config-settings=build-dir="$work/cmake"
  done
}

# The library is the one that the last wheel has.
build_ort_wheel() {
  say "wheel of the plug-in for ONNX Runtime"
  python scripts/ort_wheel.py "$work/cmake/libheddle_ort.so" --into "$work/wheels"
}

audit() {
  local wheel
  for wheel in "$work"/wheels/*.whl; do
    auditwheel repair --plat "manylinux_${glibc/./_}_x86_64" --wheel-dir dist "$wheel"
  done
  for wheel in dist/*.whl; do
    auditwheel show "$wheel"
    case $wheel in *-abi3-*) abi3audit --strict --verbose "$wheel" ;; esac
    [ "$(stat -c %s "$wheel")" -lt $((most_megabytes * 1000000)) ] || fail "$wheel has more than $most_megabytes MB"
  done
}

# As a user would: a new environment without anything of this tree, then a first kernel, a first model, and no compiler.
try_wheel() {
  local python=$1 venv=$work/try/venv wheel began took
  rm -rf "$work/try"
  mkdir -p "$work/try/examples"
  cp -r examples/python/. "$work/try/examples"
  "$python" -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check numpy
  began=$(date +%s)
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-index --find-links dist heddle
  took=$(($(date +%s) - began))
  [ $took -lt $most_seconds ] || fail "installing took $took s"
  wheel=$("$venv/bin/python" -c 'import heddle._core; print(heddle._core.__file__)')
  say "$wheel, installed in $took s"
  (
    cd "$work/try"
    run() { env -i PATH="$1" HOME="$work/try" HEDDLE_CACHE_DIR="$work/try/cache" "${@:2}"; }
    run /usr/bin:/bin "$venv/bin/python" examples/tile/vector_add.py
    run /usr/bin:/bin "$venv/bin/heddle" zoo resnet18 --size 64 -o model.onnx
    run /usr/bin:/bin "$venv/bin/python" examples/run_model.py model.onnx
    run /usr/bin:/bin "$venv/bin/heddle" verify model.onnx
    # Whether it knows the processor: how that is asked differs between compilers.
    said=$(run /usr/bin:/bin "$venv/bin/heddle" devices)
    ! grep -qw avx2 /proc/cpuinfo || grep -Eq '^cpu +avx' <<<"$said" || fail "an AVX2 processor is to it: $said"
    run /usr/bin:/bin "$venv/bin/heddle" compile model.onnx -o model.plan
    run /nowhere "$venv/bin/heddle" run model.plan
    # The cache would answer for the compiler.
    rm -r cache
    said=$(run /nowhere "$venv/bin/heddle" run model.onnx 2>&1) && fail "a model was compiled without a compiler"
    grep -q 'apt install g++' <<<"$said" || fail "without a compiler it said: $said"
  )
}

mkdir -p "$work"
choose_pythons "$@"
install_tools
unpack_libraries
build_wheels
build_ort_wheel
audit
for python in "${pythons[@]}"; do
  try_wheel "$python"
done
say "the plug-in with ONNX Runtime"
scripts/ort_releases.sh dist/onnxruntime_ep_heddle-*.whl
say "done"
ls -l dist
