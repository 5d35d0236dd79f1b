//! Passes the versions of its dependencies to the program.

use std::{env, fs, process::Command};

/// Returns the text between `begin` and the next `end`.
fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let rest = text.split(begin).nth(1).expect(begin);
    rest.split(end).next().expect(end)
}

fn main() {
    let manifest = fs::read_to_string("Cargo.toml").expect("Cargo.toml");
    let asked = Command::new(env::var("RUSTC").expect("RUSTC")).arg("--version").output().expect("rustc");
    let rustc = String::from_utf8(asked.stdout).expect("UTF-8");
    println!("cargo::rustc-env=TOKIO_VERSION={}", between(&manifest, "tokio = { version = \"=", "\""));
    println!("cargo::rustc-env=RUST_VERSION={}", between(&rustc, "rustc ", " "));
    println!("cargo::rerun-if-changed=Cargo.toml");
}
