# Every check there is: the parts of tests/verification/parts.ini, with their results on docs/verification.md.

# all [PART...]: those that have not passed on the present tree, or those that are named. Without the turn, because each
# part is a ./run that takes it.
all() {
  have python3 && have git || fail "check all needs python3 and git"
  git_here rev-parse --verify --quiet HEAD >/dev/null || fail "check all needs a clone: git tells which tree it is"
  exec python3 -B "$root/tests/verification/verification.py" "$root" "$@"
}
