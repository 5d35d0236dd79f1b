#!/bin/sh
# usage: check.sh PROGRAM
. "$(dirname "$0")/../checks.sh"

expect 0
[ "$(grep -Ec '^ +[0-9]+ +[0-9.]+ s +-?[0-9.]+ s  server.cpp:[0-9]+$' "$out")" -eq 5 ] || complain "prints something else"
[ "$(sed -n 2p "$out" | grep -c 'server.cpp:42$')" -eq 1 ] || complain "does not find the line that leaks"
expect_output '^and 95 others; one call of [0-9.]+ ms, with [0-9.]+ million pending$'
expect_page_manners

finish
