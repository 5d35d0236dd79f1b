#pragma once

// Includes Asio after the standard headers whose macros it tests. Otherwise files could get different definitions of
// its allocation functions (github.com/chriskohlhoff/asio/issues/1139).
// clang-format off
#include <version>
#include <asio.hpp>
// clang-format on
