// SPDX-License-Identifier: Apache-2.0
#pragma once

// hwt::boost_net: what asio.h has, for Boost.Asio from Boost 1.81 on. Not included by any other header.

#include <boost/version.hpp>

// The rest of the header is skipped, so that this is the only error. Not #error, which cannot name the version.
#if BOOST_VERSION < 108100
static_assert(false, "Boost: " BOOST_LIB_VERSION " (expected: 1_81 or later; Debian 12: libboost1.81-dev)");
#else

// clang-format off: Asio tests macros of the standard library before it includes any of it
#include <version>
// clang-format on

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/associator.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/defer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/recycling_allocator.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/wait_traits.hpp>
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

#define HWT_ASIO boost::asio
#define HWT_ASIO_ERROR_CODE boost::system::error_code
#define HWT_ASIO_NAMESPACE boost_net
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
