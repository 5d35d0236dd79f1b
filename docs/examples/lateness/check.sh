#!/bin/sh
# usage: check.sh PROGRAM
. "$(dirname "$0")/../checks.sh"

expect 0
# Never early, so no minus sign.
grep -Eqx 'late: [0-9]+[.][0-9] us at least, half by [0-9]+[.][0-9], 99 % by [0-9]+[.][0-9]' "$out" ||
  complain "prints something else"
expect_page_manners

finish
