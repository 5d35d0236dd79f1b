#pragma once

#include "tests/oracle/executor.h"
#include "tests/oracle/lane.h"

namespace hwt::oracle {

enum class Kind { Hashed, Hierarchical, Loop, Manual };
inline constexpr const char* kKinds[] = {"HashedWheelTimer", "HierarchicalWheelTimer", "LoopTimer", "ManualTimer"};

enum class End {
  Stop,     // amid the traffic
  Drain,    // after the round has waited until nothing is pending
  Destroy,  // with timeouts pending
};

/// The choice of a seed for a round.
struct Setup {
  static constexpr std::size_t kLanes = 3;

  Kind kind;
  std::chrono::microseconds tick;
  std::int64_t ticks_per_wheel;
  Executor::Kind executor;
  End end;
  bool relatives;       // KeyedTimer, RepeatedTimer, schedules and scopes
  bool own_run;         // a thread of the round calls run(), which is to have ended before the destructor
  bool comes_and_goes;  // short-lived threads
  bool exact_clock;
  bool trace_origins;
  bool preempts;
  Traffic traffic;
  std::size_t records = 0;  // of each lane; in a soak always as many, because its memory is compared
  std::int64_t limit = -1;
  bool has_room = true;                 // the limit refuses nothing
  std::chrono::milliseconds churns{0};  // for how long at least

  Setup(perf::Random& random, bool soaks)
      : kind(static_cast<Kind>(random.next() % 4)),
        tick(kind == Kind::Hashed ? 1'000 * random.between(1, 2) : random.between(50, 2'000)),
        ticks_per_wheel(std::int64_t{8} << random.between(0, 6)),
        executor(static_cast<Executor::Kind>(random.next() % 2 == 0 ? 0 : random.between(0, 4))),
        end(static_cast<End>(random.between(0, kind == Kind::Manual ? 1 : 2))),
        relatives(random.next() % 3 == 0),
        own_run(end != End::Destroy && random.next() % 4 == 0),
        comes_and_goes(random.next() % 2 == 0),
        exact_clock(random.next() % 4 == 0),
        trace_origins(random.next() % 8 == 0),
        preempts(random.next() % 4 != 0) {
    traffic.ring = std::size_t{16} << random.between(0, 9);
    traffic.steps = random.next() % 4 == 0 ? static_cast<int>(random.between(100, 2'000)) : 40'000;
    records = soaks ? 40'000 : static_cast<std::size_t>(traffic.steps);
    traffic.orders = runs_on_worker();
    traffic.shortages = random.next() % 2 == 0;
    traffic.plans = random.next() % 4 != 0;
    traffic.elsewhere = random.next() % 2 == 0;
    churns = std::chrono::milliseconds(!soaks                   ? random.next() % 4 == 0 ? random.between(5, 300) : 0
                                       : random.next() % 4 == 0 ? random.between(5, 50)
                                                                : random.between(500, 3'000));
    switch (random.next() % 4) {
      case 0:
        limit = static_cast<std::int64_t>(traffic.ring * kLanes) / random.between(1, 4);
        has_room = false;
        break;
      case 1:  // as many as the lanes have at most
        limit = static_cast<std::int64_t>(traffic.ring * kLanes);
        relatives = comes_and_goes = traffic.plans = false;
        churns = {};
        has_room = !may_drop();
        break;
      default:
        break;
    }
  }

  bool may_drop() const { return executor == Executor::Kind::Dropping; }
  bool runs_on_worker() const { return executor != Executor::Kind::OwnThread && !may_drop(); }
  bool is_threaded() const { return kind == Kind::Hashed || kind == Kind::Hierarchical; }
  /// Each timeout's end is known, by its record.
  bool is_exact() const { return end != End::Destroy && !may_drop() && !relatives; }
};

}  // namespace hwt::oracle
