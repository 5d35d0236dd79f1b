#pragma once

#include "connection_pool.h"
#include "options.h"

namespace pool {

/// Heartbeats every 5 s, expiry after 30 s, on a ManualTimer that is advanced as soon as all heartbeats of a moment
/// have been sent.
Times simulated_times(const Options& options);
Results run_simulated(const Options& options);

/// The same in a twentieth of the time, on a HashedWheelTimer and the real clock.
Times live_times(const Options& options);
Results run_live(const Options& options);

}  // namespace pool
