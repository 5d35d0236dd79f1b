#!/bin/sh
# usage: check.sh PROGRAM
. "$(dirname "$0")/../checks.sh"

# Checks the timeline. Its lines are `MS ms node N term T EVENT...`.
expect_elections() {
  tr -d , <"$out" | awk '
    $2 != "ms" { next }
    { node = $4; term = $6; what = $7 " " $8 }
    $1 < last { print "time goes back" }
    { last = $1 }
    what == "becomes candidate" { candidate[term, node] = 1 }
    what == "becomes leader" {
      if (leader[term] != "" && leader[term] != node) print "two leaders in term " term
      if (!candidate[term, node]) print "node " node " leads in term " term " without having been a candidate"
      if (dead[node]) print "node " node " was killed and leads"
      leader[term] = node
      leading[node] = 1
      if (first_killed != "" && term > first_killed) elected_again = 1
    }
    what == "steps down" { if (leading[node] && kills > 0) stepped_down = 1; leading[node] = 0 }
    # The program kills the leader first, and then followers. On a stalled machine the leader may have changed since
    # the program chose the node. Then the last two checks do not apply.
    what == "is killed" {
      if (leading[node] != (kills == 0)) deposed = 1
      if (kills++ == 0) first_killed = term
      dead[node] = 1
      leading[node] = 0
    }
    END {
      if (kills != ENVIRON["NODES_KILLED"]) print kills " nodes were killed"
      if (!elected_again && !deposed) print "no second leader in a higher term"
      if (!stepped_down && !deposed) print "no leader stepped down"
    }' >"$folder/wrong"
  [ ! -s "$folder/wrong" ] || complain "$(cat "$folder/wrong")"
  expect_output '^Never two leaders in one term'
}

# The program kills nodes until there is no majority. The shutdown at the end is not in the timeline.
expect 0
NODES_KILLED=2 expect_elections
expect 0 --nodes 9 --tick-ms 15 --seed 7 # many candidates at once
NODES_KILLED=5 expect_elections

# A node waits for at least 2 s before it becomes a candidate.
expect_line 1 'no leader within 100 ms' --election-timeout-ms 2000 --within-ms 100

expect_line 2 '--nodes.*"4".*odd number 3 .. 9' --nodes 4
expect_line 2 '--nodes.*"1".*3 .. 9' --nodes 1
expect_line 2 '--nodes.*"three"' --nodes three
expect_line 2 '--election-timeout-ms.*"0".*20 .. 10,000' --election-timeout-ms 0
expect_line 2 '--election-timeout-ms.*"nan"' --election-timeout-ms nan
expect_line 2 '--tick-ms.*"1.5"' --tick-ms 1.5
expect_line 2 '--tick-ms.*"20".*at most.*15' --tick-ms 20
expect_line 2 '--within-ms.*"-1".*1 .. 600,000' --within-ms=-1
expect_line 2 '--seed.*"x"' --seed x

# Long timeouts would take half a minute.
expect_manners '--election-timeout-ms 50' '--election-timeout-ms 10000 --within-ms 60000'
expect_output '^The elections were not over'

finish
