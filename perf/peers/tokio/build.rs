//! Tells the program the versions it is built of.

use std::{env, fs, process::Command};

fn main() {
    println!("cargo::rustc-env=TOKIO_VERSION={}", tokio_version());
    println!("cargo::rustc-env=RUST_VERSION={}", rust_version());
    println!("cargo::rerun-if-changed=Cargo.toml");
}

/// The version pinned in Cargo.toml.
fn tokio_version() -> String {
    let manifest = fs::read_to_string("Cargo.toml").expect("Cargo.toml");
    manifest
        .lines()
        .filter(|line| line.starts_with("tokio = "))
        .find_map(|line| line.split("\"=").nth(1)?.split('"').next())
        .expect("a pinned tokio")
        .to_owned()
}

/// The second word of "rustc 1.85.0 (...)".
fn rust_version() -> String {
    let output = Command::new(env::var("RUSTC").expect("RUSTC"))
        .arg("--version")
        .output()
        .expect("rustc --version");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.split(' ').nth(1).expect("a version").to_owned()
}
