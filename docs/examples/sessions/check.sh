#!/bin/sh
# usage: check.sh PROGRAM
. "$(dirname "$0")/../checks.sh"

# On a busy machine the hasty client may come too late to end its session before the request times out.
expect 0
[ "$(grep -c '^session ends' "$out")" -eq 2 ] || complain "a session did not end"
expect_output '^request times out$'
expect_output '^session is idle$'
expect_output '^pending timeouts: 0$'
expect_page_manners

finish
