# Finds and installs the packages that a command needs.

# The packages that each command needs, as words for missing().
compiler=c++=g++
[ -z "${CXX:-}" ] && ! have g++ && ! have clang++ || compiler=
tools="$compiler meson=meson ninja=ninja-build pkg-config=pkg-config git=git libconcurrentqueue-dev"
needs_machines=$tools
needs_amalgamate="$compiler python3=python3 libconcurrentqueue-dev"
needs_demo="$tools libasio-dev libcli11-dev libhowardhinnant-date-dev prometheus-cpp-dev"
needs_grpc='libgrpc++-dev protobuf-compiler-grpc libprotobuf-dev'
needs_kj=libcapnp-dev
needs_nats='libnats-dev nats-server=nats-server'
needs_thrift='libthrift-dev libboost-dev'
needs_bench="$tools libbenchmark-dev libcli11-dev nlohmann-json3-dev"
needs_guard="$needs_bench valgrind=valgrind python3=python3"
needs_compare="$needs_bench python3=python3 libasio-dev libuv1-dev"
needs_brpc="$tools cmake=cmake libgflags-dev libleveldb-dev libprotobuf-dev libprotoc-dev libssl-dev"
needs_calls="$tools libasio-dev libcli11-dev $needs_grpc $needs_kj"
# For tests of the C interface, of the probes and of hosts. Outside CI these are optional.
optional="cargo=cargo $needs_kj $needs_nats $needs_thrift systemtap-sdt-dev"
needs_test="$needs_demo libgtest-dev libuv1-dev libevent-dev cmake=cmake ${CI:+$optional}"
needs_hosts="$needs_test $optional $needs_grpc"
# promtool only in CI, because the package brings a server that Debian starts.
needs_check="$needs_test $needs_bench relacy-dev g++=g++ clang++=clang clang-tidy=clang-tidy ${CI:+promtool=prometheus}"

# needs_of COMMAND...: prints their packages.
needs_of() { for name; do eval "echo \$needs_$name"; done; }

# missing WORD...: prints the missing ones of these packages, by Debian's names. PROGRAM=PACKAGE is missing only if the
# program is. Without dpkg there is no telling which libraries are installed. Meson names the first missing one.
missing() {
  for word; do
    case $word in
      *=*) have "${word%%=*}" || echo "${word#*=}" ;;
      *) ! have dpkg-query || dpkg-query -W -f '${Status}' "$word" 2>&1 | grep -q ' installed$' || echo "$word" ;;
    esac
  done
}

# need WORD...: installs the missing ones of these packages, or names them and fails.
need() {
  packages=$(echo $(missing "$@"))
  [ -n "$packages" ] || return 0
  as_root=$([ "$(id -u)" -eq 0 ] || echo sudo -n)
  if ! have apt-get || ! $as_root true 2>/dev/null; then
    say "missing: $packages (these are Debian's names); please install them"
    return 1
  fi
  say "installing: $packages"
  quietly $as_root apt-get update || say "apt-get update failed; going on with what apt knows"
  quietly $as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y \
    --no-install-recommends $packages || fail "could not install: $packages"
}

# set_up COMMANDS [KIND]: installs the packages of the commands, and finds or installs Meson 1.0. Meson does not notice
# new packages, so build/KIND is configured again after an installation.
set_up() {
  take_turn
  ! "$build/venv/bin/meson" --version >/dev/null 2>&1 || PATH=$build/venv/bin:$PATH
  [ $# -eq 1 ] || [ -z "$(missing $(needs_of $1))" ] || rm -f "$build/$2/stamp"
  need $(needs_of $1)
  [ -z "$(missing $compiler)" ] && have ninja && have meson || fail "needs a C++20 compiler, Meson 1.0 and Ninja"
  case $(meson --version) in
    0.*) from_pypi venv 'meson>=1.0' || fail "needs Meson 1.0, or a network from which pip can install it" ;;
  esac
}

# from_pypi FOLDER PACKAGES...: makes the virtual environment build/FOLDER with these packages, unless it exists, and
# puts its programs into PATH.
from_pypi() {
  venv=$build/$1
  need python3=python3 || return
  make_once "$1" "$(python3 --version) $*" install_from_pypi "$@" && PATH=$venv/bin:$PATH
}

install_from_pypi() {
  shift
  python3 -c 'import ensurepip' 2>/dev/null || (need python3-venv)
  quietly python3 -m venv "$venv" && quietly "$venv/bin/pip" install -qq --retries 1 --only-binary :all: "$@"
}
