#!/bin/sh
# Writes the files that WrapDB asks for, for a released archive: the wrap, and the entry of releases.json.
# usage: make.sh ARCHIVE URL FOLDER
# ARCHIVE is the file, hashed_wheel_timer-VERSION.tar.gz, that can be downloaded from URL.
set -eu

here=$(dirname "$0")
version=$(basename "$1" .tar.gz)
version=${version##*-}
hash=$(sha256sum "$1" | cut -d ' ' -f 1)
mkdir -p "$3/subprojects"
fill_in() { sed -e "s|@version@|$version|" -e "s|@url@|$2|" -e "s|@hash@|$hash|" "$here/$1.in"; }
fill_in hashed_wheel_timer.wrap "$2" >"$3/subprojects/hashed_wheel_timer.wrap"
fill_in releases.json "$2" >"$3/releases.json"
