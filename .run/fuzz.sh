# The step of the check that runs the libFuzzer programs of tests/fuzz, with clang. Inputs that break something stay in
# build/fuzz-found.

# Runs the corpus and then new inputs for a minute in all, under the sanitizers.
check_fuzz() { fuzz fuzz '' 60 '' -Db_sanitize=address,undefined; }

# fuzz_executions NUMBER: runs this number of inputs in all, without the sanitizers, with assertions, and without the
# hook at each comparison, which takes more time than the fuzzed code. Each target runs an equal part, for three minutes
# at most. Then the two quickest targets run the missing inputs.
fuzz_executions() {
  whole_number fuzz executions 999999999999 "$@"
  set_up check
  fuzz fuzz-quick '-fno-sanitize-coverage=trace-cmp -D_GLIBCXX_ASSERTIONS' 180 "$1"
}

# fuzz KIND COMPILER-OPTIONS SECONDS NUMBER OPTIONS...
fuzz() {
  of=$1 compiler_options=$2 seconds=$3 number=$4
  shift 4
  need_sanitizers || return 1
  configure "$of" -Ddebug=false -Dcpp_args="-g1 -fsanitize=fuzzer-no-link $compiler_options" -Doptimization=2 \
    -Ddefault_library=static -Db_lundef=false -Dauto_features=disabled -Dtests=enabled -Dcalendar=enabled "$@" &&
    build_targets "$of" fuzzers || return 1
  exec 9<&- # ends this command's turn, so that others can build meanwhile
  python3 -B "$root/tests/fuzz/run_fuzzers.py" "$build/$of/tests/fuzz" "$build/fuzz-found" "$seconds" $number
}
