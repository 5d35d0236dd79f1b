#!/bin/sh
# usage: check.sh PROGRAM
. "$(dirname "$0")/../checks.sh"
svg=$folder/picture.svg
ends_without_memory=no # gRPC aborts

expect_report() {
  expect_figure 0 lost doubled early 'left behind' unprocessed
  for name in calls attempts; do [ "$(figures "$name")" -gt 0 ] || complain "report: $name is 0"; done
}

expect_some() {
  for name in "$@"; do figures "$name" | grep -q '^[1-9]' || complain "report: $name is 0"; done
}

# Every outcome of a call. Many calls are slow, so that a busy machine has some of each too.
expect 0 --seconds 3 --slow 20% --refuse 5% --svg "$svg"
expect_report
expect_some answered 'over the limit' retried hedged 'won by the hedge' 'stopped at the limit' 'stopped by the client'
expect_output "^Picture: $svg\$"
grep -q 'Get with hedging: a second attempt after' "$svg" || complain "the picture does not show the hedging"
# The edges of the bars are multiples of the tick of 1 ms.
edge='([0-9]+ ms|[0-9.]+ s)'
bars=$(grep -o '<title>[^<]* [.][.] [^<]*: [0-9,]* answered</title>' "$svg")
[ -n "$bars" ] || complain "the picture has no bars"
! printf '%s\n' "$bars" | grep -vE "<title>$edge \.\. $edge: " || complain "a bar of the picture begins or ends between two ticks"
! command -v xmllint >/dev/null || xmllint --noout "$svg" 2>"$err" || complain "the picture is not well-formed"

# All work takes longer than its limit.
expect 0 --seconds 0.3 --latency-median-ms 60000 --get-limit-ms 20 --put-limit-ms 30 --refuse 0 --svg "$svg"
expect_report
expect_figure 0 answered failed
expect_figure "$(figures calls)" 'over the limit'

# All calls are refused and retried, so no Get is hedged. The deadline is too far away to end the retries.
expect 0 --seconds 0.3 --refuse 100% --deadline-ms 60000 --svg "$svg"
expect_report
expect_figure 0 answered hedged 'stopped at the limit'
expect_figure "$(figures calls)" failed
[ "$(figures retried)" -eq "$(($(figures calls) * 4))" ] || complain "report: not four retries for each call"

# One call at a time, in a run too short to measure the latency.
expect 0 --seconds 0.1 --in-flight 1 --svg "$svg"
expect_report
expect_figure 0 hedged

expect_line 2 '--seconds.*"soon".*0.1 .. 86,400' --seconds soon
expect_line 2 '--in-flight.*"0".*1 .. 10,000' --in-flight 0
expect_line 2 '--deadline-ms.*"1.5"' --deadline-ms 1.5
expect_line 2 '--get-limit-ms.*"1000".*less than the deadline, 1 s' --get-limit-ms 1000
expect_line 2 '--put-limit-ms.*"200".*less than the deadline, 200 ms' --put-limit-ms 200 --deadline-ms 200
expect_line 2 '--hedge-at.*"101%".*100%' --hedge-at 101%
expect_line 2 '--slow.*"nan"' --slow nan
expect_line 2 '--svg ".*no/such/folder.svg": cannot write: ' --seconds 60 --svg "$folder/no/such/folder.svg"
[ ! -s "$out" ] || complain "ran, but cannot write its picture"

expect_manners "--seconds 0.2 --svg $svg" "--seconds 86400 --svg $svg"
expect_report

finish
