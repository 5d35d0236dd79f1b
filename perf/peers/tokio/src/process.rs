use cpu_time::ProcessTime;
use procfs::process::Process;
use serde_json::{Value, json};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::timer::TICK;

fn this() -> Process {
    Process::myself().expect("/proc/self")
}

/// Returns the resident bytes, after the allocator has returned its free memory.
pub fn resident_bytes() -> f64 {
    // SAFETY: it has no preconditions.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
    (this().statm().expect("/proc/self/statm").resident * procfs::page_size()) as f64
}

/// Returns the voluntary context switches of all threads except the calling one.
fn wakeups() -> f64 {
    // SAFETY: it has no preconditions.
    let own = unsafe { libc::gettid() };
    let tasks = this().tasks().expect("/proc/self/task").flatten().filter(|task| task.tid != own);
    // The thread may have ended.
    let statuses = tasks.filter_map(|task| task.status().ok());
    statuses.map(|status| status.voluntary_ctxt_switches.expect("voluntary_ctxt_switches") as f64).sum()
}

/// Measures the time of operations. The CPU time includes `after` and a rest, in which the timer catches up.
pub fn measured(operations: u64, work: impl FnOnce(), after: impl FnOnce()) -> Value {
    let (cpu, start) = (ProcessTime::now(), Instant::now());
    work();
    let wall = start.elapsed();
    after();
    sleep(2 * TICK + Duration::from_millis(50));
    let cpu = cpu.elapsed();
    json!({
        "operations": operations,
        "cpu_ns_per_op": cpu.as_nanos() as f64 / operations as f64,
        "wall_ns_per_op": wall.as_nanos() as f64 / operations as f64,
        "wall_ms": wall.as_secs_f64() * 1e3,
    })
}

/// Returns the CPU time of all threads.
pub fn cpu_time() -> Duration {
    ProcessTime::now().as_duration()
}

/// Measures the process while no timeout is due.
pub fn at_rest(seconds: u64) -> Value {
    sleep(2 * TICK + Duration::from_millis(500));
    let (wakeups_before, cpu, start) = (wakeups(), ProcessTime::now(), Instant::now());
    sleep(Duration::from_secs(seconds));
    let (cpu, wall) = (cpu.elapsed(), start.elapsed().as_secs_f64());
    json!({
        "cpu_ms_per_s": cpu.as_secs_f64() * 1e3 / wall,
        "wakeups_per_s": (wakeups() - wakeups_before) / wall,
    })
}
