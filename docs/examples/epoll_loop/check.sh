#!/bin/sh
# usage: check.sh PROGRAM
. "$(dirname "$0")/../checks.sh"

expect 0 --run-ms 1000
expect_figure 0 early lost
[ "$(figures 'timed out')" -gt 0 ] || complain "nothing timed out"
[ "$(figures woken)" -gt 0 ] || complain "no thread woke the loop"
# At most one turn for each tick and two for each wake-up.
[ "$(figures 'turns')" -lt $((2000 + 2 * $(figures woken))) ] || complain "the loop does not sleep"

# No timeout is due, so the loop sleeps. It is woken at the start and at the end of the run.
expect 0 --threads 1 --run-ms 300 --limit-ms 3600000 --unanswered 0
expect_figure 0 early lost 'timed out'
[ "$(figures 'turns')" -lt 50 ] || complain "the loop does not sleep"

expect 0 --threads 4 --run-ms 200 --limit-ms 1 --unanswered 100% --tick-ms 7
expect_figure 0 early lost

expect_line 2 '--threads.*"0".*1 .. 64' --threads 0
expect_line 2 '--tick-ms.*"0".*1 .. 10,000' --tick-ms 0
expect_line 2 '--limit-ms.*"1.5"' --limit-ms 1.5
expect_line 2 '--unanswered.*"101".*0% .. 100%' --unanswered 101
expect_line 2 '--run-ms.*"nan"' --run-ms nan

expect_manners '--run-ms 100' '--run-ms 600000'
expect_figure 0 early lost

finish
