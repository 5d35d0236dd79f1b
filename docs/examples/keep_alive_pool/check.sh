#!/bin/sh
# usage: check.sh PROGRAM
. "$(dirname "$0")/../checks.sh"

expect 0 --connections 20000 --threads 3 --minutes 2 --silent 5 --live-seconds 2.5
expect_figure 0 early lost
figures expired | head -n 1 | grep -q '^[1-9]' || complain "report: nothing expired"
expect_output '^ +30(\.[01][0-9]*)? s  after the last heartbeat, the earliest'
expect_output '^ +30(\.[01][0-9]*)? s  after the last heartbeat, the latest'
expect_output '^Real clock'

# Simulated time must be exact: with a tick that divides no interval, one thread, all or no connections silent.
expect 0 --connections 5000 --threads 1 --minutes 3 --tick-ms 7 --silent 100% --live-seconds 0
expect_figure 0 early late overdue wrong lost
expect 0 --connections 5000 --minutes 3 --tick-ms 3000 --silent 0 --live-seconds 0
expect_figure 0 early late overdue wrong lost expired
expect 0 --connections 1 --threads 8 --minutes 0.1 --live-seconds 0.1
expect 0 --connections 1 --minutes 0.1 --silent 100 --live-seconds 0.01 # no heartbeat, no rate
expect_figure 0 heartbeats

expect_line 2 '--connections.*"0".*1 .. 10,000,000' --connections 0
expect_line 2 '--connections.*"1.5"' --connections 1.5
expect_line 2 '--minutes.*"nan".*0.1 .. 1,440' --minutes nan
expect_line 2 '--threads.*"many".*1 .. 64' --threads many
expect_line 2 '--tick-ms.*"-1"' --tick-ms=-1
expect_line 2 '--silent.*"101".*0% .. 100%' --silent 101
expect_line 2 '--live-seconds' --live-seconds

# With too little memory for the stacks, no thread may wait for threads that did not start.
expect_manners '--connections 1000 --threads 64 --minutes 0.1 --live-seconds 0.1' \
  '--connections 100000 --minutes 1440 --live-seconds 3600'
expect_figure 0 early lost
! grep -q 'Real clock' "$out" || complain "goes on after Ctrl-C"
expect_interrupted INT --connections 100 --minutes 0.1 --live-seconds 3600
expect_figure 0 early lost
expect_output '^Real clock'

finish
