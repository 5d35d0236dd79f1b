# Runs the tests with other compilers and standard libraries. Debian packages have g++-N and clang++-N. The name
# libc++-N means clang N with libc++ instead of libstdc++. The name zig-VERSION means the clang of that zig, with its
# libc++. Before 0.13 its libc++ has no std::jthread, which the tests use; from 0.15 on its linker cannot read the thin
# archives that Meson makes.

all_compilers='g++-12 g++-13 g++-14 clang++-14 clang++-15 clang++-16 clang++-17 clang++-18 clang++-19 libc++-19
  zig-0.13.0.post1 zig-0.14.1'

alone_compilers() {
  [ $# -gt 0 ] || set -- $all_compilers
  for each; do
    case $each in g++-[0-9]* | clang++-[0-9]* | libc++-[0-9]* | zig-[0-9]*) continue ;; esac
    wrong "no such compiler: $each (there are: $(echo $all_compilers), and other versions)"
  done
  set_up test
  try_each try_compiler "$@"
}

# try_compiler NAME: builds as C++20, which the project uses, and as users may build: with a later standard, and without
# exceptions. Older compilers call C++23 "2b". Runs the tests whose outcome can depend on the compiler and its standard
# library: coroutines, templates, arithmetic, atomics, sleeps, time zones.
try_compiler() {
  tests='calendar_test conformance_test coroutine_test every_wheel_test fast_divider_test handle_test hashed_wheel_test keyed_timer_test
    no_exceptions_test passive_wheel_test races_test schedule_test stop_after_test wall_clock_test when_test'
  options='--werror -Dcalendar=enabled' flags=
  choose_compiler "$1" && quietly $CXX -std=c++20 -include chrono -x c++ -c /dev/null -o "$build/null.o" ||
    { echo "$1: not tried: this system does not have it"; return 0; }
  of=compilers/$1
  build_googletest "$of" && compile_headers -std=c++2b && compile_headers -std=c++20 -fno-exceptions -fno-rtti &&
    compile_with c++2b -Dtests=disabled && compile_with c++20 -Dtests=enabled $(printf 'tests/%s\n' $tests) ||
    { echo "$1: FAILED: it does not build"; return 1; }
  number=$($CXX --version | grep -o '[0-9]*\.[0-9]*\.[0-9]*' | head -n 1)
  count_run "$1 ($number)" "$of/c++20" --suite unit --timeout-multiplier 10 $tests
}

# choose_compiler NAME: installs the compiler if that is possible, and sets CXX and other variables for it.
choose_compiler() {
  CXX=$1 version=${1#*-}
  case $1 in
    g++-*) packages=$1 ;;
    clang++-17) packages='clang-17 g++-13' ;;
    clang++-*) packages=clang-$version ;;
    libc++-*)
      # libc++ has stop tokens (before version 20) and time zones only among its experimental parts.
      CXX="clang++-$version -stdlib=libc++ -fexperimental-library"
      packages="clang-$version libc++-$version-dev libc++abi-$version-dev"
      ;;
    zig-*)
      have_zig "$version" || return 1
      CXX='zig c++ -D_LIBCPP_ENABLE_EXPERIMENTAL' packages=
      # Its libc++ has no time zones, and Debian's date library cannot be linked with it. Its linker refuses --werror.
      options=-Dcalendar=disabled tests=${tests#* } flags=' -Werror'
      ;;
  esac
  export CXX
  (need $packages)
  have ${CXX%% *} || return 1
  # It cannot compile the std::thread of GCC 14 as C++23. An environment variable of clang, because with options in CXX
  # Meson does not find CMake's packages. "^" puts the option first, and "#" prevents a note about it.
  [ "$1" != clang++-17 ] || { have g++-13 &&
    export CCC_OVERRIDE_OPTIONS="#^--gcc-install-dir=$(dirname "$(g++-13 -print-libgcc-file-name)")"; }
}

# compile_headers OPTIONS...: compiles each public header alone, in build/, because zig leaves null.o. Leaves out
# boost_asio.h, which needs a new Boost. Without exceptions leaves out asio.h and prometheus.h too: they throw.
compile_headers() {
  left_out=boost_asio.h
  case $* in *-fno-exceptions*) left_out='(boost_)?asio.h|prometheus.h' ;; esac
  (cd "$build" && ls "$root"/hashed_wheel_timer/*.h | grep -vE "/($left_out)\$" | xargs -P "$processors" -I{} \
    $CXX "$@" -O1 -Wall -Wextra -Wpedantic -Werror -I "$root" -include {} -x c++ -c /dev/null -o /dev/null)
}

# compile_with STANDARD OPTION TARGET...: passes the standard as a compiler flag, because not every Meson has an option
# for the later one.
compile_with() {
  folder=$of/$1
  configure "$folder" "-Dcpp_args=-std=$1$flags" -Dcpp_std=none -Ddebug=false -Doptimization=1 $options $in_one_piece \
    -Ddefault_library=static -Dauto_features=disabled "$2" || return 1
  shift 2
  build_targets "$folder" "$@"
}
