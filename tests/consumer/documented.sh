#!/bin/sh
# Builds and runs programs by the code blocks of docs/embedding.md, in a new folder.
# usage: documented.sh WAY...   each WAY is files, meson, cmake or installed
set -eu

source=$(CDPATH= cd -- "$(dirname "$0")/../.." && pwd)
commit=$(git -C "$source" rev-parse HEAD)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# block SECTION NUMBER: prints this code block of the section, for a clone in $source.
block() {
  awk -v title="## $1" -v number="$2" '
    /^## / { here = $0 == title }
    /^```/ { inside = !inside; blocks += here && inside; next }
    here && inside && blocks == number { print; found = 1 }
    END { exit !found }' "$source/docs/embedding.md" >"$work/block" || { echo "no block $2 in the section $1"; exit 1; }
  sed -e "s|<the URL of this repository>|file://$source|" -e "s|<a tag[^>]*>|$commit|" "$work/block"
}

# The two programs that the blocks name.
programs() {
  mkdir "$work/$1"
  cd "$work/$1"
  cp "$source/docs/examples/quick_start/main.cpp" .
  cp "$source/tests/consumer/program/calendar.cpp" jobs.cpp
}

two_files() {
  programs files
  "$source/run" amalgamate "$work/files"
  sed -i 's|hashed_wheel_timer/hashed_wheel_timer.h|hashed_wheel_timer.h|' main.cpp
  block "Two files" 1 >"$work/commands"
  sh -eux "$work/commands"
  ./a.out
}

meson_subproject() {
  programs meson
  mkdir subprojects
  block Meson 1 >subprojects/hashed_wheel_timer.wrap
  block Meson 2 >meson.build
  meson setup build
  meson compile -C build
  build/my_server
  build/my_jobs
}

cmake_fetches() {
  programs cmake
  block CMake 1 >CMakeLists.txt
  cmake -S . -B build -DCMAKE_BUILD_TYPE=Release
  cmake --build build --parallel "$(nproc)"
  build/my_server
}

installed() {
  git clone --quiet "file://$source" "$work/source"
  prefix=$work/prefix

  cd "$work/source"
  block Installed 1 | sed "s|^meson setup|& --prefix $prefix/by-meson|" >"$work/commands"
  sh -eux "$work/commands"
  programs by-meson
  PKG_CONFIG_PATH=$(dirname "$(find "$prefix/by-meson" -name hashed_wheel_timer.pc)")
  export PKG_CONFIG_PATH
  block Installed 3 >"$work/commands"
  sh -eux "$work/commands"
  LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH") ./a.out

  cd "$work/source"
  block Installed 2 | sed -e "s|^cmake -S.*|& -DHASHED_WHEEL_TIMER_CALENDAR=ON|" \
    -e "s|^cmake --install.*|& --prefix $prefix/by-cmake|" >"$work/commands"
  sh -eux "$work/commands"
  programs by-cmake
  {
    echo 'cmake_minimum_required(VERSION 3.21)'
    echo 'project(my_server CXX)'
    echo 'add_executable(my_server main.cpp)'
    echo 'add_executable(my_jobs jobs.cpp)'
    block Installed 4
  } >CMakeLists.txt
  CMAKE_PREFIX_PATH=$prefix/by-cmake cmake -S . -B build
  cmake --build build
  build/my_server
  build/my_jobs
}

for way in "$@"; do
  case $way in
    files) try=two_files ;;
    meson) try=meson_subproject ;;
    cmake) try=cmake_fetches ;;
    installed) try=installed ;;
    *) echo "no such way: $way (there are: files meson cmake installed)"; exit 2 ;;
  esac
  # In the condition of an if, set -e would not end the function.
  (set -e; $try) >"$work/log" 2>&1 </dev/null &
  wait $! || { cat "$work/log"; echo "FAILED: $way"; exit 1; }
  echo "ok: $way"
done
