// A wait of Asio that is cancelled and begun again, with 10,000 outstanding: the deadline of a connection that each
// request postpones. On Asio's own timer, on the wheel of the loop, and on a wheel that loops share. CPU time of the
// process, which includes the worker of the shared timer.

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
constexpr int kBatch = 100;    // before the loop runs its other handlers
constexpr int kBatches = 200;  // per thread and iteration

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

/// OfConnections: each connection keeps one delay, so each of its waits ends later than the wait before. OfWaits: each
/// wait has a random delay.
enum class Delays : bool { OfConnections, OfWaits };

/// The waits of one thread.
template <class Kit>
class Connections {
 public:
  Connections(Kit& kit, std::size_t count, Delays delays_of) : kit_(kit), delays_of_(delays_of) {
    while (waits_.size() < count) {
      waits_.push_back(kit.make());
      begin(waits_.size() - 1);
    }
  }

  /// Calls `done` after this number of batches. Other handlers run between batches.
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
    waits.async_wait([this](const asio::error_code& error) {  // as a connection does
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
