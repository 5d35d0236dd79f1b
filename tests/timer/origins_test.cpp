// Options::trace_origins: which line or name has scheduled the pending timeouts, for every timer.

#include <map>

#include "hashed_wheel_timer/coroutine.h"
#include "hashed_wheel_timer/internal/memory/origin_table.h"
#include "hashed_wheel_timer/keyed_timer.h"
#include "hashed_wheel_timer/origin.h"
#include "hashed_wheel_timer/repeated_timer.h"
#include "hashed_wheel_timer/schedule.h"
#include "hashed_wheel_timer/stop_after.h"
#include "hashed_wheel_timer/timeout_scope.h"
#include "tests/coroutine/coroutine_support.h"

namespace hwt::test {
namespace {

using Time = steady_clock::time_point;

// By how much TracedTimeout::scheduled may be early.
constexpr std::chrono::nanoseconds kRounding{4096};

const Options kTraced{.trace_origins = true};

template <class T>
class OriginsOf : public ::testing::Test {
 protected:
  const std::unique_ptr<T> timer = make_timer<T>(kTraced);

  /// Returns the number of pending timeouts of each origin. Expects that no origin comes twice.
  std::map<std::string, std::int64_t> counts() {
    std::map<std::string, std::int64_t> counts;
    for (const PendingOrigin& found : timer->pending_by_origin()) {
      EXPECT_TRUE(counts.emplace(found.origin.describe(), found.count).second) << found.origin.describe();
    }
    return counts;
  }
  std::int64_t count(const std::string& origin) { return counts()[origin]; }

  /// Returns the only pending timeout.
  TracedTimeout only() {
    std::vector<TracedTimeout> found;
    timer->for_each_pending([&](const TracedTimeout& timeout) { found.push_back(timeout); });
    EXPECT_EQ(found.size(), 1U);
    return found.empty() ? TracedTimeout{} : found.front();
  }
};
TYPED_TEST_SUITE(OriginsOf, AllTimers, TimerNames);

TEST(OriginValue, IsALineOrANameAndIsComparedByItsTextAndItsLine) {
  constexpr Origin name{"fetch user"};
  EXPECT_EQ(name.describe(), "fetch user");
  EXPECT_EQ(name.line(), 0U);
  constexpr Origin line("rpc.cpp", 12);
  EXPECT_EQ(line.describe(), "rpc.cpp:12");
  EXPECT_STREQ(line.text(), "rpc.cpp");
  EXPECT_EQ(Origin().describe(), "unknown");
  const std::string copy = "rpc.cpp";
  EXPECT_EQ(Origin("rpc.cpp", 1), Origin(copy.c_str(), 1));
  EXPECT_NE(Origin("rpc.cpp", 1), Origin("rpc.cpp", 2));
  EXPECT_NE(Origin("rpc.cpp", 1), Origin("web.cpp", 1));
#if defined(__cpp_lib_source_location)
  const auto here = std::source_location::current();
  EXPECT_EQ(Origin(here), Origin(here.file_name(), here.line()));
#endif
}

TEST(OriginValue, OfANullNameIsUnknown) {
  const Origin file(nullptr, 7);
  EXPECT_STREQ(file.text(), "unknown");
  EXPECT_EQ(file.describe(), "unknown:7");
  EXPECT_FALSE(file == Origin("rpc.cpp", 7));
  constexpr const char* kNone = nullptr;
  EXPECT_EQ(Origin(kNone).describe(), "unknown");
  ManualTimer timer(Options{.tick_duration = 1ms, .trace_origins = true});
  timer.add([] {}, 1s, Origin(nullptr, 7));
  ASSERT_EQ(timer.pending_by_origin().size(), 1U);
  EXPECT_EQ(timer.pending_by_origin()[0].origin, file);
}

TYPED_TEST(OriginsOf, AreTheLinesOfTheCallersOfEachFunctionThatSchedules) {
  Timer& timer = *this->timer;
  const auto shared = std::make_shared<RecordingTask>();
  const Time deadline = timer.now() + kFar;
  TimeoutScope scope(timer);
  std::set<std::string> expected;
  const auto expect = [&](int line) { expected.insert(std::string(__FILE__) + ':' + std::to_string(line)); };
  // clang-format off
  timer.new_timeout([] {}, kFar); expect(__LINE__);
  timer.new_timeout(shared, kFar); expect(__LINE__);
  timer.new_timeout([] {}, deadline); expect(__LINE__);
  timer.new_timeout(shared, deadline); expect(__LINE__);
  (void)timer.try_new_timeout([] {}, kFar); expect(__LINE__);
  (void)timer.try_new_timeout(shared, kFar); expect(__LINE__);
  (void)timer.try_new_timeout([] {}, deadline); expect(__LINE__);
  (void)timer.try_new_timeout(shared, deadline); expect(__LINE__);
  timer.add([] {}, kFar); expect(__LINE__);
  timer.add([] {}, deadline); expect(__LINE__);
  (void)timer.try_add([] {}, kFar); expect(__LINE__);
  (void)timer.try_add([] {}, deadline); expect(__LINE__);
  timer.add([] {}, kFar, {}); expect(__LINE__);
  timer.add([] {}, kFar, Leeway(1s)); expect(__LINE__);
  scope.add([] {}, kFar); expect(__LINE__);
  scope.add([] {}, deadline); expect(__LINE__);
  // clang-format on
  std::set<std::string> found;
  for (const auto& [origin, count] : this->counts()) {
    found.insert(origin);
    EXPECT_EQ(count, 1) << origin;
  }
  EXPECT_EQ(found, expected);
}

TimeoutId expire_later(Timer& timer, Terms terms = {{}, __builtin_FILE(), __builtin_LINE()}) {
  return timer.add([] {}, kFar, terms);
}

TYPED_TEST(OriginsOf, AreTheLinesOfTheCallersOfAFunctionThatPassesTermsOn) {
  expire_later(*this->timer);
  const int line = __LINE__ - 1;
  EXPECT_EQ(this->count(std::string(__FILE__) + ':' + std::to_string(line)), 1);
  expire_later(*this->timer, Origin{"a name"});
  EXPECT_EQ(this->count("a name"), 1);
}

TYPED_TEST(OriginsOf, GoTogetherWithALeeway) {
  Timer& timer = *this->timer;
  timer.new_timeout([] {}, 0s);  // starts the timer, from which ticks count
  const Time deadline = timer.now() + kFar + 123ns;
  const Time with_leeway = timer.new_timeout([] {}, deadline, Leeway(1s)).deadline();
  EXPECT_NE(with_leeway, deadline);
  const Timeout both = timer.new_timeout([] {}, deadline, {Leeway(1s), Origin{"both"}});
  EXPECT_EQ(both.deadline(), with_leeway);
  EXPECT_EQ(this->count("both"), 1);
}

Detached sleep_for_long(Timer& timer) { co_await sleep_for(timer, kFar); }

TYPED_TEST(OriginsOf, AreThoseOfThePartsOfTheLibraryByName) {
  Timer& timer = *this->timer;
  RepeatedTimer repeated("test", kFar, timer, {.on_trigger = [] {}});
  repeated.start();
  const std::shared_ptr<ScheduledTask> scheduled = schedule(timer, Schedule::once(kFar), [] {});
  const StopAfter stop_after(timer, kFar);
  KeyedTimer<int, int> keyed(timer, [](int, int&) {});
  (void)keyed.set(7, 7, kFar);
  sleep_for_long(timer);
  const std::map<std::string, std::int64_t> expected{{"hwt::RepeatedTimer", 1},
                                                     {"hwt::schedule", 1},
                                                     {"hwt::StopAfter", 1},
                                                     {"hwt::KeyedTimer", 1},
                                                     {"hwt::sleep_for", 1}};
  EXPECT_EQ(this->counts(), expected);
  timer.stop();  // and resumes the coroutine
}

TYPED_TEST(OriginsOf, AreTheNamesThatAreGivenWithTheLargestCountFirst) {
  TimeoutScope scope(*this->timer);
  for (int i = 0; i != 5; ++i) this->timer->new_timeout([] {}, kFar, Origin{"five"});
  for (int i = 0; i != 9; ++i) this->timer->add([] {}, kFar, Origin{"nine"});
  scope.add([] {}, kFar, Origin{"one"});
  std::vector<std::pair<std::string, std::int64_t>> reported;
  for (const auto& found : this->timer->pending_by_origin())
    reported.emplace_back(found.origin.describe(), found.count);
  EXPECT_EQ(reported, (std::vector<std::pair<std::string, std::int64_t>>{{"nine", 9}, {"five", 5}, {"one", 1}}));
}

TYPED_TEST(OriginsOf, AreReportedWithTheOldestAndTheNextDeadline) {
  Timer& timer = *this->timer;
  const Time before = timer.now();
  timer.new_timeout([] {}, before + 3 * kFar, Origin{"line"});
  const Time between = timer.now();
  if constexpr (std::is_same_v<TypeParam, ManualTimer>) this->timer->advance(1s);
  timer.new_timeout([] {}, before + 2 * kFar, Origin{"line"});
  timer.new_timeout([] {}, before + kFar, Origin{"other"});
  const std::vector<PendingOrigin> origins = timer.pending_by_origin();
  EXPECT_EQ(origins.size(), 2U);
  for (const PendingOrigin& found : origins) {
    const bool other = found.origin.describe() == "other";
    EXPECT_EQ(found.next_deadline, before + (other ? 1 : 2) * kFar);
    EXPECT_GE(found.oldest, (other ? between : before) - kRounding);
    EXPECT_LE(found.oldest, (other ? timer.now() : between) + kClockIsAhead);
  }
}

TYPED_TEST(OriginsOf, StayWithATimeoutThatIsMoved) {
  Timer& timer = *this->timer;
  const Time before = timer.now();
  const TimeoutId id = timer.add([] {}, kFar, Origin{"moved"});
  const Time after = timer.now();
  settle(*this->timer);
  const Time deadline = before + 5 * kFar;
  EXPECT_TRUE(timer.reschedule(id, deadline));
  const TracedTimeout found = this->only();
  EXPECT_EQ(found.origin, Origin{"moved"});
  EXPECT_EQ(found.deadline, deadline);
  EXPECT_EQ(found.id, id);
  EXPECT_GE(found.scheduled, before - kRounding);
  EXPECT_LE(found.scheduled, after + kClockIsAhead);
}

TYPED_TEST(OriginsOf, OfATimeoutThatHasEndedAreNotReported) {
  Timer& timer = *this->timer;
  const auto shared = std::make_shared<RecordingTask>();
  const std::string owned(100, 'x');
  for (const bool in_wheel : {false, true}) {
    std::vector<Timeout> handles;
    handles.push_back(timer.new_timeout([] {}, kFar, Origin{"line"}));
    handles.push_back(timer.new_timeout([owned] {}, kFar, Origin{"line"}));
    handles.push_back(timer.new_timeout(shared, kFar, Origin{"line"}));
    const TimeoutId id = timer.add([] {}, kFar, Origin{"line"});
    if (in_wheel) settle(*this->timer);
    EXPECT_EQ(this->count("line"), 4);
    for (Timeout& handle : handles) EXPECT_TRUE(handle.cancel());
    EXPECT_EQ(this->count("line"), 1);
    EXPECT_EQ(timer.cancel(id), CancelResult::Cancelled);
    EXPECT_EQ(this->count("line"), 0);
  }
  const Timeout expired = timer.new_timeout([] {}, 0s, Origin{"line"});
  EXPECT_TRUE(passes_until(*this->timer, [&] { return expired.is_expired(); }));
  EXPECT_EQ(this->count("line"), 0);
  timer.new_timeout([] {}, kFar, Origin{"line"});
  const std::vector<Timeout> stopped = timer.stop();
  EXPECT_EQ(stopped.size(), 1U);
  EXPECT_TRUE(timer.pending_by_origin().empty());
}

/// Copying the task into the timer takes the last place under the limit. So the timer refuses a task that it has built.
TYPED_TEST(OriginsOf, OfARefusedTimeoutAreNotReportedNotEvenWhileItsTaskIsDestroyed) {
  struct Filling {
    Filling(Timer& of, std::size_t& most) : timer(&of), shown(&most) {}
    Filling(const Filling& other) : timer(other.timer), shown(other.shown) {
      if (timer->pending_timeouts() == 0) timer->add([] {}, 1h, Origin{"accepted"});
    }
    ~Filling() {
      std::size_t found = 0;
      timer->for_each_pending([&](const TracedTimeout&) { ++found; });
      *shown = std::max(*shown, found);
    }
    void operator()() const {}
    Timer* timer;
    std::size_t* shown;
  };
  const auto limited = make_timer<TypeParam>({.max_pending_timeouts = 1, .trace_origins = true});
  std::size_t shown = 0;
  {
    const Filling filling(*limited, shown);
    EXPECT_FALSE(limited->try_add(filling, 1h, Origin{"refused"}));
  }
  EXPECT_EQ(shown, 1U);
  EXPECT_THROW(limited->new_timeout([] {}, kFar, Origin{"refused"}), RejectedExecution);
  EXPECT_FALSE(limited->try_add([] {}, kFar, Origin{"refused"}));
  EXPECT_EQ(limited->pending_timeouts(), 1);
  EXPECT_EQ(limited->stats().rejected, 3);
  const std::vector<PendingOrigin> found = limited->pending_by_origin();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].origin, Origin{"accepted"});
  limited->stop();
  EXPECT_THROW(limited->new_timeout([] {}, kFar, Origin{"refused"}), IllegalState);
  EXPECT_FALSE(limited->try_new_timeout([] {}, kFar, Origin{"refused"}));
}

TYPED_TEST(OriginsOf, AreOfThisTimerOnlyAndOnlyIfItTracesThem) {
  const auto other = make_timer<TypeParam>(kTraced);
  const auto plain = make_timer<TypeParam>();
  this->timer->new_timeout([] {}, kFar, Origin{"here"});
  other->new_timeout([] {}, kFar, Origin{"there"});
  plain->new_timeout([] {}, kFar, Origin{"here"});
  EXPECT_EQ(this->count("here"), 1);
  EXPECT_EQ(this->count("there"), 0);
  EXPECT_TRUE(plain->pending_by_origin().empty());
  plain->for_each_pending([](const TracedTimeout&) { ADD_FAILURE(); });
}

TYPED_TEST(OriginsOf, AreVisitedOnceForEachTimeoutAndTheVisitorMayCancelIt) {
  Timer& timer = *this->timer;
  std::set<TimeoutId> ids;
  for (int i = 0; i != 5'000; ++i) ids.insert(timer.add([] {}, kFar, Origin{"leak"}));
  const Timeout kept = timer.new_timeout([] {}, kFar, Origin{"kept"});
  std::size_t without_id = 0;
  timer.for_each_pending([&](const TracedTimeout& timeout) {
    if (!timeout.id) {
      ++without_id;
      return;
    }
    EXPECT_EQ(ids.erase(timeout.id), 1U);
    EXPECT_EQ(timer.cancel(timeout.id), CancelResult::Cancelled);
  });
  EXPECT_EQ(without_id, 1U) << "a timeout with a handle has none";
  EXPECT_TRUE(ids.empty());
  EXPECT_EQ(timer.pending_timeouts(), 1);
  EXPECT_THROW(timer.for_each_pending([](const TracedTimeout&) { throw std::logic_error(""); }), std::logic_error);
}

using internal::OriginTable;
using internal::Trace;

TEST(TraceValue, HasTheTimeAndTheNumber) {
  for (const std::int64_t time :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{123'456'789'012'345},
        (std::numeric_limits<std::int64_t>::max)(), (std::numeric_limits<std::int64_t>::min)()}) {
    for (const std::uint32_t number : {0U, 1U, 4095U}) {
      const Trace trace(Trace(time, number).value());
      EXPECT_EQ(trace.number(), number);
      const std::int64_t scheduled = std::chrono::nanoseconds(trace.scheduled().time_since_epoch()).count();
      EXPECT_LT(static_cast<std::uint64_t>(time) - static_cast<std::uint64_t>(scheduled), Trace::kOrigins);
    }
  }
}

TEST(OriginNumbers, AreTheSameInAllThreads) {
  constexpr std::uint32_t kLines = 500;
  std::array<std::vector<std::uint32_t>, 4> numbers;
  run_together(4, [&](int thread) {
    for (std::uint32_t line = 1; line <= kLines; ++line) {
      numbers[static_cast<std::size_t>(thread)].push_back(OriginTable::number_of(Origin("same.cpp", line)));
    }
  });
  for (const auto& of_thread : numbers) EXPECT_EQ(of_thread, numbers[0]);
  for (std::uint32_t line = 1; line <= kLines; ++line) {
    EXPECT_EQ(OriginTable::at(numbers[0][line - 1]), Origin("same.cpp", line));
  }
}

// The last test of this process: it uses up the numbers.
TEST(OriginNumbers, BeyondTheLimitAreOfAnUnknownOrigin) {
  std::set<std::uint32_t> numbers;
  for (std::uint32_t line = 1; line <= 10'000; ++line) {
    const std::uint32_t number = OriginTable::number_of(Origin("many.cpp", line));
    if (number == 0) continue;
    EXPECT_LT(number, Trace::kOrigins);
    EXPECT_EQ(OriginTable::at(number), Origin("many.cpp", line));
    EXPECT_TRUE(numbers.insert(number).second);
  }
  EXPECT_GT(numbers.size(), 3'000U);
  HashedWheelTimer timer{{.trace_origins = true}};
  for (std::uint32_t line = 1; line <= 10'000; ++line) timer.add([] {}, kFar, Origin("more.cpp", line));
  std::int64_t count = 0;
  for (const PendingOrigin& found : timer.pending_by_origin()) count += found.count;
  EXPECT_EQ(count, 10'000);
  EXPECT_EQ(timer.pending_by_origin()[0].origin.describe(), "unknown");
}

}  // namespace
}  // namespace hwt::test
