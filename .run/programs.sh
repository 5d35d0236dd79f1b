# Builds and runs programs: the examples, the benchmarks and the comparison. Writes the two files.

amalgamate() {
  [ $# -le 1 ] || wrong "amalgamate takes one folder at most: $2"
  folder=${1-$build/amalgamated}
  [ -n "$folder" ] || wrong 'amalgamate: "" (expected: a folder)'
  take_turn
  install_packages "$(missing_packages amalgamate)"
  python3 -B "$root/packaging/amalgamate.py" "$root" "$folder"
}

demo() {
  example=rpc_timeouts
  case ${1:-} in
    '' | -*) ;;
    *)
      example=$1
      shift
      ;;
  esac
  case $example in */*) no_such_example "$example" ;; esac
  [ -f "$root/docs/examples/$example/main.cpp" ] || no_such_example "$example"
  set_up_example "$example"
  configure demo --buildtype=release -Ddefault_library=static -Dexamples=enabled -Dcalendar=enabled -Dtests=disabled \
    -Dbenchmarks=disabled && quietly ninja -C "$build/demo" build.ninja || fail "the build failed"
  ninja -C "$build/demo" -t query "docs/examples/$example" >/dev/null 2>&1 ||
    fail "$example cannot be built: what it needs is missing"
  build_targets demo "$example:executable" || fail "the build failed"
  exec 9<&- # ends this command's turn, so that others can build while the example runs
  exec "$build/demo/docs/examples/$example" "$@"
}

# set_up_example EXAMPLE: installs the packages of the example. Those of gRPC, NATS, KJ and Thrift are installed only for
# their own examples. Meson does not notice new packages, so the build folder is configured again.
set_up_example() {
  case $1 in
    grpc_* | nats_* | kj_* | thrift_*) needs=demo_${1%%_*} ;;
    *)
      set_up demo
      return
      ;;
  esac
  take_turn
  missing=$(missing_packages "$needs")
  set_up "$needs"
  [ -z "$missing" ] || rm -f "$build/demo/stamp"
}

no_such_example() {
  say "run: no such example: $1 (there are: $(examples))"
  exit 2
}

examples() {
  for main in "$root"/docs/examples/*/main.cpp; do
    basename "$(dirname "$main")"
  done | paste -s -d ' '
}

bench() {
  case ${1:-} in
    --check | --record) what=guard ;;
    *) what=bench ;;
  esac
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
  have python3 || install_packages python3
  export PYTHONPATH="$root/perf" PYTHONDONTWRITEBYTECODE=1
  python=python3
  needs=$(python3 -m compare --needs "$@") || exit # wrong arguments end the command before a build
  cpp=compare
  case $needs in
    *build*)
      set_up compare
      set_up_peers
      compile_benchmarks compare
      ;;
    *calls*)
      cpp=calls
      compile_calls
      ;;
  esac
  case $needs in *brpc*) (install_packages "$(missing_packages brpc)") ;; esac
  case $needs in
    *plots*) ! set_up_plots || python=$build/venv-compare/bin/python ;;
  esac
  exec "$python" -m compare --build "$build" --cpp "$build/$cpp" "$@"
}

# Meson does not notice new packages, so the build folder is configured again.
compile_calls() {
  take_turn
  missing=$(missing_packages calls)
  set_up calls
  [ -z "$missing" ] || rm -f "$build/calls/stamp"
  configure calls --buildtype=release -Ddefault_library=static -Dexamples=enabled -Dcalendar=disabled \
    -Dprometheus=disabled -Dtests=disabled -Dbenchmarks=disabled && build_targets calls calls || fail "the build failed"
}

# Installs the small libraries that the compared C++ timers need. Without a library, its timer is left out. Meson does
# not notice new packages, so the build folder is configured again.
set_up_peers() {
  libraries=$(missing_packages peers)
  [ -n "$libraries" ] || return 0
  (install_packages "$libraries")
  [ -n "$(missing_packages peers)" ] || rm -f "$build/compare/stamp"
}

# Installs matplotlib. Without it the comparison uses the system's Python, and draws no plots.
set_up_plots() {
  take_turn
  from_pypi venv-compare 'matplotlib>=3.7,<3.11' && return
  say "could not install matplotlib, see build/last.log; a network, or the package python3-matplotlib, brings plots"
  return 1
}
