# GoogleTest where the system's cannot be used: for another machine, compiler or standard library.

# A copy, with the project's way to build it.
unpack_googletest() {
  from=/usr/src/googletest/googletest
  to=$build/googletest
  [ ! -e "$to/meson.build" ] || return 0
  [ -d "$from" ] || { say "the tests need GoogleTest's source in $from (Debian: googletest)"; return 1; }
  mkdir -p "$to" && cp -r "$from" "$to/" && cp "$root/subprojects/packagefiles/gtest/meson.build" "$to/"
}

# build_googletest KIND OPTIONS...: for builds in build/KIND, which then find this and nothing else of the system's.
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

# A folder with nothing else: a compiler for another machine must not see this one's headers.
queue_folder() { dirname "$(find /usr/include -name concurrentqueue.h | head -n 1)"; }

# describe NAME VERSION CFLAGS LIBS: a file for pkg-config.
describe() {
  printf 'Name: %s\nDescription: %s\nVersion: %s\nCflags: %s\nLibs: %s\n' "$1" "$1" "$2" "$3" "$4" >"$folder/$1.pc"
}
