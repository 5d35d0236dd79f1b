#pragma once

// HWT_API marks what a shared library exports; everything else is hidden.
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
