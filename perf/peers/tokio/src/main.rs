//! Runner of the workloads on tokio's timers: NAME WORKLOAD [OPTION...], or NAME --describe.

mod inside;
mod process;
mod timer;
mod workloads;

use clap::{Parser, ValueEnum, error::ErrorKind};
use serde::Serialize;
use serde_json::{Value, json};
use std::process::exit;

#[derive(Clone, Copy, PartialEq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    Churn,
    Handoff,
    Expire,
    Memory,
    Idle,
    Far,
    Late,
    Rate,
    Touch,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub enum Peer {
    Tokio,
    TokioInside,
    /// Needs its own build.
    #[cfg_attr(not(tokio_unstable), value(skip))]
    TokioAlt,
}

#[derive(Parser, Serialize)]
#[command(name = "tokio")]
pub struct Options {
    #[serde(skip)]
    peer: Peer,
    #[arg(required_unless_present = "describe")]
    workload: Option<Workload>,
    #[arg(long, default_value_t = 1, value_parser = whole::<1, 256>)]
    threads: u64,
    #[arg(long, default_value_t = 1, value_parser = whole::<1, 10_000>)]
    tick_ms: u64,
    #[arg(long, default_value_t = 1_000_000, value_parser = whole::<1, 1_000_000_000>)]
    count: u64,
    #[arg(long, default_value_t = 1_000, value_parser = whole::<1, 100_000_000>)]
    pending: u64,
    #[arg(long, default_value_t = 2, value_parser = whole::<1, 600>)]
    #[serde(skip)]
    seconds: u64,
    #[arg(long, default_value_t = 0, value_parser = whole::<0, 1_000>)]
    #[serde(skip)]
    due_ms: u64,
    #[arg(long, default_value_t = 0, value_parser = whole::<0, 1_000>)]
    #[serde(skip)]
    warmup: u64,
    #[arg(long, default_value_t = 1, value_parser = whole::<0, { i64::MAX as u64 }>)]
    seed: u64,
    #[arg(long)]
    #[serde(skip)]
    describe: bool,
}

fn whole<const LOW: u64, const HIGH: u64>(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (LOW..=HIGH).contains(number));
    number.ok_or_else(|| format!("not a whole number from {LOW} to {HIGH}"))
}

impl Options {
    /// Returns thread `t`'s share of `total`. If it does not divide evenly, the first threads take one more.
    fn share(&self, total: u64, t: u64) -> u64 {
        total / self.threads + u64::from(t < total % self.threads)
    }
}

#[derive(Serialize)]
struct Answer<'a> {
    runner: &'a str,
    version: &'a str,
    runtime: &'a str,
    #[serde(flatten)]
    options: Option<&'a Options>,
    #[serde(flatten)]
    figures: Value,
}

fn print(peer: Peer, options: Option<&Options>, figures: Value) {
    let name = peer.to_possible_value().expect("a name");
    let (version, runtime) = (env!("TOKIO_VERSION"), concat!("Rust ", env!("RUST_VERSION")));
    let answer = Answer { runner: name.get_name(), version, runtime, options, figures };
    println!("{}", serde_json::to_string(&answer).expect("JSON"));
}

fn wrong(message: &str) -> ! {
    eprintln!("tokio: {message}");
    exit(2)
}

fn main() {
    let options = Options::try_parse().unwrap_or_else(|error| match error.kind() {
        ErrorKind::DisplayHelp => error.exit(),
        _ => wrong(&error.to_string().split("\n\n").next().unwrap_or_default().replace("\n ", "")),
    });
    let Some(workload) = options.workload else {
        return print(options.peer, None, json!({}));
    };
    if workload == Workload::Touch && options.pending < options.threads {
        wrong(&format!("--pending {}: at least one for each of the {} threads", options.pending, options.threads));
    }
    if options.tick_ms != 1 {
        return print(options.peer, Some(&options), json!({"unsupported": "its tick is 1 ms"}));
    }
    let measure = if options.peer == Peer::Tokio { workloads::measure } else { inside::measure };
    for _ in 0..options.warmup {
        measure(workload, &options);
    }
    print(options.peer, Some(&options), measure(workload, &options));
}
