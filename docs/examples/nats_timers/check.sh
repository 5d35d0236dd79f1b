#!/bin/sh
# usage: check.sh PROGRAM
# tests/host/nats_timers_test.cpp has the tests of the timers.
. "$(dirname "$0")/../checks.sh"
ends_without_memory=no # libnats needs a server, which aborts
LSAN_OPTIONS=suppressions=$(dirname "$0")/libnats.supp:print_suppressions=0
export LSAN_OPTIONS

expect 0 --timers 2000 --requests 1000 --subscriptions 500
expect_figure 0 failed
expect_figure 1000 answered
expect_figure 500 told
[ "$(figures expired)" -ge 500 ] || complain "report: fewer timeouts expired than there were subscriptions"
for kind in 'equal intervals' 'random intervals' 'libnats, equal' 'libnats, random'; do
  awk -v time="$(figures "$kind")" 'BEGIN { exit !(time > 0) }' || complain "report: $kind took no time"
done

expect 0 --timers 0 --requests 0 --subscriptions 0
expect_figure 0 failed answered told

expect_line 2 '--timers.*"-1".*0 .. 1,000,000' --timers -1
expect_line 2 '--requests.*"1.5"' --requests 1.5
expect_line 2 '--subscriptions.*"nan"' --subscriptions nan

expect_manners '--timers 100 --requests 100 --subscriptions 10' '--timers 0 --requests 1000000000 --subscriptions 0'
expect_figure 0 failed

finish
