#pragma once

// What a build that is slower than others has to leave out.

#if defined(__SANITIZE_THREAD__)
#define HWT_TEST_THREAD_SANITIZER 1
#elif defined(__has_feature)
#define HWT_TEST_THREAD_SANITIZER __has_feature(thread_sanitizer)
#else
#define HWT_TEST_THREAD_SANITIZER 0
#endif

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define HWT_TEST_SANITIZED 1
#elif defined(__has_feature)
#define HWT_TEST_SANITIZED (__has_feature(thread_sanitizer) || __has_feature(address_sanitizer))
#else
#define HWT_TEST_SANITIZED 0
#endif

namespace hwt::test {

/// For sanitizers that make everything many times slower, and bring a malloc of their own.
inline constexpr bool kSanitized = HWT_TEST_SANITIZED;

/// In the build that counts what is covered each branch is an atomic addition: what looks at all of a structure again
/// and again takes forty times as long, and covers no more.
#if defined(HWT_TEST_COUNTING)
inline constexpr bool kCounting = true;
#else
inline constexpr bool kCounting = false;
#endif

}  // namespace hwt::test
