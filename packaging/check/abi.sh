#!/bin/sh
# Compares builds of the library of c.h by abidiff. A new member at the end of hwt_options must be no change of the ABI.
# One before the end must be a change.
# usage: abi.sh SOURCE WORK; SOURCE is a copy of the tree. Needs abidiff and a compiler.
set -eu

source=$1
work=$2

# build NAME EXPRESSION: the library with a header that sed has changed.
build() {
  mkdir "$work/$1"
  cp -R "$source/hashed_wheel_timer" "$work/$1"
  sed -i "$2" "$work/$1/hashed_wheel_timer/c.h"
  (cd "$work/$1" && ${CXX:-c++} -std=c++20 -g -shared -fPIC -fvisibility=hidden -DHWT_BUILDING -I. -o c.so \
    hashed_wheel_timer/internal/c/*.cpp)
}
compare() {
  abidiff --suppressions "$source/packaging/check/hwt_options.abignore" "$work/now/c.so" "$work/$1/c.so"
}

build now ''
build grown 's/^} hwt_options;/  int64_t new_member;\n&/'
build inserted 's/^  int64_t max_pending;/  int64_t new_member;\n&/'
grep -q new_member "$work/grown/hashed_wheel_timer/c.h"
compare grown
if compare inserted; then
  echo "abi.sh: abidiff has not noticed a member before the end" >&2
  exit 1
fi
