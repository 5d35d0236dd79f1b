// SPDX-License-Identifier: Apache-2.0
// asio.h and boost_asio.h include this file once each. They define HWT_ASIO as Asio's namespace, HWT_ASIO_ERROR_CODE as
// its error type, and HWT_ASIO_NAMESPACE as our namespace inside hwt.

namespace hwt::HWT_ASIO_NAMESPACE {
namespace detail {

using hwt::detail::AsyncWait;
using hwt::detail::Result;
using hwt::detail::WaitGroup;
using hwt::detail::WaitRegistry;

using Error = HWT_ASIO_ERROR_CODE;

inline Error error_of(Result end) {
  switch (end) {
    case Result::Ok:
      return {};
    case Result::Stopped:
      return HWT_ASIO::error::operation_aborted;
    case Result::Full:
      return HWT_ASIO::error::no_buffer_space;
    case Result::NoThread:
      return HWT_ASIO::error::try_again;
    default:
      return HWT_ASIO::error::no_memory;
  }
}

/// The waits of one execution context.
class WaitService final : public HWT_ASIO::execution_context::service {
 public:
  inline static HWT_ASIO::execution_context::id id;

  explicit WaitService(HWT_ASIO::execution_context& context) : service(context) {}

  template <class Executor>
  static WaitRegistry& registry_of(const Executor& executor) {
    HWT_ASIO::execution_context& context = HWT_ASIO::query(executor, HWT_ASIO::execution::context);
    return HWT_ASIO::use_service<WaitService>(context).registry_;
  }

 private:
  void shutdown() override { registry_.close(); }

  WaitRegistry registry_;
};

using LoopExecutor = HWT_ASIO::io_context::executor_type;

/// Returns the loop of an executor. With ASIO_NO_TS_EXECUTORS the executor has no context().
inline HWT_ASIO::io_context& loop_of(const LoopExecutor& executor) noexcept {
  return HWT_ASIO::query(executor, HWT_ASIO::execution::context);
}

/// Returns the executor as an executor of an io_context, or null if it is another one. A call through a type-erased
/// executor costs as much as the rest of a wait.
template <class Executor>
const LoopExecutor* as_loop(const Executor& executor) noexcept {
  if constexpr (std::is_same_v<Executor, LoopExecutor>) {
    return &executor;
  } else if constexpr (std::is_same_v<Executor, HWT_ASIO::any_io_executor>) {
#if defined(ASIO_NO_TYPEID) || defined(BOOST_ASIO_NO_TYPEID)
    return nullptr;
#else
    // Before 1.26 target() does not look at the type.
    return executor.target_type() == typeid(LoopExecutor) ? executor.template target<LoopExecutor>() : nullptr;
#endif
  } else {
    return nullptr;
  }
}

/// Calls f with the executor as a LoopExecutor if it is one, otherwise as it is.
template <class Executor, class F>
void with_own_type(const Executor& executor, F&& f) {
  if (const LoopExecutor* const loop = as_loop(executor)) return f(*loop);
  if constexpr (!std::is_same_v<Executor, LoopExecutor>) f(executor);
}

/// Returns an object that is outstanding work of the executor. It is smaller than an executor_work_guard, and does not
/// use on_work_started(), which a strand of an any_io_executor declares but cannot compile. An executor of the
/// Networking TS has no property, so it gets the guard.
template <class Executor>
auto work_of(const Executor& executor) {
  if constexpr (requires { HWT_ASIO::prefer(executor, HWT_ASIO::execution::outstanding_work.tracked); }) {
    return HWT_ASIO::prefer(executor, HWT_ASIO::execution::outstanding_work.tracked);
  } else {
    return HWT_ASIO::make_work_guard(executor);
  }
}
template <class Executor>
using Work = std::optional<decltype(work_of(std::declval<const Executor&>()))>;

/// Cancels one wait. A cancellation slot owns the canceller, and the wait outlives it: the wait clears the slot before
/// it destroys its handler, which may own the signal of the slot. The slot destroys the canceller earlier if the signal
/// is destroyed, or if another operation takes the slot. `in_slot`, a flag of the wait, is true while the canceller
/// exists, so the wait does not touch a slot that has gone.
///
/// Threads: nothing here is atomic. Asio's rule is that emit() and each other use of a signal or slot must not run
/// concurrently with the start of the operation or with its completion. Programs use one thread or a strand for that.
/// So a wait changes its slot only where it starts, where its handler is called, and where its handler is destroyed
/// uncalled. The thread that destroys the context or the executor's queue destroys such a handler. If there is no
/// memory to post a completion, the thread that ended the wait does.
class Canceller {
 public:
  Canceller(AsyncWait& wait, bool& in_slot) noexcept : wait_(wait), in_slot_(in_slot) { in_slot_ = true; }
  Canceller(const Canceller&) = delete;
  Canceller& operator=(const Canceller&) = delete;
  ~Canceller() { in_slot_ = false; }

  /// Cancels for each of the three types, as Asio's own timers do, because an aborted wait has no side effects.
  void operator()(HWT_ASIO::cancellation_type type) {
    using Type = HWT_ASIO::cancellation_type;
    if ((type & (Type::terminal | Type::partial | Type::total)) != Type::none) wait_.cancel();
  }

 private:
  AsyncWait& wait_;
  bool& in_slot_;
};

/// A wait with its handler, in memory of the handler's allocator. `kPlain`: the handler is called on the wait's own
/// executor, a loop's, and has no slot. Most waits are plain. With a handler of one word they have at most 128 bytes,
/// for which glibc's malloc is fast however many are allocated at once. Asio itself keeps two blocks for each thread.
template <class Handler, class Executor, bool kPlain = false>
class WaitOperation final : public AsyncWait {
  using HandlerExecutor = HWT_ASIO::associated_executor_t<Handler, Executor>;
  using HandlerAllocator = HWT_ASIO::associated_allocator_t<Handler>;
  // Asio's recycling allocator replaces the default allocator, as in Asio's own operations.
  static constexpr bool kRecycles = std::is_same_v<HandlerAllocator, std::allocator<void>>;
  using Given = std::conditional_t<kRecycles, HWT_ASIO::recycling_allocator<void>, HandlerAllocator>;
  template <class T>
  using AllocatorOf = typename std::allocator_traits<Given>::template rebind_alloc<T>;
  using Allocator = AllocatorOf<WaitOperation>;
  using Memory = std::allocator_traits<Allocator>;
  // The io_context allocates the posted completion once. A larger request goes to the allocator.
  using Within = hwt::detail::OwnersAllocator<std::byte, WaitOperation>;
  // A template, because two empty members of the same type would need different addresses.
  template <class>
  struct Nothing {};
  template <class T>
  using UnlessPlain = std::conditional_t<kPlain, Nothing<T>, T>;

 public:
  /// Makes a wait, which the caller must start. `counts`: whether it counts as work of its executor while it is
  /// pending.
  static AsyncWait& make(Handler&& handler, const Executor& executor, bool counts) {
    auto slot = HWT_ASIO::get_associated_cancellation_slot(handler);
    const HandlerExecutor handler_executor = HWT_ASIO::get_associated_executor(handler, executor);
    if constexpr (std::is_same_v<Executor, LoopExecutor>) {
      if (is_own(handler_executor, executor) && !slot.is_connected()) {
        return WaitOperation<Handler, Executor, true>::construct(std::move(handler), executor, counts);
      }
    }
    WaitOperation& wait = construct(std::move(handler), executor, counts);
    try {
      if (!is_own(handler_executor, executor)) wait.handler_work_.emplace(work_of(handler_executor));
      if (slot.is_connected()) slot.template emplace<Canceller>(wait, wait.in_slot_);
    } catch (...) {
      wait.abandon();
      throw;
    }
    return wait;
  }

  /// Allocates a wait. Called only by make().
  static WaitOperation& construct(Handler&& handler, const Executor& executor, bool counts) {
    Allocator allocator = allocator_of(handler);
    WaitOperation* const wait = Memory::allocate(allocator, 1);
    try {
      Memory::construct(allocator, wait, std::move(handler), executor, allocator, counts);
    } catch (...) {
      Memory::deallocate(allocator, wait, 1);
      throw;
    }
    return *wait;
  }
  /// Constructs a wait. Called only by construct().
  WaitOperation(Handler&& handler, const Executor& executor, const Allocator& allocator, bool counts)
      : allocator_(allocator), executor_(executor), handler_(std::move(handler)) {
    if (counts) work_.emplace(work_of(executor));
  }

  /// Returns memory for the posted completion. This and deallocate() are called only by an OwnersAllocator.
  void* allocate(std::size_t size) {
    if (size <= kRoom) return room_for_post();
    AllocatorOf<Unit> allocator(allocator_);
    return allocator.allocate(units_of(size));
  }
  void deallocate(void* memory, std::size_t size) noexcept {
    if (size <= kRoom) return;
    AllocatorOf<Unit> allocator(allocator_);
    allocator.deallocate(static_cast<Unit*>(memory), units_of(size));
  }

 private:
  struct alignas(void*) Unit {
    std::byte bytes[sizeof(void*)];
  };
  static std::size_t units_of(std::size_t size) noexcept { return (size + sizeof(Unit) - 1) / sizeof(Unit); }

  static Allocator allocator_of(const Handler& handler) {
    if constexpr (kRecycles) {
      return Allocator();
    } else {
      return Allocator(HWT_ASIO::get_associated_allocator(handler));
    }
  }

  static bool is_own(const HandlerExecutor& handler_executor, const Executor& executor) noexcept {
    if constexpr (std::is_same_v<HandlerExecutor, Executor>) {
      return handler_executor == executor;
    } else if constexpr (std::is_same_v<Executor, LoopExecutor>) {
      const LoopExecutor* const loop = as_loop(handler_executor);
      return loop != nullptr && *loop == executor;
    } else {
      return false;
    }
  }

  /// The posted completion, which owns the wait. allocator_ stays in a moved-from completion, because Asio may still
  /// ask for it.
  template <class Allocated>
  class Completion {
   public:
    using allocator_type = Allocated;

    Completion(WaitOperation& wait, const Allocated& allocator) noexcept : wait_(&wait), allocator_(allocator) {}
    Completion(Completion&& other) noexcept
        : wait_(std::exchange(other.wait_, nullptr)), allocator_(other.allocator_) {}
    Completion& operator=(Completion&&) = delete;
    ~Completion() {
      if (wait_ != nullptr) wait_->abandon();
    }

    allocator_type get_allocator() const noexcept { return allocator_; }
    void operator()() { std::exchange(wait_, nullptr)->call(); }

   private:
    WaitOperation* wait_;
    [[no_unique_address]] Allocated allocator_;
  };
  /// A completion that goes from the wait's own executor to the handler's executor.
  class Dispatched final : public Completion<HandlerAllocator> {
   public:
    using executor_type = HandlerExecutor;

    Dispatched(WaitOperation& wait, const Executor& own)
        : Completion<HandlerAllocator>(wait, HWT_ASIO::get_associated_allocator(wait.handler_)),
          executor_(HWT_ASIO::get_associated_executor(wait.handler_, own)) {}

    executor_type get_executor() const noexcept { return executor_; }

   private:
    HandlerExecutor executor_;
  };

  void complete(Result end) override {
    end_ = end;
    // Kept here until the completion is posted, and then counts as work itself. defer() may destroy this operation.
    [[maybe_unused]] const Work<Executor> work = std::exchange(work_, std::nullopt);
    // Moved out of the operation, because it may be a strand. The strand's context may go while the operation is queued
    // on the handler's executor.
    const Executor executor = std::move(executor_);
    // defer() lets a thread of the context that cancels many waits queue all of them at once.
    if constexpr (!kPlain) {
      if (handler_work_) return HWT_ASIO::defer(executor, Dispatched(*this, executor));
    }
    if constexpr (std::is_same_v<Executor, LoopExecutor>) {
      HWT_ASIO::defer(executor, Completion<Within>(*this, Within(*this)));
    } else {
      HWT_ASIO::defer(executor, Completion<HandlerAllocator>(*this, HWT_ASIO::get_associated_allocator(handler_)));
    }
  }

  /// Calls the handler, on the handler's executor.
  void call() {
    leave_slot();
    [[maybe_unused]] const auto work = std::move(handler_work_);
    std::unique_ptr<WaitOperation, Destroy> owned(this);  // destroys it too if the move of the handler throws
    Handler handler = std::move(handler_);
    const Error error = error_of(end_);
    owned.reset();  // before the handler, which may start the next wait in the same memory
    std::move(handler)(error);
  }

  void abandon() noexcept override {
    leave_slot();
    std::optional<Handler> last;  // goes last: it may own the memory of its allocator
    try {
      last.emplace(std::move(handler_));
    } catch (...) {  // the handler is destroyed with the operation
    }
    destroy();
  }

  /// Clears the slot of the handler if it holds a canceller of this wait. The handler must still exist.
  void leave_slot() noexcept {
    if constexpr (!kPlain) {
      if (in_slot_) HWT_ASIO::get_associated_cancellation_slot(handler_).clear();
    }
  }

  struct Destroy {
    void operator()(WaitOperation* wait) const noexcept { wait->destroy(); }
  };
  void destroy() noexcept {
    Allocator allocator(allocator_);
    Memory::destroy(allocator, this);
    Memory::deallocate(allocator, this, 1);
  }

  // Memory of its own for the posted completion if there may be a slot, because cancel() reads the room of the base.
  struct Room {
    alignas(void*) std::byte bytes[kRoom];
  };
  std::byte* room_for_post() noexcept {
    if constexpr (kPlain) {
      return room();
    } else {
      return own_room_.bytes;
    }
  }

  [[no_unique_address]] Allocator allocator_;
  Executor executor_;  // until complete()
  Work<Executor> work_;
  // Empty if the handler's executor is the wait's own.
  [[no_unique_address]] UnlessPlain<Work<HandlerExecutor>> handler_work_;
  Result end_{};
  bool in_slot_ = false;  // the slot of the handler holds a Canceller of this wait
  Handler handler_;
  [[no_unique_address]] UnlessPlain<Room> own_room_;
};

}  // namespace detail
}  // namespace hwt::HWT_ASIO_NAMESPACE
