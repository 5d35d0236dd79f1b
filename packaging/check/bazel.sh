#!/bin/sh
# Builds both libraries with Bazel 4, offline, and programs without exceptions that use them. Bazel 4 does not read
# MODULE.bazel, so this workspace names the dependencies in its place.
# usage: bazel.sh SOURCE WORK; SOURCE is a copy of the tree. Needs bazel-bootstrap and the packages of the dependencies.
set -eu

source=$1
work=$2
bazel=/usr/share/bazel

# Debian's rules_cc is too new for Debian's Bazel, which has these rules built in.
mkdir -p "$work/rules_cc/cc"
touch "$work/rules_cc/WORKSPACE" "$work/rules_cc/BUILD" "$work/rules_cc/cc/BUILD"
for rule in cc_binary cc_library cc_proto_library cc_test cc_toolchain cc_toolchain_suite objc_library; do
  echo "$rule = native.$rule"
done >"$work/rules_cc/cc/defs.bzl"

# A workspace of a user.
touch "$source/WORKSPACE"
mkdir "$work/user"
cp "$source/tests/consumer/program/main.cpp" "$work/user"
cp "$source"/tests/consumer/c/*.c "$work/user/main.c"
cat >"$work/user/WORKSPACE" <<END
local_repository(name = "hashed_wheel_timer", path = "$source")
local_repository(name = "rules_cc", path = "$work/rules_cc")
local_repository(name = "rules_java", path = "$bazel/rules/java")
local_repository(name = "rules_proto", path = "$bazel/rules/proto")
local_repository(name = "bazel_skylib", path = "$bazel/tools/skylib")
local_repository(name = "platforms", path = "$bazel/tools/platforms")
new_local_repository(
    name = "concurrentqueue",
    path = "/usr/include/concurrentqueue",
    build_file_content = 'cc_library(name = "concurrentqueue", hdrs = ["concurrentqueue.h"], visibility = ["//visibility:public"])',
)
END
cat >"$work/user/BUILD" <<END
cc_binary(name = "user", srcs = ["main.cpp"], copts = ["-std=c++20"], deps = ["@hashed_wheel_timer"])
cc_binary(name = "c_user", srcs = ["main.c"], deps = ["@hashed_wheel_timer//:hashed_wheel_timer_c"])
END

cd "$work/user"
bazel --batch --output_user_root="$work/root" build --symlink_prefix=built- --cxxopt=-fno-exceptions --cxxopt=-fno-rtti \
  --cxxopt=-DPARENT_WITHOUT_EXCEPTIONS //:user //:c_user
built-bin/user
built-bin/c_user
chmod -R u+w "$work/root"
