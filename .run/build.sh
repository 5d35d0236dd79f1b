# Builds, and runs tests.

# make_once FOLDER STAMP COMMAND...: makes build/FOLDER anew by the command, unless it was made with this stamp.
make_once() {
  made=$build/$1 stamp="$root $2"
  [ "$(cat "$made/stamp" 2>/dev/null)" != "$stamp" ] || return 0
  say "making build/$1"
  shift 2
  rm -rf "$made" && mkdir -p "$made" && "$@" && printf '%s\n' "$stamp" >"$made/stamp"
}

# configure KIND OPTIONS...: sets up build/KIND, and sets it up again if a setting changed that Meson would not notice.
configure() {
  kind=$1
  shift
  make_once "$kind" "${CXX:-} ${CCC_OVERRIDE_OPTIONS:-} ${PKG_CONFIG_LIBDIR:-} $(meson --version) $*" \
    quietly meson setup "$@" "$build/$kind" "$root"
}

compile() { configure "$@" && build_targets "$1"; }

# build_targets KIND [TARGET...]: builds all, or the targets, as Ninja names them.
build_targets() {
  say "building build/$1"
  directory=$build/$1
  shift
  if [ -t 2 ]; then ninja -C "$directory" "$@" >&2 9<&-; else quietly ninja -C "$directory" "$@"; fi
}

# The build for CI and for the check: all targets, with warnings as errors. No debug information, with which it would
# take a third longer.
configure_strict() (
  export CXX=g++
  configure strict -Ddebug=false -Doptimization=2 --werror -Dtests=enabled -Dexamples=enabled -Dcalendar=enabled \
    -Dbenchmarks=enabled
)

# tests ARGUMENTS...: without arguments, runs a few tests before it builds the rest. Otherwise builds only the programs
# of the named tests; if all of them are scripts, Meson builds everything.
tests() {
  if [ -n "${CI:-}" ]; then
    of=strict && set_up check && configure_strict
  else
    of=test && set_up test && configure test --buildtype=debugoptimized -Dtests=enabled -Dexamples=enabled \
      -Dcalendar=enabled -Dbenchmarks=disabled
  fi || fail "the build failed"
  logs=$build/$of/meson-logs status=0
  rm -f "$logs/first.json"
  if [ $# -eq 0 ]; then
    build_targets $of first || fail "the build failed"
    run_tests $of --no-rebuild --suite first || status=1
    mv "$logs/testlog.json" "$logs/first.json"
    build_targets $of || fail "the build failed"
    set -- --no-rebuild --no-suite first
  fi
  run_tests $of "$@" || status=1
  count_tests '' "$logs"/first.json "$logs"/testlog*.json || status=1
  return $status
}

count_tests() { python3 -B "$root/tests/verification/count_tests.py" "$@"; }

# run_tests KIND ARGUMENTS...: runs all tests but the models, which are a step of the check. Runs two tests per
# processor at a time, because tests wait as much as they compute.
run_tests() {
  directory=$build/$1
  shift
  rm -f "$directory"/meson-logs/testlog*.json
  meson test -C "$directory" --print-errorlogs --no-suite models --num-processes $((2 * processors)) "$@" 9<&-
}

# count_run NAME KIND ARGUMENTS...: runs tests, and prints how many passed and failed, for NAME.
count_run() {
  name=$1 of=$2 status=0
  shift
  run_tests "$@" --no-rebuild || status=1
  count_tests "$name" "$build/$of"/meson-logs/testlog*.json || status=1
  return $status
}
