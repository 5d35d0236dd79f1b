# The step of the check that fuzzes: libFuzzer programs of tests/fuzz, with clang and its sanitizers.

fuzz_seconds=60

# The corpus first, then a minute more, divided among the targets. What breaks is left in build/fuzz.
fuzz() {
  build_fuzzers || return 1
  targets=$(for corpus in "$root"/tests/fuzz/corpus/*/; do basename "$corpus"; done)
  seconds=$((fuzz_seconds / $(echo "$targets" | wc -l)))
  status=0
  for target in $targets; do
    say "fuzzing $target"
    found=$build/fuzz/corpus/$target
    mkdir -p "$found"
    # What is found goes to the first folder. The seed makes a run like the one before, as far as time does not end it.
    quietly "$build/fuzz/tests/fuzz/${target}_fuzz" "$found" "$root/tests/fuzz/corpus/$target" -seed=1 -max_len=120 \
      -max_total_time="$seconds" -timeout=20 -artifact_prefix="$build/fuzz/$target-" || status=1
    tail -n 1 "$build/last.log" >&2  # how many inputs there were
  done
  return $status
}

build_fuzzers() {
  CXX=clang++ && export CXX
  configure fuzz -Ddebug=false -Dcpp_args='-g1 -fsanitize=fuzzer-no-link' -Doptimization=2 -Ddefault_library=static \
    -Db_sanitize=address,undefined -Db_lundef=false -Dtests=enabled -Dexamples=disabled -Dcalendar=enabled \
    -Dbenchmarks=disabled && build_targets fuzz fuzzers
}
