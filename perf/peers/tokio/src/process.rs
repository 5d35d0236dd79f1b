//! What the kernel says about this process.

use std::fs;
use std::mem::MaybeUninit;
use std::time::Duration;

/// CPU time, user and system, of all threads.
pub fn cpu_time() -> Duration {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: getrusage fills in the whole of it, and cannot fail with these arguments.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    [usage.ru_utime, usage.ru_stime]
        .iter()
        .map(|time| Duration::new(time.tv_sec as u64, 1_000 * time.tv_usec as u32))
        .sum()
}

/// Bytes of resident memory.
pub fn resident_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("/proc/self/statm");
    let pages: u64 = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .expect("resident pages");
    // SAFETY: it has no preconditions.
    pages * unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64
}

/// Voluntary context switches of all threads but the calling one.
pub fn wakeups() -> u64 {
    // SAFETY: it has no preconditions.
    let own = unsafe { libc::gettid() }.to_string();
    fs::read_dir("/proc/self/task")
        .expect("/proc/self/task")
        .flatten()
        .filter(|task| task.file_name().to_str() != Some(&own))
        // A thread may have ended meanwhile.
        .filter_map(|task| fs::read_to_string(task.path().join("status")).ok())
        .map(|status| voluntary_switches(&status))
        .sum()
}

fn voluntary_switches(status: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
        .and_then(|switches| switches.trim().parse().ok())
        .expect("voluntary_ctxt_switches")
}

/// Hands the allocator's free memory back to the kernel, where the allocator has a way to do so.
pub fn return_free_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it has no preconditions.
    unsafe {
        libc::malloc_trim(0);
    }
}
