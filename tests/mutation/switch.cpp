// Linked with each test program. Reads the number of the active fault, and records the places that the program reaches.
// The record is a mapped file, so it includes forked processes and processes that crash or call exec.

#include "switch.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace hwt_mutation {

namespace {

constexpr int kMaxPlaces = 1 << 16;
constinit unsigned char nobody_asks[kMaxPlaces]{};

// Runs before the constructors of all other objects.
[[gnu::constructor(101)]] void begin() {
  if (const char* number = std::getenv("HWT_MUTANT")) active = std::atoi(number);
  const char* path = std::getenv("HWT_MUTANTS_REACHED");
  if (path == nullptr) return;
  const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0 || ftruncate(file, kMaxPlaces) != 0) std::abort();
  void* const mapped = mmap(nullptr, kMaxPlaces, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) std::abort();
  close(file);
  reached = static_cast<unsigned char*>(mapped);
}

}  // namespace

constinit int active = 0;
constinit unsigned char* reached = nobody_asks;

}  // namespace hwt_mutation
