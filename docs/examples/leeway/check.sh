#!/bin/sh
# usage: check.sh PROGRAM
. "$(dirname "$0")/../checks.sh"

expect 0
[ "$(grep -Ecx '(none|1 ms|10 ms|100 ms) +[0-9]+ +[0-9.]+ ms +[0-9.]+ us +[0-9.]+ us' "$out")" -eq 4 ] ||
  complain "prints something else"
# One for each 8,192 ticks of the second, which are 123, and some at the start and the end. On a busy machine there are
# fewer.
[ "$(awk '$1 " " $2 == "10 ms" { print $3 }' "$out")" -le 130 ] || complain "wakes up too often"
expect_page_manners

finish
