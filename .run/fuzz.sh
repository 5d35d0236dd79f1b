# The step of the check that runs the libFuzzer programs of tests/fuzz, with clang. Inputs that break something stay in
# build/fuzz-found.

# Runs the corpus and then new inputs for a minute in all, under the sanitizers.
check_fuzz() { build_fuzzers fuzz '' -Db_sanitize=address,undefined && run_fuzzers 60; }

# fuzz_executions NUMBER: runs this number of inputs in all, without the sanitizers, with assertions. Each target runs
# an equal part, for three minutes at most. Then the two quickest targets run the missing inputs.
fuzz_executions() {
  whole_number fuzz executions 999999999999 "$@"
  set_up check
  # Without the hook at each comparison, which takes more time than the fuzzed code.
  build_fuzzers fuzz-quick '-fno-sanitize-coverage=trace-cmp -D_GLIBCXX_ASSERTIONS' || return 1
  exec 9<&-  # ends this command's turn, so that others can build meanwhile
  run_fuzzers 180 "$1"
}

run_fuzzers() { python3 -B "$root/tests/fuzz/run_fuzzers.py" "$build/$of/tests/fuzz" "$build/fuzz-found" "$@"; }

# build_fuzzers KIND COMPILER-OPTIONS OPTIONS...
build_fuzzers() {
  of=$1 compiler_options=$2
  shift 2
  need_sanitizers
  configure "$of" -Ddebug=false -Dcpp_args="-g1 -fsanitize=fuzzer-no-link $compiler_options" -Doptimization=2 \
    -Ddefault_library=static -Db_lundef=false -Dauto_features=disabled -Dtests=enabled -Dcalendar=enabled "$@" &&
    build_targets "$of" fuzzers
}
