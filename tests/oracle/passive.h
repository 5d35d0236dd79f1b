#pragma once

// A PassiveWheel and its model, on one thread with a clock of its own.

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "hashed_wheel_timer/errors.h"
#include "hashed_wheel_timer/passive_wheel.h"
#include "tests/oracle/ledger.h"

namespace hwt::oracle {

class Passive {
 public:
  explicit Passive(std::uint64_t seed) : random_(seed), ledger_("PassiveWheel", seed), nodes_(kNodes) {
    Record::began = steady_clock::now();
    for (Node& node : nodes_) node.passive = this;
  }

  /// Returns the number of operations.
  std::int64_t go() {
    constexpr int kSteps = 20'000;
    for (int i = 0; i < kSteps; ++i) {
      step(any());
      ledger_.expect(wheel_.size() == pending_, "size() is the number of the scheduled nodes");
    }
    return kSteps;
  }

 private:
  static constexpr std::size_t kNodes = 500;

  struct Node : WheelNode {
    void on_timeout() override { passive->run(*this); }

    Passive* passive = nullptr;
    Record record;
    bool pending = false;
    bool postponed = false;  // it runs in its tick, but in no order
    std::int64_t due = 0;    // a grid point: the number of its tick
    std::uint64_t number = 0;
  };

  Node& any() { return nodes_[random_.next() % kNodes]; }
  std::int64_t tick_of(TimePoint time) const { return (time - start_) / tick_; }
  std::int64_t end_of_tick(TimePoint deadline) const { return tick_of(deadline + tick_ - 1ns); }

  void step(Node& node) {
    switch (random_.next() % 16) {
      case 0:
      case 1:
      case 2:
        return cancel(node);
      case 3:
      case 4:
      case 5:
        return postpone(node);
      case 6:
        if (running_) return expect_no_advance();
        return advance();
      case 7:
        if (random_.next() % 256 == 0) return cancel_all();
        return check_wakeup();
      default:
        return schedule(node);
    }
  }

  std::pair<When, TimePoint> when() {
    constexpr std::int64_t kMost[] = {1'000, 1'000'000, 100'000'000, 10'000'000'000'000};
    const nanoseconds delay(random_.between(-1'000, kMost[random_.next() % 4]));
    const TimePoint deadline = now_ + delay;
    if (random_.next() % 2 == 0) return {deadline, deadline};
    return {delay, std::max(deadline, now_)};
  }

  void schedule(Node& node) {
    const auto [when, deadline] = this->when();
    node.record.note(Act::Schedules);
    wheel_.schedule(node, when);
    ledger_.expect(node.scheduled() && node.deadline() == deadline, "deadline() is what was asked for", &node.record);
    pending_ += node.pending ? 0 : 1;
    node.pending = true;
    node.postponed = false;
    node.number = ++last_number_;
    node.record.not_before = deadline.time_since_epoch().count();
    node.due = std::max(tick_of(now_) + 1, end_of_tick(deadline));
  }

  void postpone(Node& node) {
    const auto [when, deadline] = this->when();
    node.record.note(Act::MovesLater);
    wheel_.postpone(node, when);
    if (!node.pending || deadline.time_since_epoch().count() <= node.record.not_before) return;
    node.record.note(Act::Moved);
    node.postponed = true;
    node.record.not_before = deadline.time_since_epoch().count();
    node.due = std::max(node.due, end_of_tick(deadline));
  }

  void cancel(Node& node) {
    node.record.note(Act::Cancels);
    ledger_.expect(node.cancel() == node.pending, "cancel() is true if, and only if, the node is scheduled",
                   &node.record);
    end(node);
  }
  void cancel_all() {
    ledger_.expect(wheel_.cancel_all() == pending_, "cancel_all() takes all nodes");
    for (Node& node : nodes_) end(node);
  }
  void end(Node& node) {
    pending_ -= node.pending ? 1 : 0;
    node.pending = false;
  }

  void advance() {
    constexpr std::int64_t kMost[] = {1'000, 1'000'000, 50'000'000, 1'000'000'000'000};
    now_ += nanoseconds(random_.between(0, kMost[random_.next() % 4]));
    const std::size_t most = random_.next() % 4 == 0 ? random_.next() % 10 : std::size_t{1'000'000};
    running_ = true;
    last_ = {};
    ran_ = 0;
    const std::size_t ran = wheel_.advance(now_, most);
    running_ = false;
    ledger_.expect(ran == ran_ && ran <= most, "advance() returns the number of nodes that have run");
    left_over_ = most != 1'000'000;
    if (left_over_) return;
    for (Node& node : nodes_) {
      ledger_.expect(!node.pending || node.due > tick_of(now_), "no node that is due is left", &node.record);
    }
  }

  void run(Node& node) {
    node.record.note(Act::Starts);
    ++ran_;
    ledger_.expect(node.pending, "a node runs once, and not after cancel()", &node.record);
    ledger_.expect(now_.time_since_epoch().count() >= node.record.not_before, "a node is never early", &node.record);
    ledger_.expect(node.due <= tick_of(now_), "a node runs at the end of its tick", &node.record);
    if (!left_over_ && !node.postponed) {
      const std::pair<std::int64_t, std::uint64_t> order{node.due, node.number};
      ledger_.expect(last_ < order, "nodes run in the order of their ticks and of their scheduling", &node.record);
      last_ = order;
    }
    end(node);
    for (auto more = random_.next() % 3; more != 0; --more) step(any());
  }

  void expect_no_advance() {
    try {
      wheel_.advance(now_);
      ledger_.broken("advance() is refused inside on_timeout()");
    } catch (const IllegalState&) {
    }
  }

  void check_wakeup() {
    if (running_) return;
    const std::optional<TimePoint> wakeup = wheel_.next_wakeup();
    ledger_.expect(wakeup.has_value() == (pending_ != 0), "next_wakeup() is none if, and only if, the wheel is empty");
    if (!wakeup) return;
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    for (const Node& node : nodes_) first = node.pending ? std::min(first, node.due) : first;
    ledger_.expect(*wakeup <= std::max(now_, start_ + tick_ * first), "next_wakeup() is not too late");
  }

  perf::Random random_;
  Ledger ledger_;
  const nanoseconds tick_{random_.next() % 2 == 0 ? 1'000'000 : random_.between(1, 2'000'000)};
  const TimePoint start_{nanoseconds(random_.between(0, 1'000'000'000))};
  TimePoint now_ = start_;
  PassiveWheel wheel_{tick_, start_};
  std::vector<Node> nodes_;
  std::size_t pending_ = 0;
  std::uint64_t last_number_ = 0;
  bool running_ = false;
  bool left_over_ = false;  // by an advance() with a limit
  std::size_t ran_ = 0;
  std::pair<std::int64_t, std::uint64_t> last_;
};

}  // namespace hwt::oracle
