//! Schedules timeouts of 1 to 1000 ms and waits until all have run.

use std::mem;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::cancels::Cancels;
use crate::crew::{self, Member};
use crate::figures::Figures;
use crate::options::{id_base, Options};
use crate::splitmix64::SplitMix64;
use crate::stopwatch::Stopwatch;
use crate::task::Counters;
use crate::timer::{Timeout, Timer};

type Timeouts = Vec<Timeout<Counters>>;

pub fn measure(options: &Options) -> Figures {
    let timer = Timer::start();
    let counters = Arc::new(Counters::new(options.count));
    let scheduled = Mutex::new(Vec::new());
    let mut producers: Vec<Producer> = (0..options.threads)
        .map(|t| Producer {
            counters: &counters,
            id_base: id_base(t),
            count: options.share(options.count, t),
            random: SplitMix64::new(options.seed.wrapping_add(t)),
            scheduled: &scheduled,
        })
        .collect();
    let times = crew::run(&timer, &mut producers, |work| {
        let mut watch = Stopwatch::start();
        work();
        counters.wait_for_all();
        watch.stop_wall();
        // To free what has expired is part of the CPU time, as it is where the timer frees it.
        drop(mem::take(&mut *scheduled.lock().unwrap()));
        watch.finish(options.count)
    });
    times.extend(Cancels::default().figures(options.count, &counters))
}

struct Producer<'a> {
    counters: &'a Arc<Counters>,
    id_base: u64,
    count: u64,
    random: SplitMix64,
    /// The timeouts of all producers, which have to live until they expire.
    scheduled: &'a Mutex<Vec<Timeouts>>,
}

impl Member for Producer<'_> {
    fn work(&mut self) {
        let mut timeouts = Vec::with_capacity(self.count as usize);
        for i in 1..=self.count {
            let delay = Duration::from_millis(self.random.between(1, 1_000));
            timeouts.push(Timeout::schedule(delay, self.id_base + i, self.counters));
        }
        self.scheduled.lock().unwrap().push(timeouts);
    }
}
