//! Threads that take each step together with the thread that measures them.

use std::sync::Barrier;
use std::thread;

use crate::timer::Timer;

/// What one thread does. Only its work is measured.
pub trait Member: Send {
    fn fill(&mut self) {}
    fn work(&mut self);
    fn drain(&mut self) {}
}

/// Runs each member in a thread of its own. `measure` is called when all have filled; it calls its argument to have
/// the work done. The members drain when it has returned.
pub fn run<M: Member, R>(
    timer: &Timer,
    members: &mut [M],
    measure: impl FnOnce(&dyn Fn()) -> R,
) -> R {
    let barrier = Barrier::new(members.len() + 1);
    thread::scope(|scope| {
        for member in members {
            scope.spawn(|| {
                let _guard = timer.enter();
                member.fill();
                barrier.wait();
                barrier.wait();
                member.work();
                barrier.wait();
                barrier.wait();
                member.drain();
            });
        }
        barrier.wait();
        let result = measure(&|| {
            barrier.wait();
            barrier.wait();
        });
        barrier.wait();
        result
    })
}
