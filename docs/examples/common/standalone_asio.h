#pragma once

// Asio asks for macros of the standard library before it includes any of it. Files that include it first and files that
// do not then get different definitions of its allocation functions (github.com/chriskohlhoff/asio/issues/1139).
// clang-format off
#include <version>
#include <asio.hpp>
// clang-format on
