#pragma once

// muduo has its Channel here. The stand-in has it beside the loop.

#include "tests/host/stand_in/muduo/net/EventLoop.h"
