//! The workloads, each with a fresh runtime.

mod churn;
mod expire;
mod late;
mod memory;
mod quiet;
mod touch;

use crate::figures::Figures;
use crate::options::{Options, Workload};

pub fn measure(options: &Options) -> Figures {
    match options.workload {
        Workload::Churn => churn::measure(options),
        Workload::Expire => expire::measure(options),
        Workload::Memory => memory::measure(options),
        Workload::Idle => quiet::idle(options),
        Workload::Far => quiet::far(options),
        Workload::Late => late::measure(options),
        Workload::Touch => touch::measure(options),
    }
}
