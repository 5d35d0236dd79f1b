#pragma once

// The interface of the checker for models. A model runs shipped code, and asserts what that code promises. See
// checker.cpp. This header includes what most models need of the standard library.

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace model {

using std::chrono::nanoseconds;

/// One run: made anew for each schedule, and destroyed at its end.
class Run {
 public:
  virtual ~Run() = default;
  virtual void thread(unsigned index) = 0;
  virtual void after() {}
};

struct Plan {
  unsigned threads;
  unsigned long long schedules;
  bool pauses = false;  // any operation may come after a linger()
  Run* (*make)() = nullptr;
};

/// Returns the exit code of main(). Without arguments: runs the model as it is. `--orders`: weakens each order that it
/// met, in turn, and prints which ones the model noticed. `--orders PLACE...`: these alone. `--places`: prints the
/// names that `--orders` takes. `--show SCHEDULE`: prints the steps of one schedule.
int check(const Plan& plan, int argc, char** argv);

/// Checks a model whose runs have this type. See check() without a type.
template <class T>
int check(Plan plan, int argc, char** argv) {
  plan.make = []() -> Run* { return new T; };
  return check(plan, argc, argv);
}

// Inside a run.

unsigned random(unsigned limit);
void yield();
/// May pause this thread while others make many steps. Otherwise that is rare, because all run at the same speed.
void linger();
[[noreturn]] void fail(const char* what);

#define MODEL_ASSERT(what) ((what) ? void() : model::fail(#what))

// The two sides of AsymmetricFence.
void light_fence(const char* file, unsigned line);
void heavy_fence(const char* file, unsigned line);
void full_fence(const char* file, unsigned line);

/// State of the model alone. No thread of the program could know it, so accesses are not watched.
template <class T>
class Ghost {
 public:
  Ghost() = default;
  Ghost(T value) : value_(value) {}  // NOLINT(google-explicit-constructor): as the value itself
  [[gnu::noinline, gnu::no_sanitize("thread")]] operator T() const { return value_; }
  [[gnu::noinline, gnu::no_sanitize("thread")]] Ghost& operator=(T value) {
    value_ = value;
    return *this;
  }
  [[gnu::noinline, gnu::no_sanitize("thread")]] T operator++() { return ++value_; }
  [[gnu::noinline, gnu::no_sanitize("thread")]] T operator--() { return --value_; }
  [[gnu::noinline, gnu::no_sanitize("thread")]] T operator++(int) { return value_++; }

 private:
  T value_{};
};

}  // namespace model
