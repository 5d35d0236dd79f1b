#!/bin/sh
# usage: check.sh PROGRAM
. "$(dirname "$0")/../checks.sh"
pictures=$folder/pictures
svg=$pictures/picture.svg
mkdir "$pictures"

expect_report() {
  expect_figure 0 lost doubled early
  for name in requests answered; do [ "$(figures "$name")" -gt 0 ] || complain "report: $name is 0"; done
}

# Expects a complete picture and no other file in its folder.
expect_picture() {
  [ "$(ls -A "$pictures")" = picture.svg ] || complain "not just one picture: $(ls -A "$pictures")"
  if command -v xmllint >/dev/null; then
    xmllint --noout "$svg" 2>"$err" || complain "the picture is not well-formed"
  elif command -v python3 >/dev/null; then
    python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$svg" 2>"$err" ||
      complain "the picture is not well-formed"
  else
    grep -q '</svg>' "$svg" || complain "the picture is not complete"
  fi
}

expect 0 --seconds 2 --svg "$svg"
expect_report
[ "$(figures 'timed out')" -gt 0 ] || complain "report: nothing timed out"
expect_output "^Picture: $svg\$"
expect_picture

expect_line 2 '--seconds.*"soon".*0.1 .. 86,400' --seconds soon
expect_line 2 '--seconds.*"nan"' --seconds nan
expect_line 2 '--in-flight.*"0".*1 .. 1,000,000' --in-flight 0
expect_line 2 '--tick-ms.*"1.5"' --tick-ms 1.5
expect_line 2 '--connections' --connections
expect_line 2 '--never-answer.*"101%".*100%' --never-answer 101%

# A timeout that no request reaches, even on a stalled machine.
patient="--never-answer 0 --timeout-ms 20000"

latencies=$folder/latencies.txt
printf '100\n2500.5\r\n\n 1e4' >"$latencies"
expect 0 --seconds 0.3 $patient --latencies "$latencies" --svg "$svg"
expect_report
expect_picture
expect_line 2 '--latencies.*--latency-sigma' --latencies "$latencies" --latency-sigma 1
expect 0 --seconds 0.3 --in-flight 1 --connections 2 $patient --tick-ms 1 --svg "$svg" # an empty histogram
expect_picture
expect_line 2 "$folder/missing.txt" --latencies "$folder/missing.txt"
expect_line 2 "$folder" --latencies "$folder"
printf '100\n20 ms\n' >"$latencies"
expect_line 2 'latencies.txt.*latency 3.*"ms"' --latencies "$latencies"
: >"$latencies"
expect_line 2 'latencies.txt' --latencies "$latencies"

# The program does not start if the picture cannot be written.
for target in "$folder/no/such/folder.svg" "$folder" ""; do
  expect_line 2 "--svg \"$target\": cannot write: " --seconds 60 --svg "$target"
  [ ! -s "$out" ] || complain "ran, but cannot write its picture"
done
# If writing the picture fails at the end, the program still prints the report and keeps the picture of the run before.
if [ -e /dev/full ]; then
  expect_line 1 '/dev/full.*cannot write' --seconds 0.2 $patient --svg /dev/full
  expect_report
fi
cp "$svg" "$folder/before.svg"
(trap '' XFSZ && ulimit -f 8 && exec "$program" --seconds 0.2 $patient --svg "$svg") >"$out" 2>"$err"
status=$?
expect_status 1 "no room for the picture"
expect_one_line 'picture.svg.*cannot write' "no room for the picture"
expect_report
expect_picture
cmp "$svg" "$folder/before.svg" || complain "a failed write replaced the picture of the run before"

ln -s "$svg" "$folder/link.svg"
rm "$svg"
expect 0 --seconds 0.2 $patient --svg "$folder/link.svg"
[ -L "$folder/link.svg" ] || complain "a link was replaced by the picture"
expect_picture

# --- Metrics -------------------------------------------------------------------------------------------------------

for port in soon 0 65536 -1 80x ""; do
  expect_line 2 "--metrics: \"$port\".*1 .. 65535" --metrics "$port"
done

# get URL: prints the response.
if command -v curl >/dev/null; then
  get() { curl --silent --fail --noproxy '*' --max-time 20 "$1"; }
elif command -v python3 >/dev/null; then
  get() {
    python3 -c 'import sys, urllib.request as web
sys.stdout.write(web.build_opener(web.ProxyHandler({})).open(sys.argv[1], timeout=20).read().decode())' "$1" 2>/dev/null
  }
else
  get() { false; }
fi

metrics=$folder/metrics
metric() { sed -n "s/^$1 //p" "$metrics"; }

expect_metric() {
  awk -v value="$(metric "$1")" "BEGIN { exit !(value != \"\" && value $2) }" || complain "metric $1 is not $2"
}

expect_served() {
  url=http://127.0.0.1:$port/metrics
  tries=0
  until get "$url" >"$metrics" && grep -q '^hwt_timeouts_expired_total [1-9]' "$metrics"; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] && kill -0 "$pid" || { complain "nothing expired at $url"; return; }
    sleep 0.2
  done
  for name in hwt_timeouts_scheduled_total hwt_timeouts_cancelled_total hwt_wakeups_total hwt_ticks_total hwt_busy_seconds_total; do
    expect_metric $name '> 0'
  done
  for name in hwt_timeouts_rejected_total hwt_timeouts_unprocessed_total hwt_task_errors_total; do
    expect_metric $name '== 0'
  done
  for name in hwt_timeouts_pending hwt_backlog hwt_slow_tasks_total hwt_task_running_seconds; do
    expect_metric $name '>= 0'
  done
  expect_metric hwt_lateness_seconds_count '> 0'
  expect_metric 'hwt_lateness_seconds_bucket{le="+Inf"}' "== $(metric hwt_lateness_seconds_count)"
  before=$(metric hwt_timeouts_scheduled_total)
  sleep 0.2
  get "$url" >"$metrics" || complain "served only once"
  expect_metric hwt_timeouts_scheduled_total "> $before"
  ! command -v promtool >/dev/null || promtool check metrics <"$metrics" >"$err" 2>&1 || complain "promtool"
  expect_line 2 "--metrics: cannot listen on 127.0.0.1:$port: " --metrics "$port"
}

# Tries again if another program takes the free port.
serve() {
  for attempt in 1 2 3; do
    port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    "$program" --seconds 100 --metrics "$port" --svg "$svg" >"$folder/served" 2>"$err" &
    pid=$!
    sleep 1
    ! kill -0 "$pid" 2>/dev/null || return 0
    wait "$pid"
    grep -q 'cannot listen' "$err" || break
  done
  return 1
}

if ! command -v python3 >/dev/null; then
  echo "metrics not checked: no python3"
elif serve; then
  expect_served
  kill -s INT "$pid"
  wait "$pid"
  status=$?
  expect_status 0 "--metrics"
elif grep -q 'built without prometheus-cpp' "$err"; then
  expect_one_line --metrics "--metrics"
  echo "metrics not checked: no prometheus-cpp"
else
  complain "--metrics $port"
fi

expect_manners "--seconds 0.2 $patient --svg $svg" "--seconds 86400 --svg $svg"
expect_report
expect_picture

finish
