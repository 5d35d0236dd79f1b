// SPDX-License-Identifier: Apache-2.0
// asio.h and boost_asio.h include this file once each. They define HWT_ASIO as Asio's namespace, HWT_ASIO_ERROR_CODE as
// its error type, and HWT_ASIO_NAMESPACE as our namespace inside hwt.

namespace hwt::HWT_ASIO_NAMESPACE {
namespace detail {

/// The initiation of a wait without a WheelTimer.
template <class Executor>
struct InitiateWait {
  using executor_type = Executor;
  executor_type get_executor() const noexcept { return executor; }

  template <class Handler>
  void operator()(Handler&& handler) const {
    with_own_type(executor, [&]<class Own>(const Own& own) {
      WaitRegistry& registry = WaitService::registry_of(own);
      using Operation = WaitOperation<std::decay_t<Handler>, Own>;
      Operation::make(std::decay_t<Handler>(std::forward<Handler>(handler)), own, true).start(registry, *timer, when);
    });
  }

  Executor executor;
  Timer* timer;
  When when;
};

}  // namespace detail

/// Waits for a delay, which begins when the token initiates the operation, or until a deadline; see When. The signature
/// of the completion is void(error_code), and any completion token works. Unlike a steady_timer it needs no object.
///
///   co_await hwt::net::async_wait(timer, socket.get_executor(), 250ms, asio::use_awaitable);
///
/// Guarantees: the completion is deferred to `executor`, the I/O executor, and never made inside this call. It is then
/// dispatched to the handler's associated executor, with its allocator. Until then both executors have outstanding
/// work. The handler is called once. It gets no error if the timeout has expired. It gets operation_aborted if its
/// cancellation slot was used, the timer has ended, or the timer's executor drops the task. If the timer refuses the
/// timeout, the handler gets no_buffer_space at max_pending_timeouts, operation_aborted after stop(), no_memory without
/// memory, and try_again if the worker gets no thread. An execution context that is destroyed destroys the handler,
/// uncalled.
/// Memory: if the thread that ends the wait has no memory to post the completion, it destroys the handler, uncalled.
/// The call that ends the wait then throws std::bad_alloc: async_wait() after a refusal, emit() of a cancellation
/// signal, and a WheelTimer's cancel(), cancel_one(), expires_at() and expires_after(). If no such call ends it,
/// on_task_error gets the exception. A handler without an executor of its own needs no such memory on an io_context.
/// Throws std::invalid_argument for a NaN before the operation is initiated, what copying the arguments throws, and
/// std::bad_alloc for the operation itself. Passes on an exception of a thread_factory, unless it tells of a lack of
/// memory or threads.
/// Threads: any thread may call it. Use the slot as with Asio's own operations: on an implicit or explicit strand.
/// Not for: the lowest cost in a program with one loop. There a steady_timer costs less.
template <class Executor, class Token>
auto async_wait(Timer& timer, const Executor& executor, When when, Token&& token) {
  using Initiate = detail::InitiateWait<Executor>;
  when = hwt::detail::number("async_wait: delay", when);  // here, as an initiation must not throw
  return HWT_ASIO::async_initiate<Token, void(detail::Error)>(Initiate{executor, &timer, when}, token);
}

/// A replacement for basic_waitable_timer that waits on a Timer. Use it where objects have a steady_timer as a member.
///
///   hwt::net::WheelTimer deadline(socket.get_executor(), timer);
///   deadline.expires_after(250ms);
///   deadline.async_wait([&](asio::error_code error) { if (!error) socket.cancel(); });
///
/// Guarantees: those of async_wait(). Changing the expiry cancels the waits, and so does the destructor.
/// Differences: cancel() does not count a wait that the timer has ended. A steady_timer counts it until a thread that
/// runs the io_context has noticed the expiry. A wait for an expiry that has passed ends within a tick. If a handler of
/// the same context cancels waits, their handlers are queued when that handler returns, as by defer(). Nothing blocks,
/// so there is no wait(). When a new expiry cancels a single wait without a cancellation slot, its timeout stays
/// pending in the timer, and the next wait without a slot uses it. The timeout ends if no such wait has begun before
/// the handler of the cancelled wait is called.
/// Cost: a wait costs less if the constructor gets a LoopTimer itself, not a Timer&.
/// Threads: one at a time, as basic_waitable_timer. So the function of the timer's on_earlier() must not use the
/// WheelTimer whose call runs it. It may call the function async_wait() and use other WheelTimers. The Timer must
/// outlive the WheelTimer, and the WheelTimer must not outlive the context.
/// Source: Asio's basic_waitable_timer.
template <class Executor = HWT_ASIO::any_io_executor>
class BasicWheelTimer {
 public:
  using executor_type = Executor;                         ///< as basic_waitable_timer
  using clock_type = std::chrono::steady_clock;           ///< as basic_waitable_timer
  using duration = clock_type::duration;                  ///< as basic_waitable_timer
  using time_point = clock_type::time_point;              ///< as basic_waitable_timer
  using traits_type = HWT_ASIO::wait_traits<clock_type>;  ///< as basic_waitable_timer
  /// The type of a timer on another executor, for `use_awaitable_t<>::as_default_on()` and similar functions.
  template <class OtherExecutor>
  struct rebind_executor {
    using other = BasicWheelTimer<OtherExecutor>;  ///< as basic_waitable_timer
  };

  /// Makes a timer whose waits complete on that executor.
  BasicWheelTimer(const Executor& executor, Timer& timer) : BasicWheelTimer(executor, timer, nullptr) {}
  /// Makes a timer on a LoopTimer. If that runs on the same loop, its timeouts already count as work of the loop.
  BasicWheelTimer(const Executor& executor, LoopTimer& timer)
      : BasicWheelTimer(executor, timer, timer.runs_on_loop() ? &detail::loop_of(timer.get_executor()) : nullptr) {}
  /// Makes a timer whose waits complete on the executor of that context.
  template <class Context, class AnyTimer>
    requires(std::is_convertible_v<Context&, HWT_ASIO::execution_context&> && std::is_base_of_v<Timer, AnyTimer>)
  BasicWheelTimer(Context& context, AnyTimer& timer) : BasicWheelTimer(Executor(context.get_executor()), timer) {}
  /// Makes a timer whose waits end at `expiry`, a time of the timer's own clock.
  template <class AnyTimer>
    requires std::is_base_of_v<Timer, AnyTimer>
  BasicWheelTimer(const Executor& executor, AnyTimer& timer, hwt::detail::Point expiry)
      : BasicWheelTimer(executor, timer) {
    expiry_ = expiry;
  }
  /// Makes a timer whose waits end `delay` from now. Throws std::invalid_argument for a NaN.
  template <class AnyTimer>
    requires std::is_base_of_v<Timer, AnyTimer>
  BasicWheelTimer(const Executor& executor, AnyTimer& timer, Delay delay) : BasicWheelTimer(executor, timer) {
    expires_after(delay);
  }
  /// Makes a timer on the executor of that context, whose waits end at `expiry`.
  template <class Context, class AnyTimer>
    requires(std::is_convertible_v<Context&, HWT_ASIO::execution_context&> && std::is_base_of_v<Timer, AnyTimer>)
  BasicWheelTimer(Context& context, AnyTimer& timer, hwt::detail::Point expiry)
      : BasicWheelTimer(Executor(context.get_executor()), timer, expiry) {}
  /// Makes a timer on the executor of that context, whose waits end `delay` from now. Throws std::invalid_argument for
  /// a NaN.
  template <class Context, class AnyTimer>
    requires(std::is_convertible_v<Context&, HWT_ASIO::execution_context&> && std::is_base_of_v<Timer, AnyTimer>)
  BasicWheelTimer(Context& context, AnyTimer& timer, Delay delay)
      : BasicWheelTimer(Executor(context.get_executor()), timer, delay) {}

  /// Takes over the waits and the expiry of `other`, which can still be used, and has no waits.
  BasicWheelTimer(BasicWheelTimer&& other) noexcept : BasicWheelTimer(other.executor_, other) {}
  /// Takes over the waits and the expiry of a timer with another type of executor. See the move constructor.
  template <class OtherExecutor>
    requires std::is_convertible_v<const OtherExecutor&, Executor>
  BasicWheelTimer(BasicWheelTimer<OtherExecutor>&& other)  // NOLINT(google-explicit-constructor): as Asio's timers
      : BasicWheelTimer(Executor(other.executor_), other) {}
  /// Cancels its waits. Then takes over the waits, the expiry, the executor and the Timer of `other`, which can still
  /// be used, and has no waits. See cancel() for std::bad_alloc.
  BasicWheelTimer& operator=(BasicWheelTimer&& other) {
    if (this != &other) replace_by(other.executor_, other);
    return *this;
  }
  /// Cancels its waits. Then takes over a timer with another type of executor. See the move assignment.
  template <class OtherExecutor>
    requires std::is_convertible_v<const OtherExecutor&, Executor>
  BasicWheelTimer& operator=(BasicWheelTimer<OtherExecutor>&& other) {
    replace_by(Executor(other.executor_), other);
    return *this;
  }
  /// Cancels the waits. Waits for other threads that are posting the completion of a wait. Ends the program if there is
  /// no memory to post a completion; see async_wait().
  ~BasicWheelTimer() { cancel(); }

  /// Returns the executor on which the waits complete.
  executor_type get_executor() const noexcept { return executor_; }

  /// Returns when waits that begin now will end.
  time_point expiry() const noexcept { return expiry_; }
  /// Sets the expiry, cancels the present waits, and returns how many. See cancel() for std::bad_alloc.
  std::size_t expires_at(hwt::detail::Point expiry) {
    expiry_ = expiry;
    return cancel_by([&] { return waits_.cancel_for_next(); });
  }
  /// Sets the expiry to `delay` from now, cancels the present waits, and returns how many. A delay beyond the range of
  /// the clock means never. Throws std::invalid_argument for a NaN. See cancel() for std::bad_alloc.
  std::size_t expires_after(Delay delay) {
    waits_.prefetch();
    const std::chrono::nanoseconds wanted = hwt::detail::number("WheelTimer: delay", delay);
    const time_point now = waits_.timer().now();
    // An expiry may be in the past. The sum saturates, because a ManualTimer may start before the clock's zero.
    if (wanted < wanted.zero()) return expires_at((std::max)(now, (time_point::min)() - wanted) + wanted);
    return expires_at(Deadline::in(wanted, now));
  }

  /// Ends each wait with operation_aborted, unless it has expired. Returns how many. If it throws std::bad_alloc, the
  /// waits that began after the failed one go on; see async_wait().
  std::size_t cancel() {
    return cancel_by([&] { return waits_.cancel((std::numeric_limits<std::size_t>::max)()); });
  }
  /// Cancels the oldest wait, as cancel() does. Returns how many: 0 or 1.
  std::size_t cancel_one() {
    return cancel_by([&] { return waits_.cancel(1); });
  }

  /// Begins a wait, void(error_code): see async_wait(). Without a token it uses the default one of the executor.
  template <class Token = typename HWT_ASIO::default_completion_token<Executor>::type>
  auto async_wait(Token&& token = typename HWT_ASIO::default_completion_token<Executor>::type()) {
    return HWT_ASIO::async_initiate<Token, void(detail::Error)>(Initiate{this}, token);
  }

 private:
  template <class>
  friend class BasicWheelTimer;

  struct Initiate {
    using executor_type = Executor;
    executor_type get_executor() const noexcept { return timer->executor_; }

    template <class Handler>
    void operator()(Handler&& handler) const {
      timer->begin(std::decay_t<Handler>(std::forward<Handler>(handler)));
    }

    BasicWheelTimer* timer;
  };

  /// `timers_loop`: the loop that runs the timer's tasks, if it is a LoopTimer.
  BasicWheelTimer(const Executor& executor, Timer& timer, HWT_ASIO::io_context* timers_loop)
      : executor_(executor),
        loop_(loop_of(executor)),
        on_own_loop_(loop_ != nullptr && loop_ == timers_loop),
        waits_(detail::WaitService::registry_of(executor), timer) {}

  /// Takes over `other`, with its executor in our type.
  template <class OtherExecutor>
  BasicWheelTimer(const Executor& executor, BasicWheelTimer<OtherExecutor>& other)
      : executor_(executor),
        loop_(other.loop_),
        on_own_loop_(other.on_own_loop_),
        waits_(std::move(other.waits_)),
        expiry_(other.expiry_) {}
  template <class OtherExecutor>
  void replace_by(const Executor& executor, BasicWheelTimer<OtherExecutor>& other) {
    cancel();
    waits_ = std::move(other.waits_);
    // Not by assignment, which executors need not have. Their copies do not throw.
    std::destroy_at(&executor_);
    std::construct_at(&executor_, executor);
    loop_ = other.loop_;
    on_own_loop_ = other.on_own_loop_;
    expiry_ = other.expiry_;
  }

  static HWT_ASIO::io_context* loop_of(const Executor& executor) noexcept {
    const detail::LoopExecutor* const loop = detail::as_loop(executor);
    return loop == nullptr ? nullptr : &detail::loop_of(*loop);
  }

  template <class Handler>
  void begin(Handler&& handler) {
    if (loop_ != nullptr) return begin_on(loop_->get_executor(), std::move(handler));
    if constexpr (!std::is_same_v<Executor, detail::LoopExecutor>) begin_on(executor_, std::move(handler));
  }
  template <class Own, class Handler>
  void begin_on(const Own& own, Handler&& handler) {
    const bool stoppable = HWT_ASIO::get_associated_cancellation_slot(handler).is_connected();
    // A pending timeout of the loop's own timer already counts as work, unless it is never due. A wait with a slot
    // counts too, because another thread may emit the signal, and the loop must not end meanwhile.
    const bool counts = !on_own_loop_ || stoppable || expiry_ == (time_point::max)();
    waits_.start(detail::WaitOperation<Handler, Own>::make(std::move(handler), own, counts), expiry_, stoppable);
  }

  template <class Cancel>
  std::size_t cancel_by(Cancel cancel) {
    if (!on_own_loop_ || loop_->get_executor().running_in_this_thread()) return cancel();
    // The work guard keeps the loop running after its last timeout is cancelled, until the completions are posted.
    // Without waits there must be no guard: when a guard is the last work, its destructor stops the loop.
    if (waits_.empty()) return 0;
    const auto work = HWT_ASIO::make_work_guard(*loop_);
    return cancel();
  }

  Executor executor_;
  HWT_ASIO::io_context* loop_;  // null: the executor is of another type
  bool on_own_loop_;
  detail::WaitGroup waits_;
  time_point expiry_{};
};

/// The counterpart of steady_timer: a BasicWheelTimer on any I/O executor.
using WheelTimer = BasicWheelTimer<>;

}  // namespace hwt::HWT_ASIO_NAMESPACE
