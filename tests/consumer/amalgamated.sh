#!/bin/sh
# Writes the library as two files, and builds and runs the quick start and the conformance suite with nothing else of it.
# usage: amalgamated.sh SOURCE_ROOT COMPILER...
set -eu

source=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

if ! CXX=$1 python3 -B "$source/packaging/amalgamate.py" "$source" "$work" 2>"$work/errors"; then
  cat "$work/errors"
  ! grep -q 'no concurrentqueue.h' "$work/errors" || exit 77  # Meson has downloaded it, or has a path of its own to it
  exit 1
fi

# A folder of the sources is refused, even by another name.
mkdir "$work/project"
cp -r "$source/hashed_wheel_timer" "$source/meson.build" "$work/project"
ln -s project/hashed_wheel_timer "$work/link"
for folder in "$work/link" "$work/link/internal/engine"; do
  ! CXX=$1 python3 -B "$source/packaging/amalgamate.py" "$work/project" "$folder" 2>"$work/errors"
  grep -q 'among the sources' "$work/errors"
done
diff -r "$source/hashed_wheel_timer" "$work/project/hashed_wheel_timer"

# The programs include the headers of the library by their names. Here each of them is the one header.
mkdir "$work/hashed_wheel_timer"
for header in "$source"/hashed_wheel_timer/*.h; do
  echo '#include "../hashed_wheel_timer.h"' >"$work/hashed_wheel_timer/$(basename "$header")"
done
mkdir "$work/tests"
ln -s "$source/tests/support" "$work/tests/support"

cd "$work"
for compiler in "$@"; do
  flags='-std=c++20 -Wall -Wextra -Wpedantic -Werror -pthread -I.'
  "$compiler" $flags -Wshadow -Wconversion -Wsign-conversion -O2 -c hashed_wheel_timer.cpp
  ! "$compiler" $flags -fno-exceptions -fsyntax-only hashed_wheel_timer.cpp 2>errors
  grep 'error: ' errors | tail -n 1 | grep -q 'needs exceptions'
  cp hashed_wheel_timer.h copy.h # a program may see two copies
  printf '#include "%s"\n' hashed_wheel_timer.h copy.h | "$compiler" $flags -fsyntax-only -x c++ -
  "$compiler" $flags "$source/docs/examples/quick_start/main.cpp" hashed_wheel_timer.o -o quick_start
  ./quick_start
  # Meson may have downloaded GoogleTest. Then the compiler does not find it here.
  if ! echo '#include <gtest/gtest.h>' | "$compiler" -std=c++20 -fsyntax-only -x c++ - 2>/dev/null; then
    echo "ok: $compiler, without the conformance suite: no GoogleTest"
    continue
  fi
  "$compiler" $flags "$source/tests/timer/conformance_test.cpp" hashed_wheel_timer.o -lgtest -lgtest_main \
    -o conformance
  ./conformance --gtest_brief=1
  echo "ok: $compiler"
done
