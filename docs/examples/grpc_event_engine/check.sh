#!/bin/sh
# usage: check.sh PROGRAM
# tests/host/wheel_event_engine_test.cpp has the unit tests of the engine.
. "$(dirname "$0")/../checks.sh"
ends_without_memory=no # gRPC aborts

# gRPC waits with RunAfter() before it reconnects to a server.
expect 0 --calls 2000 --restarts 2 --pairs 20000
expect_figure 0 failed left
expect_figure 2000 calls
expect_figure 2 restarts
[ "$(figures scheduled)" -ge 2 ] || complain "report: RunAfter() scheduled too few timeouts on the timer"
for name in 'this engine' "gRPC's own"; do [ -n "$(figures "$name")" ] || complain "report: no $name"; done

expect 0 --calls 1 --threads 1 --restarts 0 --pairs 0
expect_figure 0 failed left restarts

expect_line 2 '--calls.*"0".*1 .. 1,000,000,000' --calls 0
expect_line 2 '--threads.*"many".*1 .. 64' --threads many
expect_line 2 '--restarts.*"1.5"' --restarts 1.5
expect_line 2 '--pairs.*"nan"' --pairs nan

expect_manners '--calls 100 --restarts 1 --pairs 100' '--calls 1000000000'
expect_figure 0 failed left # of the run that it interrupted last

finish
