//! What the driver takes while nothing expires: with nothing pending, or with timeouts that are due much later.

use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::figures::Figures;
use crate::options::{Options, TICK};
use crate::process::{cpu_time, wakeups};
use crate::splitmix64::SplitMix64;
use crate::task::Counters;
use crate::timer::{Timeout, Timer};

const REST: Duration = Duration::from_millis(500);

pub fn idle(options: &Options) -> Figures {
    let _timer = Timer::start();
    measure(options)
}

pub fn far(options: &Options) -> Figures {
    let timer = Timer::start();
    let guard = timer.enter();
    let counters = Arc::new(Counters::new(0));
    let mut random = SplitMix64::new(options.seed);
    let _timeouts: Vec<_> = (1..=options.pending)
        .map(|id| {
            let delay = Duration::from_millis(random.between(600_000, 1_200_000));
            Timeout::schedule(delay, id, &counters)
        })
        .collect();
    drop(guard);
    timer.fence();
    measure(options)
}

fn measure(options: &Options) -> Figures {
    sleep(2 * TICK + REST);
    let (wakeups_start, cpu_start, start) = (wakeups(), cpu_time(), Instant::now());
    sleep(Duration::from_secs(options.seconds));
    let cpu = cpu_time() - cpu_start;
    let seconds = start.elapsed().as_secs_f64();
    let woken = wakeups() - wakeups_start;
    Figures::default()
        .decimal("cpu_ms_per_s", cpu.as_secs_f64() * 1e3 / seconds)
        .decimal("wakeups_per_s", woken as f64 / seconds)
}
