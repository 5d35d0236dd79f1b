# Shared by the check.sh of each example. $1 is the path of the program.
# A check runs the program and compares its exit status, its output in $out and its errors in $err. $folder is removed
# at the end. The last line of a check.sh is `finish`.
set -u

program=$1
[ -x "$program" ] || { echo "not a program: $program"; exit 1; }
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
out=$folder/out
err=$folder/err
failures=0
ends_without_memory=yes

complain() {
  echo "FAILED: $*"
  sed 's/^/  out: /' "$out"
  sed 's/^/  err: /' "$err"
  failures=$((failures + 1))
}

# run ARGUMENT...: runs the program and stores its exit status in $status. Kills a program that hangs.
run() {
  timeout -s KILL 120 "$program" "$@" >"$out" 2>"$err"
  status=$?
}

expect_status() { [ "$status" -eq "$1" ] || complain "exit status $status (expected: $1): $2"; }

# expect STATUS ARGUMENT...: runs the program and compares its exit status.
expect() {
  expected=$1
  shift
  run "$@"
  expect_status "$expected" "$*"
}

# expect_line STATUS PATTERN ARGUMENT...: also expects exactly one line on stderr, with the pattern in it.
expect_line() {
  pattern=$2
  expected=$1
  shift 2
  expect "$expected" "$@"
  expect_one_line "$pattern" "$*"
}

expect_one_line() {
  [ "$(wc -l <"$err")" -eq 1 ] || complain "not one line on stderr: $2"
  grep -q -e "$1" "$err" || complain "no \"$1\" on stderr: $2"
}

expect_output() { grep -E -q -e "$1" "$out" || complain "no \"$1\" on stdout"; }

# figures NAME: prints the values of the report lines of this name, durations in seconds, without thousands separators.
figures() {
  awk -v name="$1" 'index($0, "  " name "  ") == 1 {
    split(substr($0, length(name) + 3), part, " ")
    gsub(/,/, "", part[1])
    unit = part[2]
    printf "%.15g\n", part[1] * (unit == "ms" ? 1e-3 : unit == "µs" ? 1e-6 : unit == "ns" ? 1e-9 : 1)
  }' "$out"
}

# expect_figure VALUE NAME...: expects each name in the report, always with this value.
expect_figure() {
  value=$1
  shift
  for name in "$@"; do [ "$(figures "$name" | sort -u)" = "$value" ] || complain "report: $name is not $value"; done
}

# expect_manners SHORT LONG: checks the behaviour that all examples share. With the arguments SHORT the program ends
# soon, with LONG it runs for minutes. Set ends_without_memory=no if a library of the example aborts without memory.
expect_manners() {
  short=$1
  long=$2
  expect 0 --help
  expect_output '^Exit status: '
  expect_line 2 '--no-such-option' --no-such-option
  expect_line 2 'surplus' surplus
  expect_line 2 'two?lines' 'two
lines'
  expect_full_disk --help
  expect_full_disk $short
  [ "$ends_without_memory" = no ] || expect_bounded_memory $short
  expect_interrupted INT $long
  expect_interrupted TERM $long
  expect_progress $long
}

# Checks the short examples, which have no options.
expect_page_manners() {
  [ "$(uname)" = Linux ] || return  # other linkers cannot replace main()
  expect 0 --help
  expect_line 2 '--no-such-option' --no-such-option
  expect_line 2 'surplus' surplus
  expect_line 2 'two?lines' 'two
lines'
  expect_full_disk --help
  expect_full_disk
}

expect_full_disk() {
  [ -e /dev/full ] || return
  : >"$out"
  timeout -s KILL 120 "$program" "$@" >/dev/full 2>"$err"
  status=$?
  expect_status 1 "$* > /dev/full"
  expect_one_line 'cannot print' "$* > /dev/full"
}

# With too little memory the program works or ends with one line. Skipped under sanitizers, which need terabytes of
# addresses.
expect_bounded_memory() {
  (ulimit -v 4000000 && exec "$program" --help) >"$out" 2>"$err" || return
  for mebibytes in 8 12 16 20 24 28 32 40 48 64 80 96 128 192 256 384; do
    timeout -s KILL 120 sh -c 'ulimit -v "$0" && exec "$@"' $((mebibytes * 1024)) "$program" "$@" >"$out" 2>"$err"
    status=$?
    [ "$status" -ne 0 ] || continue
    [ "$status" -le 127 ] || { complain "exit status $status with $mebibytes MiB"; return; }
    expect_one_line ': ' "with $mebibytes MiB"
  done
}

# expect_interrupted SIGNAL ARGUMENT...: the signal ends the run with a report. It is sent once, because a second signal
# ends the program without a report.
expect_interrupted() {
  signal=$1
  shift
  "$program" "$@" >"$out" 2>"$err" &
  pid=$!
  (
    seconds=0
    while kill -0 "$pid"; do
      sleep 1
      seconds=$((seconds + 1))
      [ "$seconds" -lt 120 ] || kill -s KILL "$pid"
    done
  ) 2>/dev/null &
  sleep 1
  until signals_caught || ! kill -0 "$pid" 2>/dev/null; do sleep 0.2; done
  sleep 0.5
  kill -s "$signal" "$pid"
  wait "$pid"
  status=$?
  expect_status 0 "SIG$signal"
  expect_output '^Interrupted: '
}

# True if $pid has handlers for SIGINT and SIGTERM. Also true if the system does not tell.
signals_caught() {
  [ -r "/proc/$pid/status" ] || return 0
  caught=$(sed -n 's/^SigCgt:[^0-9a-f]*//p' "/proc/$pid/status")
  [ $((0x${caught:-0} & 0x4002)) -eq $((0x4002)) ]
}

# The program shows progress on a terminal and ends at Ctrl-C.
expect_progress() {
  command -v script >/dev/null || return
  : >"$out"
  : >"$err"
  {
    until grep -q "$(printf '\033')" "$out" || [ -e "$folder/ended" ]; do sleep 0.2; done
    sleep 0.5
    printf '\003'
  } | {
    # exec: otherwise the shell would also get the Ctrl-C, and its exit status would count.
    timeout -s KILL 120 script -qec "exec '$program' $*" /dev/null >"$out"
    echo $? >"$folder/ended"
  }
  status=$(cat "$folder/ended")
  rm "$folder/ended"
  expect_status 0 "Ctrl-C"
  expect_output "$(printf '\033')\\[K"
  expect_output '^Interrupted: '
}

finish() {
  [ "$failures" -eq 0 ] && echo "all checks passed"
  exit "$failures"
}
