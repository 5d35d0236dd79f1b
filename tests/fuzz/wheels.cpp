// Both wheels of internal/wheel against a multimap.

#include "tests/fuzz/targets.h"
#include "tests/fuzz/wheel_walk.h"

namespace hwt::fuzz {

void wheels(Input& input) { walk_on_any_wheel(input); }

}  // namespace hwt::fuzz
