// SPDX-License-Identifier: Apache-2.0
// asio.h and boost_asio.h include this file once each. They define HWT_ASIO as Asio's namespace, HWT_ASIO_ERROR_CODE as
// its error type, and HWT_ASIO_NAMESPACE as our namespace inside hwt.

namespace hwt::HWT_ASIO_NAMESPACE {

/// A Timer without a thread of its own. An io_context drives it with one steady_timer, which is armed for the next due
/// timeout. Tasks run on the threads that run the io_context, one at a time.
///
///   asio::io_context loop;
///   hwt::net::LoopTimer timer(loop.get_executor());
///   timer.new_timeout([] { retry(); }, 5s);
///   loop.run();   // returns when nothing is pending that will ever be due
///
/// Guarantees: those of Timer. If the io_context has no memory for one more steady_timer, its run() throws
/// std::bad_alloc; call it again. The io_context must outlive the timer. Pending timeouts count as its work, unless
/// they are never due. Tasks run only while a thread runs the io_context.
/// Threads: any thread may call any member, but see stop() and the destructor. Both wait for a task that runs on
/// another thread.
/// Fork: call notify_fork() of the io_context. Both processes have the pending timeouts, and run their tasks. In the
/// child, the first turn makes the timer the child's. To make a turn, call new_timeout() without delay, then poll() of
/// the io_context, which also runs all due tasks. Until then stop() returns nothing, the destructor releases nothing,
/// and objects that use the timer cancel nothing. At the fork no other thread may be in a task, or in a call of the
/// timer, of its Timeouts or of such an object. Otherwise the child may call only stop() and the destructor.
/// Not for: one timer that several loops share; use HashedWheelTimer.
class LoopTimer final : public hwt::detail::DrivenTimer {
 public:
  /// Makes a timer with this tick. Throws std::invalid_argument for a tick of zero or less; std::bad_alloc;
  /// std::system_error if no pthread key is left; and exceptions of the constructor of a steady_timer.
  explicit LoopTimer(HWT_ASIO::io_context::executor_type executor,
                     std::chrono::nanoseconds tick = std::chrono::milliseconds(1))
      : LoopTimer(executor, Options{.tick_duration = tick}) {}
  /// Makes a timer with these options. Where Options mentions the worker, it means the thread that runs the io_context.
  /// The wheel has 64 slots a level and ignores Options::ticks_per_wheel. Throws std::invalid_argument that names the
  /// option, its value and the valid range, also for a thread_factory. Throws std::bad_alloc; std::system_error if no
  /// pthread key is left; and exceptions of the constructor of a steady_timer.
  LoopTimer(HWT_ASIO::io_context::executor_type executor, const Options& options)
      : DrivenTimer("net::LoopTimer", counting(options)),
        loop_(std::make_shared<Loop>(executor, driver())),
        runs_on_loop_(!options.executor) {
    on_earlier([weak = std::weak_ptr<Loop>(loop_)] {
      if (const std::shared_ptr<Loop> loop = weak.lock()) loop->wake();
    });
  }
  /// Destroys pending callables and cancels TimerTasks. Must not race other calls on the timer, except calls on its
  /// Timeouts. May run inside a task.
  ~LoopTimer() override {
    const Running running(loop_);  // its turn cancels the alarm, because nothing is pending
    end();
  }

  /// Returns the executor of the io_context.
  HWT_ASIO::io_context::executor_type get_executor() const noexcept { return loop_->get_executor(); }
  /// Returns whether tasks run on the loop, because there is no executor.
  bool runs_on_loop() const noexcept { return runs_on_loop_; }

  /// Ends the timer for good and returns the pending timeouts, cancelled. See Timer::stop(). A later call only wakes
  /// the loop.
  std::vector<Timeout> stop() override {
    const Running running(loop_);
    return DrivenTimer::stop();
  }

 private:
  /// Sets a limit, because then the timer counts pending timeouts exactly. So a cancel() that leaves none pending wakes
  /// the loop, and run() returns.
  static Options counting(Options options) {
    if (options.max_pending_timeouts <= 0) {
      options.max_pending_timeouts = (std::numeric_limits<std::int64_t>::max)();
    }
    return options;
  }

  /// The part that queued handlers keep alive. Any thread may call wake(). A thread takes a turn when it raises
  /// requests_ from zero, itself or by a posted handler. So one turn at a time is posted or runs. (A strand would
  /// allocate memory for each handler.)
  class Loop : public std::enable_shared_from_this<Loop> {
   public:
    Loop(const HWT_ASIO::io_context::executor_type& executor, hwt::detail::LoopDriver driver)
        : executor_(executor), alarm_(executor), driver_(std::move(driver)) {}

    HWT_ASIO::io_context::executor_type get_executor() const noexcept { return executor_; }

    /// Requests a turn. Needs no memory, because the posted handler has its own.
    void wake() noexcept {
      if (requests_.fetch_add(1, std::memory_order_acq_rel) == 0) post_turn();
    }

   private:
    struct Handler {
      using allocator_type = hwt::detail::OwnersAllocator<void, hwt::detail::HandlerMemory>;
      allocator_type get_allocator() const noexcept { return allocator_type(*memory); }
      void operator()() const { loop->take_turn(); }
      void operator()(const HWT_ASIO_ERROR_CODE& error) const {
        if (!error) loop->ring();
      }

      std::shared_ptr<Loop> loop;
      hwt::detail::HandlerMemory* memory;  // of the loop; stays when the handler is moved, as Asio may still ask for it
    };

    Handler handler_in(hwt::detail::HandlerMemory& memory) { return {this->shared_from_this(), &memory}; }
    void post_turn() noexcept { HWT_ASIO::post(executor_, handler_in(post_memory_)); }

    void ring() {
      has_rung_.store(true, std::memory_order_relaxed);  // handed over by requests_
      if (requests_.fetch_add(1, std::memory_order_acq_rel) == 0) take_turn();
    }

    /// Answers the requests that came before the load. This turn sees the timeouts for which they were made. For later
    /// requests it posts another turn. The memory orders of requests_ also hand over the members to the next turn.
    void take_turn() {
      const std::uint64_t answered = requests_.load(std::memory_order_acquire);
      try {
        run_and_arm();
      } catch (...) {
        post_turn();  // which tries again, when the caller of run() has dealt with the exception
        throw;
      }
      if (requests_.fetch_sub(answered, std::memory_order_acq_rel) != answered) post_turn();
    }

    /// Throws std::bad_alloc if Asio has no memory for one more timer, and IllegalState inside a call of stop().
    void run_and_arm() {
      const auto next = driver_.run_due();
      if (has_rung_.exchange(false, std::memory_order_relaxed)) armed_for_.reset();
      // Without `next` the alarm is cancelled even if armed_for_ is empty. An alarm that had been replaced may have
      // rung and emptied armed_for_, while its successor is still set.
      if (next && next == armed_for_) return;
      armed_for_.reset();
      if (!next) {
        alarm_.cancel();
        return;
      }
      alarm_.expires_at(*next);
      // In turn, because the handler of the alarm that this one replaces may still be queued.
      alarm_.async_wait(handler_in(alarm_memories_[++alarms_ % alarm_memories_.size()]));
      armed_for_ = next;
    }

    const HWT_ASIO::io_context::executor_type executor_;
    std::atomic<std::uint64_t> requests_{0};  // of turns; not zero while a turn is posted or runs
    std::atomic<bool> has_rung_{false};       // the alarm, since a turn looked
    hwt::detail::HandlerMemory post_memory_;
    std::array<hwt::detail::HandlerMemory, 2> alarm_memories_;
    // Only the turn uses these.
    std::size_t alarms_ = 0;
    HWT_ASIO::steady_timer alarm_;
    std::optional<std::chrono::steady_clock::time_point> armed_for_;
    hwt::detail::LoopDriver driver_;
  };

  /// Keeps the loop running while the timer ends. Waits that end then count as work no longer, and their completions
  /// are not posted yet. Its destructor posts a turn before it drops the guard. A guard that is the last work stops the
  /// loop, even one that no thread runs.
  struct Running {
    explicit Running(const std::shared_ptr<Loop>& of)
        : loop(of), work(HWT_ASIO::make_work_guard(loop->get_executor())) {}
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    ~Running() { loop->wake(); }

    const std::shared_ptr<Loop> loop;  // a will_not_run() may destroy the timer
    const HWT_ASIO::executor_work_guard<HWT_ASIO::io_context::executor_type> work;
  };

  const std::shared_ptr<Loop> loop_;
  const bool runs_on_loop_;
};

}  // namespace hwt::HWT_ASIO_NAMESPACE
