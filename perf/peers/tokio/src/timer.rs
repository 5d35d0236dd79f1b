//! tokio's time driver, used from threads outside its runtime.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use tokio::runtime::{Builder, EnterGuard, Runtime};
use tokio::time::{Instant, Sleep, sleep_until};

/// tokio's only tick.
pub const TICK: Duration = Duration::from_millis(1);

/// Runs on the runtime's worker, or on the scheduling thread if the deadline has passed.
pub trait Task: Send + Sync + 'static {
    fn run(&self, id: u64);
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

/// Counts expired timeouts.
#[derive(Default)]
pub struct Fired {
    pub awaited: u64,
    pub count: AtomicU64,
    pub sum: AtomicU64,
    pub all: Latch,
}

impl Task for Fired {
    fn run(&self, id: u64) {
        self.sum.fetch_add(id, Ordering::Relaxed);
        if self.count.fetch_add(1, Ordering::AcqRel) + 1 == self.awaited {
            self.all.open();
        }
    }
}

pub struct Timer {
    runtime: Runtime,
}

impl Timer {
    pub fn start() -> Self {
        // One worker. The worker that parks on the time driver expires the timeouts, so more workers would only add
        // hand-overs. The other timers also have one such thread.
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_time().build();
        Self { runtime: runtime.expect("a runtime") }
    }

    /// A thread must hold this guard while it schedules.
    pub fn enter(&self) -> EnterGuard<'_> {
        self.runtime.enter()
    }

    /// Waits until the worker has run the driver after all earlier schedules.
    pub fn fence(&self) {
        let _guard = self.enter();
        let passed = Arc::new(Latch::default());
        let _timeout = Timeout::schedule(2 * TICK, 0, &passed);
        passed.wait();
    }
}

/// A scheduled timeout. Dropping it cancels it.
pub struct Timeout<T: Task> {
    sleep: Pin<Box<Sleep>>,
    entry: Arc<Entry<T>>,
}

impl<T: Task> Timeout<T> {
    /// Needs [`Timer::enter`].
    pub fn schedule(delay: Duration, id: u64, task: &Arc<T>) -> Self {
        let entry = Arc::new(Entry { id, task: Arc::clone(task), done: AtomicBool::new(false) });
        let sleep = Box::pin(sleep_until(Instant::now() + delay));
        let mut timeout = Self { sleep, entry };
        timeout.register();
        timeout
    }

    /// Returns the id if the cancel won, so that the task never runs.
    pub fn cancel(self) -> Option<u64> {
        self.entry.finish().then_some(self.entry.id)
    }

    pub fn put_off(&mut self, delay: Duration) {
        self.sleep.as_mut().reset(Instant::now() + delay);
        self.register();
    }

    /// Puts the timeout into the driver's wheel, with a waker that runs the task.
    fn register(&mut self) {
        let waker = Waker::from(Arc::clone(&self.entry));
        let polled = self.sleep.as_mut().poll(&mut Context::from_waker(&waker));
        if polled == Poll::Ready(()) {
            // The deadline has passed, so the driver calls no waker.
            waker.wake();
        }
    }
}

/// A timeout's waker.
struct Entry<T: Task> {
    id: u64,
    task: Arc<T>,
    /// Decides between the task and a cancel.
    done: AtomicBool,
}

impl<T: Task> Entry<T> {
    fn finish(&self) -> bool {
        !self.done.swap(true, Ordering::AcqRel)
    }
}

impl<T: Task> Wake for Entry<T> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.finish() {
            self.task.run(self.id);
        }
    }
}
