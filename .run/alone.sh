# Steps of the check that take long. They run alone, with an argument.

# The first run takes an hour or more. Later runs build only changes.
alone_mutation() {
  set_up check
  from_pypi venv-mutation 'tree-sitter==0.26.1' 'tree-sitter-cpp==0.23.4' &&
    python3 -B "$root/tests/mutation/mutation.py" "$root" "$@"
}

alone_simulation() {
  [ $# -eq 0 ] || whole_number simulation "a seed" 999999999999 "$@"
  build_alone simulation || return 1
  if [ $# -gt 0 ]; then set -- --seed "$1"; else set -- 1000000; fi
  "$build/alone/tests/simulation/simulation" "$@"
}

# Random calls of all timers, for a minute, or so many of them within two hours.
alone_oracle() {
  [ $# -eq 0 ] || whole_number oracle operations 999999999999 "$@"
  build_alone oracle || return 1
  if [ $# -gt 0 ]; then set -- --operations "$1" --seconds 7200; else set -- --seconds 60; fi
  "$build/alone/tests/oracle/oracle" "$@"
}

alone_flood() {
  [ $# -gt 0 ] || set -- 60
  whole_number flood seconds 604800 "$@"
  build_alone flood && "$build/alone/tests/soak/flood" "$1"
}

alone_soak() {
  [ $# -gt 0 ] || set -- 60
  whole_number soak seconds 604800 "$@"
  build_alone soak && mkdir -p "$build/soak" || return 1
  status=0
  "$build/alone/tests/soak/soak" "$1" "$build/soak/samples.csv" || status=1
  ! set_up_plots ||
    PYTHONPATH="$root/perf" python3 -B "$root/tests/soak/plot.py" "$build/soak/samples.csv" "$build/soak/memory.svg" ||
    status=1
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

# build_alone PROGRAM: builds it with assertions.
build_alone() {
  set_up test
  configure alone --buildtype=debugoptimized -Ddefault_library=static -Dauto_features=disabled -Dtests=enabled &&
    build_targets alone "$1"
}
