// A pass takes near deadlines and leaves far ones to their producers, however many producers there are (Intake,
// PairingHeap). The tests count the entries that a pass takes.

#include <map>

#include "hashed_wheel_timer/internal/handover/intake.h"
#include "perf/micro/threadless_timer.h"
#include "tests/support/allocation_hook.h"
#include "tests/support/any_timer.h"
#include "tests/support/worker_call.h"

namespace hwt::test {
namespace {

using internal::Inbox;
using internal::Intake;
using internal::Node;
using internal::NodeName;
using perf::ThreadlessTimer;

/// Many places with far entries. The index of an entry is the number of its place.
class ManyPlaces : public testing::Test {
 protected:
  static constexpr std::int64_t kNear = 100, kLater = 1'000'000;
  static constexpr std::uint32_t kPlaces = 1000;
  static constexpr std::size_t kEntries = 20;

  void SetUp() override {
    for (std::uint32_t place = 0; place < kPlaces; ++place) {
      for (std::size_t i = 0; i < kEntries; ++i) put(place, kLater + place);
    }
  }

  void put(std::uint32_t place, std::int64_t deadline) {
    ASSERT_TRUE(Inbox::put(places[place], {place, 1}) ||
                (Inbox::make_room(places[place], 8, 8) != 0 && Inbox::put(places[place], {place, 1})));
    inbox.list(places[place], deadline);
  }

  /// Takes until nothing comes. Returns the numbers of the places, in the order of the entries.
  std::vector<std::uint32_t> take() {
    std::vector<std::uint32_t> taken;
    std::array<NodeName, 7> entries;
    while (const std::size_t count = intake.take(entries.data(), entries.size())) {
      for (std::size_t i = 0; i < count; ++i) taken.push_back(entries[i].index());
    }
    return taken;
  }

  Inbox inbox;
  Intake intake{inbox};
  std::vector<Inbox::Place> places{kPlaces};
};

TEST_F(ManyPlaces, GiveOnlyThatOfANearDeadline) {
  put(700, kNear);
  intake.open(kNear, false);
  EXPECT_EQ(take(), std::vector<std::uint32_t>(kEntries + 1, 700));
  EXPECT_EQ(intake.earliest_waiting(), kLater);
  intake.open(kLater - 1, false);
  EXPECT_TRUE(take().empty());
}

TEST_F(ManyPlaces, GiveNearTimeoutsFirstWhenAllAreTaken) {
  put(300, kNear);
  put(900, kNear - 2);
  intake.open(kNear, true);
  const std::vector<std::uint32_t> taken = take();
  ASSERT_EQ(taken.size(), kPlaces * kEntries + 2);
  for (std::size_t i = 0; i < 2 * (kEntries + 1); ++i) EXPECT_TRUE(taken[i] == 300 || taken[i] == 900);
  EXPECT_EQ(intake.earliest_waiting(), Inbox::kUnlisted);
}

TEST_F(ManyPlaces, GiveTimeoutsThatBecomeNearBeforeTheRestOfAnOpenedRound) {
  for (int i = 0; i < 2; ++i) put(800, kLater);  // 22 entries: three takes of seven leave one
  EXPECT_FALSE(intake.any());
  intake.open(kNear, true);
  EXPECT_TRUE(intake.any());
  std::array<NodeName, 7> entries;
  ASSERT_EQ(intake.take(entries.data(), entries.size()), entries.size());
  put(500, kNear);
  intake.open(kNear, false);
  EXPECT_TRUE(intake.any_near());
  std::vector<std::uint32_t> taken = take();
  EXPECT_EQ(taken.size(), kPlaces * kEntries + 3 - entries.size());
  EXPECT_FALSE(intake.any());
  taken.resize(kEntries + 1);
  EXPECT_EQ(taken, std::vector<std::uint32_t>(kEntries + 1, 500));
}

/// An earlier pass has opened place 5, and the flood goes on in each pass.
TEST_F(ManyPlaces, GiveTimeoutsOfAnOpenedRoundWhenTheirTimeHasComeWhateverFloodsBesideThem) {
  constexpr std::uint32_t kFlood = 0;
  std::array<NodeName, 100> entries;
  // Makes a pass that the flood does not let finish. Returns how many entries of place 5 it took.
  const auto pass = [&](std::int64_t until) {
    for (int i = 0; i < 2000; ++i) put(kFlood, kNear);
    intake.open(until, true);
    std::ptrdiff_t taken = 0;
    for (int takes = 0; takes < 10; ++takes) {
      const auto end = entries.begin() + static_cast<std::ptrdiff_t>(intake.take(entries.data(), entries.size()));
      taken += std::count_if(entries.begin(), end, [](NodeName entry) { return entry.index() == 5; });
    }
    EXPECT_TRUE(intake.any_near());
    return static_cast<std::size_t>(taken);
  };
  EXPECT_EQ(pass(kNear), 0U);
  EXPECT_EQ(pass(kLater), 0U);
  EXPECT_EQ(pass(kLater + 5), kEntries);
}

TEST_F(ManyPlaces, HaveTurnsWhileNearOnesNeverRunOutOfEntries) {
  constexpr std::uint32_t kFlood = 0;
  std::size_t far = 0;
  for (int pass = 0; pass < 100; ++pass) {
    put(kFlood, kNear);
    intake.open(kNear, true);
    for (int takes = 0; takes < 20; ++takes) {
      for (int i = 0; i < 2; ++i) put(kFlood, kNear);
      NodeName entry;
      ASSERT_EQ(intake.take(&entry, 1), 1U);
      far += entry.index() != kFlood ? 1 : 0;
    }
  }
  EXPECT_GE(far, 100 * 20 / 20);
}

/// A pass takes 100,000 entries.
TEST_F(ManyPlaces, HaveATurnInEachPassHoweverManyAreNear) {
  for (std::uint32_t place = 0; place < kPlaces; ++place)
    for (int i = 0; i < 500; ++i) put(place, kNear);
  intake.open(kNear, false);
  std::vector<bool> seen(kPlaces);
  std::array<NodeName, 256> entries;
  for (std::size_t taken = 0; taken < 100'000;) {
    const std::size_t count = intake.take(entries.data(), entries.size());
    ASSERT_NE(count, 0U);
    for (std::size_t i = 0; i < count; ++i) seen[entries[i].index()] = true;
    taken += count;
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), kPlaces);
}

TEST_F(ManyPlaces, AreKnownByTheEarliestDeadlineThatEachGotSince) {
  EXPECT_EQ(intake.earliest_waiting(), kLater);
  for (std::uint32_t place = 0; place < kPlaces; place += 3) {
    put(place, kLater - 2 * place);
    EXPECT_EQ(intake.earliest_waiting(), kLater - 2 * place);
  }
  put(1, kLater + 50);
  EXPECT_EQ(intake.earliest_waiting(), kLater - 2 * 999);
}

TEST_F(ManyPlaces, StayInAnOpenedRoundAndAreListedAgainAfterTheyWereTaken) {
  intake.open(kNear, true);
  std::array<NodeName, 7> entries;
  ASSERT_EQ(intake.take(entries.data(), entries.size()), entries.size());
  put(3, kLater);
  intake.open(kNear, true);
  EXPECT_EQ(take().size(), kPlaces * kEntries + 1 - entries.size());
  put(5, kLater);
  EXPECT_EQ(intake.earliest_waiting(), kLater);
  intake.open(kLater, false);
  EXPECT_EQ(take(), std::vector<std::uint32_t>{5});
}

TEST(PairingHeap, HasTheLeastKeyOnTop) {
  struct Element {
    internal::HeapLinks<Element> links;
    std::multimap<std::int64_t, Element*>::iterator entry;
  };
  std::vector<Element> elements(500);
  internal::PairingHeap<Element, &Element::links> heap;
  std::multimap<std::int64_t, Element*> expected;
  std::mt19937_64 random(7);
  for (int step = 0; step < 100'000; ++step) {
    Element& element = elements[random() % elements.size()];
    const auto key = static_cast<std::int64_t>(random() % 10'000) - 5000;
    const bool remove = random() % 3 == 0;
    if (element.links.is_in) expected.erase(element.entry);
    if (remove && element.links.is_in) {
      heap.remove(element);
    } else {
      heap.insert(element, key);
      element.entry = expected.emplace(key, &element);
    }
    ASSERT_EQ(heap.top() == nullptr, expected.empty());
    if (!expected.empty()) {
      ASSERT_EQ(heap.top()->links.key, expected.begin()->first);
    }
  }
  while (heap.top() != nullptr) {
    ASSERT_EQ(heap.top()->links.key, expected.begin()->first);
    expected.erase(heap.top()->entry);
    heap.remove(*heap.top());
  }
  EXPECT_TRUE(expected.empty());
}

/// A timer whose passes the test makes.
class Passes : public testing::Test {
 protected:
  using Pass = ThreadlessTimer::Worker::Pass;

  void add(int count, When when = kFar) {
    for (int i = 0; i < count; ++i) timer.add([] {}, when);
  }
  std::int64_t backlog() { return timer.core().stats().backlog; }
  /// Whether a producer has called the worker.
  bool is_called() { return (timer.core().inbox().asked() & Inbox::kEverything) != 0; }
  void make_all() {
    while (worker.transfer() != Pass::Done) {
    }
  }

  ThreadlessTimer timer;
  ThreadlessTimer::Worker& worker = timer.worker();
};
class APass : public Passes {};
class AProducer : public Passes {};

TEST_F(APass, TakesRecheckRequestsAndLeavesFarTimeouts) {
  std::vector<Timeout> in_wheel = far_timeouts(timer, 100);
  // The base class of timers knows only the number of pending timeouts.
  EXPECT_EQ(timer.Timer::stats().pending, 100);
  EXPECT_EQ(timer.Timer::lateness().count(), 0);
  worker.transfer();
  add(50);
  cancel_all(in_wheel);
  EXPECT_EQ(worker.transfer(0, false), Pass::Done);
  EXPECT_EQ(backlog(), 50);
  EXPECT_EQ(worker.transfer(0, true), Pass::Done);
  EXPECT_EQ(backlog(), 0);
}

/// So that a flood does not keep the worker from running tasks. Without a time, transfer() takes all as near.
TEST_F(APass, TakesAtMost8192FarTimeoutsAnd100000NearOnes) {
  add(20'000);
  EXPECT_EQ(worker.transfer(0, true), Pass::More);
  EXPECT_EQ(backlog(), 20'000 - 8192);
  EXPECT_EQ(worker.transfer(0, true), Pass::More);
  EXPECT_EQ(worker.transfer(0, true), Pass::Done);
  EXPECT_EQ(backlog(), 0);
  add(150'000);
  EXPECT_EQ(worker.transfer(), Pass::More);
  EXPECT_EQ(backlog(), 50'000);
  EXPECT_EQ(worker.transfer(), Pass::Done);
  EXPECT_EQ(backlog(), 0);
}

/// Later ones wait for the next pass, so that a thread that cancels on and on does not keep the worker in this one.
TEST_F(APass, TakesAllRecheckRequestsThatCameBeforeIt) {
  std::array<Node*, 4> nodes;
  for (Node*& node : nodes) node = Node::of(timer.find(timer.add(must_not_run, kFar)));
  Inbox inbox;
  Intake intake(inbox);
  Inbox::Place place;
  const auto request = [&](Node* node) {
    EXPECT_TRUE(Inbox::reserve_recheck(place));
    Inbox::put_recheck(place, *node);
    inbox.list_rechecks(place);
  };
  for (const std::size_t most : {1, 2}) {
    for (std::size_t i = 0; i < 3; ++i) request(nodes[i]);
    intake.open(0, false);
    std::array<Node*, 4> taken{};
    for (std::size_t count = 0; count < 3;) {
      EXPECT_TRUE(intake.any());
      const std::size_t more = intake.take_rechecks(&taken[count], most);
      ASSERT_NE(more, 0U) << count;
      if (count == 0) request(nodes[3]);
      count += more;
    }
    EXPECT_EQ(taken, (std::array<Node*, 4>{nodes[0], nodes[1], nodes[2], nullptr}));
    EXPECT_FALSE(intake.any());
    intake.open(0, false);
    EXPECT_EQ(intake.take_rechecks(taken.data(), most), 1U);
    EXPECT_EQ(taken[0], nodes[3]);
    EXPECT_EQ(intake.take_rechecks(taken.data(), most), 0U);
  }
}

/// More were moved to one tick than a pass may move.
TEST_F(APass, ThatDoesNotFinishMakesNoTimeoutATickLate) {
  constexpr int kMoved = 10'000;
  for (const auto delay : {1ms, 5ms}) {
    int ran = 0;
    std::vector<Timeout> moved;
    for (int i = 0; i < kMoved; ++i) moved.push_back(timer.new_timeout([&] { ++ran; }, kFar));
    make_all();
    for (Timeout& timeout : moved) EXPECT_TRUE(timeout.reschedule(delay));
    EXPECT_EQ(worker.transfer(), Pass::More);
    const internal::Tick due = worker.next_due();
    worker.expire(due, 0);
    EXPECT_EQ(ran, 8192);
    EXPECT_EQ(worker.transfer(), Pass::Done);
    EXPECT_EQ(worker.next_due(), due);
    worker.expire(due, 0);
    EXPECT_EQ(ran, kMoved);
  }
}

/// The first part has entered a tick that has not expired when the second part comes.
TEST_F(APass, ThatDoesNotFinishKeepsTheOrderOfOneThread) {
  constexpr int kTimeouts = 100'001;
  add(1, steady_clock::time_point(5ms));
  EXPECT_EQ(worker.transfer(), Pass::Done);
  worker.expire(worker.next_due(), 0);
  std::vector<int> order;
  for (int i = 0; i < kTimeouts; ++i) timer.add([&order, i] { order.push_back(i); }, steady_clock::time_point(1ms));
  EXPECT_EQ(worker.transfer(), Pass::More);
  EXPECT_EQ(worker.transfer(), Pass::Done);
  timer.expire_all();
  EXPECT_EQ(order.size(), kTimeouts);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

/// The producer sifts its place, so the worker can take nothing from it.
TEST_F(APass, ThatIsHeldUpMakesNoTimeoutLater) {
  constexpr internal::Tick kLater = 100;
  add(1, 1ms);
  Inbox::sift(internal::thread_cache::latest.producer->place, 1, [&](const NodeName&) {
    EXPECT_EQ(worker.transfer(), Pass::HeldUp);
    worker.close_before(kLater);
    return true;
  });
  EXPECT_EQ(worker.transfer(), Pass::Done);
  EXPECT_LE(worker.next_due(), 1);
  timer.expire_all();
  worker.close_before(kLater);
  add(1, 1ms);  // comes too late for its own tick
  EXPECT_EQ(worker.transfer(), Pass::Done);
  EXPECT_EQ(worker.next_due(), kLater);
}

TEST_F(APass, ThatIsResumedTakesOnlyWhatCameBeforeItBegan) {
  add(120'000, 1ms);
  EXPECT_EQ(worker.transfer(), Pass::More);
  add(60'000, 1ms);
  EXPECT_EQ(worker.resume(), Pass::Done);
  EXPECT_EQ(backlog(), 60'000);
}

/// Many threads ask for far more than a pass handles, and one of them has a timeout that is due earlier now.
TEST_F(APass, HandlesRecheckRequestsOfEachThread) {
  constexpr std::size_t kPlaces = 500;
  Node* const node = Node::of(timer.find(timer.add(must_not_run, kFar)));
  Inbox inbox;
  Intake intake(inbox);
  std::vector<Inbox::Place> places(kPlaces);
  for (Inbox::Place& place : places) {
    for (int i = 0; i < 300; ++i) {
      ASSERT_TRUE(Inbox::reserve_recheck(place));
      Inbox::put_recheck(place, *node);
    }
    inbox.list_rechecks(place);
  }
  intake.open(0, false);
  // Each turn gives requests of one place. Together they are at most a pass: 8,192.
  std::array<Node*, 256> nodes;
  std::size_t taken = 0;
  for (std::size_t turn = 0; turn < kPlaces; ++turn) taken += intake.take_rechecks(nodes.data(), nodes.size());
  EXPECT_GE(taken, kPlaces);
  EXPECT_LE(taken, 8192U);
}

/// The worker takes the first ones while the producer sifts, or at another time.
TEST(AnyProducer, CallsTheWorkerAgainAfterAtMost65536MoreFarTimeouts) {
  for (int first = 150'000; first < 400'000; first += kSanitized ? 80'000 : 10'000) {
    ThreadlessTimer timer;
    const auto add = [&](int count) {
      for (int i = 0; i < count; ++i) timer.add(must_not_run, kFar);
      return (timer.core().inbox().asked() & Inbox::kEverything) != 0;
    };
    ASSERT_TRUE(add(first));
    for (int times = 0; times < 3; ++times) {
      while (timer.worker().transfer() != ThreadlessTimer::Worker::Pass::Done) {
      }
      ASSERT_FALSE(add(0));
      EXPECT_TRUE(add(65'536)) << first << ", " << times;
    }
  }
}

/// The place of that queue is listed for a later time.
TEST_F(AProducer, AsksForAPassAtOnceWhenItMovesATimeoutOfAnotherQueueNearer) {
  add(1);
  Timeout timeout;
  std::jthread([&] { timeout = timer.new_timeout([] {}, kFar); }).join();
  EXPECT_TRUE(timeout.reschedule(2 * kFar));
  EXPECT_EQ(timer.core().inbox().asked() & Inbox::kUrgent, 0U);
  EXPECT_TRUE(timeout.reschedule(1ms));
  EXPECT_NE(timer.core().inbox().asked() & Inbox::kUrgent, 0U);
}

TEST_F(AProducer, DoesNotCallTheWorkerWhenMostTimeoutsAreCancelledAgain) {
  const std::vector<TimeoutId> ids = far_ids(timer, 200'000);
  ASSERT_TRUE(is_called());
  for (const TimeoutId id : ids) timer.cancel(id);
  const auto churn = [&] {
    for (int i = 0; i < 200'000; ++i) timer.cancel(timer.add(must_not_run, kFar));
  };
  churn();
  timer.core().inbox().take_requests(Inbox::kEverything);
  churn();
  EXPECT_FALSE(is_called());
}

/// With so many in flight that a sift has several steps.
TEST_F(AProducer, HasRoomForFourTimesThePendingTimeouts) {
  constexpr std::size_t kPending = 3000;
  std::vector<TimeoutId> ring = far_ids(timer, kPending);
  std::int64_t most = 0;
  const auto turn = [&](std::size_t times) {
    for (std::size_t i = 0; i < times; ++i) {
      TimeoutId& oldest = ring[i % ring.size()];
      timer.cancel(oldest);
      oldest = timer.add(must_not_run, kFar);
      most = std::max(most, backlog());
    }
  };
  const Growth growth;
  turn(30'000);
  EXPECT_LE(most, 4 * kPending);
  EXPECT_LE(growth.now(), (4 * kPending - 4096) * 8 + 2000) << "there was room for 4,096 before";
  without_memory([&] { EXPECT_NO_THROW(turn(100'000)); });
}

/// All are alive, so sifts end when there are 16,384 entries, 65,536 and 131,072.
TEST_F(AProducer, ThatIsNewCallsTheWorkerWhen60000TimeoutsWereAliveAtTwoSifts) {
  int scheduled = 0;
  for (; !is_called() && scheduled < 1'000'000; ++scheduled) add(1);
  EXPECT_GT(scheduled, 65'536);
  EXPECT_LE(scheduled, 131'072);
}

/// Otherwise one call in a hundred thousand would take milliseconds.
TEST_F(AProducer, LooksAtFewEntriesInEachCall) {
  add(1);
  std::size_t seen = 0, most = 0;
  for (int i = 0; i < 100'000; ++i) {
    const std::size_t before = seen;
    add(1);
    timer.core().producers().for_each([&](const internal::Producer& producer) { seen = producer.seen; });
    if (seen > before) most = std::max(most, seen - before);
  }
  EXPECT_EQ(most, internal::Tuning::kSiftStep);
}

/// Timeouts that another thread has cancelled would otherwise keep their nodes until the earliest deadline. The passes
/// between leave far timeouts to their producers.
TEST(AWorker, TakesAllFromTimeToTime) {
  HierarchicalWheelTimer timer(1ms);  // a HashedWheelTimer would wake up for a bucket now and then
  std::jthread keeps_it_awake([&](const std::stop_token& over) {
    while (!over.stop_requested()) {
      timer.new_timeout([] {}, 1ms);
      std::this_thread::sleep_for(5ms);
    }
  });
  const auto add_far = [&] {
    for (int i = 0; i < 1000; ++i) timer.add(must_not_run, kFar);
  };
  const auto taken = [&] { return timer.stats().backlog < 1000; };
  int left = 0;
  for (int round = 0; round < 20 && left < 2; ++round) {  // a round does not count if this thread is preempted for long
    add_far();
    if (!eventually(taken, 300ms)) ++left;
    ASSERT_TRUE(eventually(taken));
  }
  EXPECT_EQ(left, 2);
  add_far();
  std::this_thread::sleep_for(50ms);  // some passes
  keeps_it_awake.request_stop();
  keeps_it_awake.join();
  EXPECT_TRUE(eventually([&] { return timer.stats().backlog == 0; })) << "the worker must wake up by itself for these";
}

/// Each of the threads has too few timeouts to call the worker, and does nothing more.
TEST(NearFirst, TimeoutsThatAnotherThreadCancelsGiveTheirMemoryBack) {
  constexpr int kThreads = 3, kOfEach = 12'000;
  HashedWheelTimer timer(1ms);
  const TimeoutId far = timer.add(must_not_run, 30min);
  call_worker(Node::of(timer.find(far))->core());
  // A pass has taken all. The worker sleeps now, until something is due earlier.
  ASSERT_TRUE(eventually([&] { return timer.stats().backlog == 0; }));
  std::vector<std::vector<TimeoutId>> ids(kThreads);
  StayingThreads threads;
  for (auto& mine : ids) threads.call([&] { mine = far_ids(timer, kOfEach); });
  for (const auto& of_one : ids) {
    for (const TimeoutId id : of_one) EXPECT_EQ(timer.cancel(id), CancelResult::Cancelled);
  }
  EXPECT_TRUE(eventually([&] { return timer.stats().backlog <= kOfEach; })) << timer.stats().backlog;
}

}  // namespace
}  // namespace hwt::test
