#!/bin/sh
# Builds the libraries in two rounds, each by Meson and by CMake. Both rounds must install the same bytes. The second
# has another folder, depth of folders, time zone, language, umask, user name, home and number of jobs. Its times also
# differ: SOURCE_DATE_EPOCH, the times of the sources, and the time of day.
# usage: reproducible.sh SOURCE WORK; SOURCE is a copy of the tree. Needs meson, cmake, ninja, a compiler and the
# packages of the dependencies.
set -eu

source=$1
work=$2
CCACHE_DISABLE=1
export CCACHE_DISABLE

# build_here TREE BUILD INSTALLED JOBS. Meson builds as Debian does, with debug information in which paths are mapped.
# CMake builds without flags, in a folder whose path from the tree differs between the rounds. The commands are joined,
# because `set -e` does not hold in a function whose status is tested.
build_here() {
  CXXFLAGS="-O1 -g -ffile-prefix-map=$1=." nice meson setup --buildtype=plain -Db_ndebug=true --prefix=/usr \
    --libdir=lib -Ddefault_library=both -Dcalendar=enabled -Dtests=disabled -Dexamples=disabled -Dbenchmarks=disabled \
    -Dprometheus=disabled "$1/build" "$1" &&
    nice ninja -j "$4" -C "$1/build" &&
    DESTDIR=$3/meson nice meson install -C "$1/build" --no-rebuild &&
    nice cmake -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON -DCMAKE_INSTALL_PREFIX=/usr \
      -DHASHED_WHEEL_TIMER_CALENDAR=ON -S "$1" -B "$2" &&
    nice ninja -j "$4" -C "$2" &&
    DESTDIR=$3/cmake cmake --install "$2"
}

# With the modes of the files and the targets of links, but without times.
files_of() (cd "$1" && find . -printf '%P %y %m %l\n' | sort)

one=$work/one
mkdir -p "$one"
cp -R "$source" "$one/tree"
(
  SOURCE_DATE_EPOCH=1000000000 TZ=UTC LC_ALL=C
  export SOURCE_DATE_EPOCH TZ LC_ALL
  umask 022
  build_here "$one/tree" "$one/build" "$work/installed/one" 2
) >"$work/one.log" 2>&1 || { cat "$work/one.log"; exit 1; }

two=$work/two/further/down
mkdir -p "$two" "$work/home"
cp -R "$source" "$two/another-tree"
find "$two" -exec touch -d 2021-02-03 {} +
(
  SOURCE_DATE_EPOCH=1500000000 TZ=Asia/Kathmandu LC_ALL=C.UTF-8 LANGUAGE=de USER=another LOGNAME=another
  HOME=$work/home
  export SOURCE_DATE_EPOCH TZ LC_ALL LANGUAGE USER LOGNAME HOME
  umask 002
  build_here "$two/another-tree" "$two/another-tree/further/build" "$work/installed/two" 3
) >"$work/two.log" 2>&1 || { cat "$work/two.log"; exit 1; }

files_of "$work/installed/one" >"$work/one.files"
files_of "$work/installed/two" >"$work/two.files"
same=yes
diff "$work/one.files" "$work/two.files" || same=
diff -r "$work/installed/one" "$work/installed/two" || same=
[ -n "$same" ] || { echo "reproducible.sh: the two builds differ" >&2; exit 1; }
echo "$(find "$work/installed/one" -type f | wc -l) files of two builds are equal"
