#pragma once

#include <functional>

namespace trantor {

using TimerCallback = std::function<void()>;

}  // namespace trantor
