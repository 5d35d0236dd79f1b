// The entry of a libFuzzer program; the build says of which target.

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  hwt::fuzz::Input input(bytes, size);
  hwt::fuzz::HWT_FUZZ_TARGET(input);
  return 0;
}
