#!/bin/sh
# usage: check.sh PROGRAM
. "$(dirname "$0")/../checks.sh"

expect_good() { expect_figure 0 'active closed' overdue early gone; }

expect 0 --connections 500 --active 50 --limit-ms 300 --run-ms 1500
expect_good
expect_figure 500 accepted
closed=$(figures 'closed, idle')
[ "$closed" -gt 0 ] || complain "no connection was closed"
[ $((closed + $(figures 'open at the end'))) -eq 500 ] || complain "closed and open are not all"
# Checks the figures of the report: none is below the limit, and they are in ascending order.
for name in limit min median max; do figures "$name"; done | sort -g -c 2>"$err" ||
  complain "limit <= min <= median <= max does not hold"
[ "$(figures 'wake-ups')" -lt 100000 ] || complain "the loop does not sleep"

expect 0 --connections 1 --active 1 --limit-ms 2000 --run-ms 100 --tick-ms 1
expect_good
expect_figure 1 'open at the end'
expect_output '^1 connection, 1 of them'
expect 0 --connections 20 --active 0 --limit-ms 50 --run-ms 1000
expect_good
expect 0 --connections 10 --limit-ms 50 --run-ms 100 # not given, --active is a tenth
expect_output '^10 connections, 1 of them active'

# With too few open files the program opens fewer connections, with the same share of active ones.
(ulimit -n 90 && exec "$program" --connections 500 --active 50 --limit-ms 500 --run-ms 100) >"$out" 2>"$err" ||
  complain "exit status $? with few files"
expect_output '^Only 20 connections instead of 500'
expect_output '^20 connections, 2 of them active'
expect_figure 20 accepted

expect_line 2 '--connections.*"0".*1 .. 25,000' --connections 0
expect_line 2 '--connections.*"many".*1 .. 25,000' --connections many
expect_line 2 '--active.*"11".*10 of --connections' --connections 10 --active 11
expect_line 2 '--active.*"-1".*0 .. 25,000' --active=-1
expect_line 2 '--limit-ms.*"19".*20 .. 3,600,000' --limit-ms 19
expect_line 2 '--tick-ms.*"1.5".*1 .. 10,000' --tick-ms 1.5
expect_line 2 '--run-ms.*"99999999999999999999".*1 .. 86,400,000' --run-ms 99999999999999999999

expect_manners '--connections 50 --run-ms 100' '--connections 20 --active 20 --run-ms 600000'
expect_good

# The server ends while the client waits for a place in a full backlog. Needs a network namespace.
narrow='ip link set lo up && echo 16 >/proc/sys/net/core/somaxconn'
if unshare -n sh -c "$narrow" 2>"$err"; then
  unshare -n sh -c "$narrow"'; exec timeout -k 30 -s INT 1 "$1" --connections 5000' sh "$program" >"$out" 2>"$err"
  status=$?
  expect_status 124 "SIGINT while connecting"
fi

finish
