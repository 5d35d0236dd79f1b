#include "tests/simulation/simulation.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <vector>

#include "tests/simulation/client.h"
#include "tests/simulation/network.h"
#include "tests/simulation/watched_timer.h"
#include "tests/simulation/world.h"
#include "tests/support/ages.h"

namespace hwt::simulation {

namespace {

using namespace std::chrono_literals;

class Simulation {
 public:
  Simulation(std::uint64_t seed, bool traced)
      : world_(seed, traced),
        tick_(one_of({1'000'000, 1'000'000, 2'500'000, 300'000, 1})),
        timer_(world_, tick_, TimePoint(nanoseconds(world_.between(0, 1'000'000'000))), world_.one_in(2)) {
    world_.trace("a tick is ", tick_.count(), " ns");
    grow_old();
    client_.emplace(world_, timer_, network_, static_cast<int>(world_.between(1, 3)),
                    [this](std::uint64_t request, Outcome outcome) { ended(request, outcome); });
    world_.interleave = [this] { interleave(); };
  }

  Result run() {
    const std::int64_t length = world_.between(30, 250);
    while (result_.steps < length && !world_.failed() && !timer_.over()) {
      step();
      check();
    }
    if (!timer_.over()) end_timer();
    for (int i = 0; i < 10 && !world_.failed(); ++i) {
      step();
      check();
    }
    end();
    result_.broken = world_.broken();
    return result_;
  }

 private:
  static constexpr std::uint64_t kMostRequests = 40;
  static constexpr std::size_t kDeepest = 2;
  enum class Fate { Open, Ended };

  nanoseconds one_of(std::vector<std::int64_t> choice) { return nanoseconds(choice[world_.below(choice.size())]); }

  /// Most timers are old when the client begins: a carry of their arithmetic comes during its life. Some timeouts have
  /// waited since the start.
  void grow_old() {
    constexpr int kDigitBits = 6;
    constexpr nanoseconds kLongerThanAClient = 1min;
    if (world_.one_in(4)) return;
    const std::int64_t last = (TimePoint::max() - timer_.now() - kLongerThanAClient) / tick_;
    const std::vector<std::int64_t> carries = test::carries(kDigitBits, last, tick_);
    const nanoseconds carry = tick_ * carries[world_.below(carries.size())];
    const nanoseconds age =
        std::max(carry - nanoseconds(world_.between(0, nanoseconds(100ms).count())), nanoseconds(0));
    struct Nothing {
      void operator()() {}
      void will_not_run() {}
    };
    for (const nanoseconds after : {-tick_, nanoseconds(0), tick_, random_time(50ms)}) {
      timer_.start("old", carry + after, Nothing{});
    }
    timer_.jump(age, std::numeric_limits<std::size_t>::max());
  }

  /// Between two calls of the client: another thread may come first.
  void interleave() {
    if (world_.depth == kDeepest || world_.failed() || !world_.one_in(6)) return;
    ++world_.depth;
    check_pending();
    step();
    --world_.depth;
  }

  /// One of the things that could happen next.
  void step() {
    ++result_.steps;
    switch (world_.below(14)) {
      case 0:
      case 1:
      case 2:
        return start_request();
      case 3:
      case 4:
      case 5:
        return deliver();
      case 6:
        return lose();
      case 7:
        return take_dial();
      case 8:
        return world_.one_in(4) ? break_connection() : deliver();
      case 9:
        return cancel();
      case 10:
        return wake_up();
      case 11:
        return world_.one_in(40) ? end_timer() : pass_time();
      default:
        return pass_time();
    }
  }

  void start_request() {
    if (fates_.size() == kMostRequests) return;
    const std::uint64_t number = fates_.size();
    const nanoseconds timeout = world_.one_in(10) ? nanoseconds(world_.between(-1, 1)) : random_time(30ms);
    world_.trace("request ", number, " begins");
    fates_.push_back(Fate::Open);
    ++result_.requests;
    client_->call(number, std::max(timeout, nanoseconds(0)));
  }

  void deliver() {
    if (network_.messages().empty()) return;
    const std::size_t index = world_.below(network_.messages().size());
    if (network_.messages()[index].kind == Network::Kind::Request && world_.one_in(4)) {
      const std::uint64_t request = network_.messages()[index].request;
      world_.trace("the server is at request ", request);
      return client_->in_progress(request, random_time(20ms));
    }
    const Network::Message message = network_.take(index);
    if (message.kind == Network::Kind::Heartbeat) return client_->alive(message.connection);
    world_.trace("request ", message.request, " is answered");
    client_->answered(message.request, message.connection);
  }

  void lose() {
    if (network_.messages().empty()) return;
    const Network::Message message = network_.take(world_.below(network_.messages().size()));
    world_.trace("message ", message.number, " is lost");
  }

  void take_dial() {
    if (network_.dials() == 0) return;
    const int connection = network_.take_dial(world_.below(network_.dials()));
    world_.one_in(3) ? client_->broken(connection) : client_->connected(connection);
  }

  void break_connection() {
    const int connection = static_cast<int>(world_.below(3));
    if (client_->has(connection) && client_->is_up(connection)) client_->broken(connection);
  }

  void cancel() {
    if (client_->open().empty()) return;
    const auto chosen =
        std::next(client_->open().begin(), static_cast<std::ptrdiff_t>(world_.below(client_->open().size())));
    const std::uint64_t request = chosen->first;
    world_.trace("request ", request, " is cancelled");
    client_->cancel(request);
  }

  nanoseconds random_time(nanoseconds most) {
    // Often a point of the grid, or right beside one.
    nanoseconds time(world_.between(0, most.count()));
    if (tick_ > 1us && world_.one_in(2)) time = time / tick_ * tick_ + nanoseconds(world_.between(-1, 1));
    return std::max(time, nanoseconds(0));
  }

  void pass_time() {
    if (timer_.in_task()) return timer_.expect_no_turn();
    if (timer_.over() || turning_) return;
    turning_ = true;
    const nanoseconds by = random_time(world_.one_in(10) ? 100ms : 3ms);
    if (world_.one_in(4)) {
      timer_.jump(by, world_.one_in(2) ? world_.below(4) : std::numeric_limits<std::size_t>::max());
    } else {
      timer_.advance(by);
    }
    turning_ = false;
  }

  void wake_up() { timer_.check_wakeup(client_->pending() != 0); }

  /// With all that is pending, by stop() or by the destructor.
  void end_timer() {
    if (timer_.in_task() || timer_.over() || turning_) return;
    if (world_.one_in(2)) {
      timer_.stop(timer_.pending() + client_->pending());
    } else {
      client_->let_go();
      timer_.destroy();
    }
  }

  void end() {
    world_.interleave = nullptr;
    client_->let_go();
    timer_.destroy();
    for (const Fate fate : fates_) world_.expect(fate == Fate::Ended, "each request ends");
    world_.expect(network_.messages().empty() && network_.dials() == 0, "a client leaves nothing behind");
    client_.reset();
    world_.expect(Request::living == 0, "the memory of all requests is given back");
  }

  void ended(std::uint64_t request, Outcome outcome) {
    constexpr const char* kNames[] = {"was answered", "timed out", "was cancelled", "was shut down"};
    world_.trace("request ", request, ' ', kNames[static_cast<int>(outcome)]);
    world_.expect(fates_[request] == Fate::Open, "a request ends once");
    world_.expect(outcome != Outcome::ShutDown || timer_.over(), "a request is shut down at the end alone");
    fates_[request] = Fate::Ended;
  }

  void check_pending() {
    world_.expect(timer_.real_pending() == timer_.pending() + client_->pending(),
                  "pending_timeouts() is what the model says");
    timer_.check_origins(client_->pending());
  }

  /// When no call is under way.
  void check() {
    check_pending();
    client_->check();
    for (const Network::Message& message : network_.messages()) {
      world_.expect(message.kind == Network::Kind::Heartbeat || client_->is_open(message.request),
                    "the loser of a hedge is cancelled");
    }
    world_.expect(Request::living == static_cast<std::int64_t>(client_->open().size()),
                  "the memory of a request is given back when it ends");
  }

  World world_;
  const nanoseconds tick_;
  WatchedTimer timer_;
  Network network_;
  std::optional<Client> client_;
  std::vector<Fate> fates_;
  bool turning_ = false;
  Result result_;
};

}  // namespace

Result simulate(std::uint64_t seed, bool traced) { return Simulation(seed, traced).run(); }

}  // namespace hwt::simulation
