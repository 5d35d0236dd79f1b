# Every check there is: the parts of tests/verification/parts.ini, with their results on docs/verification.md.

# Does not call take_turn(), because each part is a ./run, which calls it.
alone_all() {
  have python3 && have git || fail "check all needs python3 and git"
  git_here rev-parse --verify --quiet HEAD >/dev/null || fail "check all needs a clone: git tells which files there are"
  exec python3 -B "$root/tests/verification/verification.py" "$root" "$@"
}

alone_stale() { [ $# -eq 0 ] && alone_all --list || wrong "stale takes no arguments: $1"; }
