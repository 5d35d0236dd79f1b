#include "hashed_wheel_timer/version.h"

static_assert(HWT_VERSION_MAJOR == PROJECT_MAJOR && HWT_VERSION_MINOR == PROJECT_MINOR &&
                  HWT_VERSION_PATCH == PROJECT_PATCH,
              "hashed_wheel_timer/version.h and the project's version in meson.build differ");

// Linking is the rest of the test.
int main() {}
