#!/bin/sh
# Checks the program from outside: check.sh PATH_OF_IDLE_CONNECTIONS
. "$(dirname "$0")/../checks.sh"

# The number in the line with this label.
figure() { sed -n "s/^  $1  *\([0-9.,]*\).*/\1/p" "$out" | tr -d ,; }
expect_figure() { [ "$(figure "$1")" = "$2" ] || complain "report: $1 is not $2"; }

expect_good() {
  for name in 'active closed' overdue early gone; do expect_figure "$name" 0; done
}

expect 0 --connections 500 --active 50 --limit-ms 300 --run-ms 1500
expect_good
expect_figure accepted 500
closed=$(figure 'closed, idle')
[ "$closed" -gt 0 ] || complain "nobody was closed"
[ $((closed + $(figure 'open at the end'))) -eq 500 ] || complain "closed and open are not all"
# By the report itself, not only by its verdict: none below the limit, in ascending order.
printf '%s\n' "$(figure limit)" "$(figure min)" "$(figure median)" "$(figure max)" | sort -n -c 2>"$err" ||
  complain "limit <= min <= median <= max does not hold"
[ "$(figure 'wake-ups')" -lt 100000 ] || complain "the loop does not sleep"

expect 0 --connections 1 --active 1 --limit-ms 2000 --run-ms 100 --tick-ms 1
expect_good
expect_figure 'open at the end' 1
grep -q '^1 connection, 1 of them' "$out" || complain "not singular for one connection"
expect 0 --connections 20 --active 0 --limit-ms 50 --run-ms 1000
expect_good

# Fewer files than it takes: it says so, and goes on.
(ulimit -n 90 && exec "$program" --connections 500 --active 1 --limit-ms 500 --run-ms 100) >"$out" 2>"$err" ||
  complain "exit status $? with few files"
grep -q '^Only 20 connections instead of 500' "$out" || complain "does not say that there are fewer connections"
expect_figure accepted 20
(ulimit -n 90 && exec "$program" --connections 500 --active 50 --limit-ms 500 --run-ms 100) >"$out" 2>"$err"
grep -q '^20 connections, 2 of them active' "$out" || complain "with few files, not the same share of them is active"

expect 0 --help
expect_line 2 '--connections.*"0".*1 .. 25000' --connections 0
expect_line 2 '--connections.*"many".*1 .. 25000' --connections many
expect_line 2 '--active.*"11".*10 of --connections' --connections 10 --active 11
expect_line 2 '--active.*"-1".*0 .. 25000' --active=-1
expect_line 2 '--limit-ms.*"19".*20 .. 3600000' --limit-ms 19
expect_line 2 '--tick-ms.*"1.5".*1 .. 10000' --tick-ms 1.5
expect_line 2 '--run-ms.*"99999999999999999999".*1 .. 86400000' --run-ms 99999999999999999999
expect_line 2 '--no-such-option' --no-such-option
expect_line 2 'surplus' surplus
expect_line 2 'two?lines' 'two
lines'
expect 0 --connections 10 --limit-ms 50 --run-ms 100
grep -q '^10 connections, 1 of them active' "$out" || complain "not a tenth is active when --active is not given"

expect_interrupted --connections 20 --active 20 --run-ms 600000
expect_good

# The server ends while the client waits for a place in a full backlog. Where a network of our own may be made.
narrow='ip link set lo up && echo 16 >/proc/sys/net/core/somaxconn'
if unshare -n sh -c "$narrow" 2>"$err"; then
  unshare -n sh -c "$narrow"'; exec timeout -k 30 -s INT 1 "$1" --connections 5000' sh "$program" >"$out" 2>"$err"
  status=$?
  [ "$status" -eq 124 ] || complain "does not end after SIGINT while connecting (status $status)"
fi

finish
