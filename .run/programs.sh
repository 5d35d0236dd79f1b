# Builds and runs programs: the examples, the benchmarks and the comparison. Writes the two files.

amalgamate() {
  case "$# ${1-}" in "0 " | "1 "[!-]*) ;; *) wrong "amalgamate: \"$*\" (expected: nothing, or a folder)" ;; esac
  take_turn
  need python3=python3 || exit
  need $(needs_of amalgamate) # the queue may also be in an include path of $CXX
  python3 -B "$root/packaging/amalgamate.py" "$root" "${1-$build/amalgamated}"
}

# demo [EXAMPLE] ARGUMENTS...: the packages of hosts are installed only for their own examples.
demo() {
  example=rpc_timeouts needs=demo
  case ${1:-} in
    '' | -*) ;;
    *) example=$1 && shift ;;
  esac
  case $example in grpc_* | kj_* | nats_* | thrift_*) needs="demo ${example%%_*}" ;; esac
  [ "${example#*/}" = "$example" ] && [ -f "$root/docs/examples/$example/main.cpp" ] || {
    say "run: no such example: $example (there are: $(cd "$root/docs/examples" && echo $(dirname */main.cpp)))"
    exit 2
  }
  set_up "$needs" demo
  configure_release demo -Dexamples=enabled -Dcalendar=enabled -Dtests=disabled -Dbenchmarks=disabled &&
    quietly ninja -C "$build/demo" build.ninja || fail "the build failed"
  ninja -C "$build/demo" -t query "docs/examples/$example" >/dev/null 2>&1 ||
    fail "$example cannot be built: what it needs is missing"
  build_targets demo "docs/examples/$example" || fail "the build failed"
  exec 9<&- # ends this command's turn, so that others can build while the example runs
  exec "$build/demo/docs/examples/$example" "$@"
}

bench() {
  what=bench
  case ${1:-} in --check | --record) what=guard ;; esac
  set_up "$what"
  compile_benchmarks bench
  [ "$what" = bench ] || exec python3 "$root/perf/guard/check.py" --build "$build/bench" "$@"
  exec "$build/bench/perf/micro/micro" "$@"
}

compile_benchmarks() {
  configure_release "$1" -Dauto_features=disabled -Dbenchmarks=enabled && build_targets "$1" || fail "the build failed"
}

# configure_release KIND OPTIONS...
configure_release() { configure "$@" --buildtype=release -Ddefault_library=static; }

compare() {
  need python3=python3 || exit
  export PYTHONPATH="$root/perf" PYTHONDONTWRITEBYTECODE=1
  needs=$(python3 -m compare --needs "$@") || exit # wrong arguments end the command before a build
  cpp=compare
  case $needs in
    *build*) set_up compare compare && compile_benchmarks compare ;;
    *calls*)
      cpp=calls
      set_up calls calls
      configure_release calls -Dauto_features=disabled -Dexamples=enabled && build_targets calls calls ||
        fail "the build failed"
      ;;
  esac
  case $needs in *brpc*) (need $(needs_of brpc)) ;; esac
  case $needs in *plots*) set_up_plots ;; esac
  exec python3 -m compare --build "$build" --cpp "$build/$cpp" "$@"
}

# Installs matplotlib. Without it the comparison uses the system's Python, and draws no plots.
set_up_plots() {
  take_turn
  from_pypi venv-compare 'matplotlib>=3.7,<3.11' && return
  say "a network, or the package python3-matplotlib, brings plots"
  return 1
}
