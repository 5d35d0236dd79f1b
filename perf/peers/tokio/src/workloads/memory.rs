//! Resident bytes that one pending timeout takes.

use std::mem::size_of;
use std::sync::Arc;
use std::time::Duration;

use crate::figures::Figures;
use crate::options::Options;
use crate::process::{resident_bytes, return_free_memory};
use crate::task::Counters;
use crate::timer::{Timeout, Timer};

const DELAY: Duration = Duration::from_secs(3_600);

pub fn measure(options: &Options) -> Figures {
    let timer = Timer::start();
    let counters = Arc::new(Counters::new(0));
    timer.fence();
    // Else what an earlier round has freed would be taken for new.
    return_free_memory();
    let before = resident_bytes();
    let mut timeouts = Vec::with_capacity(options.pending as usize);
    {
        let _guard = timer.enter();
        for id in 1..=options.pending {
            timeouts.push(Timeout::schedule(DELAY, id, &counters));
        }
    }
    timer.fence();
    let grown = resident_bytes() - before;
    // The list of handles is the runner's own.
    let own = options.pending * size_of::<Timeout<Counters>>() as u64;
    let bytes = grown as f64 - own as f64;
    Figures::default().decimal("bytes_per_timeout", bytes / options.pending as f64)
}
