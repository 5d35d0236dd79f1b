#pragma once

// A wheel of internal/wheel against a multimap: items inserted, moved and removed anywhere in time, and walked tick by
// tick, with visitors that take, stop and put off. The fuzz target `wheels` and every_wheel_test.cpp run it.

#include "tests/fuzz/input.h"
#include "tests/support/ages.h"
#include "tests/support/wheel_model.h"

namespace hwt::fuzz {

using internal::kNever;
using internal::Tick;
using internal::Verdict;
using Item = internal::ModelItem;

inline constexpr std::size_t kItems = 128;            // more than a chunk holds
inline constexpr std::uint64_t kNoCrowd = 1'000'000;  // more than there are items, so that no slot is crowded

inline void broken(const char* promise, Tick) { require(false, promise); }

struct Walked {
  std::size_t expired = 0, stops = 0;
  std::size_t latest = 0;  // walks of the latest tick that comes
};

/// With a patient input, the wheel may have thousands of slots, or stand just before a carry. It is then checked after
/// every 16th step, and may have so few items that a late item cannot hide behind another one.
template <class W>
class WheelWalk {
 public:
  /// `digit_bits`: of the size of the wheel.
  template <class... Args>
  explicit WheelWalk(Input& input, unsigned digit_bits, Args... crowd)
      : input_(input),
        digit_bits_(digit_bits),
        items_(input.patient() ? input.one_of({std::size_t{1}, std::size_t{3}, kItems, 3 * kItems}) : kItems),
        model_(std::int64_t{1} << digit_bits, crowd...) {}

  Walked run() {
    if (input_.patient() && input_.one_in(2)) grow_old();
    for (int steps = 0; !input_.ended(); ++steps) {
      step();
      if (input_.patient() && steps % 16 == 0) require(model_.wheel().consistent(), "the wheel is consistent");
    }
    model_.clear();
    return walked_;
  }

 private:
  static Tick sum(Tick a, Tick b) { return b > 0 && a > kNever - b ? kNever : a + b; }

  Item& any_item() { return items_[input_.below(items_.size())]; }

  /// Returns this tick, or one of its neighbours.
  Tick near(Tick tick) { return sum(tick, input_.up_to(2) - 1); }

  /// Here and elsewhere each expression draws once from the input. Otherwise compilers might order the draws
  /// differently.
  Tick any_tick() {
    const Tick turn = model_.wheel().revolution();
    const Tick floor = model_.floor();
    switch (input_.below(8)) {
      case 0:
        return floor - input_.up_to(99);
      case 1:
        return near(any_item().due);
      case 2:
        return kNever - input_.up_to(99);
      case 3:
        return input_.number<Tick>();
      case 4: {  // near the next multiple of a power of `turn`, where a level begins
        Tick edge = 1;
        for (auto level = input_.below(12); level > 0 && edge < kNever / turn; --level) edge *= turn;
        return sum(floor - floor % edge, sum(edge, input_.up_to(4) - 2));
      }
      case 5: {  // near multiples of 64 revolutions, after which the tags of a hashed wheel repeat
        const Tick revolutions = 64 * input_.up_to(3);
        return sum(floor, turn * revolutions + input_.up_to(turn));
      }
      default:
        return sum(floor, input_.up_to(255));
    }
  }

  /// Returns the next tick at which something may be due, at most `last`. A patient walk seldom goes far, so that there
  /// is always a future.
  Tick next(Tick last) {
    const Tick next = std::min(model_.next_due(), last);
    const bool is_far = input_.patient() && next - model_.floor() > 1'000'000;
    return is_far && !input_.one_in(64) ? model_.floor() : next;
  }

  void insert(Item& item, Tick tick) {
    if (!item.in_wheel()) model_.insert(item, tick);
  }

  void step() {
    switch (input_.below(8)) {
      case 0:
        if (Item& item = any_item(); item.in_wheel()) model_.remove(item);
        if (input_.patient() && input_.one_in(64)) leave_holes();
        break;
      case 1: {
        Item& item = any_item();
        const Tick tick = any_tick();
        if (item.in_wheel()) model_.move(item, tick);
        break;
      }
      case 2: {
        std::size_t first = input_.below(items_.size());
        const Tick tick = any_tick();
        for (auto many = input_.below(items_.size()); many > 0; --many) insert(items_[first++ % items_.size()], tick);
        break;
      }
      case 3:
        if (const Tick due = next(kNever - 1); due >= model_.floor()) {
          model_.skip_to(model_.floor() +
                         std::min(due - model_.floor(), input_.one_in(2) ? input_.up_to(300) : kNever));
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
    const Tick due = next(model_.kFirstNever - 1);
    const Tick tick = input_.one_in(4) ? std::min(due, sum(model_.floor(), input_.up_to(300))) : due;
    if (tick < model_.floor()) return;
    const bool takes_all = !input_.one_in(2);
    const auto answer = [&](const Item& item) {
      if (!takes_all && input_.one_in(8)) return Verdict::stop();
      if (item.due > tick && input_.one_in(4)) return Verdict::later(sum(item.due, input_.up_to(200)));
      if (item.due == tick && !takes_all && input_.one_in(4)) {
        if (input_.patient() && input_.one_in(4)) return Verdict::later(model_.wheel().put_off(tick));
        return Verdict::later(any_tick());  // the wheel takes the next tick if this one has passed
      }
      return model_.usual(item);
    };
    const bool leaves_open = input_.patient() && input_.one_in(4);
    walked_.expired += (leaves_open ? model_.walk(tick, answer) : model_.expire(tick, answer)).size();
    walked_.stops += model_.stopped() ? 1 : 0;
    walked_.latest += tick == model_.kFirstNever - 1 ? 1 : 0;
    if (!model_.stopped() && !leaves_open) model_.skip_to(tick);  // a step back, which changes nothing
  }

  void leave_holes() {
    for (Item& item : items_)
      if (item.in_wheel() && !input_.one_in(8)) model_.remove(item);
  }

  /// Goes on until just before a carry. Items around the carry wait from the start on.
  void grow_old() {
    const std::vector<Tick> carries =
        test::carries(static_cast<int>(std::max(digit_bits_, 1U)), kNever - 1, std::chrono::nanoseconds(1));
    const Tick carry = carries[input_.below(carries.size())];
    std::size_t index = 0;
    for (const Tick after : {2, 1, 0, -1, 8, 300}) {
      if (index < items_.size()) model_.insert(items_[index++], sum(carry, after));
    }
    const Tick before = std::max<Tick>(carry - input_.one_of<Tick>({2, 40, 1'000}), 0);
    while (model_.next_due() < before) model_.expire(model_.next_due());
    model_.skip_to(before);
  }

  Input& input_;
  const unsigned digit_bits_;
  std::vector<Item> items_;
  internal::WheelModel<W, broken, 0> model_;
  Walked walked_;
};

/// Walks on a wheel of any size. Returns its kind, 0 for a hashed and 1 for a hierarchical one, and the counts.
inline std::pair<std::size_t, Walked> walk_on_any_wheel(Input& input) {
  const bool is_patient = input.patient();
  if (input.one_in(2)) {
    const auto digit_bits = static_cast<unsigned>(input.below(is_patient ? 13 : 7));
    return {0, WheelWalk<internal::Checked<internal::HashedWheel>>(input, digit_bits).run()};
  }
  const auto digit_bits = static_cast<unsigned>(1 + input.below(is_patient ? 12 : 6));
  const auto crowd = static_cast<std::uint32_t>(is_patient && input.one_in(4) ? kNoCrowd : 1 + input.below(60));
  return {1, WheelWalk<internal::Checked<internal::HierarchicalWheel>>(input, digit_bits, crowd).run()};
}

}  // namespace hwt::fuzz
