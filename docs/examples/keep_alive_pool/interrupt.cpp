#include "interrupt.h"

#include <atomic>
#include <csignal>

namespace pool {
namespace {

std::atomic<bool> caught{false};
static_assert(std::atomic<bool>::is_always_lock_free, "or a signal handler must not touch it");

extern "C" void handle_interrupt(int signal) {
  caught.store(true);
  std::signal(signal, SIG_DFL);
}

}  // namespace

void catch_interrupts() {
  std::signal(SIGINT, handle_interrupt);
  std::signal(SIGTERM, handle_interrupt);
}

bool interrupted() { return caught.load(std::memory_order_relaxed); }

}  // namespace pool
