# Steps of the check that take long. They run alone, with an argument.

# mutation [ARGUMENTS]: runs tests/mutation/mutation.py with these arguments. The first run takes an hour or more; later
# runs build only changes.
mutation() {
  set_up check
  from_pypi venv-mutation 'tree-sitter==0.26.1' 'tree-sitter-cpp==0.23.4' ||
    { say "could not install tree-sitter, see build/last.log"; return 1; }
  "$build/venv-mutation/bin/python" -B "$root/tests/mutation/mutation.py" "$root" "$@"
}

# simulation [SEED]: runs all seeds up to a million, or the given seed step by step.
simulation() {
  [ $# -eq 0 ] || whole_number simulation "a seed" 999999999999 "$@"
  set_up test
  configure_alone && build_targets alone simulation || return 1
  if [ $# -gt 0 ]; then set -- --seed "$1"; else set -- 1000000; fi
  "$build/alone/tests/simulation/simulation" "$@"
}

# oracle [OPERATIONS]: checks random calls of all timers, for a minute, or so many of them within two hours.
oracle() {
  [ $# -eq 0 ] || whole_number oracle operations 999999999999 "$@"
  set_up test
  configure_alone && build_targets alone oracle || return 1
  if [ $# -gt 0 ]; then set -- --operations "$1" --seconds 7200; else set -- --seconds 60; fi
  "$build/alone/tests/oracle/oracle" "$@"
}

# flood [SECONDS]: runs the floods, and checks how late timeouts are and how long calls take.
flood() {
  [ $# -gt 0 ] || set -- 60
  whole_number flood seconds 604800 "$@"
  set_up test
  configure_alone && build_targets alone flood || return 1
  "$build/alone/tests/soak/flood" "$1"
}

# soak [SECONDS]: runs the soak test, and plots its memory in build/soak.
soak() {
  [ $# -gt 0 ] || set -- 60
  whole_number soak seconds 604800 "$@"
  set_up test
  configure_alone && build_targets alone soak || return 1
  mkdir -p "$build/soak"
  status=0
  "$build/alone/tests/soak/soak" "$1" "$build/soak/samples.csv" || status=1
  ! set_up_plots || PYTHONPATH="$root/perf" "$build/venv-compare/bin/python" -B "$root/tests/soak/plot.py" \
    "$build/soak/samples.csv" "$build/soak/memory.svg" || status=1
  return $status
}

# whole_number STEP WHAT MOST ARGUMENTS...: fails unless there is one argument, a whole number from 1 to MOST. Refuses
# more than 12 digits first, because a shell may not be able to compare such a number.
whole_number() {
  [ $# -eq 4 ] || wrong "$1: $(($# - 3)) arguments (expected: $2 alone)"
  case $4 in
    '' | *[!0-9]* | 0* | ?????????????*) ;;
    *) [ "$4" -gt "$3" ] || return 0 ;;
  esac
  wrong "$1: \"$4\" (expected: $2, a whole number 1 .. $3)"
}

# Configures a build with assertions.
configure_alone() {
  configure alone --buildtype=debugoptimized -Ddefault_library=static -Dtests=enabled -Dexamples=disabled \
    -Dcalendar=disabled -Dbenchmarks=disabled
}
