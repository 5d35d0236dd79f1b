// Precompiled for the tests of asio.h.

#include "tests/asio/kit.h"
