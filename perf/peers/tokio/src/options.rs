//! What the command line asks for.

use std::time::Duration;

/// tokio's tick; there is no other.
pub const TICK: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    Churn,
    Expire,
    Memory,
    Idle,
    Far,
    Late,
    Touch,
}

const WORKLOADS: [(&str, Workload); 7] = [
    ("churn", Workload::Churn),
    ("expire", Workload::Expire),
    ("memory", Workload::Memory),
    ("idle", Workload::Idle),
    ("far", Workload::Far),
    ("late", Workload::Late),
    ("touch", Workload::Touch),
];

impl Workload {
    pub fn title(self) -> &'static str {
        let (title, _) = WORKLOADS[self as usize];
        title
    }

    fn find(title: &str) -> Result<Self, String> {
        WORKLOADS
            .iter()
            .find(|(t, _)| *t == title)
            .map(|(_, workload)| *workload)
            .ok_or_else(|| format!("unknown workload '{title}': one of {}", titles()))
    }
}

fn titles() -> String {
    WORKLOADS.map(|(title, _)| title).join(", ")
}

pub struct Options {
    pub workload: Workload,
    pub threads: u64,
    pub tick_ms: u64,
    pub count: u64,
    pub pending: u64,
    pub seconds: u64,
    pub rounds: u64,
    pub warmup: u64,
    pub seed: u64,
    pub json: bool,
}

impl Options {
    pub fn parse(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let title = args
            .next()
            .ok_or_else(|| format!("no workload: one of {}", titles()))?;
        let workload = Workload::find(&title)?;
        let mut options = Self::defaults(workload);
        while let Some(option) = args.next() {
            let (number, range) = match option.as_str() {
                "--json" => {
                    options.json = true;
                    continue;
                }
                "--threads" => (&mut options.threads, (1, 256)),
                "--tick-ms" => (&mut options.tick_ms, (1, 10_000)),
                "--count" => (&mut options.count, (1, 1_000_000_000)),
                "--pending" => (&mut options.pending, (1, 100_000_000)),
                "--seconds" => (&mut options.seconds, (1, 600)),
                "--rounds" => (&mut options.rounds, (1, 1_000)),
                "--warmup" => (&mut options.warmup, (0, 1_000)),
                "--seed" => (&mut options.seed, (0, u64::MAX)),
                _ => {
                    return Err(format!(
                        "unknown option '{option}': one of --threads, --tick-ms, --count, --pending, --seconds, \
                         --rounds, --warmup, --seed, --json"
                    ))
                }
            };
            *number = parse_number(&option, args.next(), range)?;
        }
        options.ignore_unused();
        if workload == Workload::Touch && options.pending < options.threads {
            return Err(format!(
                "--pending {}: {} (--threads) to 100000000 in touch",
                options.pending, options.threads
            ));
        }
        Ok(options)
    }

    /// Resets what the workload has no use for.
    fn ignore_unused(&mut self) {
        let defaults = Self::defaults(self.workload);
        for (given, default) in [
            (&mut self.count, defaults.count),
            (&mut self.pending, defaults.pending),
            (&mut self.seconds, defaults.seconds),
        ] {
            if default == 0 {
                *given = 0;
            }
        }
        let threaded = [Workload::Churn, Workload::Expire, Workload::Touch];
        if !threaded.contains(&self.workload) {
            self.threads = 1;
        }
    }

    /// 0 where the workload has no such option.
    fn defaults(workload: Workload) -> Self {
        let (count, pending, seconds) = match workload {
            Workload::Churn => (5_000_000, 1_000, 0),
            Workload::Expire => (6_000_000, 0, 0),
            Workload::Memory => (0, 2_000_000, 0),
            Workload::Idle => (0, 0, 5),
            Workload::Far => (0, 1_000_000, 5),
            Workload::Late => (20_000, 0, 0),
            Workload::Touch => (5_000_000, 100_000, 0),
        };
        Self {
            workload,
            threads: 1,
            tick_ms: 1,
            count,
            pending,
            seconds,
            rounds: 1,
            warmup: 0,
            seed: 1,
            json: false,
        }
    }

    /// Thread `t`'s part of `total`: the first threads take what does not divide evenly.
    pub fn share(&self, total: u64, t: u64) -> u64 {
        total / self.threads + u64::from(t < total % self.threads)
    }
}

fn parse_number(option: &str, value: Option<String>, (lo, hi): (u64, u64)) -> Result<u64, String> {
    let value = value.unwrap_or_else(|| "(no value)".to_owned());
    // Digits alone: a sign is no part of any of these.
    if value.bytes().all(|byte| byte.is_ascii_digit()) {
        if let Ok(number) = value.parse() {
            if (lo..=hi).contains(&number) {
                return Ok(number);
            }
        }
    }
    Err(format!(
        "{option} {value}: a whole number from {lo} to {hi}"
    ))
}

/// The id before thread `t`'s first.
pub fn id_base(t: u64) -> u64 {
    t << 40
}
