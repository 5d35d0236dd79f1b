//! Runner of the workloads on tokio's time driver.

mod cancels;
mod crew;
mod figures;
mod options;
mod process;
mod splitmix64;
mod stopwatch;
mod task;
mod timer;
mod workloads;

use std::env;
use std::process::ExitCode;

use figures::Figures;
use options::Options;

const NAME: &str = "tokio";
const USAGE_ERROR: u8 = 2;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    if args == ["--describe"] {
        println!("{}", description().json());
        return ExitCode::SUCCESS;
    }
    match Options::parse(args.into_iter()) {
        Ok(options) => {
            run(&options);
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{NAME}: {message}");
            ExitCode::from(USAGE_ERROR)
        }
    }
}

fn run(options: &Options) {
    if options.tick_ms != 1 {
        let answer = description()
            .text("workload", options.workload.title())
            .text("unsupported", "its tick is 1 ms");
        print(options, &answer);
        return;
    }
    for _ in 0..options.warmup {
        workloads::measure(options);
    }
    for round in 1..=options.rounds {
        let answer = description()
            .text("workload", options.workload.title())
            .number("threads", options.threads)
            .number("tick_ms", options.tick_ms)
            .number("pending", options.pending)
            .number("count", options.count)
            .number("seed", options.seed)
            .number("round", round)
            .extend(workloads::measure(options));
        print(options, &answer);
    }
}

fn print(options: &Options, answer: &Figures) {
    println!(
        "{}",
        if options.json {
            answer.json()
        } else {
            answer.line()
        }
    );
}

fn description() -> Figures {
    Figures::default()
        .text("runner", NAME)
        .text("version", env!("TOKIO_VERSION"))
        .text("runtime", concat!("Rust ", env!("RUST_VERSION")))
}
