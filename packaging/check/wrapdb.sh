#!/bin/sh
# Generates the WrapDB files for an archive, and builds a program that gets the library by the wrap alone.
# usage: wrapdb.sh SOURCE WORK; SOURCE is a copy of the tree. Needs meson and the packages of the dependencies.
set -eu

source=$1
work=$2
version=$(sed -n 's/.*HWT_VERSION_STRING "\(.*\)"/\1/p' "$source/hashed_wheel_timer/version.h")
name=hashed_wheel_timer-$version
cp -R "$source" "$work/$name"

# Meson looks for downloaded archives in packagecache.
archive=$work/parent/subprojects/packagecache/$name.tar.gz
mkdir -p "$(dirname "$archive")"
tar -czf "$archive" -C "$work" "$name"
"$source/packaging/wrapdb/make.sh" "$archive" "https://github.com/$name.tar.gz" "$work/parent"
python3 -m json.tool "$work/parent/releases.json" >/dev/null

cp "$source"/tests/consumer/program/meson* "$source"/tests/consumer/program/*.cpp "$source/tests/consumer/c/main.c" \
  "$work/parent/"
meson setup --unity on --unity-size 1000 -Dwith_calendar=true -Dhashed_wheel_timer:calendar=enabled \
  "$work/build" "$work/parent"
meson test -C "$work/build"
