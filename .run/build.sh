# Builds, and runs tests.

# configure KIND OPTIONS...: sets up build/KIND, and sets it up again if a setting changed that Meson would not notice.
configure() {
  directory=$build/$1
  shift
  stamp="$root ${CXX:-} ${CCC_OVERRIDE_OPTIONS:-} ${PKG_CONFIG_LIBDIR:-} $(meson --version) $*"
  [ "$(cat "$directory/stamp" 2>/dev/null)" != "$stamp" ] || return 0
  rm -rf "$directory"
  quietly meson setup "$@" "$directory" "$root" && printf '%s\n' "$stamp" >"$directory/stamp"
}

compile() { configure "$@" && build_targets "$1"; }

# build_targets KIND [TARGET...]
build_targets() {
  say "building build/$1"
  directory=$build/$1
  shift
  # Regenerates build.ninja first, because Meson looks for the targets in the old one.
  [ $# -eq 0 ] || quietly ninja -C "$directory" build.ninja || return 1
  if [ -t 2 ]; then
    # When the user interrupts the build, Ninja ends it and says so. Meson would add a traceback.
    (trap '' INT && exec meson compile -C "$directory" "$@" >&2)
  else
    quietly meson compile -C "$directory" "$@"
  fi
}

# The build for CI and for the check: all targets, with warnings as errors. No debug information, with which it would
# take a third longer.
configure_strict() (
  CXX=g++ && export CXX
  configure strict -Ddebug=false -Doptimization=2 --werror -Dtests=enabled -Dexamples=enabled -Dcalendar=enabled \
    -Dbenchmarks=enabled
)

# tests ARGUMENTS...: without arguments, runs a few tests before it builds the rest. Otherwise builds only the programs
# of the named tests; if all of them are scripts, Meson builds everything.
tests() {
  if [ -n "${CI:-}" ]; then
    kind=strict
    set_up check
    configure_strict
  else
    kind=test
    set_up test
    configure test --buildtype=debugoptimized -Dtests=enabled -Dexamples=enabled -Dcalendar=enabled -Dbenchmarks=disabled
  fi || fail "the build failed"
  logs=$build/$kind/meson-logs
  rm -f "$logs/first.json"
  status=0
  if [ $# -eq 0 ]; then
    build_targets $kind first || fail "the build failed"
    run_tests $kind --no-rebuild --suite first || status=1
    mv "$logs/testlog.json" "$logs/first.json"
    build_targets $kind || fail "the build failed"
    set -- --no-rebuild --no-suite first
  fi
  run_tests $kind "$@" || status=1
  count_tests "$logs"/first.json "$logs"/testlog*.json || status=1
  return $status
}

# run_tests KIND ARGUMENTS...: runs all tests but the models, which are a step of the check. Runs two tests per
# processor at a time, because tests wait as much as they compute.
run_tests() {
  directory=$build/$1
  shift
  rm -f "$directory"/meson-logs/testlog*.json
  meson test -C "$directory" --print-errorlogs --no-suite models --num-processes $((2 * processors)) "$@"
}

# run_programs NAME KIND [TEST...]: runs unit tests, and prints how many programs and cases passed, for NAME.
run_programs() {
  name=$1 began=$(date +%s)
  shift
  run_tests "$@" --no-rebuild --suite unit --timeout-multiplier 10
  count_tests "$name" $(($(date +%s) - began)) "$build/$1/meson-logs/testlog.json"
}

# count_tests [NAME SECONDS] LOG...: prints how many tests passed and failed, by Meson's logs. Each case of a GoogleTest
# program counts. Does not read GoogleTest's XML, because a program that crashes leaves the XML of the previous run.
# With a name, counts programs too. A crash under wine ends with status 0. So a GoogleTest program passes only if it
# printed PASSED, and another program only if it printed something.
count_tests() {
  python3 - "$@" <<'END'
import json, os, re, sys

logs = [log for log in sys.argv[1:] if log.endswith(".json") and os.path.exists(log)]
tests = [json.loads(line) for log in logs for line in open(log, encoding="utf-8")]
passed = failed = cases = 0
bad = []
for test in tests:
    output = test.get("stdout", "")
    has_cases = "[==========] Running " in output
    ok = len(re.findall(r"^\[       OK \] ", output, re.M))
    wrong = len(re.findall(r"^\[  FAILED  \] .* \(\d+ ms\)$", output, re.M))
    good = test["result"] in ("OK", "EXPECTEDFAIL")
    # Otherwise it crashed, hung, or a sanitizer found something at its end.
    failed += wrong if good or test["result"] == "SKIP" else max(wrong, 1)
    passed += ok if has_cases else good
    cases += ok
    if not good or not (re.search(r"^\[  PASSED  \] ", output, re.M) if has_cases else output.strip()):
        bad.append(test["name"].split(" / ")[-1])
if not sys.argv[1].endswith(".json"):
    name, seconds = sys.argv[1:3]
    print(f"{name}: {len(tests) - len(bad)} of {len(tests)} programs passed, {cases} cases, {seconds} s")
    print(f"{name}: FAILED: {' '.join(bad)}\n" if bad else "", end="")
    sys.exit(bool(bad) or not tests)
if logs:  # there is none after `meson test --list`
    print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)
END
}
