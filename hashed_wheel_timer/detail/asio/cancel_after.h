// SPDX-License-Identifier: Apache-2.0
// asio.h and boost_asio.h include this file once each. They define HWT_ASIO as Asio's namespace, HWT_ASIO_ERROR_CODE as
// its error type, and HWT_ASIO_NAMESPACE as our namespace inside hwt.

namespace hwt::HWT_ASIO_NAMESPACE {
namespace detail {

/// The state that an operation and its time limit share until the operation has completed. InitiateWithin makes it. It
/// then starts a wait whose handler is Emit, and after that the operation with a LimitedHandler. Emit cancels the
/// operation through `signal`. So does Forward, when the program uses the slot of its own handler. LimitedHandler ends
/// the limit. See Canceller for the threads of the members that are not atomic.
struct Limit {
  HWT_ASIO::cancellation_signal signal;  // for the operation
  Timeout wait;
  // The limit may expire while another thread initiates the operation, which then has nothing in its slot yet. Two
  // threads exchange this for true: the initiating thread when the initiation has returned, and Emit. The later one
  // cancels the operation. If that is the initiating thread, it posts the cancellation. release after the initiation:
  // pairs with the acquire of Emit, which uses the slot and the members above.
  std::atomic<bool> one_is_done{false};
  bool done = false;
  bool in_slot = false;  // the slot of the handler holds a Forward of this limit
};

/// The handler of the limit's wait: cancels the operation, on the executor of the operation's handler.
template <class Executor>
struct Emit {
  using executor_type = Executor;
  executor_type get_executor() const noexcept { return executor; }

  void operator()(const Error& error) const {
    // If the timer has ended or its executor dropped the task, nothing is limited. If the timer refused the wait, the
    // operation is cancelled at once.
    if (error != HWT_ASIO::error::operation_aborted) (*this)();
  }
  void operator()() const {
    if (limit->one_is_done.exchange(true, std::memory_order_acquire) && !limit->done) limit->signal.emit(type);
  }

  std::shared_ptr<Limit> limit;
  HWT_ASIO::cancellation_type type;
  Executor executor;
};

/// Forwards a cancellation of the handler's own slot. That slot holds it until the handler is called or destroyed, or
/// until the slot itself goes; see Canceller, also for the threads.
struct Forward {
  explicit Forward(std::shared_ptr<Limit> to) noexcept : limit(std::move(to)) { limit->in_slot = true; }
  Forward(const Forward&) = delete;
  Forward& operator=(const Forward&) = delete;
  ~Forward() { limit->in_slot = false; }
  void operator()(HWT_ASIO::cancellation_type type) const {
    const std::shared_ptr<Limit> kept = limit;  // this is destroyed when the operation completes
    kept->signal.emit(type);
  }

  std::shared_ptr<Limit> limit;
};

/// The handler that the operation gets. Ends the limit when the operation calls or destroys it.
template <class Handler>
struct LimitedHandler {
  template <class From>
  LimitedHandler(From&& from, std::shared_ptr<Limit> of) : handler(std::forward<From>(from)), limit(std::move(of)) {}
  LimitedHandler(LimitedHandler&&) = default;
  LimitedHandler& operator=(LimitedHandler&&) = delete;
  ~LimitedHandler() {
    if (limit != nullptr && !limit->done) end();
  }

  template <class... Args>
  void operator()(Args&&... args) {
    end();
    std::move(handler)(std::forward<Args>(args)...);
  }

  /// Takes the limit out of the timer and clears the slot of the handler, which must still exist.
  void end() noexcept {
    limit->done = true;
    AsyncWait::discard(std::exchange(limit->wait, {}));
    if (limit->in_slot) HWT_ASIO::get_associated_cancellation_slot(handler).clear();
  }

  Handler handler;
  std::shared_ptr<Limit> limit;
};

/// Whether executor_of() may look at the first argument of an initiation. Any object can be that argument. It tells its
/// executor if it is an initiation in a wrapper, or an object that has an executor also when it is const. A socket or
/// timer of Asio is no such object.
template <class First>
concept TellsExecutor = requires(const First& first) { first.initiation_; } || requires(const First& first) {
  typename First::executor_type;
  HWT_ASIO::query(first.get_executor(), HWT_ASIO::execution::context);
};

/// Returns the executor of the I/O object for an initiation and its arguments. An adapter of Asio around the limit
/// wraps the initiation. Before 1.31 the wrapper hides the executor, and has the initiation as `initiation_`, or passes
/// it on as the first argument.
template <class Initiation, class... Args>
auto executor_of(const Initiation& initiation, const Args&... args) noexcept {
  using None = HWT_ASIO::system_executor;  // also where the default of Asio is another one, as in 1.38
  if constexpr (!std::is_same_v<HWT_ASIO::associated_executor_t<Initiation, None>, None>) {
    return HWT_ASIO::get_associated_executor(initiation, None());
  } else if constexpr (requires { initiation.initiation_; }) {
    return executor_of(initiation.initiation_, args...);
  } else if constexpr (sizeof...(args) != 0) {
    return [](const auto& first, const auto&...) {
      if constexpr (TellsExecutor<std::remove_cvref_t<decltype(first)>>) {
        return executor_of(first);
      } else {
        return None();
      }
    }(args...);
  } else {
    return None();
  }
}

/// The initiation of an operation with a time limit: starts the limit's wait, then the operation.
template <class Initiation>
struct InitiateWithin {
  using executor_type = decltype(executor_of(std::declval<const Initiation&>()));
  executor_type get_executor() const noexcept { return executor_of(initiation); }

  template <class Handler, class... Args>
  void operator()(Handler&& handler, Args&&... args) && {
    start(std::move(initiation), std::forward<Handler>(handler), std::forward<Args>(args)...);
  }
  template <class Handler, class... Args>
  void operator()(Handler&& handler, Args&&... args) const& {
    start(Initiation(initiation), std::forward<Handler>(handler), std::forward<Args>(args)...);
  }

  template <class Handler, class... Args>
  void start(Initiation operation, Handler&& handler, Args&&... args) const {
    // Not by the handler's allocator: its memory must be released before the handler is called. The limit lives longer.
    auto limit = std::allocate_shared<Limit>(HWT_ASIO::recycling_allocator<void>());
    // `limited` ends the limit, also if a later step throws.
    LimitedHandler<std::decay_t<Handler>> limited(std::forward<Handler>(handler), limit);
    auto slot = HWT_ASIO::get_associated_cancellation_slot(limited.handler);
    if (slot.is_connected()) slot.template emplace<Forward>(limit);
    const auto executor = executor_of(operation, args...);
    with_own_type(executor, [&]<class Own>(const Own& own) {
      using Emits = Emit<HWT_ASIO::associated_executor_t<std::decay_t<Handler>, Own>>;
      Emits emit{limit, type, HWT_ASIO::get_associated_executor(limited.handler, own)};
      limit->wait = WaitOperation<Emits, Own>::make(std::move(emit), own, true)
                        .start(WaitService::registry_of(own), *timer, when);
    });
    // Made before the operation begins, because that may end on another thread, which then destroys this initiation.
    using Emits = Emit<HWT_ASIO::associated_executor_t<std::decay_t<Handler>, std::decay_t<decltype(executor)>>>;
    Emits emit{std::move(limit), type, HWT_ASIO::get_associated_executor(limited.handler, executor)};
    std::move(operation)(std::move(limited), std::forward<Args>(args)...);
    if (!emit.limit->one_is_done.exchange(true, std::memory_order_release)) return;
    try {
      HWT_ASIO::post(std::move(emit));
    } catch (...) {  // no memory; not passed on, because the operation has begun
    }
  }

  Initiation initiation;
  Timer* timer;
  When when;
  HWT_ASIO::cancellation_type type;
};

/// The result of cancel_after().
template <class Token>
struct CancelAfter {
  Timer* timer;
  When when;
  Token token;
  HWT_ASIO::cancellation_type type;
};

/// The return_type of an async_result, if it has one. Some adapters need it before Asio 1.28.
template <class Result>
struct ReturnTypeOf {};
template <class Result>
  requires requires { typename Result::return_type; }
struct ReturnTypeOf<Result> {
  using return_type = typename Result::return_type;
};

/// Whether a completion token is the result of cancel_after(), or an adapter around it whose template parameters are
/// types. Those of Asio are such adapters.
template <class Token>
inline constexpr bool kHasLimit = false;
template <class Token>
inline constexpr bool kHasLimit<CancelAfter<Token>> = true;
template <template <class...> class Adapter, class... Parts>
inline constexpr bool kHasLimit<Adapter<Parts...>> = (kHasLimit<Parts> || ...);

/// Moves binders around cancel_after() inside. Outside, a bound slot would replace the slot of the limit. And the limit
/// would not see a bound executor, on which it must cancel the operation.
struct BindInside {
  template <class Token>
  static CancelAfter<Token> of(CancelAfter<Token>&& limited) {
    return std::move(limited);
  }
  template <class Token, class Executor>
  static auto of(HWT_ASIO::executor_binder<Token, Executor>&& binder) {
    return bound(of(std::move(binder.get())), [&](auto&& token) {
      return HWT_ASIO::bind_executor(binder.get_executor(), std::forward<decltype(token)>(token));
    });
  }
  template <class Token, class Slot>
  static auto of(HWT_ASIO::cancellation_slot_binder<Token, Slot>&& binder) {
    return bound(of(std::move(binder.get())), [&](auto&& token) {
      return HWT_ASIO::bind_cancellation_slot(binder.get_cancellation_slot(), std::forward<decltype(token)>(token));
    });
  }
  template <class Adapter>
  static Adapter of(Adapter&& adapter) {
    static_assert(sizeof(Adapter) == 0,
                  "a binder is around an adapter around cancel_after(): move bind_executor() or "
                  "bind_cancellation_slot() inside of cancel_after()");
    return std::move(adapter);
  }

 private:
  template <class Token, class Bind>
  static auto bound(CancelAfter<Token>&& limited, Bind bind) {
    auto token = bind(std::move(limited.token));
    return CancelAfter<decltype(token)>{limited.timer, limited.when, std::move(token), limited.type};
  }
  template <class Refused, class Bind>
  static Refused bound(Refused&& refused, Bind /*bind*/) {
    return std::move(refused);
  }
};

/// The async_result of a binder around cancel_after().
template <class Binder, class Signature, class Token = decltype(BindInside::of(std::declval<Binder>()))>
struct InitiateBound : ReturnTypeOf<HWT_ASIO::async_result<Token, Signature>> {
  template <class Initiation, class Given, class... Args>
  static auto initiate(Initiation&& initiation, Given&& binder, Args&&... args)
      -> decltype(HWT_ASIO::async_initiate<Token, Signature>(std::declval<Initiation>(), std::declval<Token&>(),
                                                             std::declval<Args>()...)) {
    Token token = BindInside::of(Binder(std::forward<Given>(binder)));
    return HWT_ASIO::async_initiate<Token, Signature>(std::forward<Initiation>(initiation), token,
                                                      std::forward<Args>(args)...);
  }
};

}  // namespace detail

/// A completion token that limits its operation. After a delay that begins with the operation, or at a deadline, the
/// operation is cancelled through its cancellation slot, on the handler's executor; see When. It then completes with
/// its own error for that, mostly operation_aborted. A cancel for another reason has the same error. To tell them
/// apart, compute the deadline before the operation begins. If timer.now() is before it, the limit was not the reason.
///
///   auto limited = hwt::net::cancel_after(timer, 250ms, asio::use_awaitable);
///   std::size_t size = co_await socket.async_read_some(buffer, limited);
///
/// Guarantees: the operation completes once, by itself or cancelled. Its completion ends the limit. The handler's own
/// cancellation slot still works. If the timer refuses the timeout, the operation is cancelled at once. But a stopped
/// timer limits nothing, nor does a timer whose executor drops the task. So cancel the operation before you stop the
/// timer. Works with any completion token, and any operation that has a cancellation slot. Adapters may be inside or
/// around it. bind_executor() and bind_cancellation_slot() go inside, or directly around cancel_after(). Around another
/// adapter they do not compile, as in bind_executor(strand, as_tuple(cancel_after(...))), because the limit
/// could not see them.
/// Throws std::invalid_argument for a NaN. The initiation of the operation throws what async_wait() throws. Then the
/// operation has not begun.
/// Memory: the limit may expire while another thread begins the operation. If there is then no memory to post the
/// cancellation, the operation has no limit.
/// Threads: the handler's executor must be an implicit or explicit strand, as for all cancellation in Asio. The thread
/// that begins the operation need not be on it.
/// Not for: two limits around one operation that must be told apart.
/// Source: Asio's cancel_after, from 1.31 on.
template <class Token>
detail::CancelAfter<std::decay_t<Token>> cancel_after(
    Timer& timer, When when, Token&& token, HWT_ASIO::cancellation_type type = HWT_ASIO::cancellation_type::terminal) {
  when = hwt::detail::number("cancel_after: delay", when);
  return {&timer, when, std::forward<Token>(token), type};
}

}  // namespace hwt::HWT_ASIO_NAMESPACE

/// @cond specializations of Asio's customization points
// The return type is written out, because Asio chooses between overloads of initiating functions by it.
template <class Token, class... Signatures>
class HWT_ASIO::async_result<hwt::HWT_ASIO_NAMESPACE::detail::CancelAfter<Token>, Signatures...>
    : public hwt::HWT_ASIO_NAMESPACE::detail::ReturnTypeOf<HWT_ASIO::async_result<Token, Signatures...>> {
  template <class Initiation>
  using Within = hwt::HWT_ASIO_NAMESPACE::detail::InitiateWithin<std::decay_t<Initiation>>;

 public:
  template <class Initiation, class Limited, class... Args>
  static auto initiate(Initiation&& initiation, Limited&& limited, Args&&... args)
      -> decltype(HWT_ASIO::async_initiate<Token, Signatures...>(std::declval<Within<Initiation>>(),
                                                                 std::declval<Token&>(), std::declval<Args>()...)) {
    Token token = std::forward<Limited>(limited).token;
    return HWT_ASIO::async_initiate<Token, Signatures...>(
        Within<Initiation>{std::forward<Initiation>(initiation), limited.timer, limited.when, limited.type}, token,
        std::forward<Args>(args)...);
  }
};

template <class Token, class Executor, class Signature>
  requires hwt::HWT_ASIO_NAMESPACE::detail::kHasLimit<Token>
class HWT_ASIO::async_result<HWT_ASIO::executor_binder<Token, Executor>, Signature>
    : public hwt::HWT_ASIO_NAMESPACE::detail::InitiateBound<HWT_ASIO::executor_binder<Token, Executor>, Signature> {};

template <class Token, class Slot, class Signature>
  requires hwt::HWT_ASIO_NAMESPACE::detail::kHasLimit<Token>
class HWT_ASIO::async_result<HWT_ASIO::cancellation_slot_binder<Token, Slot>, Signature>
    : public hwt::HWT_ASIO_NAMESPACE::detail::InitiateBound<HWT_ASIO::cancellation_slot_binder<Token, Slot>,
                                                            Signature> {};

template <template <class, class> class Associator, class Handler, class Default>
struct HWT_ASIO::associator<Associator, hwt::HWT_ASIO_NAMESPACE::detail::LimitedHandler<Handler>, Default>
    : Associator<Handler, Default> {
  using Limited = hwt::HWT_ASIO_NAMESPACE::detail::LimitedHandler<Handler>;
  static auto get(const Limited& limited) noexcept { return Associator<Handler, Default>::get(limited.handler); }
  static auto get(const Limited& limited, const Default& other) noexcept {
    return Associator<Handler, Default>::get(limited.handler, other);
  }
};

template <class Handler, class Default>
struct HWT_ASIO::associated_cancellation_slot<hwt::HWT_ASIO_NAMESPACE::detail::LimitedHandler<Handler>, Default> {
  using type = HWT_ASIO::cancellation_slot;
  using Limited = hwt::HWT_ASIO_NAMESPACE::detail::LimitedHandler<Handler>;
  static type get(const Limited& limited) noexcept { return limited.limit->signal.slot(); }
  static type get(const Limited& limited, const Default& /*other*/) noexcept { return get(limited); }
};
/// @endcond
