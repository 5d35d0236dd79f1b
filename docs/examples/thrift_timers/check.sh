#!/bin/sh
# usage: check.sh PROGRAM
# tests/host/thrift_timers_test.cpp has the tests of the timers.
. "$(dirname "$0")/../checks.sh"
ends_without_memory=no # a server of Thrift loses connections, and writes lines of its own

expect 0 --calls 1000 --silent 5 --pending 1000 --pairs 1000 --rounds 3
expect_figure 0 failed early left
expect_figure 1000 answered
expect_figure 5 ended
for way in 'in order, 1 thread' 'in order, 2 threads' 'at random, 1 thread' 'at random, 2 threads' 'by task, 1 thread'; do
  awk -v time="$(figures "$way")" 'BEGIN { exit !(time > 0) }' || complain "report: $way took no time"
done

expect 0 --calls 0 --silent 0 --pending 2 --pairs 1 --rounds 1
expect_figure 0 failed early left answered ended

expect_line 2 '--calls.*"-1".*0 .. 1,000,000,000' --calls -1
expect_line 2 '--silent.*"1.5"' --silent 1.5
expect_line 2 '--pending.*"1".*2 .. 1,000,000' --pending 1
expect_line 2 '--pairs.*"nan"' --pairs nan
expect_line 2 '--rounds.*"many"' --rounds many

expect_manners '--calls 100 --silent 1 --pending 100 --pairs 100 --rounds 1' '--calls 1000000000 --silent 1 --rounds 0'
expect_figure 0 failed early left # of the run that it interrupted last

finish
