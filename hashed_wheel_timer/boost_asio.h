// SPDX-License-Identifier: Apache-2.0
#pragma once

// hwt::boost_net: what asio.h has, for Boost.Asio from Boost 1.81 on. Not included by any other header.

#include <boost/version.hpp>

// The rest of the header is skipped, so that this is the only error. Not #error, which cannot name the version.
#if BOOST_VERSION < 108100
static_assert(false, "Boost: " BOOST_LIB_VERSION " (expected: 1_81 or later; Debian 12: libboost1.81-dev)");
#else

#define HWT_ASIO boost::asio
#define HWT_ASIO_ERROR_CODE boost::system::error_code
#define HWT_ASIO_NAMESPACE boost_net
#define HWT_ASIO_HEADER(name) <boost/asio/name>
#include "hashed_wheel_timer/detail/asio/parts.h"
#undef HWT_ASIO
#undef HWT_ASIO_ERROR_CODE
#undef HWT_ASIO_HEADER
#undef HWT_ASIO_NAMESPACE

#endif
