// boost_asio.h. The cases are those of asio_test.cpp, too.

#include "hashed_wheel_timer/boost_asio.h"

#include <boost/asio.hpp>

namespace host = boost::asio;
namespace net = hwt::boost_net;
using Error = boost::system::error_code;
inline constexpr auto kDeferred = boost::asio::deferred;

#include "tests/asio/cases.h"
