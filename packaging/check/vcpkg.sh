#!/bin/sh
# Builds and uses the vcpkg port: static and dynamic, release and debug.
# usage: vcpkg.sh SOURCE WORK; SOURCE is a copy of the tree. Needs cmake, ninja and the packages of the dependencies.
set -eu

python3 -m json.tool "$1/packaging/vcpkg/hashed-wheel-timer/vcpkg.json" >/dev/null
for linkage in static dynamic; do
  cmake -DSOURCE="$1" -DWORK="$2" -DLINKAGE=$linkage -P "$1/packaging/check/vcpkg.cmake"
done
