# Builds GoogleTest for other machines, compilers and standard libraries, for which the system's cannot be used.

# Copies GoogleTest's source to build/googletest, with the project's meson.build for it.
unpack_googletest() {
  from=/usr/src/googletest/googletest to=$build/googletest
  [ ! -e "$to/meson.build" ] || return 0
  [ -d "$from" ] || { say "the tests need GoogleTest's source in $from (Debian: googletest)"; return 1; }
  mkdir -p "$to" && cp -r "$from" "$to/" && cp "$root/subprojects/packagefiles/gtest/meson.build" "$to/"
}

# build_googletest KIND OPTIONS...: builds it for the builds in build/KIND. They find it by pkg-config, and none of the
# system's other libraries.
build_googletest() {
  folder=$build/$1
  shift
  PKG_CONFIG_LIBDIR=$folder && export PKG_CONFIG_LIBDIR
  if [ ! -e "$folder/googletest/build.ninja" ]; then
    quietly meson setup "$@" -Ddebug=false -Doptimization=1 "$folder/googletest" "$build/googletest" || return 1
  fi
  quietly meson compile -C "$folder/googletest" || return 1
  # A cross-compiler may search the folder of concurrentqueue.h, because it has no other headers of this system.
  queue=$(dirname "$(find /usr/include -name concurrentqueue.h | head -n 1)")
  pc='Name: a\nDescription: a\nVersion: 1.12\nCflags: -I%s\nLibs: %s\n'
  printf "$pc" "$build/googletest/googletest/include" "-L$folder/googletest -lgtest_main" >"$folder/gtest_main.pc" &&
    printf "$pc" "$queue" "" >"$folder/concurrentqueue.pc"
}

# have_zig VERSION: installs zig, a clang with the C and C++ libraries of many systems, and a Meson that knows its
# linker.
have_zig() {
  from_pypi "venv-zig-$1" "ziglang==$1" meson==1.12.1 || return 1
  PATH=$(echo "$build/venv-zig-$1"/lib/python*/site-packages/ziglang):$PATH
}
