#pragma once

// muduo declares Channel in this header. The stand-in declares it in EventLoop.h.

#include "tests/host/stand_in/muduo/net/EventLoop.h"
