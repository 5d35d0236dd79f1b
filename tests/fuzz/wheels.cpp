// Both wheels of internal/wheel against a multimap: inserted, moved and removed anywhere in time, walked tick by tick,
// with visitors that take, stop and put off.

#include <algorithm>
#include <map>
#include <vector>

#include "hashed_wheel_timer/internal/wheel/hashed_wheel.h"
#include "hashed_wheel_timer/internal/wheel/hierarchical_wheel.h"
#include "tests/fuzz/targets.h"
#include "tests/support/checked_wheel.h"

namespace hwt::fuzz {

using internal::Checked;
using internal::HashedWheel;
using internal::HierarchicalWheel;
using internal::kNever;
using internal::Tick;
using internal::Verdict;
using internal::WheelItem;

namespace {

constexpr std::size_t kItems = 128;  // more than a chunk holds

struct alignas(internal::kCacheLine) Item : WheelItem {
  Tick due = 0;
  std::uint64_t order = 0;  // rises with each insertion
  bool moved = false;       // then it has no place in the order
  bool in_wheel = false;
};

Tick sum(Tick a, Tick b) { return b > 0 && a > kNever - b ? kNever : a + b; }

template <class W>
class Walk {
 public:
  Walk(Input& input, W& wheel) : input_(input), wheel_(wheel), items_(kItems) {}

  void run() {
    while (!input_.ended()) {
      step();
      require_equal(wheel_.size(), static_cast<Tick>(by_due_.size()), "the wheel counts what is in it");
      const Tick first = by_due_.empty() ? kNever : by_due_.begin()->first;
      require(wheel_.next_due() <= first, "nothing is due before next_due()");
      require(wheel_.next_due() >= std::min(floor_, first), "next_due() is not in the past");
    }
    require(wheel_.consistent(), "the wheel is consistent");
    std::size_t cleared = 0;
    wheel_.clear([&](WheelItem& item) {
      require(std::exchange(static_cast<Item&>(item).in_wheel, false), "clear() takes out each item once");
      ++cleared;
    });
    require(cleared == by_due_.size(), "clear() takes out all");
    require(wheel_.size() == 0 && wheel_.next_due() == kNever && wheel_.consistent(), "clear() leaves nothing");
  }

 private:
  Item& any_item() { return items_[input_.below(kItems)]; }

  Tick any_tick() {
    const Tick turn = wheel_.revolution();
    switch (input_.below(8)) {
      case 0:
        return floor_ - input_.up_to(99);
      case 1:
        return sum(any_item().due, input_.up_to(2) - 1);
      case 2:
        return kNever - input_.up_to(99);
      case 3:
        return input_.number<Tick>();
      case 4: {  // about where a level, or a number of revolutions, begins
        Tick edge = 1;
        for (auto level = input_.below(12); level > 0 && edge < kNever / turn; --level) edge *= turn;
        return sum(floor_ - floor_ % edge, sum(edge, input_.up_to(4) - 2));
      }
      case 5:
        return sum(floor_, turn * 64 * input_.up_to(3) + input_.up_to(turn));
      default:
        return sum(floor_, input_.up_to(255));
    }
  }

  void add(Item& item, Tick tick) {
    item.due = std::clamp(tick, floor_, kNever - 1);
    by_due_.emplace(item.due, &item);
  }
  void forget(Item& item) {
    const auto [first, end] = by_due_.equal_range(item.due);
    by_due_.erase(std::find_if(first, end, [&](const auto& entry) { return entry.second == &item; }));
  }

  void insert(Item& item, Tick tick) {
    if (item.in_wheel) return;
    require(wheel_.insert(item, tick), "there is memory");
    item.order = ++order_;
    item.moved = false;
    item.in_wheel = true;
    add(item, tick);
  }
  void remove(Item& item) {
    if (!item.in_wheel) return;
    wheel_.remove(item);
    item.in_wheel = false;
    forget(item);
  }
  void move(Item& item, Tick tick) {
    if (!item.in_wheel) return;
    require(wheel_.reserve(), "there is memory");
    wheel_.move(item, tick);
    item.moved = true;
    forget(item);
    add(item, tick);
  }

  void step() {
    switch (input_.below(8)) {
      case 0:
        remove(any_item());
        break;
      case 1: {
        Item& item = any_item();
        move(item, any_tick());
        break;
      }
      case 2: {
        std::size_t first = input_.below(kItems);
        const Tick tick = any_tick();
        for (auto many = input_.below(kItems); many > 0; --many) insert(items_[first++ % kItems], tick);
        break;
      }
      case 3:
        if (const Tick next = std::min(wheel_.next_due(), kNever - 1); next >= floor_) {
          const Tick to = floor_ + std::min(next - floor_, input_.one_in(2) ? input_.up_to(300) : kNever);
          wheel_.skip_to(to);
          floor_ = to;
        }
        break;
      case 4:
      case 5:
        expire();
        break;
      default: {
        Item& item = any_item();
        insert(item, any_tick());
        break;
      }
    }
  }

  /// Walks the next tick at which something may be due, or one before it.
  void expire() {
    const Tick next = std::min(wheel_.next_due(), kNever - 1);
    const Tick tick = input_.one_in(4) ? std::min(next, sum(floor_, input_.up_to(300))) : next;
    if (tick < floor_) return;
    const bool takes_all =
        tick == kNever - 1 || !input_.one_in(2);  // after the last one there is nothing to put off to
    bool stopped = false;
    std::uint64_t last = 0;
    wheel_.expire(tick, [&](WheelItem& visited) {
      Item& item = static_cast<Item&>(visited);
      require(item.in_wheel && !stopped, "visited only what is in the wheel, and nothing after a stop");
      require(item.due >= tick, "visited in time");
      if (!takes_all && input_.one_in(8)) {
        stopped = true;
        return Verdict::stop();
      }
      if (item.due > tick && input_.one_in(4)) return put_off(item, sum(item.due, input_.up_to(200)));
      if (item.due > tick) return Verdict::later(item.due);
      if (!item.moved) {
        require(item.order > std::exchange(last, item.order), "those of a tick are visited in the order of insertion");
      }
      if (!takes_all && input_.one_in(4)) return put_off(item, std::max(sum(tick, 1), any_tick()));
      forget(item);
      item.in_wheel = false;
      item.position = nullptr;
      return Verdict::taken();
    });
    floor_ = stopped ? tick : std::min(tick + 1, kNever - 1);
    require(stopped || by_due_.empty() || by_due_.begin()->first > tick, "nothing is left over");
  }

  Verdict put_off(Item& item, Tick tick) {
    forget(item);
    item.due = std::min(tick, kNever - 1);
    item.moved = true;
    by_due_.emplace(item.due, &item);
    return Verdict::later(tick);
  }

  Input& input_;
  W& wheel_;
  std::vector<Item> items_;
  std::multimap<Tick, Item*> by_due_;
  Tick floor_ = 0;
  std::uint64_t order_ = 0;
};

}  // namespace

void wheels(Input& input) {
  if (input.one_in(2)) {
    Checked<HashedWheel> wheel(std::int64_t{1} << input.below(7));
    Walk(input, wheel).run();
  } else {
    const std::int64_t slots = std::int64_t{1} << (1 + input.below(6));
    Checked<HierarchicalWheel> wheel(slots, static_cast<std::uint32_t>(1 + input.below(60)));
    Walk(input, wheel).run();
  }
}

}  // namespace hwt::fuzz
