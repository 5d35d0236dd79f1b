# What the check.sh of each example begins with; the path of the program is $1.
# It runs the program and looks at its exit status, its output in $out and its errors in $err; $folder is gone at the
# end. A check that fails complains; the last line of a check.sh is `finish`.
set -u

program=$1
[ -x "$program" ] || { echo "not a program: $program"; exit 1; }
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
out=$folder/out
err=$folder/err
failures=0

complain() {
  echo "FAILED: $*"
  sed 's/^/  out: /' "$out"
  sed 's/^/  err: /' "$err"
  failures=$((failures + 1))
}

# expect STATUS ARGUMENT...: runs the program and compares its exit status.
expect() {
  expected=$1
  shift
  "$program" "$@" >"$out" 2>"$err"
  status=$?
  [ "$status" -eq "$expected" ] || complain "exit status $status (expected: $expected) of: $*"
}

# expect_line STATUS PATTERN ARGUMENT...: and exactly one line on stderr, which has the pattern in it.
expect_line() {
  pattern=$2
  expected=$1
  shift 2
  expect "$expected" "$@"
  [ "$(wc -l <"$err")" -eq 1 ] || complain "not one line on stderr: $*"
  grep -q -e "$pattern" "$err" || complain "no \"$pattern\" on stderr: $*"
}

# expect_interrupted ARGUMENT...: runs the program for ever, and ends it with Ctrl-C. More than once: the shell makes what
# it starts in the background ignore SIGINT, so one that comes before the program listens is lost.
expect_interrupted() {
  "$program" "$@" >"$out" 2>"$err" &
  pid=$!
  (while sleep 1; do kill -s INT "$pid"; done) >"$folder/interrupter" 2>&1 &
  interrupter=$!
  wait "$pid"
  status=$?
  kill "$interrupter"
  [ "$status" -eq 0 ] || complain "exit status $status (expected: 0) after SIGINT"
}

finish() {
  [ "$failures" -eq 0 ] && echo "all checks passed"
  exit "$failures"
}
