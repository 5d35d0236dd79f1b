# The steps of `./run check`.

# A unity build, which compiles the library in seconds. Other builds check that each source compiles alone. The size is
# larger than the number of sources, because Meson 1.0 fails if their number is a multiple of it.
in_one_piece='-Dunity=on -Dunity_size=1000'

# Warnings are errors in these builds. clang's warnings do not depend on the sanitizers, so one build serves both steps.
gcc_warnings() { build_strict; }
clang_warnings() {
  configure_sanitized clang-asan-ubsan address,undefined --werror $in_one_piece -Dtests=enabled -Dexamples=enabled \
    -Dbenchmarks=enabled && build_targets clang-asan-ubsan
}

clang_tsan() {
  configure_sanitized clang-tsan thread $in_one_piece -Dtests=enabled -Dexamples=disabled -Dbenchmarks=disabled &&
    build_targets clang-tsan && run_sanitized clang-tsan
}
clang_asan_ubsan() { clang_warnings && run_sanitized clang-asan-ubsan; }

# Runs only if it is named: one of the examples simulates a year on one thread, which takes minutes.
clang_tsan_examples() {
  configure_sanitized clang-tsan-examples thread $in_one_piece -Dtests=disabled -Dexamples=enabled -Dbenchmarks=disabled &&
    build_targets clang-tsan-examples && run_sanitized clang-tsan-examples
}

# configure_sanitized KIND SANITIZERS OPTIONS...: builds with clang, in little more than half of the time that GCC takes.
# -g1 gives reports the lines, and no more.
configure_sanitized() {
  kind=$1
  sanitizers=$2
  shift 2
  CXX=clang++ && export CXX
  folder=$(clang++ --print-runtime-dir)
  # Tests may define operator new. So the runtime's own is linked last (tsan), or is in a shared library (others).
  case $sanitizers in
    thread)
      cxx_runtime=$(ls "$folder"/libclang_rt.tsan_cxx*.a)
      runtime=$(echo "$cxx_runtime" | sed 's/tsan_cxx/tsan/')
      link="'-fno-sanitize-link-runtime', '-Wl,--export-dynamic,-z,muldefs,--whole-archive,$runtime,--no-whole-archive'"
      link="$link, '$cxx_runtime', '-ldl', '-lm'"
      ;;
    *) link="'-shared-libsan', '-Wl,-rpath,$folder'" ;;
  esac
  configure "$kind" -Ddebug=false -Dcpp_args=-g1 -Doptimization=1 -Ddefault_library=static \
    -Db_sanitize="$sanitizers" -Db_lundef=false -Dcalendar=enabled "-Dcpp_link_args=[$link]" "$@"
}

# run_sanitized KIND ARGUMENTS... Without the tests of texts and lists, which run nothing of the library.
run_sanitized() {
  run_tests "$@" --no-rebuild --no-suite structure --timeout-multiplier 5
  status=$?
  counts=$(count_tests "$1") || status=1
  echo "$1: $counts"
  return $status
}

# Most checks take the library in one piece, so that they read its headers once. The analyser looks only at functions of
# the source that it is given. So it takes each source, by the commands of the strict build.
tidy() {
  clang_warnings && configure_strict || return 1
  {
    find "$build/clang-asan-ubsan/hashed_wheel_timer" -name '*-unity*.cpp' \
      -printf 'clang-asan-ubsan\n-clang-analyzer-*,-bugprone-suspicious-include\n%p\n'
    find "$root/hashed_wheel_timer" -name '*.cpp' \
      -printf 'strict\n-*,clang-analyzer-*,-clang-analyzer-optin.performance.Padding\n%p\n'
  } | xargs -d '\n' -n 3 -P "$(nproc 2>/dev/null || echo 2)" \
    sh -c 'exec clang-tidy -p "$0/$1" --quiet "--checks=$2" "$3"' "$build"
}

# Builds and runs the models. No other command builds them.
models() {
  CXX=g++ && export CXX
  configure models -Ddebug=false -Doptimization=1 $in_one_piece -Dtests=enabled -Dexamples=disabled -Dcalendar=disabled \
    -Dbenchmarks=disabled -Dmodels=true || return 1
  meson test -C "$build/models" --print-errorlogs --suite "${1:-models}"
}
# Runs the models of the shipped code with weakened memory orders: each order that a model is known to notice. Takes as
# long as all other steps.
orders() { models orders; }
# Runs only if it is named, because GenMC must be built first.
genmc() { python3 -B "$root/tests/models/genmc/check.py" "$root"; }

# Runs only if it is named, because it needs z3. Proves the arithmetic of the shipped headers, and finds planted faults.
arithmetic() {
  install_packages "$(have_package libz3-dev || echo libz3-dev)"
  CXX=g++ python3 -B "$root/tests/arithmetic/arithmetic.py" "$root" "$build/arithmetic"
}

# Counts the coverage of the unit tests. Examples and consumers do not count. Fails below 99 % of the lines or 96 % of
# the branches.
coverage() {
  CXX=g++ && export CXX
  # Counts only the library. Each count is an atomic addition, with which the models of the tests would take minutes.
  compile coverage -Ddebug=false -Doptimization=0 -Db_coverage=true \
    "-Dcpp_args=-fprofile-update=atomic -fprofile-filter-files=hashed_wheel_timer/" \
    -Ddefault_library=static -Dtests=enabled -Dexamples=disabled -Dcalendar=enabled -Dbenchmarks=disabled || return 1
  forget_old_coverage
  run_tests coverage --no-rebuild --suite unit --timeout-multiplier 5 &&
    python3 -B "$root/tests/coverage/coverage.py" "$root" "$build/coverage" 99 96
}

# Deletes old counts: a run adds to the counts of earlier runs, and removed sources and aborted builds leave notes
# behind.
forget_old_coverage() {
  find "$build/coverage" -name '*.gcda' -exec rm {} +
  find "$build/coverage" -name '*.gcno' -exec sh -c 'for notes; do [ -e "${notes%.gcno}.o" ] || rm "$notes"; done' sh {} +
}

steps_of() {
  case $1 in
    warnings) echo gcc_warnings clang_warnings ;;
    sanitizers) echo clang_tsan clang_asan_ubsan ;;
    packages) echo bazel_build c_abi conan_package debian_package reproducible sbom vcpkg_port wrapdb_wrap ;;
    examples) echo clang_tsan_examples ;;
    tidy | format | models | orders | genmc | arithmetic | coverage | docs | fuzz | words | reproducible | sbom) echo "$1" ;;
    *) return 1 ;;
  esac
}

check() {
  # Steps with arguments run alone.
  case "${1:-} ${2:-}" in
    all\ * | bare\ * | compilers\ * | flood\ * | machines\ * | mutation\ * | oracle\ * | simulation\ * | soak\ *)
      "$@"
      return
      ;;
    "fuzz "[0-9]*)
      shift
      fuzz_executions "$@"
      return
      ;;
  esac
  [ $# -gt 0 ] || set -- format warnings tidy models sanitizers coverage
  steps=
  for name in "$@"; do
    more=$(steps_of "$name") || wrong "no such step: $name"
    steps="$steps $more"
  done
  case " $* " in
    *" warnings "* | *" sanitizers "* | *" tidy "* | *" models "* | *" orders "* | *" examples "* | *" coverage "* | *" fuzz "*)
      set_up check
      install_packages "$(missing_sanitizers)"
      ;;
    *" packages "* | *" reproducible "* | *" sbom "* | *" arithmetic "* | *" genmc "*) set_up check ;;
    *) take_turn ;;
  esac
  summary=
  status=0
  for step in $steps; do
    say "== $step"
    began=$(date +%s)
    result=passed
    ("$step") || { result=FAILED && status=1; }
    summary="$summary$step: $result, $(($(date +%s) - began)) s
"
  done
  printf '== summary\n%s' "$summary"
  return $status
}
