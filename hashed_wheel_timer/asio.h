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

#define HWT_ASIO asio
#define HWT_ASIO_ERROR_CODE asio::error_code
#define HWT_ASIO_NAMESPACE net
#define HWT_ASIO_HEADER(name) <asio/name>
#include "hashed_wheel_timer/detail/asio/parts.h"
#undef HWT_ASIO
#undef HWT_ASIO_ERROR_CODE
#undef HWT_ASIO_HEADER
#undef HWT_ASIO_NAMESPACE

#endif
