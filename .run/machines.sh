# The tests on other machines: compilers for them, and emulators that run what they make. tests/machines has a file for
# each, which tells Meson both.

machines() {
  [ $# -gt 0 ] || set -- $(all_machines)
  for machine in "$@"; do
    [ -f "$root/tests/machines/$machine.ini" ] || wrong "no such machine: $machine (there are: $(echo $(all_machines)))"
  done
  set_up machines
  install_packages "$(missing_for_machines "$@")"
  unpack_googletest || return 1
  status=0
  for machine in "$@"; do
    say "== $machine"
    (try_machine "$machine") || status=1
  done
  return $status
}

all_machines() { for file in "$root"/tests/machines/*.ini; do basename "$file" .ini; done; }

# What Debian calls the compiler and the emulator of each.
missing_for_machines() {
  needed=googletest
  for machine in "$@"; do
    case $machine in
      aarch64) needed="$needed g++-aarch64-linux-gnu qemu-user" ;;
      armhf) needed="$needed g++-arm-linux-gnueabihf qemu-user" ;;
      i386) needed="$needed g++-i686-linux-gnu" ;;
      riscv64) needed="$needed g++-riscv64-linux-gnu qemu-user" ;;
      s390x) needed="$needed g++-s390x-linux-gnu qemu-user" ;;
      windows-gcc) needed="$needed g++-mingw-w64-x86-64-posix wine wine64" ;;
      windows-clang) needed="$needed wine wine64" ;;
    esac
  done
  have dpkg-query || return 0
  for package in $needed; do
    have_package "$package" || echo "$package"
  done
}

# Clang with the C and C++ libraries of many systems.
have_zig() {
  from_pypi venv-zig ziglang==0.15.2 || { say "could not install zig, see build/last.log"; return 1; }
  PATH=$(echo "$build"/venv-zig/lib/python*/site-packages/ziglang):$PATH
}

# All tests would take ten minutes of a processor for each machine. So they are run on the two that most users have; on
# the others those whose outcome can depend on the machine: sizes, byte order and arithmetic (the wheels, the divider,
# buckets of a histogram), atomics and sleeps (the core, races, the platform), threads and how they end.
tests_for() {
  case $1 in
    aarch64 | windows-gcc) ;; # none named: all
    macos | freebsd) echo conformance_test ;;
    *)
      echo asymmetric_fence_test bucket_test conformance_test coroutine_test fast_divider_test hashed_wheel_test \
        hierarchical_timer_test histogram_test keyed_timer_test lifecycle_test passive_wheel_test races_test \
        sleeper_test stop_after_test
      ;;
  esac
}

try_machine() {
  case $1 in
    windows-clang | musl | macos | freebsd) have_zig || return 1 ;;
  esac
  # Nothing of this machine's is for the other one.
  PKG_CONFIG_LIBDIR=$build/machines/$1 && export PKG_CONFIG_LIBDIR
  build_googletest "$1" && build_machine "$1" || return 1
  case $1 in
    macos | freebsd) echo "$1: built; nothing here runs it" ;;
    *) run_machine "$1" ;;
  esac
}

# A copy, with the project's way to build it: nothing of it is installed here for another machine.
unpack_googletest() {
  from=/usr/src/googletest/googletest
  to=$build/machines/googletest
  [ ! -e "$to/meson.build" ] || return 0
  [ -d "$from" ] || { say "the tests need GoogleTest's source in $from (Debian: googletest)"; return 1; }
  mkdir -p "$to" && cp -r "$from" "$to/" && cp "$root/subprojects/packagefiles/gtest/meson.build" "$to/"
}

# What the system's packages are to a build for this machine, for one that is not.
build_googletest() {
  folder=$build/machines/$1
  if [ ! -e "$folder/googletest/build.ninja" ]; then
    quietly meson setup --cross-file "$root/tests/machines/$1.ini" -Ddebug=false -Doptimization=1 \
      "$folder/googletest" "$build/machines/googletest" || return 1
  fi
  quietly meson compile -C "$folder/googletest" || return 1
  describe "$1" gtest_main 1.12 "-I$build/machines/googletest/googletest/include" "-L$folder/googletest -lgtest_main" &&
    describe "$1" concurrentqueue 1.0 "-I$(queue_folder)" ""
}

# A folder with nothing else: a compiler for another machine must not see this one's headers.
queue_folder() { dirname "$(find /usr/include -name concurrentqueue.h | head -n 1)"; }

# describe MACHINE NAME VERSION CFLAGS LIBS: a file for pkg-config.
describe() {
  printf 'Name: %s\nDescription: for %s\nVersion: %s\nCflags: %s\nLibs: %s\n' "$2" "$1" "$3" "$4" "$5" \
    >"$build/machines/$1/$2.pc"
}

build_machine() {
  configure "machines/$1/build" --cross-file "$root/tests/machines/$1.ini" -Ddebug=false -Doptimization=1 --werror \
    -Ddefault_library=static -Dtests=enabled -Dexamples=disabled -Dcalendar=disabled -Dbenchmarks=disabled \
    -Dprometheus=disabled || return 1
  build_targets "machines/$1/build" $(tests_for "$1")
}

# Prints how many programs and cases passed. What crashes under wine ends with 0: it has passed if it has said so.
run_machine() {
  GTEST_FILTER=-$(left_out "$1") && export GTEST_FILTER
  WINEPREFIX=$build/machines/wine WINEDEBUG=-all && export WINEPREFIX WINEDEBUG
  began=$(date +%s)
  run_tests "machines/$1/build" --suite unit --timeout-multiplier 10 $(tests_for "$1")
  python3 - "$1" $(($(date +%s) - began)) "$build/machines/$1/build/meson-logs/testlog.json" <<'END_OF_PYTHON'
import json, re, sys

machine, seconds, log = sys.argv[1:]
tests = [json.loads(line) for line in open(log, encoding="utf-8")]
cases, bad = 0, []
for test in tests:
    output = test.get("stdout", "")
    cases += len(re.findall(r"^\[       OK \] ", output, re.M))
    if test["result"] != "OK" or not re.search(r"^\[  PASSED  \] ", output, re.M):
        bad.append(test["name"].split(" / ")[-1])
print(f"{machine}: {len(tests) - len(bad)} of {len(tests)} programs passed, {cases} cases, {seconds} s")
if bad:
    print(f"{machine}: FAILED: {' '.join(bad)}")
sys.exit(bool(bad) or not tests)
END_OF_PYTHON
}

# What an emulator cannot tell, as patterns of GoogleTest. qemu does not do all that a death test asks for when it makes
# a process; Linux's processors alone run i386 as it is.
left_out() {
  case $1 in
    aarch64 | armhf | riscv64 | s390x) echo '*DeathTest*' ;;
  esac
}
