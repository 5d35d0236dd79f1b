#pragma once

// Tells which slow kind of build this is, so that tests can do less work.

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

/// True with ThreadSanitizer or AddressSanitizer, which make tests many times slower and replace malloc.
inline constexpr bool kSanitized = HWT_TEST_SANITIZED;

/// True in the coverage build. There each branch costs an atomic addition, so tests that check a whole structure again
/// and again take forty times as long, without more coverage.
#if defined(HWT_TEST_COUNTING)
inline constexpr bool kCounting = true;
#else
inline constexpr bool kCounting = false;
#endif

}  // namespace hwt::test
