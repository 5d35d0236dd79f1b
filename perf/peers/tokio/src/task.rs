//! What timeouts do when they expire.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};

/// Run by the runtime's worker, or by the scheduling thread if the deadline has passed already.
pub trait Task: Send + Sync + 'static {
    fn run(&self, id: u64);
}

/// Counts what has fired.
pub struct Counters {
    expected: u64,
    fired: AtomicU64,
    fired_sum: AtomicU64,
    all_fired: Latch,
}

impl Counters {
    /// `expected` is 0 in a run in which nothing is to fire.
    pub fn new(expected: u64) -> Self {
        Self {
            expected,
            fired: AtomicU64::new(0),
            fired_sum: AtomicU64::new(0),
            all_fired: Latch::default(),
        }
    }

    pub fn wait_for_all(&self) {
        self.all_fired.wait();
    }

    pub fn fired(&self) -> u64 {
        self.fired.load(Ordering::Acquire)
    }

    pub fn fired_sum(&self) -> u64 {
        self.fired_sum.load(Ordering::Acquire)
    }
}

impl Task for Counters {
    fn run(&self, id: u64) {
        self.fired_sum.fetch_add(id, Ordering::Relaxed);
        if self.fired.fetch_add(1, Ordering::AcqRel) + 1 == self.expected {
            self.all_fired.open();
        }
    }
}

/// Lets one thread wait until another opens it.
#[derive(Default)]
pub struct Latch {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Latch {
    pub fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    pub fn wait(&self) {
        let open = self.open.lock().unwrap();
        drop(self.opened.wait_while(open, |open| !*open).unwrap());
    }
}

impl Task for Latch {
    fn run(&self, _id: u64) {
        self.open();
    }
}
