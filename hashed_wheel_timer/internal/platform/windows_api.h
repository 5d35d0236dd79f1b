// SPDX-License-Identifier: Apache-2.0
#pragma once

// <windows.h> without the macros that break C++. Only where there is one.

#ifndef NOMINMAX
#define NOMINMAX
#endif
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
