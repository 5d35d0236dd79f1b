# The step of the check that runs the libFuzzer programs of tests/fuzz, with clang.

fuzz_seconds=60

# Runs the corpus and then new inputs for a minute in all, under the sanitizers. Inputs that break something stay in
# build/fuzz-found.
fuzz() {
  build_fuzzers fuzz '' -Db_sanitize=address,undefined || return 1
  set -- $(fuzz_targets)
  status=0
  for target; do
    say "fuzzing $target"
    # A run does not repeat the previous one in spite of the fixed seed, because that one added inputs to the corpus.
    quietly fuzz_one fuzz "$target" -seed=1 -max_total_time=$((fuzz_seconds / $#)) || status=1
    tail -n 1 "$build/last.log" >&2  # how many inputs there were
  done
  return $status
}

# fuzz_executions NUMBER: runs this number of inputs in all, without the sanitizers, with assertions. Each target runs
# an equal part, for three minutes at most. Then the two quickest targets run the missing inputs.
fuzz_executions() {
  whole_number fuzz executions 999999999999 "$@"
  executions=$1
  set_up check
  install_packages "$(missing_sanitizers)"
  # Without the hook at each comparison, which takes more time than the fuzzed code.
  build_fuzzers fuzz-quick '-fno-sanitize-coverage=trace-cmp -D_GLIBCXX_ASSERTIONS' || return 1
  exec 9<&-  # ends this command's turn, so that others can build meanwhile
  logs=$(mktemp -d "$build/fuzz-quick/logs.XXXXXX") || return 1
  set -- $(fuzz_targets)
  status=0
  fuzz_at_once 1 "-runs=$(((executions - 1) / $# + 1)) -max_total_time=180" "$@" || status=1
  missing=$((executions - $(executions_in "$logs"/*)))
  if [ "$missing" -gt 0 ]; then
    quickest=$(for target; do
      echo "$(awk '/^stat::average_exec_per_sec:/ { print $2 }' "$logs/$target.1") $target"
    done | sort -rn | head -n 2)
    fuzz_at_once 2 -runs=$((missing / 2 + 1)) $(echo "$quickest" | cut -d ' ' -f 2) || status=1
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

# fuzz_at_once ROUND OPTIONS TARGET...: runs the targets, one per processor at a time.
fuzz_at_once() {
  round=$1
  options=$2
  shift 2
  say "fuzzing $*"
  workers=$(nproc 2>/dev/null || echo 2)
  running=
  for worker in $(seq "$workers"); do
    (
      # Makes malloc keep freed memory, because each input makes a new timer.
      export GLIBC_TUNABLES=glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=1073741824
      next=0
      failed=0
      for target; do
        next=$((next % workers + 1))
        [ $next -eq "$worker" ] || continue
        fuzz_one fuzz-quick "$target" -seed="$round" -entropic=0 -print_final_stats=1 $options \
          >"$logs/$target.$round" 2>&1 </dev/null || failed=1
      done
      exit $failed
    ) &
    running="$running $!"
  done
  failed=0
  for worker in $running; do
    wait "$worker" || failed=1
  done
  return $failed
}

# fuzz_one KIND TARGET OPTIONS...: runs one target. New inputs go to the first folder.
fuzz_one() {
  program=$build/$1/tests/fuzz/${2}_fuzz
  corpus=$build/fuzz-found/corpus/$2
  kept=$build/fuzz-found/kept/$2
  rm -rf "$kept" && mkdir -p "$corpus" "$kept" && python3 -c 'import sys
for number, line in enumerate(sys.stdin):
    open(f"{sys.argv[1]}/{number}", "wb").write(bytes.fromhex(line))' "$kept" <"$root/tests/fuzz/corpus/$2.hex" ||
    return 1
  prefix=$build/fuzz-found/$2-
  shift 2
  "$program" "$corpus" "$kept" -max_len=120 -timeout=20 -artifact_prefix="$prefix" "$@"
}

fuzz_targets() { for corpus in "$root"/tests/fuzz/corpus/*; do basename "$corpus" .hex; done; }

# build_fuzzers KIND COMPILER-OPTIONS OPTIONS...
build_fuzzers() {
  kind=$1
  compiler_options=$2
  shift 2
  CXX=clang++ && export CXX
  configure "$kind" -Ddebug=false -Dcpp_args="-g1 -fsanitize=fuzzer-no-link $compiler_options" -Doptimization=2 \
    -Ddefault_library=static -Db_lundef=false -Dtests=enabled -Dexamples=disabled -Dcalendar=enabled \
    -Dbenchmarks=disabled "$@" && build_targets "$kind" fuzzers
}
