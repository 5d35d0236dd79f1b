//! Finds the C library: in the folder HWT_LIB_DIR, or by pkg-config.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=HWT_LIB_DIR");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    let folder = env::var("HWT_LIB_DIR").ok().or_else(folder_of_pkg_config);
    if let Some(folder) = folder {
        println!("cargo:rustc-link-search=native={folder}");
    }
    println!("cargo:rustc-link-lib=dylib=hashed_wheel_timer_c");
}

fn folder_of_pkg_config() -> Option<String> {
    let asked = ["--variable=libdir", "hashed_wheel_timer_c"];
    let output = Command::new("pkg-config").args(asked).output().ok()?;
    let folder = String::from_utf8(output.stdout).ok()?.trim().to_string();
    (!folder.is_empty()).then_some(folder)
}
