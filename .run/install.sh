# Finds and installs the packages that a command needs.

have_compiler() { [ -n "${CXX:-}" ] || have c++ || have g++ || have clang++; }

# needs_of COMMAND: prints the packages that the command needs, as words for missing().
needs_of() {
  tools="meson=meson ninja=ninja-build pkg-config=pkg-config git=git libconcurrentqueue-dev"
  examples="libasio-dev libcli11-dev libhowardhinnant-date-dev prometheus-cpp-dev"
  grpc="libgrpc++-dev protobuf-compiler-grpc libprotobuf-dev"
  perf="libbenchmark-dev libcli11-dev nlohmann-json3-dev"
  tests="$examples libgtest-dev libuv1-dev libevent-dev cmake=cmake"
  # For tests of the C interface, of the probes and of hosts. Outside CI these are optional.
  hosts="cargo=cargo libcapnp-dev libnats-dev nats-server=nats-server libthrift-dev libboost-dev systemtap-sdt-dev"
  [ -z "${CI:-}" ] || tests="$tests $hosts"
  case $1 in
    amalgamate) echo python3=python3 libconcurrentqueue-dev ;;
    bench) echo $tools $perf ;;
    brpc) echo $tools cmake=cmake libgflags-dev libleveldb-dev libprotobuf-dev libprotoc-dev libssl-dev ;;
    calls) echo $tools libasio-dev libcli11-dev $grpc libcapnp-dev ;;
    check)
      echo $tools $tests $perf relacy-dev g++=g++ clang++=clang clang-tidy=clang-tidy
      # Only in CI, because the package brings a server that Debian starts.
      [ -z "${CI:-}" ] || echo promtool=prometheus
      ;;
    compare) echo $tools $perf python3=python3 ;;
    demo) echo $tools $examples ;;
    demo_grpc) echo $tools $examples $grpc ;;
    demo_kj) echo $tools $examples libcapnp-dev ;;
    demo_thrift) echo $tools $examples libthrift-dev libboost-dev ;;
    demo_nats) echo $tools $examples libnats-dev nats-server=nats-server ;;
    guard) echo $tools $perf valgrind=valgrind python3=python3 ;;
    hosts) echo $tools $tests $hosts $grpc ;;
    machines) echo $tools ;;
    peers) echo libasio-dev libuv1-dev ;;
    test) echo $tools $tests ;;
  esac
}

# missing WORD...: prints the missing ones of these packages, by Debian's names. PROGRAM=PACKAGE is missing only if the
# program is. Without dpkg there is no telling which libraries are installed. Meson names the first missing one.
missing() {
  for word; do
    case $word in
      *=*) have "${word%%=*}" || echo "${word#*=}" ;;
      *)
        ! have dpkg-query || [ "$(dpkg-query -W -f '${db:Status-Status}' "$word" 2>/dev/null)" = installed ] ||
          echo "$word"
        ;;
    esac
  done
}

# need WORD...: installs the missing ones of these packages.
need() {
  packages=$(echo $(missing "$@"))
  if [ -z "$packages" ]; then
    return
  elif ! have apt-get; then
    say "missing: $packages (these are Debian's names); please install them"
  elif ! as_root true 2>/dev/null; then
    say "missing: $packages; please run: apt-get install $packages (as root)"
  else
    say "installing: $packages"
    quietly as_root apt-get update || say "apt-get update failed; going on with what apt knows"
    quietly as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y \
      --no-install-recommends $packages ||
      fail "could not install: $packages"
  fi
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

# set_up COMMAND [KIND]: installs the packages of the command, and finds or installs Meson 1.0. Meson does not notice
# new packages, so build/KIND is configured again after an installation.
set_up() {
  take_turn
  have_compiler || need c++=g++
  ! "$build/venv/bin/meson" --version >/dev/null 2>&1 || PATH=$build/venv/bin:$PATH
  [ $# -eq 1 ] || [ -z "$(missing $(needs_of "$1"))" ] || rm -f "$build/$2/stamp"
  need $(needs_of "$1")
  have_compiler && have ninja && have meson || fail "needs a C++20 compiler, Meson 1.0 or later and Ninja"
  case $(meson --version) in
    0.*) from_pypi venv 'meson>=1.0' || exit ;;
  esac
}

# from_pypi FOLDER PACKAGES...: makes the virtual environment build/FOLDER with these packages, unless it exists, and
# puts its programs into PATH.
from_pypi() {
  folder=$build/$1
  shift
  need python3=python3
  stamp="$root $(python3 --version) $*"
  if [ "$(cat "$folder/stamp" 2>/dev/null)" != "$stamp" ]; then
    python3 -c 'import ensurepip' 2>/dev/null || (need python3-venv)
    say "installing from PyPI into ${folder#"$root/"}: $*"
    if ! make_venv "$@" >"$build/last.log" 2>&1 </dev/null 9<&-; then
      rm -rf "$folder"
      say "run: could not install $1, see build/last.log"
      return 1
    fi
    printf '%s\n' "$stamp" >"$folder/stamp"
  fi
  PATH=$folder/bin:$PATH
}

make_venv() { python3 -m venv --clear "$folder" && "$folder/bin/pip" install --retries 1 --only-binary :all: "$@"; }
