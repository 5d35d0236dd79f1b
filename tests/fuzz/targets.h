#pragma once

#include "tests/fuzz/input.h"

// The fuzz targets. Each takes an input as a history of calls, and ends the program when a promise is broken.

namespace hwt::fuzz {

void wheels(Input& input);         ///< internal/wheel: both wheels against a multimap
void passive_wheel(Input& input);  ///< PassiveWheel against a multimap
void timers(Input& input);         ///< ManualTimer, and all of the family on it, against a multimap
void schedules(Input& input);      ///< the occurrences of a Schedule against counting them one by one
void calendars(Input& input);      ///< the rules of calendar.h against the system's localtime
void options(Input& input);        ///< valid and invalid arguments
void deadlines(Input& input);      ///< texts, numbers and the order of a Deadline against simple models
void durations(Input& input);      ///< durations against numbers of 128 bits

}  // namespace hwt::fuzz
