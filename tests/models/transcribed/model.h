#pragma once

// Models of the library's hand-overs, for relacy. It runs the threads of a model in any order, and lets each load
// return any value that C++'s memory model allows. It finds data races, wrong results and deadlocks.
//
// A model copies the shared variables and memory orders of the code and asserts its promises. Most names are those of
// the code. A Weakening is one fault. check() expects the model to pass without faults and to fail with each. Orders
// that no run needs are relaxed here, or the top of the model names them.

#include <relacy/relacy.hpp>
#undef assert
#undef calloc
#undef delete
#undef errno
#undef free
#undef malloc
#undef new
#undef realloc

#include <array>
#include <cstdint>
#include <initializer_list>
#include <iostream>
#include <ostream>
#include <streambuf>
#include <string_view>

namespace model {

using rl::mo_acq_rel;
using rl::mo_acquire;
using rl::mo_relaxed;
using rl::mo_release;
using Order = rl::memory_order;

/// For relacy's history of a failure. (std::source_location is not in every compiler that builds this.)
struct Where {
  rl::debug_info info;
  // NOLINTNEXTLINE(google-explicit-constructor): a default argument of each operation
  Where(const char* function = __builtin_FUNCTION(), const char* file = __builtin_FILE(),
        unsigned line = __builtin_LINE())
      : info(function, file, line) {}
};

/// std::atomic.
template <class T>
class Atomic {
 public:
  explicit Atomic(T value = T()) : atomic_(value) {}

  T load(Order order, Where where = Where()) const { return atomic_.load(order, where.info); }
  void store(T value, Order order, Where where = Where()) { atomic_.store(value, order, where.info); }
  T exchange(T value, Order order, Where where = Where()) { return atomic_.exchange(value, order, where.info); }
  T fetch_add(T value, Order order, Where where = Where()) { return atomic_.fetch_add(value, order, where.info); }
  T fetch_sub(T value, Order order, Where where = Where()) { return atomic_.fetch_sub(value, order, where.info); }
  bool compare_exchange_weak(T& seen, T value, Order success, Order failure, Where where = Where()) {
    return atomic_.compare_exchange_weak(seen, value, success, where.info, failure, where.info);
  }
  bool compare_exchange_strong(T& seen, T value, Order success, Order failure, Where where = Where()) {
    return atomic_.compare_exchange_strong(seen, value, success, where.info, failure, where.info);
  }

 private:
  rl::atomic<T> atomic_;
};

/// A variable that only its owner of the moment touches: anything else is found as a data race.
template <class T>
class Plain {
 public:
  explicit Plain(T value = T()) { set(value); }

  T get(Where where = Where()) const { return variable_(where.info).load(); }
  void set(T value, Where where = Where()) { variable_(where.info).store(value); }

 private:
  rl::var<T> variable_;
};

/// A fault that the model has on purpose while it is on. One is on at a time.
struct Weakening {
  const char* what;
  bool on = false;

  explicit operator bool() const { return on; }
};

/// The two ways in which AsymmetricFence works.
enum class Fences {
  EachSide,   // both sides run a fence
  HeavySide,  // membarrier: the light side does nothing, the heavy one runs a fence in every thread, wherever that is
};
inline Fences fences = Fences::EachSide;

inline void light_fence() {
  if (fences == Fences::EachSide) rl::atomic_thread_fence(rl::mo_seq_cst, RL_INFO);
}

/// A model of so many threads.
template <class Derived, rl::thread_id_t kThreads>
struct Model : rl::test_suite<Derived, kThreads> {
  static void heavy_fence() {
    rl::atomic_thread_fence(rl::mo_seq_cst, RL_INFO);
    if (fences == Fences::EachSide) return;
    // relacy has no fence for another thread. But it keeps the states of all threads of the model in an array.
    using Thread = rl::thread_info<kThreads>;
    rl::context& context = rl::ctx();
    auto* const threads =
        static_cast<rl::aligned<Thread>*>(static_cast<Thread*>(context.threadx_)) - context.threadx_->index_;
    for (rl::thread_id_t i = 0; i != kThreads; ++i)
      threads[i].atomic_thread_fence_seq_cst(context.seq_cst_fence_order_);
    rl::atomic_thread_fence(rl::mo_seq_cst, RL_INFO);
  }
};

#define MODEL_ASSERT(what) RL_ASSERT(what)

namespace detail {

/// Keeps the beginning of the output. Without memory from the heap, which relacy watches while it writes.
class Notes : public std::streambuf {
 public:
  void clear() { setp(text_.data(), text_.data() + text_.size()); }
  std::string_view text() const { return {pbase(), static_cast<std::size_t>(pptr() - pbase())}; }

 private:
  int_type overflow(int_type character) override { return traits_type::not_eof(character); }

  std::array<char, 65536> text_;
};
inline Notes notes;

struct Run {
  bool passed;
  std::uint64_t schedules;
  const char* result;
};

template <class M>
Run run(Fences kind, std::uint64_t schedules) {
  fences = kind;
  notes.clear();
  std::ostream output(&notes);
  rl::test_params params;
  params.iteration_count = schedules;
  params.output_stream = &output;
  params.progress_stream = &output;
  params.execution_depth_limit = 5000;  // steps; a longer schedule is reported as a livelock
  const bool passed = rl::simulate<M>(params);
  return {passed, params.stop_iteration, rl::test_result_str(params.test_result)};
}

}  // namespace detail

/// Runs the model as it is for so many schedules, with each kind of Fences. Each weakening gets up to eight times as
/// many. Schedules are drawn at random from a fixed seed. Returns the exit code of main().
template <class M>
int check(std::initializer_list<Weakening*> weakenings, std::uint64_t schedules = 50'000) {
  bool good = true;
  for (const Fences kind : {Fences::EachSide, Fences::HeavySide}) {
    const detail::Run run = detail::run<M>(kind, schedules);
    std::cout << (run.passed ? "passes: " : "FAILS: ") << run.schedules << " schedules, "
              << (kind == Fences::EachSide ? "a fence on each side\n" : "the heavy side's fence alone\n");
    if (!run.passed) std::cout << detail::notes.text();
    good = good && run.passed;
  }
  for (Weakening* const weakening : weakenings) {
    weakening->on = true;
    // HeavySide first, because a light fence may hide that an order is missing. Only EachSide shows a missing light
    // fence.
    detail::Run run = detail::run<M>(Fences::HeavySide, 8 * schedules);
    if (run.passed) run = detail::run<M>(Fences::EachSide, 8 * schedules);
    weakening->on = false;
    std::cout << (run.passed ? "NOT FOUND: " : "found: ") << weakening->what;
    if (!run.passed) std::cout << " (" << run.result << ", schedule " << run.schedules << ")";
    std::cout << "\n";
    good = good && !run.passed;
  }
  return good ? 0 : 1;
}

}  // namespace model
