#pragma once

// Shared by the tests of asio.h. These are built for standalone Asio, and with HWT_TEST_BOOST for Boost's.

#include <future>
#include <system_error>

#ifdef HWT_TEST_BOOST
#include <boost/asio.hpp>

#include "hashed_wheel_timer/boost_asio.h"

namespace host = boost::asio;
namespace net = hwt::boost_net;
using Error = boost::system::error_code;
inline constexpr auto kDeferred = boost::asio::deferred;
#else
#include <asio.hpp>
#include <asio/experimental/deferred.hpp>

#include "hashed_wheel_timer/asio.h"

namespace host = asio;
namespace net = hwt::net;
using Error = asio::error_code;
inline constexpr auto kDeferred = asio::experimental::deferred;
#endif

#include "hashed_wheel_timer/deadline.h"
#include "tests/support/test_support.h"

namespace asio_test {

using namespace std::chrono_literals;
using hwt::HashedWheelTimer;
using hwt::ManualTimer;
using hwt::Timeout;
using hwt::test::eventually;
using hwt::test::kFar;
using hwt::test::kNanDelay;
using hwt::test::run_together;
using net::async_wait;
using std::chrono::steady_clock;

inline constexpr auto kAborted = host::error::operation_aborted;

/// Runs a loop, also one that has run out of work before.
inline std::size_t run_again(host::io_context& loop) {
  loop.restart();
  return loop.run();
}

/// steady_timer itself.
struct Steady {
  using Waits = host::steady_timer;
  template <class... Expiry>
  Waits make(Expiry... expiry) {
    return Waits(loop, expiry...);
  }
  std::int64_t pending() const { return 0; }

  host::io_context loop;
};

/// A wheel timer, which the derived class makes.
template <class Timer>
struct OnWheel {
  using Waits = net::WheelTimer;
  template <class... Expiry>
  Waits make(Expiry... expiry) {
    return Waits(loop, *timer, expiry...);
  }
  std::int64_t pending() const { return timer->pending_timeouts(); }

  host::io_context loop;
  std::optional<Timer> timer;
};

struct OnLoop : OnWheel<net::LoopTimer> {
  OnLoop() { timer.emplace(loop.get_executor()); }
};

struct OnShared : OnWheel<HashedWheelTimer> {
  OnShared() { timer.emplace(1ms); }
};

template <class Kit>
struct Waiting : testing::Test, Kit {
  // The worker may have claimed the timeout of a wait that was then cancelled, and not have counted it yet.
  ~Waiting() override {
    EXPECT_TRUE(eventually([this] { return this->pending() == 0; }));
  }
  std::size_t run_again() { return asio_test::run_again(this->loop); }

  std::vector<Error> errors;
};
using Kits = testing::Types<Steady, OnLoop, OnShared>;

/// Notes how a wait has ended.
struct Note {
  void operator()(const Error& error) const { errors->push_back(error); }
  std::vector<Error>* errors;
};

/// The bytes in use, and the number of allocations, through Counting.
struct Memory {
  std::atomic<int> left{0};
  std::atomic<int> made{0};
};

/// Counts the allocations through it.
template <class T>
struct Counting {
  using value_type = T;
  explicit Counting(Memory* counts) : memory(counts) {}
  template <class U>
  Counting(const Counting<U>& other) : memory(other.memory) {}  // NOLINT(google-explicit-constructor)
  T* allocate(std::size_t n) {
    ++memory->made;
    memory->left += static_cast<int>(n * sizeof(T));
    return std::allocator<T>().allocate(n);
  }
  void deallocate(T* block, std::size_t n) {
    memory->left -= static_cast<int>(n * sizeof(T));
    std::allocator<T>().deallocate(block, n);
  }
  template <class U>
  bool operator==(const Counting<U>& other) const {
    return memory == other.memory;
  }

  Memory* memory;
};

/// A handler that allocates through Counting. The derived classes are called.
struct Allocating {
  using allocator_type = Counting<std::byte>;
  allocator_type get_allocator() const { return allocator_type(memory); }

  Memory* memory;
};

/// Counts `*copies` down with each copy, and throws at zero. It has no move constructor, so a move is a copy.
struct Throwing : Allocating {
  Throwing(int* copies_left, Memory* counts) : Allocating{counts}, copies(copies_left) {}
  Throwing(const Throwing& other) : Throwing(other.copies, other.memory) {
    if (--*copies == 0) throw std::runtime_error("no more copies");
  }
  Throwing& operator=(const Throwing&) = delete;
  void operator()(const Error& error) const { EXPECT_FALSE(error); }

  int* copies;
};

/// Calls begin() until it does not throw. In the n-th call, the n-th copy of the Throwing with these `copies` throws.
/// Calls thrown() after each exception, and returns their number.
template <class Begin, class Thrown>
int throw_at_each_copy(int& copies, Begin begin, Thrown thrown) {
  for (int threw = 0; threw < 100; ++threw) {
    copies = threw + 1;
    try {
      begin();
      copies = -1;
      return threw;
    } catch (const std::runtime_error&) {
      copies = -1;
      thrown();
      if (testing::Test::HasFailure()) return threw;
    }
  }
  ADD_FAILURE() << "there is no end to it";
  return 0;
}

struct WaitOnManualTimer : testing::Test {
  std::vector<Error> errors;
  ManualTimer timer{1ms, steady_clock::time_point(1h)};
  host::io_context loop;
};

}  // namespace asio_test
