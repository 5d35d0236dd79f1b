//! How long after its deadline a task runs.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::figures::Figures;
use crate::options::Options;
use crate::splitmix64::SplitMix64;
use crate::task::{Latch, Task};
use crate::timer::{Timeout, Timer};

const BATCH: u64 = 100;
const INTERVAL: Duration = Duration::from_millis(5);
const QUANTILES: usize = 1_001;

pub fn measure(options: &Options) -> Figures {
    let timer = Timer::start();
    let _guard = timer.enter();
    let deadlines = Arc::new(Deadlines::new(options.count));
    let mut random = SplitMix64::new(options.seed);
    let mut timeouts = Vec::with_capacity(options.count as usize);
    for i in 0..options.count {
        if i % BATCH == 0 {
            let due = deadlines.start + INTERVAL * (i / BATCH) as u32;
            sleep(due.saturating_duration_since(Instant::now()));
        }
        let delay = Duration::from_micros(random.between(1_000, 21_000));
        deadlines.set(i + 1, delay);
        timeouts.push(Timeout::schedule(delay, i + 1, &deadlines));
    }
    deadlines.all_run.wait();
    figures(deadlines.lateness())
}

/// Holds each timeout's deadline until it runs, then by how much it was late; in nanoseconds.
struct Deadlines {
    start: Instant,
    times: Vec<AtomicI64>,
    left: AtomicU64,
    all_run: Latch,
}

impl Deadlines {
    fn new(count: u64) -> Self {
        Self {
            start: Instant::now(),
            times: (0..count).map(|_| AtomicI64::new(0)).collect(),
            left: AtomicU64::new(count),
            all_run: Latch::default(),
        }
    }

    fn set(&self, id: u64, delay: Duration) {
        let deadline = self.now() + delay.as_nanos() as i64;
        self.of(id).store(deadline, Ordering::Relaxed);
    }

    fn now(&self) -> i64 {
        self.start.elapsed().as_nanos() as i64
    }

    fn of(&self, id: u64) -> &AtomicI64 {
        &self.times[id as usize - 1]
    }

    fn lateness(&self) -> Vec<i64> {
        self.times
            .iter()
            .map(|time| time.load(Ordering::Relaxed))
            .collect()
    }
}

impl Task for Deadlines {
    fn run(&self, id: u64) {
        let time = self.of(id);
        time.store(self.now() - time.load(Ordering::Relaxed), Ordering::Relaxed);
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.all_run.open();
        }
    }
}

fn figures(mut late: Vec<i64>) -> Figures {
    late.sort_unstable();
    let quantiles = (0..QUANTILES)
        .map(|i| late[i * (late.len() - 1) / (QUANTILES - 1)] as f64 / 1e3)
        .collect();
    // The clock's unit is a nanosecond.
    let early = late.iter().filter(|nanos| **nanos < -1).count();
    Figures::default()
        .quantiles("late_us", quantiles)
        .number("early", early as u64)
}
