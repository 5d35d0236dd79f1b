# Runs the tests for other machines, with cross-compilers and emulators. tests/machines has a file for each machine. It
# names the compiler and the emulator to Meson. For this script its properties name their packages, or the version of
# zig. They may name the tests, the cases that cannot pass there (left_out), and the suffix of programs. `runs` is `no`
# if nothing here runs them.

# These tests run on machines that few users have, because all tests take ten minutes of CPU time. Their outcome can
# depend on the machine. They check sizes, byte order and arithmetic (bucket, conformance, divider, histogram, wheels).
# They check atomics and sleeps (fence, races, sleeper, waiting), and how threads end (coroutine, keyed, lifecycle,
# stop_after).
tests_of_machines='asymmetric_fence_test bucket_test conformance_test coroutine_test every_wheel_test
  fast_divider_test hashed_wheel_test hierarchical_timer_test histogram_test keyed_timer_test lifecycle_test passive_wheel_test races_test
  sleeper_test stop_after_test waiting_test'

alone_machines() {
  machines=$(cd "$root/tests/machines" && ls *.ini | sed 's/\.ini$//')
  [ $# -gt 0 ] || set -- $machines
  for machine; do
    [ -f "$root/tests/machines/$machine.ini" ] || wrong "no such machine: $machine (there are: $(echo $machines))"
  done
  set_up machines
  need googletest || exit
  try_each try_machine "$@"
}

try_machine() {
  cross_file=$root/tests/machines/$1.ini of=machines/$1/build
  # A build folder does not notice a changed cross file.
  [ "$cross_file" -ot "$build/$of/build.ninja" ] || rm -rf "${build:?}/machines/$1"
  need $(property packages) || return 1
  zig=$(property zig)
  if [ -n "$zig" ]; then
    have_zig "$zig" || return 1
    warnings=-Dcpp_args=-Werror # zig's linker refuses the flag of --werror
  else
    # For some processors GCC 12 at -O1 warns wrongly that a std::stop_source in a loop may be uninitialized.
    warnings='--werror -Dcpp_args=-Wno-maybe-uninitialized'
  fi
  tests=$(property tests)
  tests=${tests:-$tests_of_machines}
  [ "$tests" != all ] || tests=
  targets=$(for test in $tests; do echo "tests/$test$(property suffix)"; done)
  build_googletest "machines/$1" --cross-file "$cross_file" &&
    configure "$of" --cross-file "$cross_file" -Ddebug=false -Doptimization=1 $warnings -Ddefault_library=static \
      -Dauto_features=disabled -Dtests=enabled && build_targets "$of" $targets || return 1
  [ "$(property runs)" != no ] || { echo "$1: built; nothing here runs it"; return 0; }
  export GTEST_FILTER="-$(property left_out)" WINEPREFIX="$build/machines/wine" WINEDEBUG=-all
  # Once, because programs that start together would each do it.
  case $1 in windows-*) quietly wineboot || return 1 ;; esac
  count_run "$1" "$of" --suite unit --timeout-multiplier 10 $tests
}

# property NAME: prints this property of the machine.
property() { sed -n "s/^$1 = '\(.*\)'$/\1/p" "$cross_file"; }
