//! The cancels that have won.

use std::time::Duration;

use crate::figures::Figures;
use crate::task::Counters;
use crate::timer::Timeout;

/// Delay of the timeouts that are cancelled or put off before they are due.
pub const LONG_DELAY: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, Default)]
pub struct Cancels {
    count: u64,
    sum: u64,
}

impl Cancels {
    pub fn cancel(&mut self, timeout: Timeout<Counters>, id: u64) {
        if timeout.cancel() {
            self.count += 1;
            self.sum = self.sum.wrapping_add(id);
        }
    }

    pub fn total(all: impl Iterator<Item = Self>) -> Self {
        all.fold(Self::default(), |a, b| Self {
            count: a.count + b.count,
            sum: a.sum.wrapping_add(b.sum),
        })
    }

    /// The sums are text, since not every reader of JSON keeps so many digits.
    pub fn figures(self, scheduled: u64, counters: &Counters) -> Figures {
        Figures::default()
            .number("scheduled", scheduled)
            .number("fired", counters.fired())
            .text("fired_sum", counters.fired_sum())
            .number("cancelled", self.count)
            .text("cancelled_sum", self.sum)
    }
}
