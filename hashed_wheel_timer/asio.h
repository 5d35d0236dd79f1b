// SPDX-License-Identifier: Apache-2.0
#pragma once

// hwt::net: async_wait(), cancel_after(), WheelTimer and LoopTimer, for standalone Asio from 1.22.1 on. Not included by
// any other header.

#include <asio/version.hpp>

// The rest of the header is skipped, so that this is the only error. Not #error, which cannot name the version.
#if ASIO_VERSION < 102201
#define HWT_AS_TEXT_OF(text) #text
#define HWT_AS_TEXT(macro) HWT_AS_TEXT_OF(macro)
static_assert(false, "ASIO_VERSION: " HWT_AS_TEXT(ASIO_VERSION) " (expected: 102201 or later, which is 1.22.1)");
#else

// clang-format off: Asio tests macros of the standard library before it includes any of it. Asio 1.22 also uses
// <exception> without including it.
#include <exception>
#include <version>
// clang-format on

#include <algorithm>
#include <array>
#include <asio/any_io_executor.hpp>
#include <asio/associated_allocator.hpp>
#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/associator.hpp>
#include <asio/async_result.hpp>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/bind_executor.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/defer.hpp>
#include <asio/error.hpp>
#include <asio/execution/context.hpp>
#include <asio/execution/outstanding_work.hpp>
#include <asio/execution_context.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/prefer.hpp>
#include <asio/query.hpp>
#include <asio/recycling_allocator.hpp>
#include <asio/steady_timer.hpp>
#include <asio/wait_traits.hpp>
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

#include "hashed_wheel_timer/delay.h"
#include "hashed_wheel_timer/detail/asio/async_wait.h"
#include "hashed_wheel_timer/detail/asio/handler_memory.h"
#include "hashed_wheel_timer/detail/driven_timer.h"
#include "hashed_wheel_timer/detail/refuse_nan.h"
#include "hashed_wheel_timer/options.h"
#include "hashed_wheel_timer/timer.h"

#define HWT_ASIO asio
#define HWT_ASIO_ERROR_CODE asio::error_code
#define HWT_ASIO_NAMESPACE net
// clang-format off: each needs those before it
#include "hashed_wheel_timer/detail/asio/loop.h"
#include "hashed_wheel_timer/detail/asio/operation.h"
#include "hashed_wheel_timer/detail/asio/wait.h"
#include "hashed_wheel_timer/detail/asio/cancel_after.h"
// clang-format on
#undef HWT_ASIO
#undef HWT_ASIO_ERROR_CODE
#undef HWT_ASIO_NAMESPACE

#endif
