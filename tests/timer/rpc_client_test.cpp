// The RPC client of the guide: each call is completed exactly once.

#include <map>

#include "tests/support/test_support.h"

using namespace std::chrono_literals;

namespace {

void write_request(std::uint64_t) {}

}  // namespace

#include "timeout_scope_block.h"

namespace hwt::test {
namespace {

TEST(RpcClient, CompletesACallByTheAnswerTheTimeoutOrItsEnd) {
  ManualTimer timer;
  std::map<std::uint64_t, std::string> how;
  {
    Client client(timer);
    for (const std::uint64_t id : {1, 2, 3}) {
      client.call(id, [&how, id](const char* by) { how[id] += by; });
      if (id == 1) client.on_answer(id);
      if (id == 2) timer.advance(300ms);
    }
    client.on_answer(2);  // too late
  }
  EXPECT_EQ(how, (std::map<std::uint64_t, std::string>{{1, "answered"}, {2, "timed out"}, {3, "closed"}}));
  EXPECT_EQ(timer.pending_timeouts(), 0);
}

/// A call that has timed out is no longer in the map, and is still being completed.
TEST(RpcClient, OutlivesACallThatIsBeingCompleted) {
  HashedWheelTimer timer(1ms);
  std::atomic<bool> begun = false, ending = false, gone = false;
  auto client = std::make_unique<Client>(timer);
  client->call(1, [&](const char*) {
    begun = true;
    EXPECT_TRUE(eventually([&] { return ending.load(); }));
    std::this_thread::sleep_for(50ms);
    EXPECT_FALSE(gone);
  });
  ASSERT_TRUE(eventually([&] { return begun.load(); }));
  ending = true;
  client.reset();
  gone = true;
}

TEST(RpcClient, CompletesEachCallOnceWhenAnswersRaceTimeoutsAndTheEnd) {
  constexpr int kThreads = 3;
  constexpr std::uint64_t kCalls = kSanitized ? 500 : 2000;
  HashedWheelTimer timer(1ms);
  for (int round = 0; round != 3; ++round) {
    std::vector<std::atomic<int>> done(kThreads * kCalls);
    {
      Client client(timer);
      run_together(kThreads, [&](int thread) {
        std::mt19937 random(static_cast<std::uint32_t>(thread));
        for (std::uint64_t i = 0; i != kCalls; ++i) {
          const std::uint64_t id = static_cast<std::uint64_t>(thread) * kCalls + i;
          client.call(id, [&done, id](const char*) { ++done[id]; });
          if (i % 500 == 499) std::this_thread::sleep_for(260ms);  // some time out meanwhile
          if (random() % 4 != 0) client.on_answer(id - random() % 2);
        }
      });
    }
    for (const std::atomic<int>& times : done) ASSERT_EQ(times, 1);
  }
  EXPECT_TRUE(timer.stop().empty());
}

}  // namespace
}  // namespace hwt::test
