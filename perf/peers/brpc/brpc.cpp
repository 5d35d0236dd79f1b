// The workloads on bthread::TimerThread of brpc.

#include <bthread/timer_thread.h>
#include <butil/time.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <latch>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "perf/workloads/runner.h"

namespace hwt::perf {
namespace {

/// A TimerThread with its default options for the workloads. As in brpc, the argument of a task is an id and no
/// pointer. So a timeout needs no memory of its own.
class BrpcTimer {
 public:
  static constexpr bool kOneLoop = false;
  using TaskId = bthread::TimerThread::TaskId;
  using Slots = std::vector<TaskId>;

  explicit BrpcTimer(std::chrono::microseconds /*tick*/) {
    const int error = timer_->start(nullptr);
    if (error != 0) throw std::system_error(error, std::generic_category(), "TimerThread::start");
  }
  BrpcTimer(const BrpcTimer&) = delete;
  BrpcTimer& operator=(const BrpcTimer&) = delete;
  ~BrpcTimer() = default;

  Slots make_slots(std::size_t size) const { return Slots(size, bthread::TimerThread::INVALID_TASK_ID); }

  template <class Receiver, class Delay>
  void schedule(TaskId& slot, Receiver& receiver, std::uint64_t id, Delay delay) {
    std::atomic<Receiver*>& known = receiver_of<Receiver>();
    if (known.load(std::memory_order_relaxed) != &receiver) known.store(&receiver, std::memory_order_relaxed);
    const auto micros = std::chrono::ceil<std::chrono::microseconds>(delay);
    slot = timer_->schedule([](void* argument) { expire<Receiver>(reinterpret_cast<std::uint64_t>(argument)); },
                            reinterpret_cast<void*>(id), butil::microseconds_from_now(micros.count()));
  }

  bool cancel(TaskId& slot) { return slot != bthread::TimerThread::INVALID_TASK_ID && timer_->unschedule(slot) == 0; }

  template <class Receiver, class Delay>
  void put_off(TaskId& slot, Receiver& receiver, std::uint64_t id, Delay delay) {
    if (cancel(slot)) schedule(slot, receiver, id, delay);
  }

  template <class Receiver, class Delay>
  void launch(Receiver& receiver, std::uint64_t id, Delay delay) {
    TaskId dropped{};
    schedule(dropped, receiver, id, delay);
  }

  /// Moves the scheduled timeouts into the heap. The thread empties the buckets one by one, and then runs the due
  /// tasks. So the first of two tasks may run in a round that has emptied some buckets before their last timeouts came.
  void take_over() {
    for (int pass = 0; pass < 2; ++pass) {
      Passed passed;
      launch(passed, 0, std::chrono::microseconds(0));
      passed.latch.wait();
    }
  }

  /// Destroys the TimerThread. Does not call its stop_and_join(), because its destructor would join again.
  void stop() { timer_.reset(); }

 private:
  struct Passed {
    void expired(std::uint64_t) noexcept { latch.count_down(); }
    std::latch latch{1};
  };

  /// A workload has one receiver of each type.
  template <class Receiver>
  static std::atomic<Receiver*>& receiver_of() {
    static constinit std::atomic<Receiver*> receiver{nullptr};
    return receiver;
  }

  template <class Receiver>
  static void expire(std::uint64_t id) {
    receiver_of<Receiver>().load(std::memory_order_relaxed)->expired(id);
  }

  std::optional<bthread::TimerThread> timer_{std::in_place};
};

}  // namespace
}  // namespace hwt::perf

int main(int argc, char** argv) {
  using namespace hwt::perf;
  return run({{.name = "brpc",
               .version = BRPC_VERSION,
               .note = "by the wall clock, in whole microseconds",
               .measure = &measure<BrpcTimer>}},
             argc, argv);
}
