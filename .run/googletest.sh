# Builds GoogleTest for other machines, compilers and standard libraries, for which the system's cannot be used.

# build_googletest KIND OPTIONS...: builds it for the builds in build/KIND. They find it by pkg-config, and none of the
# system's other libraries.
build_googletest() {
  folder=$build/$1 from=/usr/src/googletest/googletest source=$build/googletest
  shift
  mkdir -p "$source" && cp -r -u "$from" "$root/subprojects/packagefiles/gtest/meson.build" "$source" || return 1
  export PKG_CONFIG_LIBDIR="$folder"
  [ -e "$folder/googletest/build.ninja" ] ||
    quietly meson setup "$@" -Ddebug=false -Doptimization=1 "$folder/googletest" "$source" || return 1
  quietly meson compile -C "$folder/googletest" || return 1
  # A cross-compiler may search the folder of concurrentqueue.h, because it has no other headers of this system.
  queue=$(dirname "$(find /usr/include -name concurrentqueue.h | head -n 1)")
  pc='Name: a\nDescription: a\nVersion: 1.12\nCflags: -I%s\nLibs: %s\n'
  printf "$pc" "$source/googletest/include" "-L$folder/googletest -lgtest_main" >"$folder/gtest_main.pc" &&
    printf "$pc" "$queue" "" >"$folder/concurrentqueue.pc"
}

# have_zig VERSION: installs zig, a clang with the C and C++ libraries of many systems, and a Meson that knows its
# linker.
have_zig() {
  from_pypi "venv-zig-$1" "ziglang==$1" meson==1.12.1 &&
    PATH=$(echo "$build/venv-zig-$1"/lib/python*/site-packages/ziglang):$PATH
}
