//! tokio's timers in its own tasks. A timeout is a `Sleep` within the future of a request, so it needs no memory of its
//! own. Polling it once with the waker of the task schedules it, and dropping it cancels it. Churn and touch have one
//! worker and one task for each thread.

use std::future::{Future, poll_fn};
use std::mem::swap;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread::available_parallelism;

use rand::{RngExt, rngs::SmallRng};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::spawn;
use tokio::sync::mpsc::channel;
use tokio::task::{unconstrained, yield_now};
use tokio::time::{Instant, Sleep, sleep};

use crate::process::measured;
use crate::timer::{Fired, TICK};
use crate::workloads::{BATCH_SIZE, BATCHES, LONG_DELAY, counts, first_id, merged, random};
use crate::{Options, Peer, Workload};

pub fn measure(workload: Workload, options: &Options) -> Value {
    let pending = |_| options.pending;
    match workload {
        Workload::Churn => rings(options.threads, options, pending, Ring::churn, Ring::churn),
        Workload::Touch => {
            rings(options.threads, options, |t| options.share(options.pending, t), Ring::churn, Ring::touch)
        }
        // Two tasks for each pair, on tokio's default number of workers.
        Workload::Handoff => {
            let cores = available_parallelism().expect("the number of cores").get() as u64;
            rings(cores, options, pending, Ring::hand_over, Ring::hand_over)
        }
        _ => json!({"unsupported": "as from outside"}),
    }
}

fn start_runtime(workers: u64, peer: Peer) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(workers as usize).enable_time();
    match peer {
        #[cfg(tokio_unstable)]
        Peer::TokioAlt => builder.enable_alt_timer(),
        _ => &mut builder,
    };
    builder.build().expect("a runtime")
}

/// The place of a timeout. Programs have it in their futures.
type Slot = Pin<Box<Option<Sleep>>>;

fn schedule(slot: &mut Slot, context: &mut Context<'_>) {
    slot.set(Some(sleep(LONG_DELAY)));
    register(slot, context);
}

fn register(slot: &mut Slot, context: &mut Context<'_>) {
    let polled = slot.as_mut().as_pin_mut().map(|sleep| sleep.poll(context));
    assert_eq!(polled, Some(Poll::Pending));
}

/// Polls with the context of the task, then yields to the runtime. tokio would pause a task after 128 operations. Here
/// each operation stands for a request, which would have its own task and its own 128.
async fn slice(mut work: impl FnMut(&mut Context<'_>)) {
    unconstrained(poll_fn(|context| Poll::Ready(work(context)))).await;
    yield_now().await;
}

/// The pending timeouts of one task.
struct Ring {
    slots: Vec<Slot>,
    oldest: usize,
    oldest_id: u64,
    last_id: u64,
    random: SmallRng,
    cancelled: u64,
    cancelled_sum: u64,
}

impl Ring {
    fn cancel_oldest(&mut self) {
        if self.slots[self.oldest].is_some() {
            self.slots[self.oldest].set(None);
            self.cancelled += 1;
            self.cancelled_sum = self.cancelled_sum.wrapping_add(self.oldest_id);
            self.oldest_id += 1;
        }
    }

    fn advance(&mut self) {
        self.oldest = if self.oldest + 1 == self.slots.len() { 0 } else { self.oldest + 1 };
    }

    /// Cancels the oldest timeout, if the ring is full, and schedules a new one.
    async fn churn(mut self, operations: u64) -> Self {
        for n in slices(operations) {
            slice(|context| {
                for _ in 0..n {
                    self.cancel_oldest();
                    schedule(&mut self.slots[self.oldest], context);
                    self.advance();
                }
            })
            .await;
        }
        self.last_id += operations;
        self
    }

    /// Cancels the oldest timeout and keeps one that another task scheduled. Batches go round between the two.
    async fn hand_over(mut self, operations: u64) -> Self {
        let (fill, mut full) = channel::<(Vec<Slot>, u64)>(BATCHES);
        let (give_back, mut empty) = channel(BATCHES);
        for _ in 0..BATCHES {
            give_back.try_send((0..BATCH_SIZE).map(|_| Box::pin(None)).collect()).expect("room");
        }
        spawn(async move {
            for n in slices(operations) {
                let mut batch: Vec<Slot> = empty.recv().await.expect("a batch");
                slice(|context| batch[..n as usize].iter_mut().for_each(|slot| schedule(slot, context))).await;
                fill.send((batch, n)).await.expect("a receiver");
            }
        });
        while let Some((mut batch, n)) = full.recv().await {
            for slot in &mut batch[..n as usize] {
                self.cancel_oldest();
                swap(&mut self.slots[self.oldest], slot);
                self.advance();
            }
            let _ = give_back.send(batch).await; // the other task may have ended
        }
        self.last_id += operations;
        self
    }

    /// Postpones a timeout at random.
    async fn touch(mut self, operations: u64) -> Self {
        for n in slices(operations) {
            slice(|context| {
                for _ in 0..n {
                    let at = self.random.random_range(0..self.slots.len());
                    if let Some(sleep) = self.slots[at].as_mut().as_pin_mut() {
                        sleep.reset(Instant::now() + LONG_DELAY);
                    }
                    register(&mut self.slots[at], context);
                }
            })
            .await;
        }
        self
    }

    async fn drain(mut self, _operations: u64) -> Self {
        for _ in 0..self.slots.len() {
            self.cancel_oldest();
            self.advance();
        }
        self
    }
}

fn slices(operations: u64) -> impl Iterator<Item = u64> {
    (0..operations).step_by(BATCH_SIZE as usize).map(move |done| BATCH_SIZE.min(operations - done))
}

/// Runs `work` on the share of each ring, in a task of its own.
fn together<Done>(runtime: &Runtime, rings: &mut Vec<Ring>, share: impl Fn(u64) -> u64, work: fn(Ring, u64) -> Done)
where
    Done: Future<Output = Ring> + Send + 'static,
{
    let tasks: Vec<_> = (0..).zip(rings.drain(..)).map(|(t, ring)| runtime.spawn(work(ring, share(t)))).collect();
    rings.extend(tasks.into_iter().map(|task| runtime.block_on(task).expect("a ring")));
}

fn rings<Filled, Worked>(
    workers: u64,
    options: &Options,
    size: impl Fn(u64) -> u64,
    fill: fn(Ring, u64) -> Filled,
    work: fn(Ring, u64) -> Worked,
) -> Value
where
    Filled: Future<Output = Ring> + Send + 'static,
    Worked: Future<Output = Ring> + Send + 'static,
{
    let runtime = start_runtime(workers, options.peer);
    let ring = |t| Ring {
        slots: (0..size(t)).map(|_| Box::pin(None)).collect(),
        oldest: 0,
        oldest_id: first_id(t) + 1,
        last_id: first_id(t),
        random: random(options, t),
        cancelled: 0,
        cancelled_sum: 0,
    };
    let mut rings: Vec<Ring> = (0..options.threads).map(ring).collect();
    together(&runtime, &mut rings, &size, fill);
    runtime.block_on(async { spawn(sleep(2 * TICK)).await }).expect("a sleep");
    let share = |t| options.share(options.count, t);
    let times = measured(options.count, || together(&runtime, &mut rings, share, work), || {});
    together(&runtime, &mut rings, &size, Ring::drain);
    let scheduled = (0..).zip(&rings).map(|(t, ring)| ring.last_id - first_id(t)).sum();
    let cancelled = rings.iter().map(|ring| ring.cancelled).sum();
    let cancelled_sum = rings.iter().fold(0, |sum: u64, ring| sum.wrapping_add(ring.cancelled_sum));
    let figures = merged(times, counts(scheduled, &Fired::default(), cancelled, cancelled_sum));
    merged(figures, json!({"note": "in tasks of its own runtime"}))
}
