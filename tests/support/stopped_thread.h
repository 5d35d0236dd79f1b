#pragma once

#include "tests/support/allocation_hook.h"
#include "tests/support/test_support.h"

namespace hwt::test {

/// A thread that stops inside an allocation in the midst of a call, as if it were preempted there.
class StoppedThread {
 public:
  /// The thread calls prepare(), and then call(), in which it stops in allocation number `at`, counted from 0. Returns
  /// when it has stopped or ended.
  template <class Prepare, class Call>
  StoppedThread(int at, Prepare prepare, Call call) {
    thread_ = std::jthread([this, at, prepare, call]() mutable {
      prepare();
      int allocations = 0;
      const AllocationObserver observer([&](std::size_t) {
        if (allocations++ != at) return;
        in_the_midst_ = true;
        arrived_.count_down();
        EXPECT_TRUE(go_on_.wait());
      });
      call();
      arrived_.count_down();
    });
    EXPECT_TRUE(arrived_.wait());
  }
  ~StoppedThread() { go_on_.count_down(); }
  StoppedThread(const StoppedThread&) = delete;
  StoppedThread& operator=(const StoppedThread&) = delete;

  /// Returns whether the thread has stopped. If not, call() had fewer allocations, and has ended.
  bool in_the_midst() const { return in_the_midst_; }
  /// Lets the thread go on, and waits for its end.
  void go_on() {
    go_on_.count_down();
    thread_.join();
  }

 private:
  Latch arrived_;
  Latch go_on_;
  std::atomic<bool> in_the_midst_ = false;
  std::jthread thread_;
};

}  // namespace hwt::test
