// asio.h and boost_asio.h include this file once each. They define HWT_ASIO as Asio's namespace, HWT_ASIO_ERROR_CODE as
// its error type, and HWT_ASIO_NAMESPACE as our namespace inside hwt.

namespace hwt::HWT_ASIO_NAMESPACE {

/// A Timer without a thread of its own. An io_context drives it with one steady_timer, which is armed for the next due
/// timeout. Tasks run on the threads that run the io_context, one at a time.
///
///   asio::io_context loop;
///   hwt::net::LoopTimer timer(loop.get_executor());
///   timer.new_timeout([] { retry(); }, 5s);
///   loop.run();   // returns when nothing is pending
///
/// Guarantees: those of Timer. The io_context must outlive the timer. Pending timeouts count as its work. Tasks run
/// only while a thread runs the io_context.
/// Threads: any thread may call any member, but see stop() and the destructor. Both wait for a task that runs on
/// another thread.
/// Not for: one timer that several loops share; use HashedWheelTimer.
class LoopTimer final : public hwt::detail::DrivenTimer {
 public:
  /// Makes a timer with this tick. Throws std::invalid_argument for a tick of zero or less, std::bad_alloc, and
  /// exceptions of the constructor of a steady_timer.
  explicit LoopTimer(HWT_ASIO::io_context::executor_type executor,
                     std::chrono::nanoseconds tick = std::chrono::milliseconds(1))
      : LoopTimer(executor, Options{.tick_duration = tick}) {}
  /// Makes a timer with these options. Where Options mentions the worker, it means the thread that runs the io_context.
  /// The wheel has 64 slots a level and ignores Options::ticks_per_wheel. Throws std::invalid_argument that names the
  /// option, its value and the valid range, also for a thread_factory; std::bad_alloc; and exceptions of the
  /// constructor of a steady_timer.
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
    end();
    loop_->wake();  // cancels the alarm, because nothing is pending
  }

  /// Returns the executor of the io_context.
  HWT_ASIO::io_context::executor_type get_executor() const noexcept { return loop_->get_executor(); }
  /// Returns whether tasks run on the loop, because there is no executor.
  bool runs_on_loop() const noexcept { return runs_on_loop_; }

  /// Ends the timer for good and returns the pending timeouts, cancelled. See Timer::stop().
  std::vector<Timeout> stop() override {
    const std::shared_ptr<Loop> loop = loop_;  // because a notified task may destroy this timer
    // Waits that end here count as work no longer, and their completions are not posted yet.
    const auto work = HWT_ASIO::make_work_guard(loop->get_executor());
    std::vector<Timeout> left = DrivenTimer::stop();
    loop->wake();
    return left;
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

  /// The part that queued handlers keep alive. Any thread may call wake(). turn() runs on the strand.
  class Loop : public std::enable_shared_from_this<Loop> {
   public:
    Loop(const HWT_ASIO::io_context::executor_type& executor, hwt::detail::LoopDriver driver)
        : strand_(executor), alarm_(executor), driver_(std::move(driver)) {}

    HWT_ASIO::io_context::executor_type get_executor() const noexcept { return strand_.get_inner_executor(); }

    void wake() {
      HWT_ASIO::post(strand_, [self = shared_from_this()] { self->turn(); });
    }

   private:
    void turn() {
      const auto next = driver_.run_due();
      if (next == armed_for_) return;
      armed_for_.reset();  // for the case that async_wait() throws
      if (!next) {
        alarm_.cancel();
        return;
      }
      alarm_.expires_at(*next);
      alarm_.async_wait(HWT_ASIO::bind_executor(strand_, [self = shared_from_this()](const HWT_ASIO_ERROR_CODE& error) {
        if (error) return;
        self->armed_for_.reset();
        self->turn();
      }));
      armed_for_ = next;
    }

    HWT_ASIO::strand<HWT_ASIO::io_context::executor_type> strand_;
    HWT_ASIO::steady_timer alarm_;
    std::optional<std::chrono::steady_clock::time_point> armed_for_;
    hwt::detail::LoopDriver driver_;
  };

  const std::shared_ptr<Loop> loop_;
  const bool runs_on_loop_;
};

}  // namespace hwt::HWT_ASIO_NAMESPACE
