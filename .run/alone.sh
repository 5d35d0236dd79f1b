# Steps of the check that take long. They run alone, with an argument.

# Every check there is: the parts of tests/verification/parts.ini, with their results on docs/verification.md. Does not
# call take_turn(), because each part is a ./run, which calls it.
alone_all() {
  need python3=python3 git=git || exit
  git_here rev-parse --verify --quiet HEAD >/dev/null || fail "check all needs a clone: git tells which files there are"
  exec python3 -B "$root/tests/verification/verification.py" "$root" "$@"
}

alone_stale() { [ $# -eq 0 ] && alone_all --list || wrong "stale takes no arguments: $1"; }

alone_mutation() {
  set_up check
  from_pypi venv-mutation 'tree-sitter==0.26.1' 'tree-sitter-cpp==0.23.4' &&
    python3 -B "$root/tests/mutation/mutation.py" "$root" "$@"
}

# A million seeds, or the given one.
alone_simulation() {
  build_alone simulation fuzz/replay "a seed" 999999999999 "$@" && "$program" timers --random "${1-1}" "${1-1000000}"
}

# Random calls of all timers, for a minute, or so many of them within two hours.
alone_oracle() {
  build_alone oracle oracle/oracle operations 999999999999 "$@" && "$program" ${1:+--operations "$1" --seconds 7200}
}

alone_flood() { build_alone flood oracle/flood seconds 604800 "$@" && "$program" "${1-60}"; }

alone_soak() {
  build_alone soak oracle/oracle seconds 604800 "$@" && mkdir -p "$build/soak" || return 1
  status=0
  "$program" --seconds "${1-60}" --samples "$build/soak/samples.csv" || status=1
  ! set_up_plots || PYTHONPATH="$root/perf" python3 -B "$root/tests/oracle/plot.py" "$build/soak/samples.csv" \
    "$build/soak/memory.svg" || status=1
  return $status
}

# build_alone STEP PROGRAM WHAT MOST [ARGUMENT]: builds the program with assertions, unless the argument is wrong.
build_alone() {
  step=$1 program=$build/alone/tests/$2 target=tests/$2
  shift 2
  [ $# -eq 2 ] || whole_number "$step" "$@"
  set_up test
  configure alone --buildtype=debugoptimized -Ddefault_library=static -Dauto_features=disabled -Dtests=enabled &&
    build_targets alone "$target"
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
