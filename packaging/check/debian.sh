#!/bin/sh
# Builds the Debian packages, runs lintian on them, and builds a program against their files.
# usage: debian.sh SOURCE WORK; SOURCE is a copy of the tree. Needs debhelper, lintian and the build dependencies.
set -eu

source=$1
work=$2
changelog=$source/packaging/debian/changelog
version=$(dpkg-parsechangelog --file "$changelog" --show-field Version)
name=$(dpkg-parsechangelog --file "$changelog" --show-field Source)
tree=$work/$name-${version%-*}

mkdir "$tree"
cp -R "$source/." "$tree"
tar -czf "$work/${name}_${version%-*}.orig.tar.gz" -C "$work" "$(basename "$tree")"
cp -R "$source/packaging/debian" "$tree/debian"
(cd "$tree" && dpkg-buildpackage --unsigned-source --unsigned-changes)

lintian --fail-on error --info "$work/${name}_${version}"_*.changes

# Runs the test of debian/tests against the unpacked packages, without installing them.
mkdir "$work/unpacked"
for package in "$work"/*.deb; do dpkg-deb --extract "$package" "$work/unpacked"; done
PKG_CONFIG_PATH=$(dirname "$(find "$work/unpacked" -name hashed_wheel_timer.pc)")
LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH")
CMAKE_PREFIX_PATH=$work/unpacked/usr
AUTOPKGTEST_TMP=$work/test
export PKG_CONFIG_PATH LD_LIBRARY_PATH CMAKE_PREFIX_PATH AUTOPKGTEST_TMP
mkdir "$AUTOPKGTEST_TMP"
cd "$tree" && debian/tests/consumer
