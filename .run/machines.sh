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
    windows-clang | musl | macos | freebsd) have_zig 0.15.2 || return 1 ;;
  esac
  build_googletest "machines/$1" --cross-file "$root/tests/machines/$1.ini" && build_machine "$1" || return 1
  case $1 in
    macos | freebsd) echo "$1: built; nothing here runs it" ;;
    *) run_machine "$1" ;;
  esac
}

build_machine() {
  configure "machines/$1/build" --cross-file "$root/tests/machines/$1.ini" -Ddebug=false -Doptimization=1 --werror \
    -Ddefault_library=static -Dtests=enabled -Dexamples=disabled -Dcalendar=disabled -Dbenchmarks=disabled \
    -Dprometheus=disabled || return 1
  build_targets "machines/$1/build" $(tests_for "$1")
}

run_machine() {
  GTEST_FILTER=-$(left_out "$1") && export GTEST_FILTER
  WINEPREFIX=$build/machines/wine WINEDEBUG=-all && export WINEPREFIX WINEDEBUG
  run_programs "$1" "machines/$1/build" $(tests_for "$1")
}

# What an emulator cannot tell, as patterns of GoogleTest. qemu does not do all that a death test asks for when it makes
# a process; Linux's processors alone run i386 as it is.
left_out() {
  case $1 in
    aarch64 | armhf | riscv64 | s390x) echo '*DeathTest*' ;;
  esac
}
