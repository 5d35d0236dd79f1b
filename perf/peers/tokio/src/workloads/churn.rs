//! Each thread keeps a ring of pending timeouts: cancels the oldest, schedules a new one.

use std::sync::Arc;

use crate::cancels::{Cancels, LONG_DELAY};
use crate::crew::{self, Member};
use crate::figures::Figures;
use crate::options::{id_base, Options};
use crate::stopwatch::Stopwatch;
use crate::task::Counters;
use crate::timer::{Timeout, Timer};

pub fn measure(options: &Options) -> Figures {
    let timer = Timer::start();
    let counters = Arc::new(Counters::new(0));
    let mut rings: Vec<Ring> = (0..options.threads)
        .map(|t| Ring {
            counters: &counters,
            last_id: id_base(t),
            pairs: options.share(options.count, t),
            timeouts: (0..options.pending).map(|_| None).collect(),
            oldest: 0,
            cancels: Cancels::default(),
        })
        .collect();
    let times = crew::run(&timer, &mut rings, |work| {
        timer.fence();
        let mut watch = Stopwatch::start();
        work();
        watch.stop_wall();
        watch.finish(options.count)
    });
    let scheduled = options.threads * options.pending + options.count;
    let cancels = Cancels::total(rings.iter().map(|ring| ring.cancels));
    times.extend(cancels.figures(scheduled, &counters))
}

struct Ring<'a> {
    counters: &'a Arc<Counters>,
    last_id: u64,
    pairs: u64,
    /// None only before the ring is filled and after it is drained.
    timeouts: Vec<Option<Timeout<Counters>>>,
    oldest: usize,
    cancels: Cancels,
}

impl Ring<'_> {
    fn cancel_oldest(&mut self) {
        if let Some(timeout) = self.timeouts[self.oldest].take() {
            let id = self.last_id - self.timeouts.len() as u64 + 1;
            self.cancels.cancel(timeout, id);
        }
    }

    /// In the place of the oldest, which is no longer pending.
    fn schedule_next(&mut self) {
        self.last_id += 1;
        self.timeouts[self.oldest] =
            Some(Timeout::schedule(LONG_DELAY, self.last_id, self.counters));
        self.oldest += 1;
        if self.oldest == self.timeouts.len() {
            self.oldest = 0;
        }
    }
}

impl Member for Ring<'_> {
    fn fill(&mut self) {
        for _ in 0..self.timeouts.len() {
            self.schedule_next();
        }
    }

    fn work(&mut self) {
        for _ in 0..self.pairs {
            self.cancel_oldest();
            self.schedule_next();
        }
    }

    fn drain(&mut self) {
        let newer = self.timeouts.split_off(self.oldest);
        let first_id = self.last_id - (newer.len() + self.timeouts.len()) as u64 + 1;
        let oldest_first = newer.into_iter().chain(self.timeouts.drain(..)).flatten();
        for (id, timeout) in (first_id..).zip(oldest_first) {
            self.cancels.cancel(timeout, id);
        }
    }
}
