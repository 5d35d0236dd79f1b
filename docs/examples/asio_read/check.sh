#!/bin/sh
# usage: check.sh PROGRAM
. "$(dirname "$0")/../checks.sh"

expect 0
printf 'nothing within 250 ms\n' | cmp -s - "$out" || complain "prints something else"
expect_page_manners

finish
