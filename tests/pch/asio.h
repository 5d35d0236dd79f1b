// Precompiled for the tests of asio.h.

#include "tests/pch/tests.h"
#ifdef HWT_TEST_BOOST
#include <boost/asio.hpp>

#include "hashed_wheel_timer/boost_asio.h"
#else
#include <asio.hpp>

#include "hashed_wheel_timer/asio.h"
#endif
