#pragma once

#include <exception>
#include <span>
#include <string_view>
#include <utility>

namespace hwt::internal {

/// Makes a text one line: control characters become question marks.
void make_one_line(std::span<char> text) noexcept;

/// One line on stderr, in one write.
void warn(std::string_view message) noexcept;

/// The same, and ends the program: what comes next would be undefined.
[[noreturn]] void die(std::string_view message) noexcept;

/// Calls f(text) with what an exception says, a const char*, and returns what that returns.
template <class F>
decltype(auto) with_text_of(const std::exception_ptr& error, F&& f) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return std::forward<F>(f)(e.what());
  } catch (...) {
    return std::forward<F>(f)("not a std::exception");
  }
}

}  // namespace hwt::internal
