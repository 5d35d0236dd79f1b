#!/bin/sh
# Writes the files that WrapDB requires for a release: the wrap and the entries of releases.json and ci_config.json.
# usage: make.sh ARCHIVE URL FOLDER
# ARCHIVE is a copy of the file at URL and is named hashed_wheel_timer-VERSION.tar.gz.
set -eu

here=$(dirname "$0")
version=$(basename "$1" .tar.gz)
version=${version##*-}
hash=$(sha256sum "$1" | cut -d ' ' -f 1)
mkdir -p "$3/subprojects"
fill_in="s|@version@|$version|; s|@url@|$2|; s|@hash@|$hash|"
sed "$fill_in" "$here/hashed_wheel_timer.wrap.in" >"$3/subprojects/hashed_wheel_timer.wrap"
sed "$fill_in" "$here/releases.json.in" >"$3/releases.json"
cp "$here/ci_config.json" "$3"
