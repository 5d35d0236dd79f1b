//! Timeouts for requests: a safe interface to the C library of hashed_wheel_timer.
//!
//! ```no_run
//! use hashed_wheel_timer::{Cancel, Options, Timer};
//! use std::time::Duration;
//!
//! let timer = Timer::new(&Options::default())?;
//! let timeout = timer.add(Duration::from_millis(250), || println!("too late"))?;
//! // The answer comes:
//! if timer.cancel(timeout) == Cancel::Cancelled {
//!     println!("in time");
//! }
//! # Ok::<(), hashed_wheel_timer::Error>(())
//! ```

mod ffi;

use std::cell::Cell;
use std::ffi::CStr;
use std::fmt;
use std::mem::MaybeUninit;
use std::os::raw::{c_int, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process::abort;
use std::ptr::null_mut;
use std::thread;
use std::time::Duration;

/// One line that names the function, the argument, its value and the valid range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl Error {
    fn last() -> Error {
        // SAFETY: the text is valid until the next call of the library on this thread.
        let text = unsafe { CStr::from_ptr(ffi::hwt_last_error()) };
        Error(text.to_string_lossy().into_owned())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// The wheel of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// For request timeouts.
    HashedWheel,
    /// For far timeouts, and for ticks below a millisecond.
    HierarchicalWheel,
}

/// Options of a timer. The other options of the library have their defaults.
#[derive(Clone, Debug)]
pub struct Options {
    /// The wheel.
    pub kind: Kind,
    /// The length of a tick. A callable runs late by up to a tick.
    pub tick: Duration,
    /// The number of pending timeouts beyond which `add` fails. 0 is no limit.
    pub max_pending: Option<u32>,
}

impl Default for Options {
    fn default() -> Options {
        Options { kind: Kind::HashedWheel, tick: Duration::from_millis(10), max_pending: None }
    }
}

/// What became of a timeout that was to be cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cancel {
    /// The callable has not run and never will.
    Cancelled,
    /// The callable runs now.
    Running,
    /// The callable has run, the timeout was cancelled before, or it is of another timer.
    Gone,
}

type Callable = Box<dyn FnOnce() + Send>;

/// Names a timeout of one timer. A plain value that owns nothing and may be stale.
#[derive(Clone, Copy, Debug)]
pub struct Timeout {
    id: ffi::Id,
    callable: *mut Callable,
}

// SAFETY: only the thread whose cancel returned 0 uses the pointer, and the library returns 0 once for each timeout.
unsafe impl Send for Timeout {}
unsafe impl Sync for Timeout {}

/// A timer with a worker thread. Dropping it cancels all timeouts, and waits for a callable that runs, except inside
/// that callable. No callable starts afterwards. The program ends if the drop of a pending callable panics, or if the
/// timer is dropped in its own callable and the system gives no thread.
pub struct Timer(*mut ffi::Timer);

// SAFETY: any thread may call the functions of the library.
unsafe impl Send for Timer {}
unsafe impl Sync for Timer {}

impl Timer {
    /// Makes a timer. The first timeout starts its thread.
    pub fn new(options: &Options) -> Result<Timer, Error> {
        let mut all = MaybeUninit::<ffi::Options>::uninit();
        let mut timer = null_mut();
        // SAFETY: the library fills in the whole structure, whose size it is given.
        let result = unsafe {
            ffi::hwt_options_init_sized(all.as_mut_ptr(), std::mem::size_of::<ffi::Options>());
            let mut all = all.assume_init();
            all.kind = match options.kind {
                Kind::HashedWheel => ffi::HASHED_WHEEL,
                Kind::HierarchicalWheel => ffi::HIERARCHICAL_WHEEL,
            };
            all.tick_ns = nanoseconds(options.tick);
            all.max_pending = options.max_pending.map_or(-1, i64::from);
            ffi::hwt_create(&all, &mut timer)
        };
        if result == 0 { Ok(Timer(timer)) } else { Err(Error::last()) }
    }

    /// Runs `callable` once, on the timer's thread, `delay` from now or up to a tick later. It should be short. A panic
    /// in it ends the program.
    pub fn add(&self, delay: Duration, callable: impl FnOnce() + Send + 'static) -> Result<Timeout, Error> {
        let callable: *mut Callable = Box::into_raw(Box::new(Box::new(callable)));
        // SAFETY: the library passes the pointer on once: to `run`, or to `forget` when the timer stops.
        let id = unsafe { ffi::hwt_add(self.0, nanoseconds(delay), run, callable.cast()) };
        if id == 0 {
            let error = Error::last();
            // SAFETY: nothing was scheduled.
            drop(unsafe { Box::from_raw(callable) });
            return Err(error);
        }
        Ok(Timeout { id, callable })
    }

    /// Cancels a timeout, and drops its callable if that has not run and never will.
    pub fn cancel(&self, timeout: Timeout) -> Cancel {
        // SAFETY: any number may be an id.
        self.ended(timeout, unsafe { ffi::hwt_cancel(self.0, timeout.id) })
    }

    /// Cancels a timeout, and waits while its callable runs on another thread.
    pub fn cancel_and_wait(&self, timeout: Timeout) -> Cancel {
        // SAFETY: any number may be an id.
        self.ended(timeout, unsafe { ffi::hwt_cancel_and_wait(self.0, timeout.id) })
    }

    fn ended(&self, timeout: Timeout, result: c_int) -> Cancel {
        match result {
            0 => {
                // SAFETY: the library says so once for each timeout, and never passes the pointer on afterwards.
                drop(unsafe { Box::from_raw(timeout.callable) });
                Cancel::Cancelled
            }
            1 => Cancel::Running,
            _ => Cancel::Gone,
        }
    }

    /// Moves a timeout to `delay` from now. Returns false if its callable has started or it was cancelled. Without memory
    /// for an earlier time, it also returns false, and the timeout stays as it is.
    pub fn reschedule(&self, timeout: Timeout, delay: Duration) -> bool {
        // SAFETY: any number may be an id.
        unsafe { ffi::hwt_reschedule(self.0, timeout.id, nanoseconds(delay)) == 0 }
    }

    /// Returns the number of pending timeouts.
    pub fn pending(&self) -> i64 {
        // SAFETY: the timer is alive.
        unsafe { ffi::hwt_pending(self.0) }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if !stop(self.0) {
            // Inside a callable of this timer. The worker ends after it, so another thread must wait for that.
            DROPPED.with(|dropped| dropped.set(true));
            let timer = Timer(self.0);
            thread::spawn(move || drop(timer));
            return;
        }
        // SAFETY: nothing else has the pointer.
        unsafe { ffi::hwt_destroy(self.0) }
    }
}

thread_local! {
    /// Whether this is the thread of a timer that one of its own callables has dropped. Each timer has its own thread,
    /// which alone runs the callables.
    static DROPPED: Cell<bool> = const { Cell::new(false) };
}

/// Drops the callables of all pending timeouts. Returns false inside a callable of the timer.
fn stop(timer: *mut ffi::Timer) -> bool {
    loop {
        // SAFETY: the timer is alive.
        match unsafe { ffi::hwt_stop(timer, Some(forget), null_mut()) } {
            0 => return true,
            ffi::ENOMEM => thread::yield_now(),
            _ => return false,
        }
    }
}

fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

extern "C" fn run(argument: *mut c_void) {
    // SAFETY: made by `add`, and passed on once.
    let callable = unsafe { Box::from_raw(argument.cast::<Callable>()) };
    if DROPPED.with(Cell::get) {
        end_on_panic(|| drop(callable));
    } else {
        end_on_panic(callable);
    }
}

extern "C" fn forget(_context: *mut c_void, _callback: ffi::Callback, argument: *mut c_void) {
    // SAFETY: made by `add`, and passed on once.
    let callable = unsafe { Box::from_raw(argument.cast::<Callable>()) };
    end_on_panic(|| drop(callable));
}

/// Calls `function`. A panic in it ends the program, because it must not go through the library.
fn end_on_panic(function: impl FnOnce()) {
    // The result keeps the payload alive until the end, because its drop could panic again.
    let result = catch_unwind(AssertUnwindSafe(function));
    if result.is_err() {
        abort();
    }
}
