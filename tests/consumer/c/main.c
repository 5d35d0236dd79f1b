/* Schedules two timeouts, cancels one and waits for the other. */

#include <stdio.h>

#include "hashed_wheel_timer/c.h"

static void fail(void* argument) { *(int*)argument = 1; }
static void count(void* argument) { ++*(int*)argument; }

int main(void) {
  hwt_options options;
  hwt_timer* timer;
  hwt_id cancelled;
  int64_t give_up;
  int failed = 0;
  int ran = 0;

  hwt_options_init(&options);
  options.kind = HWT_LOOP;
  options.tick_ns = 1000000;
  if (hwt_create(&options, &timer) != 0) {
    puts(hwt_last_error());
    return 1;
  }
  cancelled = hwt_add(timer, 1000000, fail, &failed);
  if (hwt_add(timer, 20000000, count, &ran) == 0) {
    puts(hwt_last_error());
    return 1;
  }
  if (hwt_cancel(timer, cancelled) != 0) failed = 1;
  give_up = hwt_now(timer) + 60000000000;
  while (ran == 0 && hwt_now(timer) < give_up) hwt_advance(timer, hwt_now(timer));
  if (ran != 1 || hwt_pending(timer) != 0) failed = 1;
  hwt_destroy(timer);
  puts(failed ? "wrong" : "good");
  return failed;
}
