#!/bin/sh
# Checks the program from outside: check.sh PATH_OF_EPOLL_LOOP
. "$(dirname "$0")/../checks.sh"

expect 0 --run-ms 1000
expect_figure 0 early lost
[ "$(figures 'timed out')" -gt 0 ] || complain "nothing timed out"
[ "$(figures woken)" -gt 0 ] || complain "nobody has woken the loop"
# Once a tick at most, and once more for each call.
[ "$(figures 'turns')" -lt $((2000 + 2 * $(figures woken))) ] || complain "the loop does not sleep"

# Nothing is ever due: the loop sleeps all the time, and is woken when that begins and when it ends.
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
