#!/usr/bin/env bash
# Tries Heddle as on a new machine: a bare Debian 12 in a folder, a clone of this repository, and what the README says.
#   sudo scripts/bare_debian.sh STEP... [--root FOLDER] [--keep] [--ccache FOLDER]
# Steps: demo (`make demo`), install (`make install`, then the examples against it without the clone), test (`make test`),
# shell (a prompt in there). The last commit is tried, not the work tree. Needs root and debootstrap. The packages come from
# where this machine gets its own; an existing FOLDER is used again. Without --root it is a temporary one, removed at the end.
# With --ccache what is compiled is taken from and kept in that cache, of ccache, which is then installed in there, too.
set -euo pipefail
self=$(realpath "$0")
cd "$(dirname "$self")/.."

release=bookworm
root='' keep='' ccache='' steps=()
while [ $# -gt 0 ]; do
  case $1 in
    demo | install | test | shell) steps+=("$1") ;;
    --root) root=$(realpath -m "$2") keep=1 && shift ;;
    --keep) keep=1 ;;
    --ccache) ccache=$(realpath "$2") && shift ;;
    *) sed -n '2,8s/^# \{0,1\}//p' "$self" >&2 && exit 2 ;;
  esac
  shift
done
[ ${#steps[@]} -gt 0 ] || steps=(demo install)
[ "$(id -u)" -eq 0 ] || { echo "bare_debian: chroot and mount need root" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "bare_debian: apt-get install debootstrap" >&2; exit 1; }
[ -n "$root" ] || root=$(mktemp -d --tmpdir bare-debian-XXXXXX)

say() { printf '\n== %s\n' "$*"; }

# The mounts belong to a namespace of this process: they are gone with it, however it ends.
if [ -z "${BARE_DEBIAN_UNSHARED:-}" ]; then
  status=0
  BARE_DEBIAN_UNSHARED=1 unshare --mount --propagation private "$self" "${steps[@]}" --root "$root" ${ccache:+--ccache "$ccache"} || status=$?
  [ -n "$keep" ] || rm -rf --one-file-system "$root"
  exit $status
fi

# The site of the packages of Debian itself, as apt on this machine has it; else debootstrap's own choice.
mirror() {
  apt-get indextargets --format '$(SITE) $(CODENAME) $(ORIGIN)' 2>/dev/null |
    awk -v release=$release '$2 == release && $3 == "Debian" { print $1; exit }'
}

# What makes the network of this machine work: names, proxies, certificates, settings of apt and pip.
carry() {
  local path
  for path in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/apt/apt.conf /etc/apt/apt.conf.d/*proxy* \
    /etc/ssl/certs/ca-certificates.crt; do
    [ -e "$path" ] || continue
    mkdir -p "$root$(dirname "$path")"
    cp -L "$path" "$root$path"
  done
}

make_root() {
  [ -e "$root/etc/debian_version" ] && return
  say "Debian $release in $root"
  debootstrap --variant=minbase --include=ca-certificates "$release" "$root" $(mirror) >"$root.log" 2>&1 || {
    tail -n 20 "$root.log" >&2
    exit 1
  }
  rm "$root.log"
}

inside() {
  local variables=(DEBIAN_FRONTEND=noninteractive HOME=/root LANG=C.UTF-8 TERM="${TERM:-dumb}" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin)
  local name certificates=/etc/ssl/certs/ca-certificates.crt
  variables+=(SSL_CERT_FILE=$certificates PIP_CERT=$certificates)
  [ -z "$ccache" ] || variables+=(CCACHE_DIR=/ccache CCACHE_BASEDIR=/root CCACHE_NOHASHDIR=1)
  for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY PIP_INDEX_URL JOBS; do
    [ -z "${!name:-}" ] || variables+=("$name=${!name}")
  done
  chroot "$root" /usr/bin/env -i "${variables[@]}" bash -euo pipefail -c "$1"
}

mount_root() {
  mount -t proc proc "$root/proc"
  mount -t sysfs -o ro sysfs "$root/sys"
  mount --rbind /dev "$root/dev"
  [ -z "$ccache" ] || { mkdir -p "$root/ccache" && mount --bind "$ccache" "$root/ccache"; }
}

copy_clone() {
  say "git and make; a clone of $(git log -1 --format=%h)"
  inside 'apt-get update -qq; apt-get install -y -qq --no-install-recommends git make '"${ccache:+ccache}"' >/dev/null'
  # A folder of builds that is there already is kept: the next try is of what changed.
  git bundle create -q "$root/root/heddle.bundle" HEAD
  inside 'cd /root; [ -d heddle ] || git init -q heddle; cd heddle; git fetch -q /root/heddle.bundle HEAD; git checkout -q -f FETCH_HEAD'
}

step_demo() { inside 'cd /root/heddle; make demo'; }

step_test() { inside 'cd /root/heddle; make test'; }

step_shell() { inside 'cd /root/heddle; exec bash -i'; }

# The clone is out of reach while the examples are built and run.
step_install() {
  inside 'cd /root/heddle; make install; cp -r examples /root/examples; apt-get install -y -qq --no-install-recommends pkg-config >/dev/null'
  mount -t tmpfs none "$root/root/heddle"
  inside '
    work=$(mktemp -d); cd "$work"
    heddle --version
    heddle zoo resnet18 --size 64 -o model.onnx
    heddle run model.onnx
    for language in c cpp; do
      cmake -S /root/examples/$language -B $language >/dev/null
      cmake --build $language
      ./$language/${language}_run_model model.onnx
    done
    cc -std=c99 /root/examples/c/run_model.c $(pkg-config --cflags --libs heddle) -o by_pkg_config
    ./by_pkg_config model.onnx
    heddle compile model.onnx -o model.plan
    PATH=/nowhere HEDDLE_CACHE_DIR=$work/empty /usr/local/bin/heddle run model.plan
    rm -r "$work" /root/examples'
  umount "$root/root/heddle"
}

make_root
carry
mount_root
copy_clone
for step in "${steps[@]}"; do
  say "$step"
  "step_$step"
done
say "done: ${steps[*]}"
