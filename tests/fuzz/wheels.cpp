// Both wheels of internal/wheel against a multimap: inserted, moved and removed anywhere in time, walked tick by tick,
// with visitors that take, stop and put off.

#include "tests/fuzz/targets.h"
#include "tests/support/checked_wheel.h"
#include "tests/support/wheel_model.h"

namespace hwt::fuzz {

using internal::Checked;
using internal::HashedWheel;
using internal::HierarchicalWheel;
using internal::kNever;
using internal::Tick;
using internal::Verdict;
using internal::WheelModel;
using Item = internal::ModelItem;

namespace {

constexpr std::size_t kItems = 128;  // more than a chunk holds

void broken(const char* promise, Tick) { require(false, promise); }

Tick sum(Tick a, Tick b) { return b > 0 && a > kNever - b ? kNever : a + b; }

template <class W>
class Walk {
 public:
  template <class... Args>
  explicit Walk(Input& input, Args... args) : input_(input), items_(kItems), model_(args...) {}

  void run() {
    while (!input_.ended()) step();
    model_.clear();
  }

 private:
  Item& any_item() { return items_[input_.below(kItems)]; }

  Tick any_tick() {
    const Tick turn = model_.wheel().revolution();
    const Tick floor = model_.floor();
    switch (input_.below(8)) {
      case 0:
        return floor - input_.up_to(99);
      case 1:
        return sum(any_item().due, input_.up_to(2) - 1);
      case 2:
        return kNever - input_.up_to(99);
      case 3:
        return input_.number<Tick>();
      case 4: {  // near the next multiple of a power of `turn`, where a level begins
        Tick edge = 1;
        for (auto level = input_.below(12); level > 0 && edge < kNever / turn; --level) edge *= turn;
        return sum(floor - floor % edge, sum(edge, input_.up_to(4) - 2));
      }
      case 5:  // near multiples of 64 revolutions, after which the tags of a hashed wheel repeat
        return sum(floor, turn * 64 * input_.up_to(3) + input_.up_to(turn));
      default:
        return sum(floor, input_.up_to(255));
    }
  }

  void insert(Item& item, Tick tick) {
    if (!item.in_wheel()) model_.insert(item, tick);
  }

  void step() {
    switch (input_.below(8)) {
      case 0:
        if (Item& item = any_item(); item.in_wheel()) model_.remove(item);
        break;
      case 1: {
        Item& item = any_item();
        const Tick tick = any_tick();
        if (item.in_wheel()) model_.move(item, tick);
        break;
      }
      case 2: {
        std::size_t first = input_.below(kItems);
        const Tick tick = any_tick();
        for (auto many = input_.below(kItems); many > 0; --many) insert(items_[first++ % kItems], tick);
        break;
      }
      case 3:
        if (const Tick next = std::min(model_.next_due(), kNever - 1); next >= model_.floor()) {
          model_.skip_to(model_.floor() +
                         std::min(next - model_.floor(), input_.one_in(2) ? input_.up_to(300) : kNever));
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
    const Tick next = std::min(model_.next_due(), model_.kFirstNever - 1);
    const Tick tick = input_.one_in(4) ? std::min(next, sum(model_.floor(), input_.up_to(300))) : next;
    if (tick < model_.floor()) return;
    const bool takes_all =
        tick >= kNever - 2 || !input_.one_in(2);  // after the last ones there is nothing to put off to
    model_.expire(tick, [&](const Item& item) {
      if (!takes_all && input_.one_in(8)) return Verdict::stop();
      if (item.due > tick && input_.one_in(4)) return Verdict::later(sum(item.due, input_.up_to(200)));
      if (item.due == tick && !takes_all && input_.one_in(4)) return Verdict::later(std::max(sum(tick, 1), any_tick()));
      return model_.usual(item);
    });
  }

  Input& input_;
  std::vector<Item> items_;
  WheelModel<W, broken, 0> model_;
};

}  // namespace

void wheels(Input& input) {
  if (input.one_in(2)) {
    Walk<Checked<HashedWheel>>(input, std::int64_t{1} << input.below(7)).run();
  } else {
    const std::int64_t slots = std::int64_t{1} << (1 + input.below(6));
    const auto crowd = static_cast<std::uint32_t>(1 + input.below(60));
    Walk<Checked<HierarchicalWheel>>(input, slots, crowd).run();
  }
}

}  // namespace hwt::fuzz
