#!/bin/sh
# usage: check.sh PROGRAM
# tests/host/kj_wheel_timer_test.cpp has the tests of the timer.
. "$(dirname "$0")/../checks.sh"
ends_without_memory=no # kj aborts

expect 0 --connections 5000 --requests 2000 --rounds 5
expect_figure 0 'closed early' 'not closed' broken
for name in request 'afterDelay and drop' 'close an idle one'; do
  [ -n "$(figures "$name")" ] || complain "report: no $name"
done

expect 0 --connections 1 --requests 1 --rounds 1
expect_figure 0 'closed early' 'not closed' broken

expect_line 2 '--connections.*"0".*1 .. 1,000,000' --connections 0
expect_line 2 '--rounds.*"1.5"' --rounds 1.5
expect_line 2 '--requests.*"nan"' --requests nan

expect_manners '--connections 100 --requests 100 --rounds 1' '--connections 1000 --requests 1000 --rounds 1000000'
expect_figure 0 'closed early' 'not closed' broken # of the run that it interrupted last

finish
