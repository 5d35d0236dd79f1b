# The step of the check that runs the libFuzzer programs of tests/fuzz, with clang.

fuzz_seconds=60

# Runs the corpus and then new inputs for a minute in all, under the sanitizers. Inputs that break something stay in
# build/fuzz-found.
check_fuzz() {
  build_fuzzers fuzz '' -Db_sanitize=address,undefined || return 1
  status=0
  set -- $(fuzz_targets)
  for target; do
    # A run does not repeat the previous one in spite of the fixed seed, because that one added inputs to the corpus.
    run_fuzzers fuzz 1 "-max_total_time=$((fuzz_seconds / $#))" "$target" ||
      { cat "$logs/$target.1" >&2; status=1; }
    tail -n 1 "$logs/$target.1" >&2 # how many inputs there were
  done
  return $status
}

# fuzz_executions NUMBER: runs this number of inputs in all, without the sanitizers, with assertions. Each target runs
# an equal part, for three minutes at most. Then the two quickest targets run the missing inputs.
fuzz_executions() {
  whole_number fuzz executions 999999999999 "$@"
  set_up check
  # Without the hook at each comparison, which takes more time than the fuzzed code.
  build_fuzzers fuzz-quick '-fno-sanitize-coverage=trace-cmp -D_GLIBCXX_ASSERTIONS' || return 1
  exec 9<&-  # ends this command's turn, so that others can build meanwhile
  executions=$1 status=0
  set -- $(fuzz_targets)
  options='-entropic=0 -print_final_stats=1'
  run_fuzzers fuzz-quick 1 "$options -runs=$(((executions - 1) / $# + 1)) -max_total_time=180" "$@" || status=1
  missing=$((executions - $(executions_in "$logs"/*)))
  if [ "$missing" -gt 0 ]; then
    quickest=$(cd "$logs" && grep '^stat::average_exec_per_sec:' *.1 | sort -rn -k 2 | head -n 2 | cut -d . -f 1)
    run_fuzzers fuzz-quick 2 "$options -runs=$((missing / 2 + 1))" $quickest || status=1
  fi
  for target; do
    echo "$target: $(executions_in "$logs/$target".*)"
  done
  grep -h -e '^broken: ' -e ' broken: ' -e '^SUMMARY: ' -e 'Test unit written to ' "$logs"/* >&2
  echo "$(executions_in "$logs"/*) executions of $# targets, $(grep -l '^SUMMARY: ' "$logs"/* | wc -l) finds"
  return $status
}

# executions_in LOG...: prints the sum of the executions that libFuzzer reports at its end, even after a find.
executions_in() { cat "$@" | awk '/^stat::number_of_executed_units:/ { sum += $2 } END { printf "%.0f", sum }'; }

# run_fuzzers KIND ROUND OPTIONS TARGET...: runs the targets, one per processor at a time. New inputs go to the first
# folder. Makes malloc keep freed memory, because each input makes a new timer.
run_fuzzers() {
  kind=$1 round=$2 limits=$3 found=$build/fuzz-found
  shift 3
  say "fuzzing $*"
  for target; do
    rm -rf "$found/kept/$target" && mkdir -p "$found/kept/$target" "$found/corpus/$target" && python3 -c 'import sys
for number, line in enumerate(sys.stdin):
    open(f"{sys.argv[1]}/{number}", "wb").write(bytes.fromhex(line))' "$found/kept/$target" \
      <"$root/tests/fuzz/corpus/$target.hex" || return 1
  done
  printf '%s\n' "$@" | GLIBC_TUNABLES=glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=1073741824 \
    xargs -P "$processors" -I{} sh -c 'exec "$0/{}_fuzz" "$1/corpus/{}" "$1/kept/{}" "-artifact_prefix=$1/{}-" \
      -max_len=120 -timeout=20 "-seed=$2" $3 >"$4/{}.$2" 2>&1 </dev/null' \
    "$build/$kind/tests/fuzz" "$found" "$round" "$limits" "$logs"
}

fuzz_targets() { for corpus in "$root"/tests/fuzz/corpus/*; do basename "$corpus" .hex; done; }

# build_fuzzers KIND COMPILER-OPTIONS OPTIONS...: also makes a folder for logs.
build_fuzzers() {
  kind=$1 compiler_options=$2
  shift 2
  need_sanitizers
  CXX=clang++ && export CXX
  configure "$kind" -Ddebug=false -Dcpp_args="-g1 -fsanitize=fuzzer-no-link $compiler_options" -Doptimization=2 \
    -Ddefault_library=static -Db_lundef=false -Dauto_features=disabled -Dtests=enabled -Dcalendar=enabled "$@" &&
    build_targets "$kind" fuzzers && logs=$(mktemp -d "$build/$kind/logs.XXXXXX")
}
