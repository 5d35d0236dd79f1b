// SPDX-License-Identifier: Apache-2.0
#pragma once

// Each public header includes this one before the rest of the library. A file that is not there ends the compilation;
// after an #error, compilers go on and report hundreds of errors.
#if __cplusplus < 202002L && !(defined(_MSVC_LANG) && _MSVC_LANG >= 202002L)
#include <hashed_wheel_timer needs C++20: compile with -std=c++20 or later>
#endif
#if defined(HWT_BUILDING) && !defined(__cpp_exceptions)
#include <the sources of hashed_wheel_timer need exceptions: compile them with -fexceptions>
#endif

// HWT_API marks the symbols that a shared library exports. All others are hidden.
#if defined(_WIN32) && defined(HWT_SHARED)
#ifdef HWT_BUILDING
#define HWT_API __declspec(dllexport)
#else
#define HWT_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define HWT_API __attribute__((visibility("default")))
#else
#define HWT_API
#endif
