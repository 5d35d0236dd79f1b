#!/bin/sh
# Builds and runs program/ with the library as a subproject of Meson and of CMake, and with the installed library in a
# moved prefix, found by pkg-config and by CMake.
# usage: run.sh SOURCE_ROOT BUILD_ROOT DEFAULT_LIBRARY PREFIX CALENDAR VERSION
# CALENDAR is true if the build has the calendar library.
set -u
unset LD_LIBRARY_PATH  # Meson sets it, and a user does not

source=$1 build=$2 built_kind=$3 prefix=$4 calendar=$5 version=$6
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

# A unity build takes seconds, and parent projects may enable it.
meson_here() { meson setup --buildtype=plain -Dunity=on -Dunity_size=1000 "$@"; }
cmake_here() { cmake -G Ninja -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=0 "$@"; }

as_subproject() {
  mkdir -p "$work/parent/subprojects" &&
    cp "$program"/meson* "$program"/*.cpp "$source/tests/consumer/c/main.c" "$work/parent/" &&
    ln -s "$source" "$work/parent/subprojects/hashed_wheel_timer" &&
    reuse_downloads &&
    meson_here -Ddefault_library=static -Dcpp_eh=none -Dcpp_rtti=false -Dcpp_args=-DPARENT_WITHOUT_EXCEPTIONS \
      "$work/parent/build" "$work/parent" &&
    meson compile -C "$work/parent/build" &&
    "$work/parent/build/consumer" &&
    "$work/parent/build/c_consumer"
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

added_by_cmake() {
  cmake_here -S "$program" -B "$work/static-added" -DADDED="$source" \
    -DCMAKE_CXX_FLAGS='-fno-exceptions -fno-rtti -DPARENT_WITHOUT_EXCEPTIONS' &&
    cmake --build "$work/static-added" &&
    "$work/static-added/consumer"
}

cmake_subproject_installs_nothing() {
  cmake --install "$work/static-added" --prefix "$work/installed-by-parent" && [ ! -e "$work/installed-by-parent" ]
}

# The user's sources of the queue have priority over the system's.
fetched_by_cmake() {
  mkdir "$work/queue" && cp "$(header_of_queue)" "$work/queue/" &&
    cmake_here -S "$program" -B "$work/shared-added" -DFETCHED="$source" -DHASHED_WHEEL_TIMER_SHARED=ON \
      -DHASHED_WHEEL_TIMER_CALENDAR="$calendar" -DWITH_CALENDAR="$calendar" -DFETCHCONTENT_FULLY_DISCONNECTED=ON \
      -DFETCHCONTENT_SOURCE_DIR_CONCURRENTQUEUE="$work/queue" &&
    cmake --build "$work/shared-added" &&
    "$work/shared-added/consumer" &&
    grep -q "isystem $work/queue" "$work/shared-added/build.ninja" || return 1
  [ "$calendar" = false ] || "$work/shared-added/calendar_consumer"
}

header_of_queue() {
  for folder in "$source"/subprojects/concurrentqueue-*/; do set -- "$@" -I"$folder"; done
  $CXX -std=c++20 -I"$source" "$@" -M -x c++ "$source/hashed_wheel_timer/internal/handover/hand_over_queue.h" | tr ' ' '\n' |
    grep '/concurrentqueue\.h$' | tail -n 1
}

# says_what_to_install PACKAGE SOURCES COMMAND...: checks that the command fails, and that one line of its output
# names PACKAGE and SOURCES.
says_what_to_install() {
  package=$1 sources=$2
  shift 2
  ! "$@" >"$work/said" 2>&1 && grep -e "$package" "$work/said" | grep -q -e "$sources" || { cat "$work/said"; return 1; }
}

# The invalid proxy makes downloads fail at once. If a proxy refuses, CMake retries for more than a minute.
cmake_offline() (
  unset no_proxy NO_PROXY
  https_proxy='http://[' HTTPS_PROXY='http://[' cmake_here -S "$source" "$@"
)

cmake_says_what_to_install() {
  says_what_to_install libconcurrentqueue-dev DFETCHCONTENT_SOURCE_DIR_CONCURRENTQUEUE= \
    cmake_offline -B "$work/without-queue" -DCMAKE_DISABLE_FIND_PACKAGE_concurrentqueue=ON \
    -DHASHED_WHEEL_TIMER_QUEUE_DIR= &&
    says_what_to_install libhowardhinnant-date-dev DFETCHCONTENT_SOURCE_DIR_DATE= \
      cmake_offline -B "$work/without-date" -DFETCHCONTENT_SOURCE_DIR_CONCURRENTQUEUE="$work/queue" \
      -DHASHED_WHEEL_TIMER_CALENDAR=ON -DHASHED_WHEEL_TIMER_CHRONO_HAS_TIME_ZONES=OFF \
      -DCMAKE_DISABLE_FIND_PACKAGE_date=ON
}

# The parent project has no downloaded sources. The date library is checked only with libstdc++, because libc++ may
# have its own time zones.
meson_says_what_to_install() {
  mkdir -p "$work/bare/subprojects" &&
    cp "$program"/meson* "$program"/*.cpp "$source/tests/consumer/c/main.c" "$work/bare/" &&
    ln -s "$source" "$work/bare/subprojects/hashed_wheel_timer" &&
    says_what_to_install libconcurrentqueue-dev subprojects/concurrentqueue-[0-9] \
      meson_here --wrap-mode=nodownload --force-fallback-for=concurrentqueue "$work/bare/queue" "$work/bare" || return 1
  ! echo '#include <new>' | $CXX -x c++ -E -dM - | grep -q __GLIBCXX__ ||
    says_what_to_install libhowardhinnant-date-dev subprojects/date-[0-9] \
      meson_here --wrap-mode=nodownload --force-fallback-for=date -Dwith_calendar=true \
      -Dhashed_wheel_timer:calendar=enabled "$work/bare/date" "$work/bare"
}

# As a subproject, CMake installs only the shared libraries, because the parent's programs load them.
cmake_subproject_installs_shared_libraries() {
  cmake --install "$work/shared-added" --prefix "$work/installed-by-fetcher" &&
    ! find "$work/installed-by-fetcher" ! -type d ! -name '*.so.*' | grep . &&
    find "$work/installed-by-fetcher" -name "libhashed_wheel_timer.so.$version" | grep .
}

# Installs the existing CMake build, with the libdir of the Meson installation, in a prefix of its own.
install_by_cmake() {
  libdir=$(cd "$work/$1-moved" && find . -name hashed_wheel_timer.pc)
  libdir=${libdir#./} libdir=${libdir%/pkgconfig/*}
  cmake -DHASHED_WHEEL_TIMER_INSTALL=ON -DHASHED_WHEEL_TIMER_CALENDAR="$calendar" -DCMAKE_INSTALL_LIBDIR="$libdir" \
    "$work/$1-added" &&
    cmake --build "$work/$1-added" &&
    cmake --install "$work/$1-added" --prefix "$work/cmake-$1-moved"
}

cmake_installs_what_meson_installs() {
  for by in "$1" "cmake-$1"; do
    (cd "$work/$by-moved" && find . ! -type d ! -name '*Targets-*.cmake' | sort &&
      cat "$libdir"/cmake/hashed_wheel_timer/*Config*.cmake &&
      grep -v ^PackageVersion share/doc/hashed_wheel_timer/hashed_wheel_timer.spdx && # the sources of the queue differ
      PKG_CONFIG_PATH=$libdir/pkgconfig && export PKG_CONFIG_PATH &&
      for package in "$libdir"/pkgconfig/*.pc; do
        # Meson adds -pthread only on systems that need it.
        pkg-config --define-variable=prefix=/prefix --cflags --libs "$(basename "$package" .pc)" | xargs -n 1 |
          grep -v -e -pthread | sort -u
        grep -E '^(Name|Description|Version|Requires)' "$package"
      done) >"$work/installed-$by" || return 1
  done
  diff "$work/installed-$1" "$work/installed-cmake-$1"
}

# Installs the build under test if it is of this kind. Builds the other kind here, with the libdir of a multiarch
# distribution.
install_library() {
  built=$build
  installed_prefix=$prefix
  if [ "$1" != "$built_kind" ]; then
    built=$work/$1-build
    installed_prefix=/usr
    meson_here -Ddefault_library="$1" -Dprefix=/usr -Dlibdir="lib/$($CXX -print-multiarch)" \
      -Dtests=disabled -Dbenchmarks=disabled -Dexamples=disabled \
      -Dcalendar="$([ "$calendar" = true ] && echo enabled || echo disabled)" "$built" "$source" &&
      meson compile -C "$built" || return 1
  fi
  meson install -C "$built" --no-rebuild --destdir "$work/$1"
}

# CMake gets only the root folder of a system, and must find the library in its /usr.
found_by_cmake_in_usr() {
  cmake -G Ninja -S "$program" -B "$work/$1-usr-cmake" -DCMAKE_FIND_ROOT_PATH="$work/$1" &&
    cmake --build "$work/$1-usr-cmake" &&
    "$work/$1-usr-cmake/consumer"
}

# If /lib is a link to /usr/lib, CMake may find the library through /lib.
found_by_cmake_through_link() {
  ln -s usr/lib "$work/$1/lib" &&
    cmake -G Ninja -S "$program" -B "$work/$1-link-cmake" -DCMAKE_PREFIX_PATH="$work/$1" &&
    cmake --build "$work/$1-link-cmake"
}

# The following steps use the library in another place than the configured prefix.
move_prefix() { mv "$work/$1$installed_prefix" "$work/$1-moved"; }

installs_public_headers_only() {
  headers=$work/$1-moved/include/hashed_wheel_timer
  LC_ALL=C diff -r "$headers" "$source/hashed_wheel_timer" | grep -v "^Only in $source" && return 1
  [ -e "$headers/timer.h" ] && [ ! -e "$headers/internal" ] && ! find "$headers" -type f ! -name '*.h' | grep .
}

installs_license() { diff "$work/$1-moved/share/doc/hashed_wheel_timer/LICENSE" "$source/LICENSE"; }

# through_pkg_config KIND PACKAGE PROGRAM
through_pkg_config() {
  PKG_CONFIG_PATH=$(dirname "$(find "$work/$1-moved" -name "$2.pc")")
  export PKG_CONFIG_PATH
  flags=$(pkg-config --cflags --libs "$2") || return 1
  # CXX and the flags may each be several words.
  $CXX -std=c++20 "$program/$3.cpp" $flags -o "$work/$1-$3" &&
    LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH") "$work/$1-$3"
}

c_through_pkg_config() {
  PKG_CONFIG_PATH=$(dirname "$(find "$work/$1-moved" -name hashed_wheel_timer_c.pc)")
  export PKG_CONFIG_PATH
  flags=$(pkg-config --cflags --libs hashed_wheel_timer_c) || return 1
  ${CC:-cc} -std=c99 -pedantic -Wall -Werror "$source/tests/consumer/c/main.c" $flags -o "$work/$1-c" &&
    LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH") "$work/$1-c"
}

c_through_cmake() {
  cmake -G Ninja -S "$source/tests/consumer/c" -B "$work/$1-c-cmake" -Dhashed_wheel_timer_DIR="$cmake_dir" &&
    cmake --build "$work/$1-c-cmake" &&
    "$work/$1-c-cmake/c_consumer"
}

requires_nothing() {
  pkg-config --exists hashed_wheel_timer &&
    ! pkg-config --print-requires --print-requires-private hashed_wheel_timer | grep .
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
  cmake_dir=$(dirname "$(find "$work/$1-moved" -name hashed_wheel_timerConfig.cmake)")
  cmake -G Ninja -S "$program" -B "$work/$1-cmake" -Dhashed_wheel_timer_DIR="$cmake_dir" &&
    cmake --build "$work/$1-cmake" &&
    "$work/$1-cmake/consumer"
}

# Each call sets the folder again, because CMake forgets it after it has refused its version.
cmake_finds_version() { cmake -Dhashed_wheel_timer_DIR="$cmake_dir" -DWANTED_VERSION="$2" "$work/$1-cmake"; }

cmake_takes_compatible_versions() {
  major=${version%%.*}
  minor=${version#*.} minor=${minor%%.*}
  next=$major.$((minor + 1))
  for wanted in "$version" "$major.$minor" "0.0...<$next" "0.0...$version"; do
    cmake_finds_version "$1" "$wanted" || return 1
  done
  for wanted in "$version.1" "$next" "$((major + 1))" 0.0 "0.0...<$version" "$next...99"; do
    ! cmake_finds_version "$1" "$wanted" || { echo "found for $wanted"; return 1; }
  done
  cmake_finds_version "$1" "$version"
}

step "static subproject of a parent without exceptions" as_subproject
step "a subproject needs no time zones" needs_no_time_zones
step "a subproject installs nothing" subproject_installs_nothing
[ "$calendar" = false ] || step "static subproject with calendar" calendar_as_subproject
step "add_subdirectory of CMake, of a parent without exceptions" added_by_cmake
step "a CMake subproject installs nothing" cmake_subproject_installs_nothing
step "FetchContent of CMake, shared" fetched_by_cmake
step "a shared CMake subproject installs its libraries" cmake_subproject_installs_shared_libraries
step "CMake says what to install when it cannot download" cmake_says_what_to_install
step "Meson says what to install when it cannot download" meson_says_what_to_install
for kind in shared static; do
  step "$kind install" install_library "$kind"
  if [ "$kind" != "$built_kind" ]; then
    step "$kind found by CMake in /usr" found_by_cmake_in_usr "$kind"
    step "$kind found by CMake through a link" found_by_cmake_through_link "$kind"
  fi
  step "$kind install moved" move_prefix "$kind"
  step "public headers only" installs_public_headers_only "$kind"
  step "license" installs_license "$kind"
  step "$kind through pkg-config" through_pkg_config "$kind" hashed_wheel_timer main
  step "the package requires no other" requires_nothing
  step "$kind through CMake" through_cmake "$kind"
  step "$kind C through pkg-config" c_through_pkg_config "$kind"
  step "$kind C through CMake" c_through_cmake "$kind"
  step "CMake takes compatible versions only" cmake_takes_compatible_versions "$kind"
  step "CMake refuses unknown components" cmake_refuses_unknown_components "$kind"
  if [ "$calendar" = true ]; then
    step "$kind calendar through pkg-config" through_pkg_config "$kind" hashed_wheel_timer_calendar calendar
    step "$kind calendar through CMake" calendar_through_cmake "$kind"
  else
    step "CMake says that there is no calendar" cmake_says_that_there_is_no_calendar "$kind"
  fi
  step "$kind install by CMake" install_by_cmake "$kind"
  step "CMake installs what Meson installs" cmake_installs_what_meson_installs "$kind"
  step "$kind through CMake, installed by CMake" through_cmake "cmake-$kind"
  step "$kind C through CMake, installed by CMake" c_through_cmake "cmake-$kind"
done
