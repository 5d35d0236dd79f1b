#pragma once

#include <deque>
#include <iterator>
#include <map>

#include "tests/support/checked_wheel.h"

namespace hwt::internal {

/// An item of a wheel that a WheelModel, or a test itself, turns.
struct alignas(kCacheLine) ModelItem : WheelItem {
  Tick due = 0;             // as the wheel has to see it: never before its floor at the time
  Tick came_at = -1;        // the tick at which it was taken
  std::size_t moves = 0;    // how often it has come down since it got its tick
  std::uint64_t order = 0;  // rises along the items of a tick; 0: it may come anywhere among them
  std::uint64_t walk = 0;   // the number of the last walk that visited it
  std::multimap<Tick, ModelItem*>::iterator place;
  bool expected = false;  // the model has it
  bool in_wheel() const { return position != nullptr; }
};

/// A wheel beside a multimap of the items that it must contain. Checks each call, and calls `kBroken` with each promise
/// that the wheel breaks and the first tick that has not expired. Checks the wheel's invariants, which is slow, in
/// clear(), and once in `kEach` other calls unless that is 0.
template <class W, void (*kBroken)(const char* promise, Tick floor), int kEach = 1>
class WheelModel {
 public:
  using Item = ModelItem;

  static constexpr bool kHashed = std::derived_from<W, HashedWheel>;
  static constexpr bool kHierarchical = std::derived_from<W, HierarchicalWheel>;

  // The first tick of which next_due() does not tell. In a hashed wheel the latest tick is like any other.
  static constexpr Tick kFirstNever = kHashed ? kNever : kNever - 1;

  explicit WheelModel(std::int64_t size) : wheel_(size) {}
  WheelModel(std::int64_t slots, std::uint32_t crowd)
    requires kHierarchical
      : wheel_(slots, crowd) {}

  W& wheel() { return wheel_; }
  Tick next_due() const { return wheel_.next_due(); }
  Tick floor() const { return floor_; }
  std::size_t size() const { return by_due_.size(); }
  Tick first_due() const { return by_due_.empty() ? kNever : by_due_.begin()->first; }
  /// Whether the visitor has stopped the last walk.
  bool stopped() const { return stopped_; }
  /// Returns an item by its place in the order of ticks.
  Item& at(std::int64_t index) { return *std::next(by_due_.begin(), static_cast<std::ptrdiff_t>(index))->second; }

  /// Inserts a new item, which the model owns.
  Item& insert(Tick tick) { return insert(items_.emplace_back(), tick); }
  Item& insert(Item& item, Tick tick) {
    const Tick before = next_due();
    require(wheel_.insert(item, tick), "insert() has memory");
    item.order = ++last_order_;
    add(item, clamp(tick));
    require(!kHashed || next_due() == std::min(before, item.due), "next_due() is exact after an insertion");
    check();
    return item;
  }

  void remove(Item& item) {
    wheel_.remove(item);
    require(!item.in_wheel(), "remove() takes the item out");
    forget(item);
    check();
  }

  void move(Item& item, Tick tick) {
    const Tick before = next_due();
    require(wheel_.reserve(), "reserve() has memory");
    wheel_.move(item, tick);
    change(item, clamp(tick), tags());
    require(!kHashed || item.due >= before || next_due() == item.due, "next_due() is exact after a move to earlier");
    check();
  }

  void skip_to(Tick tick) {
    const Tick due = next_due();
    wheel_.skip_to(tick);
    if (tick > floor_) stopped_ = false;
    floor_ = std::max(floor_, tick);
    require(next_due() == due, "skip_to() moves no item");
    check();
  }

  /// Expires and closes `tick`, which is between floor() and next_due(). A stopped walk leaves it open. `answer` is
  /// asked about each item that the wheel visits. Returns the taken items, in order.
  template <class Answer>
  std::vector<Item*> expire(Tick tick, const Answer& answer) {
    std::vector<Item*> taken = walk(tick, answer);
    if (!stopped_) skip_to(next_tick(tick));
    return taken;
  }
  /// Expires `tick`, and leaves it open.
  template <class Answer>
  std::vector<Item*> walk(Tick tick, const Answer& answer) {
    require(floor_ <= tick && tick <= next_due(), "a test leaves out no tick");
    std::vector<Item*> taken;
    std::size_t stayed = 0;
    tick_ = tick;
    ++walk_;
    last_visited_ = 0;
    looks_at_all_ = stopped_ = false;
    wheel_.expire(tick, [&](WheelItem& visited) {
      Item& item = static_cast<Item&>(visited);
      require(!stopped_, "a stopped walk visits no more items");
      require(item.expected, "a walk visits only items of the wheel");
      if (stopped_ || !item.expected) return Verdict::stop();
      require(item.due >= tick, "a walk visits no item after its tick");
      check_order(item, !taken.empty());
      const Verdict verdict = answer(item);
      if (verdict.is_stop()) {
        stopped_ = true;
      } else if (verdict.is_taken()) {
        forget(item);
        item.position = nullptr;
        item.came_at = tick;
        taken.push_back(&item);
      } else if (const Tick due = std::clamp(verdict.tick(), next_tick(tick), kNever - 1); due != item.due) {
        change(item, due, wheel_.revolution());
      } else if (due == tick) {
        ++stayed;  // the latest tick has no next one
      } else {
        require(++item.moves < levels_ || !kHierarchical, "an item comes down once for each level");
      }
      return verdict;
    });
    floor_ = tick;
    if (stopped_) {
      require(next_due() == tick, "after a stop the tick is due again");
    } else {
      require(by_due_.count(tick) == stayed, "a walk leaves no due item");
      require(next_due() > tick || tick == kNever - 1, "after a walk a later tick is due");
    }
    check();
    return taken;
  }
  std::vector<Item*> expire(Tick tick) {
    return expire(tick, [this](const Item& item) { return usual(item); });
  }
  /// The answer of most visitors during expire(): takes a due item, and leaves another one until it is due.
  Verdict usual(const Item& item) const { return item.due > tick_ ? Verdict::later(item.due) : Verdict::taken(); }

  /// Expires until nothing is due any more, and then empties the wheel.
  void drain() {
    while (next_due() != kNever && !broken_) expire(next_due());
    clear();
  }

  void clear() {
    require(wheel_.consistent(), "the wheel is consistent");
    wheel_.clear([&](WheelItem& visited) {
      Item& item = static_cast<Item&>(visited);
      require(item.expected && !item.in_wheel(), "clear() takes out each item once");
      forget(item);
    });
    require(by_due_.empty(), "clear() takes out all items");
    stopped_ = false;
    check();
    require(wheel_.consistent(), "an empty wheel is consistent");
  }

 private:
  void require(bool kept, const char* promise) {
    if (kept) [[likely]]
      return;
    broken_ = true;
    kBroken(promise, floor_);
  }

  void check() {
    require(wheel_.size() == static_cast<std::int64_t>(by_due_.size()), "the wheel counts its items");
    require(next_due() <= first_due() || first_due() >= kFirstNever, "nothing is due before next_due()");
    require(next_due() >= floor_, "next_due() is not in the past");
    require((next_due() == kNever) == (first_due() >= kFirstNever), "a wheel is due unless its items never are");
    if constexpr (kEach != 0) require(++checks_ % kEach != 0 || wheel_.consistent(), "the wheel is consistent");
  }

  void check_order(Item& item, bool any_taken) {
    if constexpr (kHashed) {
      // The wheel visits the items with the tag of its tick. If none of them leaves the bucket, it may begin again, and
      // look at all items of the bucket.
      if ((item.due - tick_) % tags() != 0 || item.order <= last_visited_) {
        require(!any_taken, "a walk visits the items of a bucket in order, and those of other tags never or last");
        if (!std::exchange(looks_at_all_, true)) last_visited_ = 0;
      }
    } else if constexpr (kHierarchical) {
      require(std::exchange(item.walk, walk_) != walk_, "a walk visits an item once");
    }
    if (!kHashed && (item.due != tick_ || item.order == 0)) return;
    require(item.order > last_visited_, "a walk visits items in the order of insertion");
    last_visited_ = item.order;
  }

  /// Returns after how many ticks a tag repeats, so that a hashed wheel cannot tell two items of a bucket apart.
  Tick tags() const { return wheel_.revolution() * static_cast<Tick>(Revolutions::kTagMask + 1); }
  Tick clamp(Tick tick) const { return std::clamp(tick, floor_, kNever - 1); }

  void add(Item& item, Tick due) {
    item.due = due;
    item.moves = 0;
    item.expected = true;
    item.place = by_due_.emplace(due, &item);
  }
  void forget(Item& item) {
    if (std::exchange(item.expected, false)) by_due_.erase(item.place);
  }
  /// Gives an item of the wheel another tick. In a hashed wheel its entry stays where it is if the ticks are a multiple
  /// of `same` apart, and goes behind all others if not.
  void change(Item& item, Tick due, Tick same) {
    if (!kHashed) {
      item.order = 0;
    } else if ((due - item.due) % same != 0) {
      item.order = ++last_order_;
    }
    forget(item);
    add(item, due);
  }

  std::deque<Item> items_;
  W wheel_;
  const std::size_t levels_ = kHierarchical ? SlotLevels(wheel_.revolution()).levels() : 0;
  std::multimap<Tick, Item*> by_due_;
  Tick floor_ = 0;
  std::uint64_t last_order_ = 0;
  int checks_ = 0;
  bool broken_ = false, stopped_ = false;
  // Of the last walk.
  Tick tick_ = 0;
  std::uint64_t walk_ = 0;
  std::uint64_t last_visited_ = 0;  // the `order` of the item that it visited last
  bool looks_at_all_ = false;
};

}  // namespace hwt::internal
