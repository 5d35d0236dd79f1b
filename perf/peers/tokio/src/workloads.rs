//! The workloads, each with a fresh runtime.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng, rngs::SmallRng};
use serde_json::{Value, json};

use crate::process::{at_rest, cpu_time, measured, resident_bytes};
use crate::timer::{Fired, Latch, Task, Timeout, Timer};
use crate::{Options, Workload};

/// The delay of timeouts that are cancelled or postponed before they are due.
pub const LONG_DELAY: Duration = Duration::from_secs(600);

/// The timeouts of a batch, and the batches that go round between two threads.
pub const BATCH_SIZE: u64 = 256;
pub const BATCHES: usize = 8;

pub fn measure(workload: Workload, options: &Options) -> Value {
    let timer = Timer::start();
    match workload {
        Workload::Churn => rings(&timer, options, |_| options.pending, Ring::churn, Ring::churn),
        Workload::Handoff => rings(&timer, options, |_| options.pending, Ring::hand_over, Ring::hand_over),
        Workload::Touch => rings(&timer, options, |t| options.share(options.pending, t), Ring::churn, Ring::touch),
        Workload::Expire => expire(&timer, options),
        Workload::Memory => memory(&timer, options),
        Workload::Idle => at_rest(options.seconds),
        Workload::Far => far(&timer, options),
        Workload::Late => late(&timer, options),
        Workload::Rate => rate(&timer, options),
    }
}

pub fn merged(mut figures: Value, more: Value) -> Value {
    if let (Value::Object(figures), Value::Object(more)) = (&mut figures, more) {
        figures.extend(more);
    }
    figures
}

/// The sums are strings, because some JSON readers do not keep 64 bits.
pub fn counts(scheduled: u64, fired: &Fired, cancelled: u64, cancelled_sum: u64) -> Value {
    json!({
        "scheduled": scheduled,
        "fired": fired.count.load(Ordering::Acquire),
        "fired_sum": fired.sum.load(Ordering::Acquire).to_string(),
        "cancelled": cancelled,
        "cancelled_sum": cancelled_sum.to_string(),
    })
}

/// The id before the first one of thread `t`.
pub fn first_id(t: u64) -> u64 {
    t << 40
}

pub fn random(options: &Options, t: u64) -> SmallRng {
    SmallRng::seed_from_u64(options.seed + t)
}

/// Runs `work` on each part, in a thread of its own.
fn together<T: Send>(timer: &Timer, parts: &mut [T], work: impl Fn(usize, &mut T) + Sync) {
    let work = &work;
    thread::scope(|scope| {
        for (t, part) in parts.iter_mut().enumerate() {
            scope.spawn(move || {
                let _guard = timer.enter();
                work(t, part);
            });
        }
    });
}

/// The pending timeouts of one thread.
struct Ring<'a> {
    timer: &'a Timer,
    fired: Arc<Fired>,
    timeouts: Vec<Option<Timeout<Fired>>>, // None: a free slot
    oldest: usize,
    last_id: u64,
    random: SmallRng,
    cancelled: u64,
    cancelled_sum: u64,
}

impl Ring<'_> {
    fn cancel_oldest(&mut self) {
        if let Some(id) = self.timeouts[self.oldest].take().and_then(Timeout::cancel) {
            self.cancelled += 1;
            self.cancelled_sum = self.cancelled_sum.wrapping_add(id);
        }
    }

    /// Replaces the oldest timeout.
    fn keep(&mut self, timeout: Option<Timeout<Fired>>) {
        self.timeouts[self.oldest] = timeout;
        self.oldest = if self.oldest + 1 == self.timeouts.len() { 0 } else { self.oldest + 1 };
    }

    /// Cancels the oldest timeout, if the ring is full, and schedules a new one.
    fn churn(&mut self, operations: u64) {
        for _ in 0..operations {
            self.cancel_oldest();
            self.last_id += 1;
            self.keep(Some(Timeout::schedule(LONG_DELAY, self.last_id, &self.fired)));
        }
    }

    /// Cancels the oldest timeout and keeps one that another thread scheduled.
    fn hand_over(&mut self, operations: u64) {
        let (fill, full) = sync_channel::<Vec<_>>(BATCHES);
        let (give_back, empty) = sync_channel(BATCHES);
        for _ in 0..BATCHES {
            give_back.send(Vec::with_capacity(BATCH_SIZE as usize)).expect("room");
        }
        let (timer, fired) = (self.timer, Arc::clone(&self.fired));
        let mut ids = self.last_id + 1..=self.last_id + operations;
        self.last_id += operations;
        thread::scope(|scope| {
            scope.spawn(move || {
                let _guard = timer.enter();
                while !ids.is_empty() {
                    let mut batch = empty.recv().expect("a batch");
                    let some = ids.by_ref().take(BATCH_SIZE as usize);
                    batch.extend(some.map(|id| Timeout::schedule(LONG_DELAY, id, &fired)));
                    fill.send(batch).expect("a receiver");
                }
            });
            for mut batch in full {
                for timeout in batch.drain(..) {
                    self.cancel_oldest();
                    self.keep(Some(timeout));
                }
                let _ = give_back.send(batch); // the other thread may have ended
            }
        });
    }

    /// Postpones a timeout at random.
    fn touch(&mut self, operations: u64) {
        for _ in 0..operations {
            let at = self.random.random_range(0..self.timeouts.len());
            if let Some(timeout) = &mut self.timeouts[at] {
                timeout.put_off(LONG_DELAY);
            }
        }
    }

    fn drain(&mut self) {
        for _ in 0..self.timeouts.len() {
            self.cancel_oldest();
            self.keep(None);
        }
    }
}

/// An operation on a ring, repeated.
type Work<'a> = fn(&mut Ring<'a>, u64);

fn rings<'a>(
    timer: &'a Timer,
    options: &Options,
    size: impl Fn(u64) -> u64 + Sync,
    fill: Work<'a>,
    work: Work<'a>,
) -> Value {
    let fired = Arc::new(Fired::default());
    let ring = |t| Ring {
        timer,
        fired: Arc::clone(&fired),
        timeouts: (0..size(t)).map(|_| None).collect(),
        oldest: 0,
        last_id: first_id(t),
        random: random(options, t),
        cancelled: 0,
        cancelled_sum: 0,
    };
    let mut rings: Vec<Ring> = (0..options.threads).map(ring).collect();
    together(timer, &mut rings, |t, ring| fill(ring, size(t as u64)));
    timer.fence();
    let measure = || together(timer, &mut rings, |t, ring| work(ring, options.share(options.count, t as u64)));
    let times = measured(options.count, measure, || {});
    together(timer, &mut rings, |_, ring| ring.drain());
    let scheduled = (0..).zip(&rings).map(|(t, ring)| ring.last_id - first_id(t)).sum();
    let cancelled = rings.iter().map(|ring| ring.cancelled).sum();
    let cancelled_sum = rings.iter().fold(0, |sum: u64, ring| sum.wrapping_add(ring.cancelled_sum));
    merged(times, counts(scheduled, &fired, cancelled, cancelled_sum))
}

/// Schedules timeouts of 1 to 1000 ms and waits until all have run.
fn expire(timer: &Timer, options: &Options) -> Value {
    let fired = Arc::new(Fired { awaited: options.count, ..Fired::default() });
    let kept = Mutex::new(Vec::new()); // a timeout must live until it expires
    let produce = |_, t: &mut u64| {
        let mut random = random(options, *t);
        let count = options.share(options.count, *t);
        let mut timeouts = Vec::with_capacity(count as usize);
        for id in 1..=count {
            let delay = Duration::from_millis(random.random_range(1..=1_000));
            timeouts.push(Timeout::schedule(delay, first_id(*t) + id, &fired));
        }
        kept.lock().unwrap().push(timeouts);
    };
    let mut threads: Vec<u64> = (0..options.threads).collect();
    let work = || {
        together(timer, &mut threads, produce);
        fired.all.wait();
    };
    // Freeing expired timeouts is part of the CPU time, as with the other timers.
    let times = measured(options.count, work, || kept.lock().unwrap().clear());
    merged(times, counts(options.count, &fired, 0, 0))
}

fn schedule_pending(timer: &Timer, options: &Options, delay: impl FnMut() -> Duration) -> Vec<Timeout<Fired>> {
    let never = Arc::new(Fired::default());
    let mut timeouts = Vec::with_capacity(options.pending as usize);
    let guard = timer.enter();
    let delays = std::iter::repeat_with(delay);
    timeouts.extend((1..=options.pending).zip(delays).map(|(id, delay)| Timeout::schedule(delay, id, &never)));
    drop(guard);
    timer.fence();
    timeouts
}

fn memory(timer: &Timer, options: &Options) -> Value {
    timer.fence();
    let before = resident_bytes();
    let timeouts = schedule_pending(timer, options, || Duration::from_secs(3_600));
    // The list of handles belongs to the runner.
    let own = size_of_val(timeouts.as_slice()) as f64;
    json!({"bytes_per_timeout": (resident_bytes() - before - own) / options.pending as f64})
}

fn far(timer: &Timer, options: &Options) -> Value {
    let mut random = random(options, 0);
    let _timeouts =
        schedule_pending(timer, options, || Duration::from_millis(random.random_range(600_000..=1_200_000)));
    at_rest(options.seconds)
}

/// Holds the deadline of each timeout, and its lateness after it has run, in nanoseconds.
struct Deadlines {
    start: Instant,
    times: Vec<AtomicI64>,
    left: AtomicU64,
    all_run: Latch,
}

impl Deadlines {
    fn now(&self) -> i64 {
        self.start.elapsed().as_nanos() as i64
    }
}

impl Task for Deadlines {
    fn run(&self, id: u64) {
        let time = &self.times[id as usize];
        time.store(self.now() - time.load(Ordering::Relaxed), Ordering::Relaxed);
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.all_run.open();
        }
    }
}

/// Measures the time from a deadline to the start of the task: 100 every 5 ms.
fn late(timer: &Timer, options: &Options) -> Value {
    let _guard = timer.enter();
    let times = (0..options.count).map(|_| AtomicI64::new(0)).collect();
    let (start, left) = (Instant::now(), AtomicU64::new(options.count));
    let deadlines = Arc::new(Deadlines { start, times, left, all_run: Latch::default() });
    let mut random = random(options, 0);
    let mut timeouts = Vec::with_capacity(options.count as usize);
    for id in 0..options.count {
        if id % 100 == 0 {
            let due = start + Duration::from_millis(5) * (id / 100) as u32;
            sleep(due.saturating_duration_since(Instant::now()));
        }
        let delay = Duration::from_micros(random.random_range(1_000..=21_000));
        deadlines.times[id as usize].store(deadlines.now() + delay.as_nanos() as i64, Ordering::Relaxed);
        timeouts.push(Timeout::schedule(delay, id, &deadlines));
    }
    deadlines.all_run.wait();
    let mut late: Vec<i64> = deadlines.times.iter().map(|time| time.load(Ordering::Relaxed)).collect();
    late.sort_unstable();
    let quantiles: Vec<f64> =
        (0..=1_000).map(|permille| late[permille * (late.len() - 1) / 1_000] as f64 / 1e3).collect();
    let early = late.partition_point(|nanos| *nanos < -1); // by more than the resolution of the clock
    json!({"late_us": quantiles, "early": early})
}

/// Schedules 100 timeouts of 300 s each millisecond and cancels each after the next `pending` ones, except one of a
/// thousand. With `due_ms`, another timeout is due at that interval. Measures the growth of the memory.
fn rate(timer: &Timer, options: &Options) -> Value {
    let _guard = timer.enter();
    let fired = Arc::new(Fired::default());
    let mut ring: Vec<Option<Timeout<Fired>>> = (0..options.pending).map(|_| None).collect();
    // A timeout must live until it expires.
    let mut kept = Vec::with_capacity((options.count / 1_000 + 1) as usize);
    let mut due = [None, None]; // two, because the next one comes when the latest is due
    timer.fence();
    let (before, cpu, start) = (resident_bytes(), cpu_time(), Instant::now());
    for id in 0..options.count {
        if id % 100 == 0 {
            let millis = id / 100;
            sleep((start + Duration::from_millis(millis)).saturating_duration_since(Instant::now()));
            if options.due_ms != 0 && millis % options.due_ms == 0 {
                due.swap(0, 1);
                due[0] = Some(Timeout::schedule(Duration::from_millis(options.due_ms), 0, &fired));
            }
        }
        let slot = &mut ring[(id % options.pending) as usize];
        slot.take().map(Timeout::cancel);
        let timeout = Timeout::schedule(Duration::from_secs(300), id, &fired);
        if id % 1_000 == 0 {
            kept.push(timeout);
        } else {
            *slot = Some(timeout);
        }
    }
    let (cpu, wall) = (cpu_time() - cpu, start.elapsed());
    let bytes = resident_bytes() - before;
    drop((ring, kept, due));
    json!({
        "kept_mib": bytes / f64::from(1 << 20),
        "cpu_ms_per_s": cpu.as_secs_f64() * 1e3 / wall.as_secs_f64(),
    })
}
