//! The promises of the crate.

use hashed_wheel_timer::{Cancel, Kind, Options, Timer};
use std::env;
use std::panic::panic_any;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

const HOUR: Duration = Duration::from_secs(3600);
const LONG: Duration = Duration::from_secs(60);

fn timer() -> Timer {
    Timer::new(&Options { tick: Duration::from_millis(1), ..Options::default() }).unwrap()
}

#[test]
fn a_callable_runs_once_and_not_early() {
    for kind in [Kind::HashedWheel, Kind::HierarchicalWheel] {
        let timer = Timer::new(&Options { kind, ..Options::default() }).unwrap();
        let (sender, receiver) = channel();
        let begun = Instant::now();
        timer.add(Duration::from_millis(20), move || sender.send(begun.elapsed()).unwrap()).unwrap();
        assert!(receiver.recv_timeout(LONG).unwrap() >= Duration::from_millis(20));
        let gone = receiver.recv_timeout(LONG);
        assert_eq!(gone, Err(RecvTimeoutError::Disconnected), "the callable is gone, and its sender");
    }
}

/// Counts itself until it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(alive: &Arc<AtomicUsize>) -> Counted {
        alive.fetch_add(1, Ordering::SeqCst);
        Counted(alive.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn await_zero(alive: &AtomicUsize) {
    let end = Instant::now() + LONG;
    while alive.load(Ordering::SeqCst) != 0 && Instant::now() < end {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[test]
fn cancelling_drops_the_callable_once() {
    let timer = timer();
    let alive = Arc::new(AtomicUsize::new(0));
    let counted = Counted::new(&alive);
    let timeout = timer.add(HOUR, move || drop(counted)).unwrap();
    assert_eq!(timer.cancel(timeout), Cancel::Cancelled);
    assert_eq!(alive.load(Ordering::SeqCst), 0);
    assert_eq!(timer.cancel(timeout), Cancel::Gone);
    assert_eq!(timer.cancel_and_wait(timeout), Cancel::Gone);
    assert!(!timer.reschedule(timeout, HOUR));
}

#[test]
fn a_timeout_of_another_timer_is_gone() {
    let (here, there) = (timer(), timer());
    let timeout = there.add(HOUR, || ()).unwrap();
    assert_eq!(here.cancel(timeout), Cancel::Gone);
    assert_eq!(there.cancel(timeout), Cancel::Cancelled);
}

#[test]
fn threads_race_the_worker_and_each_timeout_ends_once() {
    let timer = Arc::new(timer());
    let alive = Arc::new(AtomicUsize::new(0));
    let ran = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let (timer, alive, ran) = (timer.clone(), alive.clone(), ran.clone());
            thread::spawn(move || {
                let mut cancelled = 0;
                for i in 0..5_000 {
                    let (counted, ran) = (Counted::new(&alive), ran.clone());
                    let delay = Duration::from_micros(i % 3 * 500);
                    let timeout = timer
                        .add(delay, move || {
                            ran.fetch_add(1, Ordering::SeqCst);
                            drop(counted);
                        })
                        .unwrap();
                    let result = if i % 2 == 0 { timer.cancel(timeout) } else { timer.cancel_and_wait(timeout) };
                    cancelled += usize::from(result == Cancel::Cancelled);
                }
                cancelled
            })
        })
        .collect();
    let cancelled: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    drop(timer);
    assert_eq!(cancelled + ran.load(Ordering::SeqCst), 20_000);
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

#[test]
fn dropping_the_timer_drops_what_is_pending() {
    let alive = Arc::new(AtomicUsize::new(0));
    let timer = timer();
    for _ in 0..100 {
        let counted = Counted::new(&alive);
        timer.add(HOUR, move || drop(counted)).unwrap();
    }
    assert_eq!(timer.pending(), 100);
    drop(timer);
    assert_eq!(alive.load(Ordering::SeqCst), 0);
}

/// Its drop panics, and so does the drop of the payload.
struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic_any(PanicsWhenDropped);
    }
}

/// A panic that reaches the edge of the library also ends the program, but with a message of Rust's own.
#[test]
fn a_panic_of_a_drop_ends_the_program_before_it_reaches_the_library() {
    const DELAY: &str = "HWT_TEST_DELAY_OF_PANIC";
    const NAME: &str = "a_panic_of_a_drop_ends_the_program_before_it_reaches_the_library";
    if let Ok(seconds) = env::var(DELAY) {
        let (timer, panics) = (timer(), PanicsWhenDropped);
        let delay = Duration::from_secs(seconds.parse().unwrap());
        timer.add(delay, move || drop(panics)).unwrap();
        if delay.is_zero() {
            thread::sleep(LONG);
        }
        return;
    }
    for seconds in ["0", "3600"] {
        let child = env::current_exe().unwrap();
        let output = Command::new(child).args(["--exact", NAME, "--nocapture"]).env(DELAY, seconds).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "after {seconds} s: {stderr}");
        assert!(stderr.contains("panicked"), "after {seconds} s: {stderr}");
        assert!(!stderr.contains("cannot unwind"), "after {seconds} s: {stderr}");
    }
}

#[test]
fn a_callable_may_drop_its_timer() {
    let timer = Arc::new(timer());
    let alive = Arc::new(AtomicUsize::new(0));
    let counted = Counted::new(&alive);
    timer.add(HOUR, move || drop(counted)).unwrap();
    let (own, (sender, receiver)) = (timer.clone(), channel());
    timer
        .add(Duration::from_millis(50), move || {
            drop(own);
            sender.send(()).unwrap();
        })
        .unwrap();
    drop(timer);
    receiver.recv_timeout(LONG).unwrap();
    await_zero(&alive);
}

/// The thread of the timer has both callables in its hands when the first drops the timer.
#[test]
fn no_callable_runs_after_a_callable_has_dropped_the_timer() {
    let timer = Arc::new(timer());
    let (alive, ran) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (own, (go, gate)) = (timer.clone(), channel());
    let first = Counted::new(&alive);
    timer
        .add(Duration::ZERO, move || {
            gate.recv().unwrap();
            drop((own, first));
        })
        .unwrap();
    for _ in 0..100 {
        let (counted, ran) = (Counted::new(&alive), ran.clone());
        let later = move || {
            ran.fetch_add(1, Ordering::SeqCst);
            drop(counted);
        };
        timer.add(Duration::ZERO, later).unwrap();
    }
    drop(timer);
    go.send(()).unwrap();
    await_zero(&alive);
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}

#[test]
fn errors_name_the_value_and_the_range() {
    let error = Timer::new(&Options { tick: Duration::ZERO, ..Options::default() }).err().unwrap().to_string();
    assert!(error.contains("tick_duration: 0 ns (expected: "), "{error}");
    let timer = Timer::new(&Options { max_pending: Some(1), ..Options::default() }).unwrap();
    timer.add(HOUR, || ()).unwrap();
    let error = timer.add(HOUR, || ()).unwrap_err().to_string();
    assert!(error.contains("max_pending_timeouts: 1 timeouts are pending already"), "{error}");
}
