#!/bin/sh
# Builds and uses the Conan package, static and shared, with dependencies from the system instead of a remote.
# usage: conan.sh SOURCE WORK; SOURCE is a copy of the tree. Needs conan and the packages of the dependencies.
set -eu

source=$1
CONAN_HOME=$2/home
export CONAN_HOME
recipes=$source/packaging/conan

conan profile detect --force
conan remote disable '*'
set -- --settings compiler.cppstd=20
conan create "$recipes/from_system" "$@" --name concurrentqueue --version 1.0.5
conan create "$recipes/from_system" "$@" --name date --version 3.0.1
for shared in False True; do
  conan create "$recipes" "$@" \
    --options "hashed_wheel_timer/*:shared=$shared" --options "hashed_wheel_timer/*:calendar=True" \
    --conf 'tools.cmake.cmaketoolchain:extra_variables={"CMAKE_UNITY_BUILD": "ON", "CMAKE_UNITY_BUILD_BATCH_SIZE": "0"}'
done
