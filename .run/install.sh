# Finds and installs the packages that a command needs.

venv=$build/venv

have_own_meson() { "$venv/bin/meson" --version >/dev/null 2>&1; }
have_compiler() { [ -n "${CXX:-}" ] || have c++ || have g++ || have clang++; }
have_package() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# missing_packages COMMAND: prints the packages that the command needs and that are not installed.
missing_packages() {
  have_compiler || echo g++
  if [ "$1" = amalgamate ]; then
    have python3 || echo python3
    ! have dpkg-query || have_package libconcurrentqueue-dev || echo libconcurrentqueue-dev
    return
  fi
  have meson || have_own_meson || echo meson
  have ninja || echo ninja-build
  have pkg-config || echo pkg-config
  have git || echo git
  case $1 in
    demo | demo_grpc | demo_nats | demo_kj)
      libraries="libconcurrentqueue-dev libasio-dev libcli11-dev libhowardhinnant-date-dev prometheus-cpp-dev"
      case $1 in
        *_grpc) libraries="$libraries libgrpc++-dev protobuf-compiler-grpc libprotobuf-dev" ;;
        *_nats) libraries="$libraries libnats-dev nats-server" ;;
        *_kj) libraries="$libraries libcapnp-dev" ;;
      esac
      ;;
    bench | guard | compare) libraries="libconcurrentqueue-dev libbenchmark-dev libcli11-dev nlohmann-json3-dev" ;;
    calls)
      libraries="libconcurrentqueue-dev libasio-dev libcli11-dev libgrpc++-dev protobuf-compiler-grpc libprotobuf-dev"
      libraries="$libraries libcapnp-dev"
      ;;
    machines) libraries="libconcurrentqueue-dev" ;;
    peers) libraries="libasio-dev libuv1-dev" ;;
    brpc) libraries="libgflags-dev libleveldb-dev libprotobuf-dev libprotoc-dev libssl-dev" ;;
    test | hosts)
      libraries="libconcurrentqueue-dev libasio-dev libcli11-dev libgtest-dev libhowardhinnant-date-dev"
      libraries="$libraries prometheus-cpp-dev libuv1-dev libevent-dev"
      ;;
    check)
      libraries="libconcurrentqueue-dev libasio-dev libcli11-dev libgtest-dev libbenchmark-dev libhowardhinnant-date-dev"
      libraries="$libraries nlohmann-json3-dev relacy-dev prometheus-cpp-dev libuv1-dev libevent-dev"
      ;;
  esac
  [ "$1" != hosts ] || libraries="$libraries libgrpc++-dev protobuf-compiler-grpc libprotobuf-dev"
  case $1 in
    test | check | hosts)
      have cmake || echo cmake
      # For tests of the C interface, the probes and Thrift, and for two examples and their tests. Outside CI these
      # are optional.
      if [ "$1" = hosts ] || [ -n "${CI:-}" ]; then
        have cargo || echo cargo
        libraries="$libraries libcapnp-dev libnats-dev libthrift-dev systemtap-sdt-dev"
        have nats-server || echo nats-server
      fi
      ;;
    guard) have valgrind || echo valgrind ;;
    brpc) have cmake || echo cmake ;;
  esac
  case $1 in
    guard | compare) have python3 || echo python3 ;;
  esac
  if [ "$1" = check ]; then
    have g++ || echo g++
    have clang++ || echo clang
    have clang-tidy || echo clang-tidy
    # For promtool. Only in CI, because the package brings a server that Debian starts.
    [ -z "${CI:-}" ] || have promtool || echo prometheus
  fi
  # Without dpkg there is no telling which libraries are installed. Meson names the first missing one.
  have dpkg-query || return 0
  for library in $libraries; do
    have_package "$library" || echo "$library"
  done
}

# Clang's sanitizers come in a package that is named after its version.
missing_sanitizers() {
  echo 'int main() {}' | clang++ -fsanitize=thread -x c++ - -o /dev/null 2>/dev/null ||
    echo "libclang-rt-$(clang_version clang++)-dev"
}

clang_version() { "$1" --version | sed -n 's/.*version \([0-9]*\)\..*/\1/p' | head -n 1; }

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

install_packages() {
  packages=$(echo $*)
  [ -n "$packages" ] || return 0
  if ! have apt-get; then
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

set_up() {
  take_turn
  install_packages "$(missing_packages "$1")"
  have_compiler && have ninja || fail "needs a C++20 compiler, Meson 1.0 or later and Ninja"
  set_up_meson
}

# Installs a Meson in build/venv if the system's is older than 1.0.
set_up_meson() {
  if ! have_own_meson; then
    have meson || fail "needs a C++20 compiler, Meson 1.0 or later and Ninja"
    case $(meson --version) in
      0.*) ;;
      *) return ;;
    esac
    from_pypi venv 'meson>=1.0' || fail "could not install Meson 1.0 or later, see build/last.log"
  fi
  PATH=$venv/bin:$PATH
}

# from_pypi FOLDER PACKAGES...: makes the virtual environment build/FOLDER with these packages, unless it exists.
from_pypi() {
  folder=$build/$1
  shift
  have python3 || install_packages python3
  stamp="$root $(python3 --version) $*"
  [ "$(cat "$folder/stamp" 2>/dev/null)" != "$stamp" ] || return 0
  python3 -c 'import ensurepip' 2>/dev/null || (install_packages python3-venv)
  say "installing from PyPI into ${folder#"$root/"}: $*"
  if ! make_venv "$@" >"$build/last.log" 2>&1 </dev/null 9<&-; then
    rm -rf "$folder"
    return 1
  fi
  printf '%s\n' "$stamp" >"$folder/stamp"
}

make_venv() { python3 -m venv --clear "$folder" && "$folder/bin/pip" install --retries 1 --only-binary :all: "$@"; }

# have_zig VERSION: installs zig, a clang with the C and C++ libraries of many systems, and a Meson that knows its
# linker.
have_zig() {
  from_pypi "venv-zig-$1" "ziglang==$1" meson==1.12.1 || { say "could not install zig $1, see build/last.log"; return 1; }
  PATH=$(echo "$build/venv-zig-$1"/lib/python*/site-packages/ziglang):$build/venv-zig-$1/bin:$PATH
}
