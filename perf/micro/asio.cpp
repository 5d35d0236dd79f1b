// What a loop of Asio pays for a wait that is cancelled and begun again, with 10,000 of them outstanding: the deadline
// of a connection that every request puts off. On Asio's own timer, on the loop's own wheel, and on one that is shared
// with other loops. CPU time of the whole process: the shared timer's worker belongs to it.

#include <version>
// clang-format off: before Asio
#include <asio.hpp>
// clang-format on

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "hashed_wheel_timer/asio.h"
#include "perf/micro/support.h"

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kWaits = 10'000;
constexpr int kBatch = 100;    // then the loop's other handlers get their turn
constexpr int kBatches = 200;  // of each thread, in an iteration

struct Steady {
  using Waits = asio::steady_timer;
  std::unique_ptr<Waits> make() { return std::make_unique<Waits>(loop); }

  asio::io_context loop;
};

struct OnLoop {
  using Waits = hwt::net::WheelTimer;
  std::unique_ptr<Waits> make() { return std::make_unique<Waits>(loop, timer); }

  asio::io_context loop;
  hwt::net::LoopTimer timer{loop.get_executor()};
};

struct OnShared {
  using Waits = hwt::net::WheelTimer;
  std::unique_ptr<Waits> make() { return std::make_unique<Waits>(loop, timer); }

  asio::io_context loop;
  hwt::HashedWheelTimer timer{1ms};
};

/// Each connection has a delay of its own, so a wait is later than the one before; or every wait has any delay.
enum class Delays : bool { OfConnections, OfWaits };

/// The share of one thread in the waits, which it alone uses.
template <class Kit>
class Connections {
 public:
  Connections(Kit& kit, std::size_t count, Delays delays_of) : kit_(kit), delays_of_(delays_of) {
    while (waits_.size() < count) {
      waits_.push_back(kit.make());
      begin(waits_.size() - 1);
    }
  }

  /// `done` is called after so many batches, between which others run.
  template <class Done>
  void work(int batches, Done done) {
    asio::post(kit_.loop, [this, batches, done] {
      for (int i = 0; i < kBatch; ++i) {
        begin(place_);
        place_ = hwt::perf::next_in_ring(place_, waits_.size());
      }
      if (batches == 1) return done();
      work(batches - 1, done);
    });
  }

 private:
  void begin(std::size_t place) {
    typename Kit::Waits& waits = *waits_[place];
    waits.expires_after(delays_[delays_of_ == Delays::OfWaits ? delay_ : place % delays_.size()]);
    delay_ = hwt::perf::next_in_ring(delay_, delays_.size());
    waits.async_wait([this](const asio::error_code& error) {  // as a connection would
      benchmark::DoNotOptimize(this);
      benchmark::DoNotOptimize(error.value());
    });
  }

  Kit& kit_;
  const Delays delays_of_;
  std::vector<std::unique_ptr<typename Kit::Waits>> waits_;
  const std::vector<std::chrono::milliseconds> delays_ = hwt::perf::random_delays<std::chrono::milliseconds>(60'000);
  std::size_t place_ = 0;
  std::size_t delay_ = 0;
};

template <class Kit, Delays delays_of>
void wait_again(benchmark::State& state) {
  const auto threads = static_cast<std::size_t>(state.range(0));
  Kit kit;
  std::vector<std::unique_ptr<Connections<Kit>>> connections;
  while (connections.size() < threads) {
    connections.push_back(std::make_unique<Connections<Kit>>(kit, kWaits / threads, delays_of));
  }
  for (auto _ : state) {
    std::atomic<std::size_t> left{threads};
    for (auto& one : connections) {
      one->work(kBatches, [&] {
        if (--left == 0) kit.loop.stop();
      });
    }
    std::vector<std::jthread> others;
    while (others.size() + 1 < threads) others.emplace_back([&] { kit.loop.run(); });
    kit.loop.run();
    others.clear();
    kit.loop.restart();
  }
  connections.clear();
  kit.loop.poll();
  hwt::perf::count(state, state.iterations() * static_cast<std::int64_t>(threads) * kBatches * kBatch);
}
void on_threads(hwt::perf::Benchmark* benchmark) {
  benchmark->ArgName("threads")->Arg(1)->Arg(2)->MeasureProcessCPUTime();
}
BENCHMARK_TEMPLATE(wait_again, Steady, Delays::OfConnections)->Apply(on_threads);
BENCHMARK_TEMPLATE(wait_again, OnLoop, Delays::OfConnections)->Apply(on_threads);
BENCHMARK_TEMPLATE(wait_again, OnShared, Delays::OfConnections)->Apply(on_threads);
BENCHMARK_TEMPLATE(wait_again, Steady, Delays::OfWaits)->Apply(on_threads);
BENCHMARK_TEMPLATE(wait_again, OnLoop, Delays::OfWaits)->Apply(on_threads);
BENCHMARK_TEMPLATE(wait_again, OnShared, Delays::OfWaits)->Apply(on_threads);

}  // namespace
