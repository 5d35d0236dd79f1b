#pragma once

namespace common {

// Of the short example that page_main.cpp is linked with.
extern const char* const page_name;
extern const char* const page_text;

}  // namespace common
