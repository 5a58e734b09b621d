# What the scripts of tests have in common: installing what a fresh machine
# lacks, and counting checks. Sourced, not run.

step() { printf '\n== %s\n' "$*"; }

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }

# have FILE PACKAGE WHY: whether the file is there, by installing the Debian
# package where it is not. Other scripts may be installing at the same time.
have() {
  [ -e "$1" ] && return
  step "install $2: $3"
  {
    flock 9
    [ -n "${updated-}" ] || as_root apt-get update -qq || true
    updated=yes
    DEBIAN_FRONTEND=noninteractive as_root apt-get install -y -qq --no-install-recommends \
      -o DPkg::Lock::Timeout=300 "$2" >/dev/null
  } 9<"${BASH_SOURCE[0]}"
  [ -e "$1" ] && return
  echo "no $1: could not install $2, as root or by sudo without a password; install it by hand"
  return 1
}

# nightly COMPONENT...: a nightly compiler with these, for what stable lacks.
nightly() {
  cargo +nightly --version >/dev/null 2>&1 ||
    rustup toolchain install nightly --profile minimal >/dev/null 2>&1 || return
  [ $# = 0 ] || timeout 300 rustup +nightly component add "$@" >/dev/null 2>&1
}

# tool NAME VERSION WHY: a program of that version in ./tools/bin. Unoptimised,
# as building it takes longer than running it.
tool() {
  tools/bin/"$1" --version 2>/dev/null | grep -qF "$2" && return
  step "install $1 $2: $3"
  cargo install --quiet --debug --force --locked --root tools --version "$2" "$1"
}

passed=0
failed=0
skipped=0

# check NAME COMMAND…: runs the command, shows its output only when it fails.
check() {
  local name=$1 log
  shift
  log=$(mktemp) || exit 2
  if "$@" >"$log" 2>&1; then
    passed=$((passed + 1))
    echo "ok: $name"
  else
    failed=$((failed + 1))
    echo "FAILED: $name: $*"
    tail -40 "$log" | sed 's/^/    /'
  fi
  rm -f "$log"
}

# skip COUNT WHAT WHY
skip() {
  skipped=$((skipped + $1))
  echo "skipped: $2: $3"
}

# closing WHAT: the last lines of a script of checks, and its end.
closing() {
  step "$1"
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" = 0 ]
  exit
}
