#pragma once

// Includes that nearly every file of an example needs.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "common/example.h"
#include "common/format.h"
#include "common/options.h"
#include "common/report.h"
