#pragma once

// trantor has its Channel here. The stand-in has it beside the loop.

#include "tests/host/stand_in/trantor/net/EventLoop.h"
