# Every check there is: the parts of tests/verification/parts.ini, with their results on docs/verification.md.

# all [PART...]: runs the parts that are stale or have not passed, or those that are named. Does not call take_turn(),
# because each part is a ./run, which calls it.
all() {
  have python3 && have git || fail "check all needs python3 and git"
  git_here rev-parse --verify --quiet HEAD >/dev/null || fail "check all needs a clone: git tells which tree it is"
  exec python3 -B "$root/tests/verification/verification.py" "$root" "$@"
}

# Tells the state of each part.
stale() {
  [ $# -eq 0 ] || wrong "stale takes no arguments: $1"
  all --list
}
