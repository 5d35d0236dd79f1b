#!/bin/sh
# usage: check.sh PROGRAM
. "$(dirname "$0")/../checks.sh"

expect_all() {
  expect_figure 0 'started too late'
  [ $(($(figures answered) + $(figures 'timed out'))) -eq "$(figures sent)" ] || complain "a request was lost"
}

# Twenty requests for each worker: many wait until their budget is used up.
expect 0 --callers 40 --workers 2 --run-ms 1000
expect_all
[ "$(figures 'not started')" -gt 0 ] || complain "all work was started"
expect_output '^    3 '

# No work and enough workers, so nothing waits.
expect 0 --callers 2 --workers 2 --work-ms 0 --budget-ms 10000 --run-ms 200
expect_all
expect_figure 0 'not started' 'timed out'

# No budget is long enough.
expect 0 --callers 4 --work-ms 10000 --budget-ms 1 --run-ms 200 --tick-ms 7
expect_all

expect_line 2 '--callers.*"0".*1 .. 1,000' --callers 0
expect_line 2 '--workers.*"-1".*1 .. 1,000' --workers=-1
expect_line 2 '--budget-ms.*"0".*1 .. 10,000' --budget-ms 0
expect_line 2 '--work-ms.*"many".*0 .. 10,000' --work-ms many
expect_line 2 '--tick-ms.*"1.5".*1 .. 1,000' --tick-ms 1.5
expect_line 2 '--run-ms.*"nan"' --run-ms nan

expect_manners '--run-ms 100' '--run-ms 600000'
expect_all

finish
