// The headers that nearly all tests include, precompiled. Each test still includes them, because the strict build has
// no precompiled header.

#include "hashed_wheel_timer/manual_timer.h"
#include "tests/support/test_support.h"
