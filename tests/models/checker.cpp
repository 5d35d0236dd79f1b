// Shipped code under relacy, unchanged. The library's sources and the model are compiled with -fsanitize=thread. So the
// compiler inserts a call before each memory access, and in place of each atomic operation. This file defines the
// called functions, instead of ThreadSanitizer. It turns each atomic operation into one of relacy's. relacy chooses the
// thread that goes on, and the value that a load returns among those that the memory model allows. The checker reports
// data races, uses after the end, and leaks.
//
// This file itself is compiled without instrumentation. `watching` is true only while a thread of the model runs code
// of the model or of the library.

#include "checker.h"

// Before relacy, which makes macros of standard names.
#include <condition_variable>
#include <mutex>

// clang-format off: relacy's own order
#include <relacy/base.hpp>
#include <relacy/thread_local_ctx.hpp>
#include <relacy/context_base.hpp>
// clang-format on
namespace model {
void failed(const char* what, int result, unsigned long long schedule);
}
// What relacy does first when it has found something.
#undef RL_DEBUGBREAK_ON_FAILURE_IMPL
#define RL_DEBUGBREAK_ON_FAILURE_IMPL model::failed(desc, res, current_iter_)
#include <relacy/relacy.hpp>
#undef assert
#undef calloc
#undef delete
#undef errno
#undef free
#undef malloc
#undef new
#undef realloc
#undef pthread_mutex_t
#undef pthread_t
#undef sched_yield

#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

extern "C" const char __executable_start;

namespace model {
namespace {

// --- Where an order stands, and how it is weakened ------------------------------------------------------------------

enum class Kind : std::uint8_t { Load, Store, Exchange, Add, Sub, And, Or, Xor, Weak, Strong, Light, Heavy, Full };
constexpr std::array kKinds = {"load",
                               "store",
                               "exchange",
                               "fetch_add",
                               "fetch_sub",
                               "fetch_and",
                               "fetch_or",
                               "fetch_xor",
                               "compare_exchange_weak",
                               "compare_exchange_strong",
                               "light",
                               "heavy",
                               "full"};
constexpr std::array kOrders = {"relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst"};

/// An operation in the program: the address to which its call returns; of a fence, file and line.
struct Place {
  std::uintptr_t address;
  const char* file;
  unsigned line;
  Kind kind;
  rl::memory_order order;
  rl::memory_order failure;
  // The weakened orders.
  rl::memory_order weakened;
  rl::memory_order weakened_failure;
  bool gone;
};

/// All places that the runs have met. A child process of start() adds them in shared memory. Then check() copies them,
/// so that later children have copies of their own, each with one order weakened.
struct Places {
  std::array<Place, 4096> table;
};
Places* places;

bool is_fence(Kind kind) { return kind == Kind::Light || kind == Kind::Heavy || kind == Kind::Full; }

Place& place_at(std::uintptr_t address, Kind kind, int order, int failure, const char* file = nullptr,
                unsigned line = 0) {
  constexpr std::size_t kSize = std::tuple_size_v<decltype(Places::table)>;
  for (std::size_t i = (address ^ address >> 12 ^ line * 977) % kSize;; i = (i + 1) % kSize) {
    Place& place = places->table[i];
    if (place.address == address && place.line == line) return place;
    if (place.address != 0) continue;
    const auto success_order = static_cast<rl::memory_order>(order);
    const auto failure_order = static_cast<rl::memory_order>(failure);
    place = {address, file, line, kind, success_order, failure_order, success_order, failure_order, false};
    return place;
  }
}

// --- What relacy knows of memory ------------------------------------------------------------------------------------

constexpr int kMaxThreads = 4;
bool watching = false;

rl::context& context() { return rl::ctx(); }

/// A value of any width. Made with the value that memory has when it is first used as an atomic.
struct Bits {
  static inline std::uint64_t first = 0;
  std::uint64_t value;

  Bits() : value(first) {}
  Bits(std::uint64_t bits) : value(bits) {}  // NOLINT(google-explicit-constructor): relacy computes with it
  operator std::uint64_t() const { return value; }
};
using Atomic = rl::generic_atomic<Bits, true>;

template <auto Member>
struct Open {
  friend auto open_impl() { return Member; }
};
auto open_impl();
template struct Open<&Atomic::impl_>;

struct Cell {
  std::uintptr_t address;
  bool stale;  // it has been written as plain memory since: an object is constructed there anew
  alignas(Atomic) std::array<std::byte, sizeof(Atomic)> storage;
  Atomic& atomic() { return *std::launder(reinterpret_cast<Atomic*>(storage.data())); }
};

/// Eight bytes of memory: the last writer of each, and the time of each thread's last read, by relacy's clock of that
/// thread. An atomic operation counts as a read, so only a plain write or a free races with it.
struct Word {
  std::uintptr_t address;
  std::array<std::int8_t, 8> writer;
  std::array<std::uint32_t, 8> written;
  std::array<std::array<std::uint32_t, 8>, kMaxThreads> read;
  std::uint8_t freed;   // a bit for each
  std::uint8_t atomic;  // where cells begin
};

/// Open addressing, emptied at the end of each run. (Memory from the heap, relacy would count.)
template <class Entry, std::size_t kSize>
class Table {
 public:
  Entry* find(std::uintptr_t address) {
    Entry& entry = at(address);
    return entry.address == address ? &entry : nullptr;
  }
  Entry& add(std::uintptr_t address) {
    Entry& entry = at(address);
    if (entry.address == address) return entry;
    if (used_.size() > kSize / 2) std::abort();
    used_.push_back(static_cast<std::uint32_t>(&entry - entries_.data()));
    entry.address = address;
    return entry;
  }
  template <class Visit>
  void clear(Visit&& visit) {
    for (const std::uint32_t i : used_) {
      visit(entries_[i]);
      entries_[i] = Entry{};
    }
    used_.clear();
  }

 private:
  Entry& at(std::uintptr_t address) {
    for (std::size_t i = (address / 8 * 0x9e3779b97f4a7c15) >> 40;; ++i) {
      Entry& entry = entries_[i % kSize];
      if (entry.address == 0 || entry.address == address) return entry;
    }
  }

  std::array<Entry, kSize> entries_{};
  std::vector<std::uint32_t, rl::raw_allocator<std::uint32_t>> used_;
};
Table<Cell, 1 << 12> cells;
Table<Word, 1 << 15> words;

// Less than relacy's 64 KiB: stack_ends is somewhat below the end of a stack, and other objects lie below the stack.
constexpr std::uintptr_t kStack = 60 << 10;
std::array<std::uintptr_t, kMaxThreads> stack_ends;

bool on_own_stack(std::uintptr_t address) {
  const std::uintptr_t end = stack_ends[static_cast<unsigned>(context().threadx_->index_)];
  return address < end && address >= end - kStack;
}

/// The thread_locals of the program. They lie in one block for each thread of the system. All threads of a model run on
/// one thread of the system. So the block is saved and restored when another thread of the model goes on.
class ThreadLocals {
 public:
  ThreadLocals() {
    dl_iterate_phdr(
        [](dl_phdr_info* object, std::size_t, void* self) {
          for (int i = 0; i < object->dlpi_phnum; ++i) {
            if (object->dlpi_phdr[i].p_type == PT_TLS) static_cast<ThreadLocals*>(self)->find(object->dlpi_phdr[i]);
          }
          return 1;  // the first object is the program
        },
        this);
    begin();
  }

  bool contain(std::uintptr_t address) const { return address - reinterpret_cast<std::uintptr_t>(here_) < size_; }
  void begin() const {
    for (auto& each : kept_) std::copy_n(initial_.data(), size_, each.data());
  }
  void keep(int thread) const { std::copy_n(here_, size_, kept_[static_cast<unsigned>(thread)].data()); }
  void put_back(int thread) const { std::copy_n(kept_[static_cast<unsigned>(thread)].data(), size_, here_); }

 private:
  static constexpr std::size_t kMost = 1024;

  void find(const ElfW(Phdr) & segment) {
    const std::size_t align = std::max<std::size_t>(segment.p_align, 1);
    size_ = (segment.p_memsz + align - 1) / align * align;
    if (size_ > kMost) std::abort();
    here_ = static_cast<std::byte*>(__builtin_thread_pointer()) - size_;
    std::copy_n(here_, size_, initial_.data());
  }

  std::byte* here_ = nullptr;
  std::size_t size_ = 0;
  std::array<std::byte, kMost> initial_{};
  mutable std::array<std::array<std::byte, kMost>, kMaxThreads> kept_{};
};
const ThreadLocals thread_locals;

/// Lives while a thread of the model is inside the checker or relacy. Another thread may go on meanwhile.
class Outside {
 public:
  Outside() : thread_(context().threadx_->index_), watched_(std::exchange(watching, false)) {
    thread_locals.keep(thread_);
  }
  ~Outside() {
    thread_locals.put_back(thread_);
    watching = watched_;
  }
  Outside(const Outside&) = delete;
  Outside& operator=(const Outside&) = delete;

 private:
  const int thread_;
  const bool watched_;
};

[[noreturn]] void fail_test(const char* what, rl::test_result_e result) {
  watching = false;
  context().fail_test(what, result, rl::debug_info("", "", 0));
  std::abort();  // not reached: this thread is never resumed
}

enum class Access : std::uint8_t { Read, Write, Free, Atomic };

bool is_freed(std::uintptr_t address);

void access(std::uintptr_t address, std::size_t size, Access kind) {
  rl::thread_info_base& thread = *context().threadx_;
  const auto self = static_cast<std::size_t>(thread.index_);
  const int threads = context().get_thread_count();
  const auto now = static_cast<std::uint32_t>(thread.own_acq_rel_order_ += 1);
  for (const std::uintptr_t end = address + size; address < end;) {
    const std::size_t from = address & 7;
    const std::size_t to = std::min<std::size_t>(8, from + (end - address));
    Word* const known = words.find(address - from);
    if (known == nullptr && kind == Access::Free) {
      address += to - from;
      continue;
    }
    if (known == nullptr && is_freed(address)) fail_test("memory that was freed", rl::test_result_data_race);
    Word& word = known != nullptr ? *known : words.add(address - from);
    for (std::size_t i = from; i < to; ++i) {
      if ((word.freed >> i & 1) != 0) fail_test("memory that was freed", rl::test_result_data_race);
      if (thread.acq_rel_order_[word.writer[i]] < word.written[i]) fail_test("write", rl::test_result_data_race);
      if (kind == Access::Read || kind == Access::Atomic) {
        word.read[self][i] = now;
        continue;
      }
      for (int other = 0; other < threads; ++other) {
        if (thread.acq_rel_order_[other] < word.read[static_cast<std::size_t>(other)][i]) {
          fail_test("read", rl::test_result_data_race);
        }
      }
      word.writer[i] = static_cast<std::int8_t>(self);
      word.written[i] = now;
      if (kind == Access::Free) word.freed |= static_cast<std::uint8_t>(1 << i);
      if ((word.atomic >> i & 1) != 0) cells.find(word.address + i)->stale = true;
    }
    address += to - from;
  }
}

/// Marks all values of a new atomic as seen by no thread. Otherwise the first value counts as seen by the thread that
/// makes the atomic, and relacy leaves the other marks uninitialised.
template <int kThreads>
void begin_history(Atomic& atomic) {
  auto& data = *static_cast<rl::atomic_data_impl<kThreads>*>(atomic.*open_impl());
  for (auto& record : data.history_) {
    for (auto& seen : record.first_seen_order_) seen = static_cast<rl::timestamp_t>(-1);
  }
}
void (*begin_history_of)(Atomic&);

template <class T>
Atomic& atomic_at(const volatile T* address) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  access(number, sizeof(T), Access::Atomic);
  Cell* cell = cells.find(number);
  if (cell != nullptr && !cell->stale) return cell->atomic();
  if (cell != nullptr) {
    cell->atomic().~Atomic();
    cell->stale = false;
  } else {
    cell = &cells.add(number);
    words.find(number & ~std::uintptr_t{7})->atomic |= static_cast<std::uint8_t>(1 << (number & 7));
  }
  Bits::first = *address;
  Atomic& atomic = *::new (cell->storage.data()) Atomic;
  begin_history_of(atomic);
  return atomic;
}

void plain(void* pointer, std::size_t size, Access kind) {
  if (!watching) return;
  watching = false;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  if (!on_own_stack(address) && !thread_locals.contain(address)) access(address, size, kind);
  watching = true;
}

// --- Memory from the heap -------------------------------------------------------------------------------------------

struct Block {
  std::uint64_t mark;  // there is none ahead of memory that is not of a run
  Block* next;         // of those that were freed in this run
  std::size_t size;
  void* memory;
};
constexpr std::uint64_t kMark = 0x6d6f64656c206f66;
bool in_run = false;
Block* freed_blocks;
std::size_t live_blocks;

bool is_freed(std::uintptr_t address) {
  for (Block* block = freed_blocks; block != nullptr; block = block->next) {
    if (address - reinterpret_cast<std::uintptr_t>(block + 1) < block->size) return true;
  }
  return false;
}

Block& block_of(void* pointer) { return static_cast<Block*>(pointer)[-1]; }

void* allocate(std::size_t size, std::size_t align) {
  if (!in_run) return std::aligned_alloc(align, (size + align - 1) / align * align);
  const std::size_t ahead = std::max(align, sizeof(Block));
  void* memory = nullptr;
  if (posix_memalign(&memory, std::max<std::size_t>(align, 16), ahead + size) != 0) std::abort();
  void* const pointer = static_cast<std::byte*>(memory) + ahead;
  block_of(pointer) = {kMark, nullptr, size, memory};
  ++live_blocks;
  return pointer;
}

/// The memory stays allocated until the end of the run, so that later uses are found and no other block gets it.
void deallocate(void* pointer) {
  if (pointer == nullptr) return;
  Block& block = block_of(pointer);
  if (block.mark != kMark) return std::free(pointer);
  plain(pointer, block.size, Access::Free);
  --live_blocks;
  block.next = std::exchange(freed_blocks, &block);
}

void end_memory() {
  while (freed_blocks != nullptr) std::free(std::exchange(freed_blocks, freed_blocks->next)->memory);
  if (live_blocks != 0) fail_test("", rl::test_result_memory_leak);
}

// --- A run ----------------------------------------------------------------------------------------------------------

enum class Fences { EachSide, HeavySide };
Fences fences;
const Plan* plan;

/// The functions to call at the end of a thread.
struct End {
  void (*call)(void*) = nullptr;
  void* value = nullptr;
};
void (*end_of_threads)(void*);
std::array<End, kMaxThreads> ends;

unsigned this_thread() { return static_cast<unsigned>(context().threadx_->index_); }

template <int kThreads>
struct Suite : rl::test_suite<Suite<kThreads>, kThreads> {
  Run* run = nullptr;

  void before() {
    thread_locals.begin();
    ends.fill({});
    in_run = true;
    enter(false, [this] { run = plan->make(); });
  }
  void thread(unsigned index) {
    enter(true, [this, index] {
      run->thread(index);
      end_thread();
    });
  }
  void after() {
    enter(false, [this] {
      run->after();
      delete run;
      end_thread();
    });
    in_run = false;
    cells.clear([](Cell& cell) { cell.atomic().~Atomic(); });
    words.clear([](Word&) {});
    end_memory();
  }

  static void end_thread() {
    End& end = ends[this_thread()];
    if (void* const value = std::exchange(end.value, nullptr)) end.call(value);
  }

  /// Before the threads begin and after they have ended nothing needs to be watched.
  template <class Do>
  [[gnu::noinline]] static void enter(bool watched, Do&& what) {
    const int thread = context().threadx_->index_;
    thread_locals.put_back(thread);
    stack_ends[this_thread()] = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    watching = watched;
    what();
    watching = false;
    thread_locals.keep(thread);
  }
};

template <int kThreads>
void fence_everywhere() {
  rl::atomic_thread_fence(rl::mo_seq_cst, RL_INFO);
  if (fences == Fences::EachSide) return;
  // relacy has no fence for another thread. But it keeps the states of all threads of the model in an array.
  using Thread = rl::thread_info<kThreads>;
  auto* const threads =
      static_cast<rl::aligned<Thread>*>(static_cast<Thread*>(context().threadx_)) - context().threadx_->index_;
  for (int i = 0; i != kThreads; ++i) threads[i].atomic_thread_fence_seq_cst(context().seq_cst_fence_order_);
  rl::atomic_thread_fence(rl::mo_seq_cst, RL_INFO);
}
void (*fence_everywhere_of)();

template <int kThreads>
bool simulate(rl::test_params& params) {
  begin_history_of = &begin_history<kThreads>;
  fence_everywhere_of = &fence_everywhere<kThreads>;
  return rl::simulate<Suite<kThreads>>(params);
}

// --- Atomic operations ----------------------------------------------------------------------------------------------

template <class T>
T as(Bits bits) {
  return static_cast<T>(bits.value);
}

bool shows = false;  // each step

/// An operation: another thread may go on before it, but none amid it.
struct Step {
  const Outside outside;
  const Place& place;

  explicit Step(const Place& its_place) : place(its_place) {
    if (plan->pauses && context().rand(32, rl::sched_type_user) == 0) linger();
    context().sched();
    context().disable_preemption();
  }
  ~Step() { context().enable_preemption(); }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  template <class T>
  void note(const volatile T* address, T value) const {
    if (!shows) return;
    std::printf("  thread %d: %s %s of %p: %#llx, at %#zx\n", context().threadx_->index_,
                kKinds[static_cast<unsigned>(place.kind)], kOrders[place.weakened],
                static_cast<const void*>(const_cast<const T*>(address)), static_cast<unsigned long long>(value),
                place.address - reinterpret_cast<std::uintptr_t>(&__executable_start) - 1);
  }
};

template <class T>
T load(const volatile T* address, int order, void* caller) {
  if (!watching) return *address;
  const Step step(place_at(reinterpret_cast<std::uintptr_t>(caller), Kind::Load, order, 0));
  const T value = as<T>(atomic_at(address).load(step.place.weakened, RL_INFO));
  step.note(address, value);
  return value;
}

template <class T>
void store(volatile T* address, T value, int order, void* caller) {
  if (!watching) {
    *address = value;
    return;
  }
  const Step step(place_at(reinterpret_cast<std::uintptr_t>(caller), Kind::Store, order, 0));
  atomic_at(address).store(value, step.place.weakened, RL_INFO);
  *address = value;
  step.note(address, value);
}

template <class T, class Changed>
T change(Kind kind, volatile T* address, const Changed& changed, int order, void* caller) {
  if (!watching) return std::exchange(*const_cast<T*>(address), changed(*address));
  const Step step(place_at(reinterpret_cast<std::uintptr_t>(caller), kind, order, 0));
  Atomic& atomic = atomic_at(address);
  const T before = as<T>(atomic.debug_value());
  const T after = changed(before);
  atomic.exchange(after, step.place.weakened, RL_INFO);
  *address = after;
  step.note(address, after);
  return before;
}

template <class T>
bool compare_exchange(Kind kind, volatile T* address, T* expected, T desired, int order, int failure, void* caller) {
  if (!watching) {
    const bool equal = *address == *expected;
    (equal ? *const_cast<T*>(address) : *expected) = equal ? desired : *address;
    return equal;
  }
  const Step step(place_at(reinterpret_cast<std::uintptr_t>(caller), kind, order, failure));
  Atomic& atomic = atomic_at(address);
  const Bits current = atomic.debug_value();
  const bool spurious = kind == Kind::Weak && context().rand(4, rl::sched_type_cas_fail) == 0;
  const bool success = as<T>(current) == *expected && !spurious;
  if (success) {
    atomic.exchange(desired, step.place.weakened, RL_INFO);
    *address = desired;
  } else {
    // Fails in any case, and then is a load of the latest value.
    Bits other = ~current.value;
    atomic.compare_exchange_strong(other, other, step.place.weakened_failure, RL_INFO);
    *expected = as<T>(current);
  }
  step.note(address, success ? desired : as<T>(current));
  return success;
}

void fence(Kind kind, const char* file, unsigned line) {
  if (!watching) return;
  const Outside outside;
  if (!place_at(reinterpret_cast<std::uintptr_t>(file), kind, rl::mo_seq_cst, 0, file, line).gone) {
    if (kind == Kind::Heavy) {
      fence_everywhere_of();
    } else if (kind == Kind::Full || fences == Fences::EachSide) {
      rl::atomic_thread_fence(rl::mo_seq_cst, RL_INFO);
    }
  }
}

/// Locks the word of a mutex.
std::uint32_t lock(std::uint32_t) { return 1; }

/// Waits at a futex: yields to the other threads and returns, woken or not. A time limit never passes.
long wait_at(std::uint32_t* address, std::uint32_t expected) {
  if (*address == expected) yield();
  return 0;
}

}  // namespace

void light_fence(const char* file, unsigned line) { fence(Kind::Light, file, line); }
void heavy_fence(const char* file, unsigned line) { fence(Kind::Heavy, file, line); }
void full_fence(const char* file, unsigned line) { fence(Kind::Full, file, line); }

unsigned random(unsigned limit) {
  const Outside outside;
  return context().rand(limit, rl::sched_type_user);
}

void yield() {
  const Outside outside;
  context().yield(1, RL_INFO);
}

void linger() {
  for (unsigned steps = 20 * random(2); steps != 0; --steps) {
    const Outside outside;
    context().sched();
  }
}

void fail(const char* what) { fail_test(what, rl::test_result_user_assert_failed); }

}  // namespace model

// --- Called by the compiler ----------------------------------------------------------------------------------------

using model::Access;
using model::Kind;

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_read(void** p) { model::plain(p, sizeof *p, Access::Read); }
void __tsan_vptr_update(void** p, void*) { model::plain(p, sizeof *p, Access::Write); }
void __tsan_read_range(void* p, std::size_t size) { model::plain(p, size, Access::Read); }
void __tsan_write_range(void* p, std::size_t size) { model::plain(p, size, Access::Write); }
void __tsan_atomic_signal_fence(int) {}
void __tsan_atomic_thread_fence(int) { model::fail("a fence that is not AsymmetricFence's"); }

#define PLAIN(size)                                                                    \
  void __tsan_read##size(void* p) { model::plain(p, size, Access::Read); }             \
  void __tsan_write##size(void* p) { model::plain(p, size, Access::Write); }           \
  void __tsan_unaligned_read##size(void* p) { model::plain(p, size, Access::Read); }   \
  void __tsan_unaligned_write##size(void* p) { model::plain(p, size, Access::Write); } \
  void __tsan_read_write##size(void* p) { model::plain(p, size, Access::Write); }
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

#define CALLER __builtin_return_address(0)
#define CHANGE(bits, name, kind, changed)                                                                        \
  std::uint##bits##_t __tsan_atomic##bits##_##name(volatile std::uint##bits##_t* p, std::uint##bits##_t operand, \
                                                   int order) {                                                  \
    const auto change = [operand]([[maybe_unused]] std::uint##bits##_t value) {                                  \
      return static_cast<std::uint##bits##_t>(changed);                                                          \
    };                                                                                                           \
    return model::change(Kind::kind, p, change, order, CALLER);                                                  \
  }
#define COMPARE_EXCHANGE(bits, name, kind)                                                                           \
  bool __tsan_atomic##bits##_compare_exchange_##name(volatile std::uint##bits##_t* p, std::uint##bits##_t* expected, \
                                                     std::uint##bits##_t desired, int order, int failure) {          \
    return model::compare_exchange(Kind::kind, p, expected, desired, order, failure, CALLER);                        \
  }
#define ATOMIC(bits)                                                                                        \
  std::uint##bits##_t __tsan_atomic##bits##_load(const volatile std::uint##bits##_t* p, int order) {        \
    return model::load(p, order, CALLER);                                                                   \
  }                                                                                                         \
  void __tsan_atomic##bits##_store(volatile std::uint##bits##_t* p, std::uint##bits##_t value, int order) { \
    model::store(p, value, order, CALLER);                                                                  \
  }                                                                                                         \
  CHANGE(bits, exchange, Exchange, operand)                                                                 \
  CHANGE(bits, fetch_add, Add, value + operand)                                                             \
  CHANGE(bits, fetch_sub, Sub, value - operand)                                                             \
  CHANGE(bits, fetch_and, And, value& operand)                                                              \
  CHANGE(bits, fetch_or, Or, value | operand)                                                               \
  CHANGE(bits, fetch_xor, Xor, value ^ operand)                                                             \
  COMPARE_EXCHANGE(bits, weak, Weak)                                                                        \
  COMPARE_EXCHANGE(bits, strong, Strong)
ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)

// The system's, as far as the library sleeps or waits.

long syscall(long number, ...) {
  if (!model::watching || number != SYS_futex) return -1;
  va_list arguments;
  va_start(arguments, number);
  auto* const address = va_arg(arguments, std::uint32_t*);
  const int operation = va_arg(arguments, int);
  const auto value = va_arg(arguments, std::uint32_t);
  va_end(arguments);
  constexpr int kWait = 0;
  constexpr int kWaitBitset = 9;
  const int command = operation & 127;
  return command == kWait || command == kWaitBitset ? model::wait_at(address, value) : 0;
}
int sched_yield() noexcept {
  if (model::watching) model::yield();
  return 0;
}
int nanosleep(const timespec*, timespec*) {
  if (model::watching) model::yield();
  return 0;
}

int __real_pthread_mutex_lock(pthread_mutex_t*);
int __real_pthread_mutex_trylock(pthread_mutex_t*);
int __real_pthread_mutex_unlock(pthread_mutex_t*);
pthread_t __real_pthread_self();

int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex) {
  if (!model::watching) return __real_pthread_mutex_lock(mutex);
  auto* const taken = reinterpret_cast<std::uint32_t*>(mutex);
  while (model::change(Kind::Exchange, taken, model::lock, rl::mo_acquire, CALLER) != 0) model::yield();
  return 0;
}
int __wrap_pthread_mutex_unlock(pthread_mutex_t* mutex) {
  if (!model::watching) return __real_pthread_mutex_unlock(mutex);
  model::store(reinterpret_cast<std::uint32_t*>(mutex), 0U, rl::mo_release, CALLER);
  return 0;
}
int __wrap_pthread_mutex_trylock(pthread_mutex_t* mutex) {
  if (!model::watching) return __real_pthread_mutex_trylock(mutex);
  auto* const taken = reinterpret_cast<std::uint32_t*>(mutex);
  return model::change(Kind::Exchange, taken, model::lock, rl::mo_acquire, CALLER) == 0 ? 0 : EBUSY;
}
void __real__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(std::condition_variable*,
                                                                      std::unique_lock<std::mutex>*);

/// std::condition_variable::wait(). It may wake for no reason, as long as others run.
void __wrap__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(std::condition_variable* condition,
                                                                      std::unique_lock<std::mutex>* lock) {
  if (!model::watching) return __real__ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(condition, lock);
  pthread_mutex_t* const mutex = lock->mutex()->native_handle();
  __wrap_pthread_mutex_unlock(mutex);
  model::yield();
  __wrap_pthread_mutex_lock(mutex);
}
pthread_t __wrap_pthread_self() {
  return model::watching ? pthread_t{model::this_thread() + 1} : __real_pthread_self();
}
int __wrap_pthread_key_create(pthread_key_t* key, void (*end)(void*)) {
  *key = 0;
  model::end_of_threads = end;
  return 0;
}
int __wrap_pthread_setspecific(pthread_key_t, const void* value) {
  model::ends[model::this_thread()] = {model::end_of_threads, const_cast<void*>(value)};
  return 0;
}

// Replaces operator new and delete in watched code (the linker's --wrap).

void* __wrap__Znwm(std::size_t size) { return model::allocate(size, 16); }
void* __wrap__ZnwmRKSt9nothrow_t(std::size_t size) { return model::allocate(size, 16); }
void* __wrap__ZnwmSt11align_val_t(std::size_t size, std::size_t align) { return model::allocate(size, align); }
void* __wrap__ZnwmSt11align_val_tRKSt9nothrow_t(std::size_t size, std::size_t align) {
  return model::allocate(size, align);
}
void __wrap__ZdlPv(void* pointer) { model::deallocate(pointer); }
void __wrap__ZdlPvSt11align_val_t(void* pointer) { model::deallocate(pointer); }
// Arrays.
void* __wrap__Znam(std::size_t size) { return model::allocate(size, 16); }
void* __wrap__ZnamRKSt9nothrow_t(std::size_t size) { return model::allocate(size, 16); }
void* __wrap__ZnamSt11align_val_t(std::size_t size, std::size_t align) { return model::allocate(size, align); }
void __wrap__ZdaPv(void* pointer) { model::deallocate(pointer); }
void __wrap__ZdaPvSt11align_val_t(void* pointer) { model::deallocate(pointer); }

}  // extern "C"

// --- All runs of a model --------------------------------------------------------------------------------------------

namespace model {
namespace {

/// Nowhere.
class Silence : public std::streambuf {
  int_type overflow(int_type character) override { return traits_type::not_eof(character); }
};

struct Outcome {
  bool passed;
  unsigned long long schedules;
  std::array<char, 80> result;
};
Outcome* outcome;  // of this process

/// Runs in a process of its own, because broken code may crash or hang.
pid_t start(Fences kind, unsigned long long schedules, Outcome& shared, unsigned long long shown = 0) {
  shared = {false, 0, {"died"}};
  std::fflush(stdout);
  if (const pid_t child = fork(); child != 0) return child;
  alarm(300);
  fences = kind;
  outcome = &shared;
  Silence silence;
  std::ostream output(&silence);
  rl::test_params params;
  params.iteration_count = schedules;
  params.output_stream = &output;
  params.progress_stream = &output;
  params.execution_depth_limit = 5000;  // steps; a longer schedule is reported as a livelock
  if (shown != 0) {
    shows = true;
    params.initial_state = std::to_string(shown).c_str();
  }
  switch (plan->threads) {
    case 2:
      simulate<2>(params);
      break;
    case 3:
      simulate<3>(params);
      break;
    default:
      simulate<4>(params);
  }
  outcome->passed = true;
  outcome->schedules = params.stop_iteration;
  std::fflush(stdout);
  std::_Exit(0);
}

/// Returns whether a process with this status took too long. That says nothing about the code that it ran.
bool timed_out(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM; }

Outcome run(Fences kind, unsigned long long schedules, Outcome& shared, unsigned long long shown = 0) {
  int status = 0;
  waitpid(start(kind, schedules, shared, shown), &status, 0);
  if (timed_out(status)) shared.result = {"TIMED OUT"};
  return shared;
}

/// One order of an operation, which may be in the program more than once.
struct Weakening {
  struct Change {
    Place* place;
    rl::memory_order left;
    bool of_failure;
  };
  std::string name;
  std::vector<Change> changes;

  void set(bool on) const {
    for (const auto& [place, left, of_failure] : changes) {
      if (is_fence(place->kind)) {
        place->gone = on;
      } else if (of_failure) {
        place->weakened_failure = on ? left : place->failure;
      } else {
        place->weakened = on ? left : place->order;
      }
    }
  }
};

/// FILE:LINE of each place, in the library itself: inlined standard functions have the compiler's places.
std::map<const Place*, std::string> lines_of_places() {
  std::string command = "addr2line -i -e /proc/" + std::to_string(getpid()) + "/exe -a";
  std::map<std::uintptr_t, std::vector<const Place*>> places_of;
  std::map<const Place*, std::string> lines;
  for (const Place& place : places->table) {
    if (place.address == 0) continue;
    if (is_fence(place.kind)) {
      lines[&place] = std::string(place.file) + ":" + std::to_string(place.line);
      continue;
    }
    const std::uintptr_t address = place.address - reinterpret_cast<std::uintptr_t>(&__executable_start) - 1;
    std::array<char, 32> text;
    std::snprintf(text.data(), text.size(), " %#zx", address);
    command += text.data();
    places_of[address].push_back(&place);
  }
  std::FILE* const answer = popen(command.c_str(), "r");
  std::array<char, 4096> line;
  std::uintptr_t address = 0;
  while (answer != nullptr && std::fgets(line.data(), line.size(), answer) != nullptr) {
    if (std::strncmp(line.data(), "0x", 2) == 0) {
      address = std::strtoull(line.data(), nullptr, 16);
      continue;
    }
    const char* const file = std::strstr(line.data(), "/hashed_wheel_timer/");
    if (file == nullptr) continue;
    std::string found(std::strstr(file, "hashed_wheel_timer/"));
    // The compiler may say which of a line's statements.
    found.erase(found.find_first_of(" \n"));
    for (const Place* const place : places_of[address]) lines.emplace(place, found);
  }
  if (answer != nullptr) pclose(answer);
  return lines;
}

/// The order below seq_cst. relacy takes no acq_rel for a load, and drops a store that has it.
rl::memory_order without_total_order(Kind kind) {
  if (kind == Kind::Load) return rl::mo_acquire;
  return kind == Kind::Store ? rl::mo_release : rl::mo_acq_rel;
}

std::vector<Weakening> weakenings() {
  std::map<std::string, Weakening> all;
  for (const auto& [const_place, line] : lines_of_places()) {
    auto* const place = const_cast<Place*>(const_place);
    const std::size_t begin = line.find("hashed_wheel_timer/");
    if (begin == std::string::npos) continue;
    const auto add = [&](rl::memory_order order, rl::memory_order left, bool of_failure) {
      std::string name = line.substr(begin) + " " + kKinds[static_cast<unsigned>(place->kind)];
      if (!is_fence(place->kind)) {
        name += std::string(of_failure ? " failure " : " ") + kOrders[order] + " " + kOrders[left];
      }
      Weakening& weakening = all[name];
      weakening.name = name;
      weakening.changes.push_back({place, left, of_failure});
    };
    if (is_fence(place->kind)) {
      add(rl::mo_seq_cst, rl::mo_relaxed, false);
      continue;
    }
    if (place->order == rl::mo_acquire || place->order == rl::mo_release) add(place->order, rl::mo_relaxed, false);
    if (place->order == rl::mo_acq_rel) {
      add(place->order, rl::mo_acquire, false);
      add(place->order, rl::mo_release, false);
    }
    if (place->order == rl::mo_seq_cst) add(place->order, without_total_order(place->kind), false);
    if (place->failure == rl::mo_acquire) add(place->failure, rl::mo_relaxed, true);
  }
  std::vector<Weakening> list;
  for (auto& [name, weakening] : all) list.push_back(weakening);
  return list;
}

/// More schedules for a weakened order, because few of them show the fault.
constexpr unsigned kMore = 2;

/// Returns false if a process took too long.
bool weaken(const std::vector<Weakening>& list, Outcome* shared) {
  bool good = true;
  const auto begin = [&](std::size_t i, Fences kind) {
    list[i].set(true);
    const pid_t process = start(kind, kMore * plan->schedules, shared[i]);
    list[i].set(false);
    return process;
  };
  const std::size_t at_once = static_cast<std::size_t>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
  std::map<pid_t, std::pair<std::size_t, Fences>> under_way;
  for (std::size_t next = 0; next != list.size() || !under_way.empty();) {
    if (next != list.size() && under_way.size() < at_once) {
      // HeavySide first, because a light fence may hide that an order is missing. Only EachSide shows a missing light
      // fence.
      under_way[begin(next, Fences::HeavySide)] = {next, Fences::HeavySide};
      ++next;
      continue;
    }
    int status = 0;
    const pid_t ended = wait(&status);
    const auto [i, kind] = under_way[ended];
    under_way.erase(ended);
    if (timed_out(status)) {
      shared[i].result = {"TIMED OUT"};
      good = false;
    }
    if (kind == Fences::HeavySide && shared[i].passed) {
      under_way[begin(i, Fences::EachSide)] = {i, Fences::EachSide};
      continue;
    }
    std::printf("%s\t%s\n", list[i].name.c_str(), shared[i].passed ? "NOT FOUND" : shared[i].result.data());
    std::fflush(stdout);
  }
  return good;
}

template <class T>
T* shared_memory(std::size_t count) {
  return static_cast<T*>(mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}

}  // namespace

void failed(const char* what, int result, unsigned long long schedule) {
  std::fflush(stdout);
  outcome->schedules = schedule;
  std::snprintf(outcome->result.data(), outcome->result.size(), "%s%s%s",
                rl::test_result_str(static_cast<rl::test_result_e>(result)), *what == '\0' ? "" : ": ", what);
  std::_Exit(1);
}

int check(const Plan& its_plan, int argc, char** argv) {
  plan = &its_plan;
  __libc_single_threaded = 0;  // or reference counts would be no atomics
  places = shared_memory<Places>(1);
  auto* const shared = shared_memory<Outcome>(4096);
  if (argc == 3 && std::strcmp(argv[1], "--show") == 0) {
    const unsigned long long schedule = std::strtoull(argv[2], nullptr, 10);
    for (const Fences kind : {Fences::EachSide, Fences::HeavySide}) {
      const Outcome shown = run(kind, schedule, *shared, schedule);
      std::printf("%s\n", shown.passed ? "passes" : shown.result.data());
    }
    return 0;
  }
  bool good = true;
  for (const Fences kind : {Fences::EachSide, Fences::HeavySide}) {
    const Outcome as_it_is = run(kind, plan->schedules, *shared);
    std::printf("%s: %llu schedules, %s%s%s\n", as_it_is.passed ? "passes" : "FAILS", as_it_is.schedules,
                kind == Fences::EachSide ? "a fence on each side" : "the heavy side's fence alone",
                as_it_is.passed ? "" : ": ", as_it_is.passed ? "" : as_it_is.result.data());
    good = good && as_it_is.passed;
  }
  if (!good || argc == 1) return good ? 0 : 1;
  static Places own = *places;
  places = &own;
  std::vector<Weakening> list = weakenings();
  if (argc > 2) {
    const auto asked = [&](const Weakening& weakening) {
      return std::find(argv + 2, argv + argc, weakening.name) != argv + argc;
    };
    list.erase(std::remove_if(list.begin(), list.end(), [&](const auto& each) { return !asked(each); }), list.end());
  }
  if (std::strcmp(argv[1], "--orders") == 0) return weaken(list, shared) ? 0 : 1;
  for (const Weakening& each : list) std::printf("%s\n", each.name.c_str());
  return 0;
}

}  // namespace model
