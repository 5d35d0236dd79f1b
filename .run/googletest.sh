# Builds GoogleTest for other machines, compilers and standard libraries, for which the system's cannot be used.

# Copies GoogleTest's source to build/googletest, with the project's meson.build for it.
unpack_googletest() {
  from=/usr/src/googletest/googletest
  to=$build/googletest
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
  describe gtest_main 1.12 "-I$build/googletest/googletest/include" "-L$folder/googletest -lgtest_main" &&
    describe concurrentqueue 1.0 "-I$(queue_folder)" ""
}

# Prints the folder of concurrentqueue.h. A cross-compiler may search this folder, because it has no other headers of
# this system.
queue_folder() { dirname "$(find /usr/include -name concurrentqueue.h | head -n 1)"; }

# describe NAME VERSION CFLAGS LIBS: writes a file for pkg-config.
describe() {
  printf 'Name: %s\nDescription: %s\nVersion: %s\nCflags: %s\nLibs: %s\n' "$1" "$1" "$2" "$3" "$4" >"$folder/$1.pc"
}
