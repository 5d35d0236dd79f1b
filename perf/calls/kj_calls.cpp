// Requests of kj's HTTP client to its server, over socket pairs. A deadline is kj::Timer::timeoutAfter() on the timer
// of the event loop, or on the WheelTimer of the example kj_http. The server always uses the timer of the event loop
// for its limit of idle connections.

#include <kj/async-io.h>
#include <kj/compat/http.h>
#include <kj/debug.h>

#include "blocks.h"
#include "kj_http/service.h"
#include "kj_http/wheel_timer.h"

namespace calls {
namespace {

/// Keeps a request in flight on each connection, in one event loop with the server.
class Client {
 public:
  Client() {
    for (std::size_t i = 0; i < kInFlight; ++i) {
      kj::TwoWayPipe pipe = io_.provider->newTwoWayPipe();
      served_.push_back(server_.listenHttp(kj::mv(pipe.ends[0])).eagerlyEvaluate(nullptr));
      streams_.push_back(kj::mv(pipe.ends[1]));
      connections_.push_back(kj::newHttpClient(*table_, *streams_.back()));
    }
  }

  void make_calls(Limit limit, std::int64_t count) {
    timer_ = limit == Limit::Own ? &own_ : limit == Limit::Ours ? &ours_ : nullptr;
    to_start_ = count;
    auto busy = kj::heapArrayBuilder<kj::Promise<void>>(kInFlight);
    for (kj::Own<kj::HttpClient>& connection : connections_) busy.add(call_again_and_again(*connection));
    kj::joinPromises(busy.finish()).wait(io_.waitScope);  // throws kj::Exception, which is a std::exception
  }

 private:
  kj::Promise<void> call_again_and_again(kj::HttpClient& connection) {
    if (to_start_-- <= 0) return kj::READY_NOW;
    kj::Promise<void> call =
        connection.request(kj::HttpMethod::GET, "/", headers_, std::uint64_t{0})
            .response.then([](const kj::HttpClient::Response& response) { KJ_ASSERT(response.statusCode == 204); });
    if (timer_ != nullptr) {
      call = timer_->timeoutAfter(kDeadline.count() * kj::SECONDS, kj::mv(call));
    }
    return call.then([this, &connection] { return call_again_and_again(connection); });
  }

  kj::AsyncIoContext io_ = kj::setupAsyncIo();
  kj::Timer& own_ = io_.provider->getTimer();
  kj_http::WheelTimer ours_{own_};
  kj::Timer* timer_ = nullptr;
  std::int64_t to_start_ = 0;
  const kj::Own<kj::HttpHeaderTable> table_ = kj::HttpHeaderTable::Builder().build();
  const kj::HttpHeaders headers_{*table_};
  kj_http::Service service_{*table_};
  kj::HttpServer server_{own_, *table_, service_};
  std::vector<kj::Promise<void>> served_;
  std::vector<kj::Own<kj::AsyncIoStream>> streams_;
  std::vector<kj::Own<kj::HttpClient>> connections_;
};

bool run(common::Options& options) {
  const Settings settings = settings_of(options, 5'000);
  Client client;
  run_blocks("kj " KJ_VERSION, settings, [&](Limit limit, std::int64_t count) { client.make_calls(limit, count); });
  return true;
}

}  // namespace
}  // namespace calls

int main(int argc, char** argv) {
  return common::run_example(
      argc, argv, {"kj_calls", "HTTP requests of kj with and without a deadline.", "a request failed"}, calls::run);
}
