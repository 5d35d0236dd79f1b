#!/bin/sh
# Checks the program from outside: check.sh PATH_OF_RPC_TIMEOUTS
. "$(dirname "$0")/../checks.sh"
svg=$folder/picture.svg

expect_report() {
  for name in lost doubled early; do
    grep -E -q "^ +$name +0( |\$)" "$out" || complain "report: $name is not 0"
  done
  for name in requests answered; do
    grep -E -q "^ +$name +[1-9]" "$out" || complain "report: $name is 0"
  done
}

expect_picture() {
  if command -v xmllint >/dev/null; then
    xmllint --noout "$1" 2>"$err" || complain "$1 is not well-formed"
  elif command -v python3 >/dev/null; then
    python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$1" 2>"$err" ||
      complain "$1 is not well-formed"
  else
    grep -q '</svg>' "$1" || complain "$1 is not complete"
  fi
}

expect 0 --seconds 2 --svg "$svg"
expect_report
grep -E -q '^ +timed out +[1-9]' "$out" || complain "report: nothing timed out"
grep -q "Picture: $svg" "$out" || complain "the report does not name the picture"
expect_picture "$svg"

expect 0 --help
expect_line 2 '--seconds.*"soon".*0.1 .. 86,400' --seconds soon
expect_line 2 '--seconds.*"nan"' --seconds nan
expect_line 2 '--in-flight.*"0".*1 .. 1,000,000' --in-flight 0
expect_line 2 '--tick-ms.*"1.5"' --tick-ms 1.5
expect_line 2 '--connections' --connections
expect_line 2 '--never-answer.*"101%".*100%' --never-answer 101%
expect_line 2 '--no-such-option' --no-such-option
expect_line 2 'surplus' surplus
expect_line 2 '--latencies.*--latency-sigma' --latencies "$folder" --latency-sigma 1

# A timeout that even a machine that stalls does not reach.
patient="--never-answer 0 --timeout-ms 20000"

latencies=$folder/latencies.txt
printf '100\n2500.5\r\n\n 1e4' >"$latencies"
expect 0 --seconds 0.3 $patient --latencies "$latencies" --svg "$svg"
expect_report
expect_picture "$svg"
expect 0 --seconds 0.3 --in-flight 1 --connections 2 $patient --tick-ms 1 --svg "$svg"  # an empty histogram
expect_picture "$svg"
expect_line 2 "$folder/missing.txt" --latencies "$folder/missing.txt"
expect_line 2 "$folder" --latencies "$folder"
printf '100\n20 ms\n' >"$latencies"
expect_line 2 'latencies.txt.*line 2.*"20 ms"' --latencies "$latencies"
: >"$latencies"
expect_line 2 'latencies.txt' --latencies "$latencies"

for target in "$folder/no/such/folder.svg" /dev/full; do
  [ "$target" != /dev/full ] || [ -e /dev/full ] || continue
  expect_line 1 "$target" --seconds 0.2 $patient --svg "$target"
  expect_report
done

# A signal that comes before the program listens is lost: so once more, later, if it had no effect.
for pause in 1 4; do
  "$program" --seconds 8 --svg "$svg" >"$out" 2>"$err" &
  pid=$!
  sleep $pause
  kill -s INT "$pid" 2>"$err"
  wait "$pid"
  status=$?
  grep -q ' for 8\.[0-9] s' "$out" || break
done
[ "$status" -eq 0 ] || complain "exit status $status (expected: 0) after SIGINT"
! grep -q ' for 8\.[0-9] s' "$out" || complain "SIGINT had no effect"
expect_report
expect_picture "$svg"

finish
