#!/bin/sh
# usage: check.sh PROGRAM
. "$(dirname "$0")/../checks.sh"

# expect_lines COUNT PATTERN
expect_lines() {
  found=$(grep -E -c -e "$2" "$out")
  [ "$found" -eq "$1" ] || complain "$found lines with \"$2\" (expected: $1)"
}

expect 0
expect_lines 1 '^  once +1 +2\.5 s +2\.5 s +0 s'
expect_lines 1 '^  fixed delay +3 +5 s +7\.6 s +2\.6 s'
expect_lines 1 '^  fixed delay +4 +9\.6 s +9\.6 s'
for policy in skip once; do
  expect_lines 8 "^  fixed rate, $policy +[0-9]"
  expect_lines 1 "^  fixed rate, $policy +6 +8 s +8 s"
done
expect_lines 10 '^  fixed rate, burst +[0-9]'
# A burst pauses after 5 ms of real time. On a busy machine a run after the pause shows when it was due.
expect_lines 2 '^  fixed rate, burst +[67] +(made up|[67] s) +7\.6[0-9]* s'
expect_lines 4 '^  sequence +[0-9]'
expect_lines 4 '^  cycle, limit 4 +[0-9]'
expect_lines 1 ' Sun 2028-03-26 01:30:00 +24 h 0 min' # 02:30 is shifted; the table that skips it has none
expect_lines 1 ' Mon 2028-03-27 00:30:00 +23 h 0 min'
expect_lines 1 ' Mon 2028-03-27 00:30:00 +47 h 0 min'
expect_lines 1 '^  daily 02:30 +365 '
expect_lines 1 '^  daily 02:30, gap skipped, fold both +365 '
expect_lines 1 '^  monthly 31st 18:00, short months skipped +7 '
expect_lines 5 '^  fixed rate +[0-9]'
expect_lines 2 '^  fixed rate with jitter +[0-9]'
expect_lines 1 '^  daily at [0-9:]* UTC +[0-9]'

expect 0 --simulated --from 2028-10-27
expect_lines 2 ' Sun 2028-10-29 00:30:00'
expect_lines 1 ' Sun 2028-10-29 01:30:00 +1 h 0 min' # the table with both
expect_lines 0 '^  daily at'

expect 0 --simulated --zone Asia/Kolkata
expect_lines 0 ' 23 h 0 min'

expect_line 2 '--zone.*"Mars/Olympus"' --zone Mars/Olympus
expect_line 2 '--from.*"2028-02-30".*1970-01-01 .. 2200-12-31' --from 2028-02-30
expect_line 2 '--from.*"soon"' --from soon

expect_manners --simulated '--runs 1000'

finish
