#!/bin/sh
# usage: check.sh PROGRAM
. "$(dirname "$0")/../checks.sh"

expect 0
printf 'request 1 answered\nrequest 2 timed out\n' | cmp -s - "$out" || complain "prints something else"
expect_page_manners
expect_bounded_memory

finish
