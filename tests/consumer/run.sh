#!/bin/sh
# Builds and runs program/ against the library as a subproject, through pkg-config and through CMake.
# usage: run.sh SOURCE_ROOT BUILD_ROOT DEFAULT_LIBRARY PREFIX CALENDAR
# CALENDAR is true if the build has the calendar library.
set -u

source=$1 build=$2 built_kind=$3 prefix=$4 calendar=$5
program=$source/tests/consumer/program
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

step() {
  name=$1
  shift
  if "$@" >"$work/log" 2>&1; then
    echo "ok: $name"
  else
    cat "$work/log"
    echo "FAILED: $name"
    exit 1
  fi
}

as_subproject() {
  mkdir -p "$work/parent/subprojects" &&
    cp "$program"/meson* "$program"/*.cpp "$work/parent/" &&
    ln -s "$source" "$work/parent/subprojects/hashed_wheel_timer" &&
    reuse_downloads &&
    meson setup --buildtype=plain -Ddefault_library=static "$work/parent/build" "$work/parent" &&
    meson compile -C "$work/parent/build" &&
    "$work/parent/build/consumer"
}

needs_no_time_zones() {
  ! find "$work/parent/build" -name '*hashed_wheel_timer_calendar*' | grep . || return 1
}

calendar_as_subproject() {
  meson configure -Dwith_calendar=true -Dhashed_wheel_timer:calendar=enabled "$work/parent/build" &&
    meson compile -C "$work/parent/build" &&
    "$work/parent/build/calendar_consumer"
}

reuse_downloads() {
  for project in "$source"/subprojects/*-[0-9]*/; do
    [ ! -d "$project" ] || ln -s "${project%/}" "$work/parent/subprojects/" || return 1
  done
}

subproject_installs_nothing() {
  meson install -C "$work/parent/build" --no-rebuild --destdir "$work/installed-by-parent" &&
    [ ! -e "$work/installed-by-parent" ]
}

# The build under test serves for its own kind; the other kind is built here.
install_library() {
  built=$build
  if [ "$1" != "$built_kind" ]; then
    built=$work/$1-build
    meson setup --buildtype=plain -Ddefault_library="$1" -Dprefix="$prefix" \
      -Dtests=disabled -Dbenchmarks=disabled -Dexamples=disabled \
      -Dcalendar="$([ "$calendar" = true ] && echo enabled || echo disabled)" "$built" "$source" &&
      meson compile -C "$built" || return 1
  fi
  meson install -C "$built" --no-rebuild --destdir "$work/$1"
}

installs_public_headers_only() {
  diff "$work/$1$prefix/include/hashed_wheel_timer" "$source/hashed_wheel_timer" | grep "^Only in $work" && return 1
  [ -e "$work/$1$prefix/include/hashed_wheel_timer/timer.h" ] &&
    [ ! -e "$work/$1$prefix/include/hashed_wheel_timer/internal" ]
}

through_pkg_config() {
  PKG_CONFIG_PATH=$(dirname "$(find "$work/$1" -name hashed_wheel_timer.pc)")
  export PKG_CONFIG_PATH
  flags=$(pkg-config --define-variable=prefix="$work/$1$prefix" --cflags --libs hashed_wheel_timer) || return 1
  ! pkg-config --print-requires --print-requires-private hashed_wheel_timer | grep . || return 1
  # CXX and the flags are several words each.
  $CXX -std=c++20 "$program/main.cpp" $flags -o "$work/$1-consumer" &&
    LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH") "$work/$1-consumer"
}

calendar_through_pkg_config() {
  PKG_CONFIG_PATH=$(dirname "$(find "$work/$1" -name hashed_wheel_timer_calendar.pc)")
  export PKG_CONFIG_PATH
  flags=$(pkg-config --define-variable=prefix="$work/$1$prefix" --cflags --libs hashed_wheel_timer_calendar) &&
    $CXX -std=c++20 "$program/calendar.cpp" $flags -o "$work/$1-calendar-consumer" &&
    LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH") "$work/$1-calendar-consumer"
}

calendar_through_cmake() {
  cmake -DWITH_CALENDAR=ON "$work/$1-cmake" &&
    cmake --build "$work/$1-cmake" &&
    "$work/$1-cmake/calendar_consumer"
}

cmake_says_that_there_is_no_calendar() {
  ! cmake -DWITH_CALENDAR=ON "$work/$1-cmake" 2>"$work/errors" && grep -q "without its calendar" "$work/errors"
}

cmake_refuses_unknown_components() {
  ! cmake -DUNKNOWN_COMPONENT=ON "$work/$1-cmake" 2>"$work/errors" && grep -q kalender "$work/errors" &&
    cmake -DUNKNOWN_COMPONENT=OFF "$work/$1-cmake"
}

through_cmake() {
  cmake -G Ninja -S "$program" -B "$work/$1-cmake" -DCMAKE_PREFIX_PATH="$work/$1$prefix" &&
    cmake --build "$work/$1-cmake" &&
    "$work/$1-cmake/consumer"
}

step "static subproject" as_subproject
step "a subproject needs no time zones" needs_no_time_zones
step "a subproject installs nothing" subproject_installs_nothing
[ "$calendar" = false ] || step "static subproject with calendar" calendar_as_subproject
for kind in shared static; do
  step "$kind install" install_library "$kind"
  step "public headers only" installs_public_headers_only "$kind"
  step "$kind through pkg-config" through_pkg_config "$kind"
  step "$kind through CMake" through_cmake "$kind"
  step "CMake refuses unknown components" cmake_refuses_unknown_components "$kind"
  if [ "$calendar" = true ]; then
    step "$kind calendar through pkg-config" calendar_through_pkg_config "$kind"
    step "$kind calendar through CMake" calendar_through_cmake "$kind"
  else
    step "CMake says that there is no calendar" cmake_says_that_there_is_no_calendar "$kind"
  fi
done
