// Simulates an RPC client on a ManualTimer with one seed after the other, or tells what happens with one of them.

#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>

#include "tests/simulation/simulation.h"

namespace {

using hwt::simulation::Result;
using hwt::simulation::simulate;

std::optional<std::uint64_t> parse_number(const char* text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), number);
  if (error != std::errc() || *end != '\0') return std::nullopt;
  return number;
}

int replay(std::uint64_t seed) {
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  const Result result = simulate(seed, true);
  std::printf("%lld steps: %s\n", static_cast<long long>(result.steps),
              result.broken == nullptr ? "all promises were kept" : result.broken);
  return result.broken == nullptr ? 0 : 1;
}

int run_many(std::uint64_t count) {
  const auto begin = std::chrono::steady_clock::now();
  std::int64_t steps = 0;
  std::int64_t requests = 0;
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    const Result result = simulate(seed, false);
    if (result.broken != nullptr) {
      std::printf("broken: %s\nto see it: ./run check simulation %llu\n", result.broken,
                  static_cast<unsigned long long>(seed));
      return 1;
    }
    steps += result.steps;
    requests += result.requests;
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  std::printf("%llu seeds, %lld requests, %lld steps in %.1f s: all promises were kept\n",
              static_cast<unsigned long long>(count), static_cast<long long>(requests), static_cast<long long>(steps),
              passed.count());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool one = argc == 3 && std::strcmp(argv[1], "--seed") == 0;
  if (!one && argc != 2) {
    std::fprintf(stderr,
                 "usage: simulation SEEDS: from 1 on, so many; simulation --seed SEED: this one, with its trace\n");
    return 2;
  }
  const char* const text = argv[argc - 1];
  const auto number = parse_number(text);
  if (!number) {
    std::fprintf(stderr, "simulation: \"%s\" (expected: a whole number 0 .. %llu)\n", text,
                 std::numeric_limits<unsigned long long>::max());
    return 2;
  }
  return one ? replay(*number) : run_many(*number);
}
