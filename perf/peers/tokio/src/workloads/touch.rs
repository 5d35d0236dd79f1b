//! Each thread puts off one of its pending timeouts at random, again and again.

use std::sync::Arc;

use crate::cancels::{Cancels, LONG_DELAY};
use crate::crew::{self, Member};
use crate::figures::Figures;
use crate::options::{id_base, Options};
use crate::splitmix64::SplitMix64;
use crate::stopwatch::Stopwatch;
use crate::task::Counters;
use crate::timer::{Timeout, Timer};

pub fn measure(options: &Options) -> Figures {
    let timer = Timer::start();
    let counters = Arc::new(Counters::new(0));
    let mut touchers: Vec<Toucher> = (0..options.threads)
        .map(|t| Toucher {
            counters: &counters,
            first_id: id_base(t) + 1,
            pending: options.share(options.pending, t),
            touches: options.share(options.count, t),
            random: SplitMix64::new(options.seed.wrapping_add(t)),
            timeouts: Vec::new(),
            cancels: Cancels::default(),
        })
        .collect();
    let times = crew::run(&timer, &mut touchers, |work| {
        timer.fence();
        let mut watch = Stopwatch::start();
        work();
        watch.stop_wall();
        watch.finish(options.count)
    });
    let cancels = Cancels::total(touchers.iter().map(|toucher| toucher.cancels));
    times.extend(cancels.figures(options.pending, &counters))
}

struct Toucher<'a> {
    counters: &'a Arc<Counters>,
    first_id: u64,
    pending: u64,
    touches: u64,
    random: SplitMix64,
    timeouts: Vec<Timeout<Counters>>,
    cancels: Cancels,
}

impl Member for Toucher<'_> {
    fn fill(&mut self) {
        self.timeouts = (self.first_id..)
            .take(self.pending as usize)
            .map(|id| Timeout::schedule(LONG_DELAY, id, self.counters))
            .collect();
    }

    fn work(&mut self) {
        for _ in 0..self.touches {
            let i = self.random.next() % self.pending;
            self.timeouts[i as usize].touch(LONG_DELAY);
        }
    }

    fn drain(&mut self) {
        for (id, timeout) in (self.first_id..).zip(self.timeouts.drain(..)) {
            self.cancels.cancel(timeout, id);
        }
    }
}
