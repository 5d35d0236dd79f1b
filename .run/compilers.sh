# Runs the tests with other compilers and standard libraries. Debian packages have g++-N and clang++-N. The name
# libc++-N means clang N with libc++ instead of libstdc++. The name zig-VERSION means the clang of that zig, with its
# libc++. Before 0.13 its libc++ has no std::jthread, which the tests use; from 0.15 on its linker cannot read the thin
# archives that Meson makes.

all_compilers='g++-12 g++-13 g++-14 clang++-14 clang++-15 clang++-16 clang++-17 clang++-18 clang++-19 libc++-19
  zig-0.13.0.post1 zig-0.14.1'

alone_compilers() {
  [ $# -gt 0 ] || set -- $all_compilers
  for compiler; do
    case $compiler in
      g++-[0-9]* | clang++-[0-9]* | libc++-[0-9]* | zig-[0-9]*) ;;
      *) wrong "no such compiler: $compiler (there are: $(echo $all_compilers), and other versions)" ;;
    esac
  done
  set_up test
  unpack_googletest && try_each try_compiler "$@"
}

try_compiler() {
  choose_compiler "$1" && has_chrono "$1" || { echo "$1: not tried: this system does not have it"; return 0; }
  build_googletest "compilers/$1" && build_with "$1" || { echo "$1: FAILED: it does not build"; return 1; }
  number=$($CXX --version | grep -o '[0-9]*\.[0-9]*\.[0-9]*' | head -n 1)
  run_programs "$1 ($number)" "compilers/$1/c++20" $(tests_with "$1")
}

# choose_compiler NAME: installs the compiler if that is possible, and sets CXX and other variables for it.
choose_compiler() {
  version=${1#*-}
  case $1 in
    g++-*) CXX=$1 packages=$1 ;;
    clang++-17) CXX=$1 packages='clang-17 g++-13' ;; # it cannot compile the std::thread of GCC 14 as C++23
    clang++-*) CXX=$1 packages=clang-$version ;;
    libc++-*)
      # libc++ has stop tokens (before version 20) and time zones only among its experimental parts.
      CXX="clang++-$version -stdlib=libc++ -fexperimental-library"
      packages="clang-$version libc++-$version-dev libc++abi-$version-dev"
      ;;
    zig-*) have_zig "$version" && CXX='zig c++ -D_LIBCPP_ENABLE_EXPERIMENTAL' packages= || return 1 ;;
  esac
  export CXX
  (need $packages) || return 1
  case $packages in
    *' g++-13')
      have g++-13 || return 1
      # An environment variable of clang, because with options in CXX Meson does not find CMake's packages. "^" puts the
      # option first, and "#" prevents a note about it.
      export CCC_OVERRIDE_OPTIONS="#^--gcc-install-dir=$(dirname "$(g++-13 -print-libgcc-file-name)")"
      ;;
  esac
}

# has_chrono NAME: whether the compiler exists and finds its standard library.
has_chrono() {
  have ${CXX%% *} || return 1
  folder=$build/compilers/$1
  mkdir -p "$folder" && echo '#include <chrono>' >"$folder/probe.cpp" &&
    quietly $CXX -std=c++20 -c "$folder/probe.cpp" -o "$folder/probe.o"
}

# build_with NAME: builds as C++20, which the project uses, and as users may build: with a later standard, and without
# exceptions. Older compilers call C++23 "2b".
build_with() {
  compile_headers "$1" -std=c++2b && compile_headers "$1" -std=c++20 -fno-exceptions -fno-rtti || return 1
  configure_with "$1" c++2b -Dtests=disabled && build_targets "compilers/$1/c++2b" &&
    configure_with "$1" c++20 -Dtests=enabled && build_targets "compilers/$1/c++20" $(tests_with "$1")
}

# compile_headers NAME OPTIONS...: compiles each public header alone. Leaves out boost_asio.h, because not every system
# has a new Boost. Without exceptions it also leaves out asio.h and prometheus.h, whose libraries need them.
compile_headers() {
  folder=$build/compilers/$1
  shift
  others=boost_asio.h
  case $* in
    *-fno-exceptions*) others='asio.h boost_asio.h prometheus.h' ;;
  esac
  : >"$folder/nothing.cpp"
  for header in "$root"/hashed_wheel_timer/*.h; do basename "$header"; done | grep -vxF "$(printf '%s\n' $others)" |
    xargs -P "$processors" -I{} $CXX "$@" -O1 -Wall -Wextra -Wpedantic -Werror -I "$root" \
      -include hashed_wheel_timer/{} -c "$folder/nothing.cpp" -o "$folder/{}.o"
}

# configure_with NAME STANDARD OPTIONS...: passes the standard as a compiler flag, because not every Meson has an option
# for the later one.
configure_with() {
  kind=compilers/$1/$2 arguments=-std=$2 calendar=enabled warnings=--werror
  case $1 in
    zig-*)
      calendar=disabled # its libc++ has no time zones, and Debian's date library cannot be linked with it
      arguments="$arguments -Werror" # its linker refuses the flag of --werror
      warnings=
      ;;
  esac
  shift 2
  configure "$kind" -Dcpp_std=none "-Dcpp_args=$arguments" -Ddebug=false -Doptimization=1 $warnings $in_one_piece \
    -Ddefault_library=static -Dauto_features=disabled -Dcalendar=$calendar "$@"
}

# tests_with NAME: prints the tests whose outcome can depend on the compiler and its standard library: coroutines,
# templates, arithmetic, atomics, sleeps, time zones.
tests_with() {
  echo conformance_test coroutine_test fast_divider_test handle_test hashed_wheel_test keyed_timer_test \
    no_exceptions_test passive_wheel_test races_test schedule_test stop_after_test wall_clock_test when_test
  case $1 in
    zig-*) ;;
    *) echo calendar_test ;;
  esac
}
