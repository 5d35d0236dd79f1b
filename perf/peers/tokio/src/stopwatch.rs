//! Wall and CPU time of a run of operations.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::figures::Figures;
use crate::options::TICK;
use crate::process::cpu_time;

/// Besides two ticks, the time in which the worker catches up after the last operation.
const REST: Duration = Duration::from_millis(50);

pub struct Stopwatch {
    cpu_start: Duration,
    wall_start: Instant,
    wall: Duration,
}

impl Stopwatch {
    pub fn start() -> Self {
        Self {
            cpu_start: cpu_time(),
            wall_start: Instant::now(),
            wall: Duration::ZERO,
        }
    }

    /// The last operation has ended.
    pub fn stop_wall(&mut self) {
        self.wall = self.wall_start.elapsed();
    }

    /// Lets the worker rest, and tells the times.
    pub fn finish(self, operations: u64) -> Figures {
        sleep(2 * TICK + REST);
        let cpu = cpu_time() - self.cpu_start;
        let per_operation = |time: Duration| time.as_nanos() as f64 / operations as f64;
        Figures::default()
            .number("operations", operations)
            .decimal("cpu_ns_per_op", per_operation(cpu))
            .decimal("wall_ns_per_op", per_operation(self.wall))
            .decimal("wall_ms", self.wall.as_secs_f64() * 1e3)
    }
}
