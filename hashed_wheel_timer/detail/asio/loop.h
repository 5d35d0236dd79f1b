// Included by asio.h and boost_asio.h, once each: HWT_ASIO is the namespace of Asio there, HWT_ASIO_NAMESPACE the one
// of ours, HWT_ASIO_ERROR_CODE the type of its errors.

namespace hwt::HWT_ASIO_NAMESPACE {

/// A Timer without a thread of its own: an io_context drives it, and its tasks run on the threads of that, one at a
/// time. One steady_timer is behind it, armed for the next due timeout.
///
///   asio::io_context loop;
///   hwt::net::LoopTimer timer(loop.get_executor());
///   timer.new_timeout([] { retry(); }, 5s);
///   loop.run();   // returns when nothing is pending
///
/// Guarantees: those of Timer. Pending timeouts count as work of the io_context, which must outlive the timer; while it
/// does not run, no task does.
/// Threads: any may call any member, but for what stop() and the destructor say; a task that runs on another thread is
/// waited for by both.
/// Not for: several loops that share one timer: HashedWheelTimer.
class LoopTimer final : public hwt::detail::DrivenTimer {
 public:
  /// Throws std::invalid_argument for a tick of zero or less, std::bad_alloc, what making a steady_timer throws.
  explicit LoopTimer(HWT_ASIO::io_context::executor_type executor,
                     std::chrono::nanoseconds tick = std::chrono::milliseconds(1))
      : LoopTimer(executor, Options{.tick_duration = tick}) {}
  /// The worker, in the comments of Options, is the thread of the io_context that runs the tasks. A wheel has 64 slots
  /// a level, whatever Options::ticks_per_wheel is. Throws std::invalid_argument that names the option, its value and
  /// the valid range, also for a thread_factory; std::bad_alloc, what making a steady_timer throws.
  LoopTimer(HWT_ASIO::io_context::executor_type executor, const Options& options)
      : DrivenTimer("net::LoopTimer", counting(options)), loop_(std::make_shared<Loop>(executor, driver())) {
    on_earlier([weak = std::weak_ptr<Loop>(loop_)] {
      if (const std::shared_ptr<Loop> loop = weak.lock()) loop->wake();
    });
  }
  ~LoopTimer() override {
    end();
    loop_->wake();  // which finds nothing pending
  }

  /// Returns the executor of its io_context.
  HWT_ASIO::io_context::executor_type get_executor() const noexcept { return loop_->get_executor(); }

  /// See Timer.
  std::vector<Timeout> stop() override {
    const std::shared_ptr<Loop> loop = loop_;  // the call may destroy this
    std::vector<Timeout> left = DrivenTimer::stop();
    loop->wake();
    return left;
  }

 private:
  /// A limit makes the timer count pending timeouts exactly. So the cancel() that leaves nothing pending wakes the
  /// loop, and run() returns.
  static Options counting(Options options) {
    if (options.max_pending_timeouts <= 0) {
      options.max_pending_timeouts = (std::numeric_limits<std::int64_t>::max)();
    }
    return options;
  }

  /// The part that handlers use. All but wake() runs on its strand.
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
      armed_for_ = next;
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
    }

    HWT_ASIO::strand<HWT_ASIO::io_context::executor_type> strand_;
    HWT_ASIO::steady_timer alarm_;
    std::optional<std::chrono::steady_clock::time_point> armed_for_;
    hwt::detail::LoopDriver driver_;
  };

  const std::shared_ptr<Loop> loop_;
};

}  // namespace hwt::HWT_ASIO_NAMESPACE
