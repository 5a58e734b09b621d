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

# tool NAME VERSION WHY: a program of that version, first in PATH. Kept for this user, beside other versions, so that
# another clone does not build it again. Unoptimised, as building it takes longer than running it.
tool() {
  local root=${XDG_CACHE_HOME:-$HOME/.cache}/loggap/$1-$2
  export PATH="$root/bin:$PATH"
  [ -x "$root/bin/$1" ] && return
  step "install $1 $2: $3"
  cargo install --quiet --debug --locked --root "$root" --version "$2" "$1"
}

# openmpi: installs Open MPI, and what its headers are read with.
openmpi() {
  have /usr/bin/mpicc.openmpi libopenmpi-dev 'Open MPI' && have /usr/bin/mpirun.openmpi openmpi-bin 'Open MPI' &&
    have /usr/bin/clang clang 'reads the header of MPI' &&
    have /usr/share/doc/libclang-dev libclang-dev 'reads the header of MPI'
}

# fortran: installs a compiler for the programs in Fortran that tests trace.
fortran() { have /usr/bin/gfortran gfortran 'compiles programs in Fortran that are traced'; }

# members: cargo's options for the packages that are built together, so that they and what they depend on have the
# same features in every part and are built once. All of them where Open MPI is there; loggap-mpi is left out elsewhere.
# With RDMA verbs where these can be built.
members() {
  local options=()
  [ ! -e /usr/bin/clang ] || [ ! -e /usr/share/doc/libclang-dev ] || {
    [ ! -e /usr/bin/mpicc.openmpi ] || options=(--workspace)
    [ ! -e /usr/bin/cmake ] || [ ! -e /usr/share/doc/libnl-route-3-dev ] || options+=(--features loggap/verbs)
  }
  echo "${options[@]}"
}
export MPICC=mpicc.openmpi

# rdma: installs what the feature verbs is built with.
rdma() {
  have /usr/bin/cmake cmake 'configures rdma-core, whose headers are read' &&
    have /usr/bin/clang clang 'reads the headers of rdma-core' &&
    have /usr/share/doc/libclang-dev libclang-dev 'reads the headers of rdma-core' &&
    have /usr/include/infiniband/verbs.h libibverbs-dev 'RDMA verbs' &&
    have /usr/share/doc/libnl-3-dev libnl-3-dev 'rdma-core needs it' &&
    have /usr/share/doc/libnl-route-3-dev libnl-route-3-dev 'rdma-core needs it' &&
    have /usr/bin/pkg-config pkg-config 'rdma-core looks for libraries with it'
}

# unoptimised: builds tests and programs in target/debug as all parts do, so that nothing is built again.
unoptimised() {
  local members
  read -ra members < <(members)
  cargo test "${members[@]}" --no-run
}

# optimised: builds the programs that speed is judged with, in target/release: together, so that what they share is
# built once. With RDMA verbs where these can be built.
optimised() {
  local features=()
  ! rdma || features=(--features loggap/verbs)
  cargo build --quiet --release -p loggap --bin loggap --example flows_beside_simgrid "${features[@]}"
}

# test_files PACKAGE...: cargo's option for each integration test of these folders, on a line of its own.
test_files() {
  local folder file
  for folder; do for file in "$folder"/tests/*.rs; do echo "--test $(basename "$file" .rs)"; done; done
}

passed=0
failed=0
skipped=0

# check NAME COMMAND…: runs the command, shows its output only when it fails. Says
# how long it took, and the processor time of what it ran, in seconds.
check() {
  local name=$1 log code
  shift
  log=$(mktemp) || exit 2
  { TIMEFORMAT='%0R s, processor %0U and %0S of the system'; time "$@" >"$log" 2>&1; } 2>"$log.time"
  code=$?
  if [ "$code" = 0 ]; then
    passed=$((passed + 1))
    echo "ok: $name ($(tail -n 1 "$log.time"))"
  else
    failed=$((failed + 1))
    echo "FAILED: $name: $*"
    tail -40 "$log" | sed 's/^/    /'
  fi
  rm -f "$log" "$log.time"
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
