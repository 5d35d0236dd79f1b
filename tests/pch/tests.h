// What nearly all tests include, precompiled. They include it nevertheless: the strict build does without.

#include "hashed_wheel_timer/manual_timer.h"
#include "tests/support/test_support.h"
