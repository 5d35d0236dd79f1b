#!/bin/sh
# Checks the program from outside: check.sh PATH_OF_KEEP_ALIVE_POOL
. "$(dirname "$0")/../checks.sh"

# expect_zero COUNT NAME...: so many times in the report, each 0.
expect_zero() {
  count=$1
  shift
  for name in "$@"; do
    [ "$(grep -E -c "^ +$name +0\$" "$out")" -eq "$count" ] || complain "report: $name is not 0"
  done
}

expect 0 --connections 20000 --threads 3 --minutes 2 --silent 5 --live-seconds 2.5
expect_zero 2 early lost
grep -E -q '^ +expired +[1-9][0-9,]*, 30\.[01][0-9]+ to 30\.[01][0-9]+ s' "$out" || complain "report: no expiry at 30 s"
grep -q 'Real clock' "$out" || complain "report: nothing on the real clock"

# Simulated time has no excuse. A tick that divides nothing, one thread, all or nobody silent.
expect 0 --connections 5000 --threads 1 --minutes 3 --tick-ms 7 --silent 100 --live-seconds 0
expect_zero 1 early late overdue wrong lost
expect 0 --connections 5000 --minutes 3 --tick-ms 3000 --silent 0 --live-seconds 0
expect_zero 1 early late overdue wrong lost expired
expect 0 --connections 1 --threads 8 --minutes 0.1 --live-seconds 0.1
expect 0 --connections 1 --minutes 0.1 --silent 100 --live-seconds 0.01  # no heartbeat, no rate
expect_zero 2 heartbeats

# Not enough memory for the stacks of all threads: it ends with an error, and those that are there do not wait for ever.
(ulimit -v 300000 && exec timeout -s KILL 60 "$program" --connections 1000 --threads 64 --live-seconds 0) \
  >"$out" 2>"$err"
status=$?
[ "$status" -ne 137 ] || complain "hangs when a thread cannot be started"

expect 0 --help
expect_line 2 '--connections.*"0".*1 .. 10,000,000' --connections 0
expect_line 2 '--connections.*"1.5"' --connections 1.5
expect_line 2 '--minutes.*"nan".*0.1 .. 1,440' --minutes nan
expect_line 2 '--threads.*"many".*1 .. 64' --threads many
expect_line 2 '--tick-ms.*"-1"' --tick-ms=-1
expect_line 2 '--silent.*"101".*0 .. 100' --silent 101
expect_line 2 '--live-seconds' --live-seconds
expect_line 2 '--no-such-option' --no-such-option
expect_line 2 'surplus' surplus

expect_interrupted --connections 1000 --minutes 1440 --live-seconds 3600
expect_zero 1 early lost

finish
