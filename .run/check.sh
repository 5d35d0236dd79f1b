# The steps of `./run check`. A step NAME is a function check_NAME. One that runs alone, with arguments, is alone_NAME.
# A new step needs such a function in a file of .run/, a line in usage.txt, and a part in tests/verification/parts.ini.

check() {
  alone=alone_${1:-}
  case "${1:-} ${2:-}" in "fuzz "[0-9]*) alone=fuzz_executions ;; esac
  ! have "$alone" || { shift && "$alone" "$@"; return; }
  [ $# -gt 0 ] || set -- format warnings tidy models sanitizers coverage
  steps=
  for name; do
    steps="$steps $(steps_of "$name")"
    have "check_${steps##* }" || wrong "no such step: $name"
  done
  summary='' failed=0
  for step in $steps; do
    say "== $step"
    case $step in browser | docs | format | hosts | words) take_turn ;; *) set_up check ;; esac
    began=$(date +%s) result=passed
    ("check_$step") || { result=FAILED && failed=1; }
    summary="$summary$step: $result, $(($(date +%s) - began)) s\n"
  done
  printf "== summary\n$summary"
  return $failed
}

# steps_of NAME: prints the steps that a name stands for.
steps_of() {
  case $1 in
    warnings) echo gcc_warnings clang_warnings ;;
    sanitizers) echo clang_tsan clang_asan_ubsan ;;
    packages) echo bazel_build c_abi conan_package debian_package reproducible sbom vcpkg_port wrapdb_wrap ;;
    *) echo "$1" ;;
  esac
}

# A unity build, which compiles the library in seconds. Other builds check that each source compiles alone. The size is
# larger than the number of sources, because Meson 1.0 fails if their number is a multiple of it.
in_one_piece='-Dunity=on -Dunity_size=1000'

# Warnings are errors in these builds. clang's warnings do not depend on the sanitizers, so one build serves both steps.
check_gcc_warnings() { configure_strict && build_targets strict; }
check_clang_warnings() {
  compile_sanitized clang-asan-ubsan address,undefined --werror -Dtests=enabled -Dexamples=enabled -Dbenchmarks=enabled
}

check_clang_asan_ubsan() { check_clang_warnings && run_sanitized clang-asan-ubsan; }
check_clang_tsan() { compile_sanitized clang-tsan thread -Dtests=enabled && run_sanitized clang-tsan; }
# Runs only if it is named: one of the examples simulates a year on one thread, which takes minutes.
check_examples() {
  compile_sanitized clang-tsan-examples thread -Dexamples=enabled && run_sanitized clang-tsan-examples
}

# compile_sanitized KIND SANITIZERS OPTIONS...: builds with clang, in little more than half of the time that GCC takes.
# -g1 gives reports the lines, and no more.
compile_sanitized() {
  of=$1 sanitizers=$2
  shift 2
  need_sanitizers || return 1
  folder=$(clang++ --print-runtime-dir)
  # Tests may define operator new. So the runtime's own is linked last (tsan), or is in a shared library (others).
  link="'-shared-libsan', '-Wl,-rpath,$folder'"
  if [ "$sanitizers" = thread ]; then
    own=$(ls "$folder"/libclang_rt.tsan_cxx*.a)
    link="'-fno-sanitize-link-runtime', '-Wl,--export-dynamic,-z,muldefs,--whole-archive,$(echo "$own" | sed s/_cxx//)"
    link="$link,--no-whole-archive', '$own', '-ldl', '-lm'"
  fi
  compile "$of" -Ddebug=false -Dcpp_args=-g1 -Doptimization=1 -Ddefault_library=static -Db_sanitize="$sanitizers" \
    -Db_lundef=false -Dcalendar=enabled "-Dcpp_link_args=[$link]" $in_one_piece -Dtests=disabled -Dexamples=disabled \
    -Dbenchmarks=disabled "$@"
}

# Chooses clang. Its sanitizers come in a package that is named after its version.
need_sanitizers() {
  export CXX=clang++
  echo 'int main() {}' | clang++ -fsanitize=thread -x c++ - -o /dev/null 2>/dev/null ||
    need "libclang-rt-$(clang++ -dumpversion | cut -d . -f 1)-dev"
}

# run_sanitized KIND: without the tests of texts and lists, which run nothing of the library.
run_sanitized() { count_run "$1" "$1" --no-suite structure --timeout-multiplier 5; }

# Most checks take the library in one piece, so that they read its headers once. The analyser looks only at functions of
# the source that it is given. So it takes each source, by the commands of the strict build.
check_tidy() {
  check_clang_warnings && configure_strict || return 1
  {
    find "$build/clang-asan-ubsan/hashed_wheel_timer" -name '*-unity*.cpp' \
      -printf 'clang-asan-ubsan\n-clang-analyzer-*,-bugprone-suspicious-include\n%p\n'
    find "$root/hashed_wheel_timer" -name '*.cpp' \
      -printf 'strict\n-*,clang-analyzer-*,-clang-analyzer-optin.performance.Padding\n%p\n'
  } | xargs -d '\n' -n 3 -P "$processors" \
    sh -c 'exec clang-tidy -p "$0/$1" --quiet "--checks=$2" "$3"' "$build"
}

check_models() {
  export CXX=g++
  configure models -Ddebug=false -Doptimization=1 $in_one_piece -Dauto_features=disabled -Dtests=enabled \
    -Dmodels=true &&
    meson test -C "$build/models" --print-errorlogs --suite "${1:-models}"
}
check_orders() { check_models orders; }
check_genmc() { python3 -B "$root/tests/models/genmc/check.py" "$root"; }

check_arithmetic() {
  need libz3-dev &&
    CXX=g++ python3 -B "$root/tests/arithmetic/arithmetic.py" "$root" "$build/arithmetic"
}

# Without CI, whose build may be older than the packages.
check_hosts() {
  set_up hosts test
  CI='' tests --suite hosts
}

# Counts the coverage of the unit tests. Examples and consumers do not count. Fails below 99 % of the lines or 96 % of
# the branches.
check_coverage() {
  export CXX=g++
  # Counts only the library. Each count is an atomic addition, with which the models of the tests would take minutes.
  compile coverage -Ddebug=false -Doptimization=0 -Db_coverage=true \
    "-Dcpp_args=-fprofile-update=atomic -fprofile-filter-files=hashed_wheel_timer/" \
    -Ddefault_library=static -Dtests=enabled -Dexamples=disabled -Dcalendar=enabled -Dbenchmarks=disabled || return 1
  # A run adds to the counts of earlier runs.
  find "$build/coverage" -name '*.gcda' -delete
  run_tests coverage --no-rebuild --suite unit --timeout-multiplier 5 &&
    python3 -B "$root/tests/coverage/coverage.py" "$root" "$build/coverage" 99 96
}
