# Builds and runs programs: the examples, the benchmarks and the comparison. Writes the two files.

amalgamate() {
  [ $# -le 1 ] || wrong "amalgamate takes one folder at most: $2"
  folder=${1-$build/amalgamated}
  [ -n "$folder" ] || wrong 'amalgamate: "" (expected: a folder)'
  take_turn
  have_compiler || need c++=g++
  need $(needs_of amalgamate)
  python3 -B "$root/packaging/amalgamate.py" "$root" "$folder"
}

demo() {
  example=rpc_timeouts
  case ${1:-} in
    '' | -*) ;;
    *) example=$1 && shift ;;
  esac
  case $example in
    */*) no_such_example ;;
    # The packages of hosts are installed only for their own examples.
    grpc_* | kj_* | nats_* | thrift_*) needs="demo_${example%%_*} demo" ;;
    *) needs=demo ;;
  esac
  [ -f "$root/docs/examples/$example/main.cpp" ] || no_such_example
  set_up $needs
  configure demo --buildtype=release -Ddefault_library=static -Dexamples=enabled -Dcalendar=enabled -Dtests=disabled \
    -Dbenchmarks=disabled && quietly ninja -C "$build/demo" build.ninja || fail "the build failed"
  ninja -C "$build/demo" -t query "docs/examples/$example" >/dev/null 2>&1 ||
    fail "$example cannot be built: what it needs is missing"
  build_targets demo "$example:executable" || fail "the build failed"
  exec 9<&- # ends this command's turn, so that others can build while the example runs
  exec "$build/demo/docs/examples/$example" "$@"
}

no_such_example() {
  say "run: no such example: $example (there are:$(
    for main in "$root"/docs/examples/*/main.cpp; do printf ' %s' "$(basename "$(dirname "$main")")"; done))"
  exit 2
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
  compile "$1" --buildtype=release -Ddefault_library=static -Dbenchmarks=enabled -Dtests=disabled -Dexamples=disabled ||
    fail "the build failed"
}

compare() {
  need python3=python3
  export PYTHONPATH="$root/perf" PYTHONDONTWRITEBYTECODE=1
  needs=$(python3 -m compare --needs "$@") || exit # wrong arguments end the command before a build
  cpp=compare
  case $needs in
    *build*) set_up compare && set_up_peers && compile_benchmarks compare ;;
    *calls*)
      cpp=calls
      set_up calls calls
      configure calls --buildtype=release -Ddefault_library=static -Dexamples=enabled -Dcalendar=disabled \
        -Dprometheus=disabled -Dtests=disabled -Dbenchmarks=disabled && build_targets calls calls ||
        fail "the build failed"
      ;;
  esac
  case $needs in *brpc*) (need $(needs_of brpc)) ;; esac
  case $needs in *plots*) set_up_plots ;; esac
  exec python3 -m compare --build "$build" --cpp "$build/$cpp" "$@"
}

# Installs the small libraries that the compared C++ timers need. Without a library, its timer is left out. Meson does
# not notice new packages, so the build folder is configured again.
set_up_peers() {
  [ -n "$(missing $(needs_of peers))" ] || return 0
  (need $(needs_of peers))
  [ -n "$(missing $(needs_of peers))" ] || rm -f "$build/compare/stamp"
}

# Installs matplotlib. Without it the comparison uses the system's Python, and draws no plots.
set_up_plots() {
  take_turn
  from_pypi venv-compare 'matplotlib>=3.7,<3.11' && return
  say "a network, or the package python3-matplotlib, brings plots"
  return 1
}
