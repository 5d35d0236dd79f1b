#pragma once

#include <functional>

namespace hwt::test {

/// A callable that calls a function when it is copied. It does nothing when it runs, and allocates nothing.
class WhenCopied {
 public:
  explicit WhenCopied(const std::function<void()>& f) : f_(&f) {}
  explicit WhenCopied(std::function<void()>&&) = delete;  // it would go too early
  WhenCopied(const WhenCopied& other) : f_(other.f_) { (*f_)(); }
  WhenCopied& operator=(const WhenCopied&) = delete;
  ~WhenCopied() = default;
  void operator()() const {}

 private:
  const std::function<void()>* f_;
};

}  // namespace hwt::test
