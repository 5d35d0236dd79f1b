#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "hashed_wheel_timer/hashed_wheel_timer.h"
#include "hashed_wheel_timer/internal/memory/node_pool.h"
#include "hashed_wheel_timer/internal/wheel/hashed_wheel.h"
#include "hashed_wheel_timer/passive_wheel.h"
#include "perf/guard/measured.h"
#include "perf/micro/threadless_timer.h"
#include "perf/random.h"

namespace hwt::perf {
namespace {

using namespace std::chrono_literals;
using internal::HashedWheel;
using internal::Node;
using internal::NodePool;
using internal::Tick;
using internal::WheelItem;

// The first operations, which allocate memory, are a hundredth of the counted ones.
constexpr std::size_t kBatch = 1000;
constexpr int kRounds = 100;

constexpr std::size_t kRun = 250;  // nodes that are returned together

struct alignas(internal::kCacheLine) Item : WheelItem {};

using Timeouts = std::array<Timeout, kBatch>;
using Delays = std::array<std::chrono::milliseconds, kBatch>;
using Items = std::array<Item, kBatch>;
using Nodes = std::array<Node*, kBatch>;
using Timers = std::array<std::unique_ptr<ThreadlessTimer>, kBatch>;
using Ids = std::array<TimeoutId, kBatch>;

Delays random_delays() {
  Delays delays;
  Random random(1);
  for (auto& delay : delays) delay = std::chrono::milliseconds(random.between(1, 100));
  return delays;
}
const Delays delays = random_delays();

std::int64_t ran = 0;

struct PassiveNode : WheelNode {
  void on_timeout() override { ++ran; }
};
using PassiveNodes = std::array<PassiveNode, kBatch>;

void schedule(Timer& timer, Timeouts& timeouts) {
  for (std::size_t i = 0; i < kBatch; ++i) {
    timeouts[i] = timer.new_timeout([i] { ran += static_cast<std::int64_t>(i); }, delays[i]);
  }
}
void cancel(Timeouts& timeouts) {
  for (Timeout& timeout : timeouts) timeout.cancel();
}
void drop(Timeouts& timeouts) {
  for (Timeout& timeout : timeouts) timeout = {};
}
void pair(Timer& timer) {
  for (std::size_t i = 0; i < kBatch; ++i) {
    timer.new_timeout([i] { ran += static_cast<std::int64_t>(i); }, 5s).cancel();
  }
}
void pair_at(Timer& timer, std::chrono::steady_clock::time_point deadline) {
  for (std::size_t i = 0; i < kBatch; ++i) {
    timer.new_timeout([i] { ran += static_cast<std::int64_t>(i); }, deadline).cancel();
  }
}

// The counted functions: never inlined, with names that no compiler changes.
extern "C" {

[[gnu::noinline]] void counted_new_timeout(Timer& timer, Timeouts& timeouts) { schedule(timer, timeouts); }
[[gnu::noinline]] void counted_cancel_before_transfer(Timeouts& timeouts) { cancel(timeouts); }
[[gnu::noinline]] void counted_cancel_before_transfer_elsewhere(Timeouts& timeouts) { cancel(timeouts); }
[[gnu::noinline]] void counted_cancel_after_transfer(Timeouts& timeouts) { cancel(timeouts); }
[[gnu::noinline]] void counted_drop_handle(Timeouts& timeouts) { drop(timeouts); }
[[gnu::noinline]] void counted_drop_last_handle(Timeouts& timeouts) { drop(timeouts); }

[[gnu::noinline]] void counted_reschedule_later(Timeouts& timeouts) {
  for (Timeout& timeout : timeouts) timeout.reschedule(1h);
}

[[gnu::noinline]] void counted_transfer(ThreadlessTimer& timer) { timer.worker().transfer(); }
[[gnu::noinline]] void counted_pass_over_cancelled(ThreadlessTimer& timer) { timer.worker().transfer(); }
[[gnu::noinline]] void counted_collect_cancelled(ThreadlessTimer& timer) { timer.worker().transfer(); }
[[gnu::noinline]] void counted_expire(ThreadlessTimer& timer) { timer.expire_all(); }
[[gnu::noinline]] void counted_pair(Timer& timer) { pair(timer); }
[[gnu::noinline]] void counted_pair_by_deadline(Timer& timer, std::chrono::steady_clock::time_point deadline) {
  pair_at(timer, deadline);
}
// Both as counted_pair_by_deadline(), but with a callable that fills its node, and with a std::function as hosts pass.
[[gnu::noinline]] void counted_pair_of_32_bytes(Timer& timer, std::chrono::steady_clock::time_point deadline) {
  for (std::size_t i = 0; i < kBatch; ++i) {
    timer.new_timeout([i, j = i, k = i, l = i] { ran += static_cast<std::int64_t>(i + j + k + l); }, deadline).cancel();
  }
}
[[gnu::noinline]] void counted_pair_of_function(Timer& timer, std::chrono::steady_clock::time_point deadline) {
  for (std::size_t i = 0; i < kBatch; ++i) {
    std::function<void()> function([i] { ran += static_cast<std::int64_t>(i); });
    timer.new_timeout(std::move(function), deadline).cancel();
  }
}
[[gnu::noinline]] void counted_pair_by_id(Timer& timer) {
  for (std::size_t i = 0; i < kBatch; ++i) {
    timer.cancel(timer.add([i] { ran += static_cast<std::int64_t>(i); }, 5s));
  }
}
// The request path with 1,000 in flight: cancels the oldest timeout and schedules a new one.
[[gnu::noinline]] void counted_ring(Timer& timer, Timeouts& timeouts) {
  for (std::size_t i = 0; i < kBatch; ++i) {
    timeouts[i].cancel();
    timeouts[i] = timer.new_timeout([i] { ran += static_cast<std::int64_t>(i); }, 5s);
  }
}
[[gnu::noinline]] void counted_ring_by_deadline(Timer& timer, Timeouts& timeouts,
                                                std::chrono::steady_clock::time_point deadline) {
  for (std::size_t i = 0; i < kBatch; ++i) {
    timeouts[i].cancel();
    timeouts[i] = timer.new_timeout([i] { ran += static_cast<std::int64_t>(i); }, deadline);
  }
}
[[gnu::noinline]] void counted_ring_by_id(Timer& timer, Ids& ids) {
  for (std::size_t i = 0; i < kBatch; ++i) {
    timer.cancel(ids[i]);
    ids[i] = timer.add([i] { ran += static_cast<std::int64_t>(i); }, 5s);
  }
}
[[gnu::noinline]] void counted_ring_by_id_and_deadline(Timer& timer, Ids& ids,
                                                       std::chrono::steady_clock::time_point deadline) {
  for (std::size_t i = 0; i < kBatch; ++i) {
    timer.cancel(ids[i]);
    ids[i] = timer.add([i] { ran += static_cast<std::int64_t>(i); }, deadline);
  }
}
[[gnu::noinline]] void counted_pair_with_1000_timers(Timers& timers) {
  for (const auto& timer : timers) timer->new_timeout([] { ++ran; }, 5s).cancel();
}
[[gnu::noinline]] void counted_pair_with_limit(Timer& timer) { pair(timer); }

[[gnu::noinline]] void counted_pair_of_owning_task(Timer& timer) {
  struct Owning {
    explicit Owning(std::int64_t* owned) noexcept : owned_(owned) {}
    Owning(Owning&& other) noexcept : owned_(std::exchange(other.owned_, nullptr)) {}
    ~Owning() {
      if (owned_ != nullptr) ++*owned_;
    }
    void operator()() const { --*owned_; }
    std::int64_t* owned_;
  };
  for (std::size_t i = 0; i < kBatch; ++i) timer.new_timeout(Owning(&ran), 5s).cancel();
}

[[gnu::noinline]] void counted_wheel_insert(HashedWheel& wheel, Items& items, Tick now) {
  for (std::size_t i = 0; i < kBatch; ++i) wheel.insert(items[i], now + delays[i].count());
}

[[gnu::noinline]] void counted_wheel_remove(HashedWheel& wheel, Items& items) {
  for (Item& item : items) wheel.remove(item);
}

[[gnu::noinline]] void counted_wheel_expire(HashedWheel& wheel) {
  for (Tick due = wheel.next_due(); due != internal::kNever; due = wheel.next_due()) {
    wheel.expire(due, [](WheelItem&) { return internal::Verdict::taken(); });
  }
}

[[gnu::noinline]] void counted_passive_schedule(PassiveWheel& wheel, PassiveNodes& nodes) {
  for (std::size_t i = 0; i < kBatch; ++i) wheel.schedule(nodes[i], 10 * delays[i]);
}

[[gnu::noinline]] void counted_passive_pair(PassiveWheel& wheel, PassiveNodes& nodes) {
  for (std::size_t i = 0; i < kBatch; ++i) {
    nodes[i].cancel();
    wheel.schedule(nodes[i], 10 * delays[i]);
  }
}

// A thousand ticks in which all nodes run. Most have moved to the lowest level before.
[[gnu::noinline]] void counted_passive_expire(PassiveWheel& wheel, std::chrono::steady_clock::time_point& now) {
  for (int tick = 0; tick < 1000; ++tick) wheel.advance(now += 1ms);
}

[[gnu::noinline]] void counted_pool_take(NodePool& pool, Nodes& nodes) {
  for (Node*& node : nodes) node = pool.take();
}

[[gnu::noinline]] void counted_pool_give_back(NodePool& pool, Nodes& nodes) {
  for (std::size_t i = 0; i < kBatch; i += kRun) {
    for (std::size_t j = i; j < i + kRun; ++j) nodes[j]->next() = j + 1 < i + kRun ? nodes[j + 1] : nullptr;
    pool.give_back(nodes[i], static_cast<std::int64_t>(kRun));
  }
}

}  // extern "C"

class Counted {
 public:
  ~Counted() { end_.set_value(); }  // lets the workers start, because the destructors of the timers join them

  std::map<std::string, std::int64_t> run() {
    for (int round = 0; round < kRounds; ++round) {
      timer();
      pairs();
      rings();
      wheel();
      pool();
    }
    return std::move(times_);
  }

 private:
  template <class... Arguments, class... Given>
  void count(const char* name, void (*function)(Arguments...), Given&&... given) {
    function(std::forward<Given>(given)...);
    times_[name] += static_cast<std::int64_t>(kBatch);
  }

  void new_timeouts() {
    timer_.set_time(timer_.time() + std::chrono::nanoseconds(200ms).count());
    count("new_timeout", counted_new_timeout, timer_, timeouts_);
  }

  void timer() {
    new_timeouts();
    count("cancel_before_transfer", counted_cancel_before_transfer, timeouts_);
    count("drop_handle", counted_drop_handle, timeouts_);
    count("pass_over_cancelled", counted_pass_over_cancelled, timer_);

    new_timeouts();
    // By a thread that did not schedule them.
    std::thread([this] {
      count("cancel_before_transfer_elsewhere", counted_cancel_before_transfer_elsewhere, timeouts_);
    }).join();
    drop(timeouts_);
    timer_.worker().transfer();

    new_timeouts();
    count("transfer", counted_transfer, timer_);
    count("cancel_after_transfer", counted_cancel_after_transfer, timeouts_);
    drop(timeouts_);
    count("collect_cancelled", counted_collect_cancelled, timer_);

    new_timeouts();
    drop(timeouts_);
    timer_.worker().transfer();
    count("expire", counted_expire, timer_);

    new_timeouts();
    timer_.worker().transfer();
    timer_.expire_all();
    count("drop_last_handle", counted_drop_last_handle, timeouts_);

    schedule(rescheduling_, timeouts_);
    rescheduling_.worker().transfer();
    count("reschedule_later", counted_reschedule_later, timeouts_);
    cancel(timeouts_);
    drop(timeouts_);
    rescheduling_.worker().transfer();
  }

  void pairs() {
    count("pair", counted_pair, *unattended_);
    count("pair_by_deadline", counted_pair_by_deadline, *unattended_, unattended_->now() + 5s);
    count("pair_of_32_bytes", counted_pair_of_32_bytes, *unattended_, unattended_->now() + 5s);
    count("pair_of_function", counted_pair_of_function, *unattended_, unattended_->now() + 5s);
    count("pair_by_id", counted_pair_by_id, *unattended_);
    count("pair_of_owning_task", counted_pair_of_owning_task, timer_);
    timer_.worker().transfer();
    count("pair_with_limit", counted_pair_with_limit, limited_);
    limited_.worker().transfer();
    count("pair_with_1000_timers", counted_pair_with_1000_timers, timers_);
    for (const auto& timer : timers_) timer->worker().transfer();
  }

  /// Each ring has its own timer and stays full.
  void rings() {
    count("ring", counted_ring, *ring_timers_[0], rings_[0]);
    count("ring_by_deadline", counted_ring_by_deadline, *ring_timers_[1], rings_[1], ring_timers_[1]->now() + 5s);
    count("ring_by_id", counted_ring_by_id, *ring_timers_[2], id_rings_[0]);
    count("ring_by_id_and_deadline", counted_ring_by_id_and_deadline, *ring_timers_[3], id_rings_[1],
          ring_timers_[3]->now() + 5s);
  }

  static Timers thousand_timers() {
    Timers timers;
    for (auto& timer : timers) {
      timer = std::make_unique<ThreadlessTimer>();
      timer->new_timeout([] {}, 5s).cancel();  // allocates the thread's memory
    }
    return timers;
  }

  void wheel() {
    Tick& now = wheel_time_;
    count("wheel_insert", counted_wheel_insert, wheel_, items_, now);
    count("wheel_remove", counted_wheel_remove, wheel_, items_);
    count("wheel_insert", counted_wheel_insert, wheel_, items_, now);
    count("wheel_expire", counted_wheel_expire, wheel_);
    now += 200;
    count("passive_schedule", counted_passive_schedule, passive_, passive_nodes_);
    count("passive_pair", counted_passive_pair, passive_, passive_nodes_);
    count("passive_expire", counted_passive_expire, passive_, passive_now_);
  }

  void pool() {
    count("pool_take", counted_pool_take, pool_, nodes_);
    count("pool_give_back", counted_pool_give_back, pool_, nodes_);
  }

  // A whole timer. Its worker starts after the count.
  std::unique_ptr<HashedWheelTimer> unattended_timer() const {
    auto timer = std::make_unique<HashedWheelTimer>(
        Options{.tick_duration = 1ms, .thread_factory = [end = ended_](std::function<void()> work) {
                  return std::thread([end, work = std::move(work)] {
                    end.wait();
                    work();
                  });
                }});
    timer->start();
    return timer;
  }

  std::map<std::string, std::int64_t> times_;
  Timeouts timeouts_;
  ThreadlessTimer timer_;
  ThreadlessTimer rescheduling_;
  ThreadlessTimer limited_{{.tick_duration = 1ms, .max_pending_timeouts = 1'000'000}};
  Timers timers_ = thousand_timers();
  std::promise<void> end_;
  std::shared_future<void> ended_ = end_.get_future().share();
  std::unique_ptr<HashedWheelTimer> unattended_ = unattended_timer();
  std::array<std::unique_ptr<HashedWheelTimer>, 4> ring_timers_{unattended_timer(), unattended_timer(),
                                                                unattended_timer(), unattended_timer()};
  std::array<Timeouts, 2> rings_;
  std::array<Ids, 2> id_rings_{};
  HashedWheel wheel_{512};
  Tick wheel_time_ = 0;
  Items items_;
  PassiveWheel passive_{1ms, {}};
  PassiveNodes passive_nodes_;
  std::chrono::steady_clock::time_point passive_now_;
  NodePool pool_{timer_.core().depot()};
  Nodes nodes_;
};

}  // namespace

std::map<std::string, std::int64_t> run_counted() { return std::make_unique<Counted>()->run(); }

}  // namespace hwt::perf
