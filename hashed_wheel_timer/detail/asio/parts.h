// SPDX-License-Identifier: Apache-2.0
// asio.h and boost_asio.h include this file once each, with all that the parts need. They define HWT_ASIO as Asio's
// namespace, HWT_ASIO_ERROR_CODE as its error type, HWT_ASIO_HEADER as the path of a header of Asio, and
// HWT_ASIO_NAMESPACE as our namespace inside hwt.

// clang-format off: Asio tests macros of the standard library before it includes any of it. Asio 1.22 also uses
// <exception> without including it.
#include <exception>
#include <version>
// clang-format on

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>

// clang-format off: it would put spaces into the paths
#include HWT_ASIO_HEADER(any_io_executor.hpp)
#include HWT_ASIO_HEADER(associated_allocator.hpp)
#include HWT_ASIO_HEADER(associated_cancellation_slot.hpp)
#include HWT_ASIO_HEADER(associated_executor.hpp)
#include HWT_ASIO_HEADER(associator.hpp)
#include HWT_ASIO_HEADER(async_result.hpp)
#include HWT_ASIO_HEADER(bind_cancellation_slot.hpp)
#include HWT_ASIO_HEADER(bind_executor.hpp)
#include HWT_ASIO_HEADER(cancellation_signal.hpp)
#include HWT_ASIO_HEADER(defer.hpp)
#include HWT_ASIO_HEADER(error.hpp)
#include HWT_ASIO_HEADER(execution/context.hpp)
#include HWT_ASIO_HEADER(execution/outstanding_work.hpp)
#include HWT_ASIO_HEADER(execution_context.hpp)
#include HWT_ASIO_HEADER(executor_work_guard.hpp)
#include HWT_ASIO_HEADER(io_context.hpp)
#include HWT_ASIO_HEADER(post.hpp)
#include HWT_ASIO_HEADER(prefer.hpp)
#include HWT_ASIO_HEADER(query.hpp)
#include HWT_ASIO_HEADER(recycling_allocator.hpp)
#include HWT_ASIO_HEADER(steady_timer.hpp)
#include HWT_ASIO_HEADER(system_executor.hpp)
#include HWT_ASIO_HEADER(wait_traits.hpp)
// clang-format on

#include "hashed_wheel_timer/deadline.h"
#include "hashed_wheel_timer/delay.h"
#include "hashed_wheel_timer/detail/asio/async_wait.h"
#include "hashed_wheel_timer/detail/asio/handler_memory.h"
#include "hashed_wheel_timer/detail/driven_timer.h"
#include "hashed_wheel_timer/detail/refuse_nan.h"
#include "hashed_wheel_timer/options.h"
#include "hashed_wheel_timer/timer.h"

// clang-format off: each needs those before it
#include "hashed_wheel_timer/detail/asio/loop.h"
#include "hashed_wheel_timer/detail/asio/operation.h"
#include "hashed_wheel_timer/detail/asio/wait.h"
#include "hashed_wheel_timer/detail/asio/cancel_after.h"
// clang-format on
