# Runs the tests for other machines, with cross-compilers and emulators. tests/machines has a file for each machine,
# which names its compiler and its emulator to Meson.

alone_machines() {
  machines=$(for file in "$root"/tests/machines/*.ini; do basename "$file" .ini; done)
  [ $# -gt 0 ] || set -- $machines
  for machine; do
    [ -f "$root/tests/machines/$machine.ini" ] || wrong "no such machine: $machine (there are: $(echo $machines))"
  done
  set_up machines
  need googletest
  unpack_googletest && try_each try_machine "$@"
}

# tests_for MACHINE: prints the tests to run, or nothing for all. All tests take ten minutes of CPU time, so all run
# only on the two machines that most users have. On the others only tests run whose outcome can depend on the machine.
# They check sizes, byte order and arithmetic (bucket, conformance, divider, histogram, wheels). They check atomics and
# sleeps (fence, races, sleeper, waiting), and how threads end (coroutine, keyed, lifecycle, stop_after). For macOS and
# FreeBSD one test is only built, because nothing here runs it.
tests_for() {
  case $1 in
    aarch64 | windows-gcc) ;; # none named: all
    macos | freebsd) echo conformance_test ;;
    *)
      echo asymmetric_fence_test bucket_test conformance_test coroutine_test fast_divider_test hashed_wheel_test \
        hierarchical_timer_test histogram_test keyed_timer_test lifecycle_test passive_wheel_test races_test \
        sleeper_test stop_after_test waiting_test
      ;;
  esac
}

try_machine() {
  # A build folder does not notice a changed cross file.
  [ "$root/tests/machines/$1.ini" -ot "$build/machines/$1/build/build.ninja" ] || rm -rf "${build:?}/machines/$1"
  # For some processors GCC 12 at -O1 warns wrongly that a std::stop_source in a loop may be uninitialized.
  warnings='--werror -Dcpp_args=-Wno-maybe-uninitialized'
  case $1 in
    aarch64) need g++-aarch64-linux-gnu qemu-user ;;
    armhf) need g++-arm-linux-gnueabihf qemu-user ;;
    i386) need g++-i686-linux-gnu ;;
    riscv64) need g++-riscv64-linux-gnu qemu-user ;;
    s390x) need g++-s390x-linux-gnu qemu-user ;;
    windows-gcc) need g++-mingw-w64-x86-64-posix wine wine64 ;;
    *)
      zig=0.14.1
      case $1 in
        windows-clang) need wine wine64 ;;
        freebsd) zig=0.15.2 ;; # earlier versions do not know FreeBSD
      esac
      have_zig $zig || return 1
      warnings=-Dcpp_args=-Werror # zig's linker refuses the flag of --werror
      ;;
  esac
  build_googletest "machines/$1" --cross-file "$root/tests/machines/$1.ini" || return 1
  configure "machines/$1/build" --cross-file "$root/tests/machines/$1.ini" -Ddebug=false -Doptimization=1 $warnings \
    -Ddefault_library=static -Dauto_features=disabled -Dtests=enabled &&
    build_targets "machines/$1/build" $(tests_for "$1") || return 1
  case $1 in
    macos | freebsd) echo "$1: built; nothing here runs it" ;;
    *) run_machine "$1" ;;
  esac
}

run_machine() {
  GTEST_FILTER=-$(left_out "$1") && export GTEST_FILTER
  case $1 in
    windows-*)
      WINEPREFIX=$build/machines/wine WINEDEBUG=-all && export WINEPREFIX WINEDEBUG
      quietly wineboot || return 1 # once: programs that start together would each do it
      ;;
  esac
  run_programs "$1" "machines/$1/build" $(tests_for "$1")
}

# left_out MACHINE: prints GoogleTest patterns of tests that cannot pass there. qemu fails in death tests, and in
# children that are forked while other threads work. i386 needs no qemu. MinGW's GCC destroys the thread_locals of a
# program after it has freed their memory. Its libstdc++ has no futexes, and may lose the wake-up for which the
# destructor of a std::stop_callback waits.
left_out() {
  case $1 in
    aarch64 | armhf | riscv64 | s390x) echo '*DeathTest*:Fork.*InTheMiddleOfAnyCallOfItsParentsThreads' ;;
    windows-gcc)
      printf %s 'Withdraw.AtTheVeryEndOfAThread:*.IsResumedOnceInEveryRace*:*.HasOneReasonInEveryRace*:'
      echo '*.MayBeDestroyedAfterAStopRequestAndAJoin:*.TheDestructorWaitsForAStopCallbackOfTheParent*'
      ;;
  esac
}
