//! The declarations of `hashed_wheel_timer/c.h` that this crate uses.

use std::os::raw::{c_char, c_int, c_void};

#[repr(C)]
pub struct Timer {
    _private: [u8; 0],
}

pub type Id = u64;
pub type Callback = extern "C" fn(argument: *mut c_void);
pub type Executor = extern "C" fn(context: *mut c_void, run: Callback, argument: *mut c_void);
pub type Each = extern "C" fn(context: *mut c_void, callback: Callback, argument: *mut c_void);

#[repr(C)]
pub struct Options {
    pub size: usize,
    pub kind: c_int,
    pub tick_ns: i64,
    pub ticks_per_wheel: u32,
    pub max_pending: i64,
    pub slow_task_ns: i64,
    pub executor: Option<Executor>,
    pub executor_context: *mut c_void,
    pub exact_clock: c_int,
    pub start_ns: i64,
}

pub const HASHED_WHEEL: c_int = 0;
pub const HIERARCHICAL_WHEEL: c_int = 1;

/// The number of this error on all systems.
pub const ENOMEM: c_int = 12;

extern "C" {
    pub fn hwt_options_init_sized(options: *mut Options, size: usize);
    pub fn hwt_create(options: *const Options, timer: *mut *mut Timer) -> c_int;
    pub fn hwt_add(timer: *mut Timer, delay_ns: i64, callback: Callback, argument: *mut c_void) -> Id;
    pub fn hwt_cancel(timer: *mut Timer, id: Id) -> c_int;
    pub fn hwt_cancel_and_wait(timer: *mut Timer, id: Id) -> c_int;
    pub fn hwt_reschedule(timer: *mut Timer, id: Id, delay_ns: i64) -> c_int;
    pub fn hwt_stop(timer: *mut Timer, each: Option<Each>, context: *mut c_void) -> c_int;
    pub fn hwt_destroy(timer: *mut Timer);
    pub fn hwt_pending(timer: *const Timer) -> i64;
    pub fn hwt_last_error() -> *const c_char;
}
