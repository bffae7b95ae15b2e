// SPDX-License-Identifier: Apache-2.0
//
// Finds the library: SHARDWRIGHT_DIR (an install prefix or a build tree), then pkg-config, then, with the feature
// `vendored`, a CMake build of the sources beside this crate. Documentation builds need none of it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const MINIMUM: &str = "0.1";

fn link(directory: &Path) {
    println!("cargo:rustc-link-search=native={}", directory.display());
    println!("cargo:rustc-link-lib=dylib=shardwright");
    println!("cargo:lib={}", directory.display());
}

fn from_environment() -> Option<PathBuf> {
    let root = PathBuf::from(env::var_os("SHARDWRIGHT_DIR")?);
    let found = [root.join("lib"), root.join("lib64"), root.join("lib/x86_64-linux-gnu"), root.clone()]
        .into_iter()
        .find(|d| d.join("libshardwright.so").exists());
    Some(found.unwrap_or_else(|| panic!("SHARDWRIGHT_DIR={} holds no lib/libshardwright.so", root.display())))
}

fn from_pkg_config() -> Option<PathBuf> {
    let version = format!("shardwright >= {MINIMUM}");
    let asked = Command::new("pkg-config").args(["--variable=libdir", &version]).output().ok()?;
    let text = String::from_utf8(asked.stdout).ok()?;
    (asked.status.success() && !text.trim().is_empty()).then(|| PathBuf::from(text.trim()))
}

fn vendored() -> PathBuf {
    let source = Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo")).join("../../..");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo")).join("build");
    let run = |arguments: &[&str]| {
        let status = Command::new("cmake").args(arguments).current_dir(&source).status();
        assert!(status.is_ok_and(|s| s.success()), "cmake {} failed", arguments.join(" "));
    };
    let out_text = out.display().to_string();
    run(&[
        "-S",
        ".",
        "-B",
        &out_text,
        "-DCMAKE_BUILD_TYPE=Release",
        "-DSHW_BUILD_TESTS=OFF",
        "-DSHW_BUILD_PYTHON=OFF",
        "-DSHW_BUILD_JAVA=OFF",
        "-DSHW_BUILD_RUST=OFF",
        "-DSHW_BUILD_EXAMPLES=OFF",
        "-DSHW_BUILD_BENCHMARKS=OFF",
    ]);
    run(&["--build", &out_text, "--target", "shardwright"]);
    out.join("lib")
}

fn main() {
    println!("cargo:rerun-if-env-changed=SHARDWRIGHT_DIR");
    println!("cargo:rerun-if-changed=build.rs");
    let has = |feature: &str| env::var_os(format!("CARGO_FEATURE_{feature}")).is_some();
    if env::var_os("DOCS_RS").is_some() || has("LOAD_DYNAMIC") {
        return;
    }
    match from_environment().or_else(from_pkg_config) {
        Some(directory) => link(&directory),
        None if has("VENDORED") => link(&vendored()),
        None => panic!(
            "libshardwright was not found: install it (make install PREFIX=...) and set SHARDWRIGHT_DIR to the prefix, \
             or switch on the feature `vendored` or `load-dynamic`"
        ),
    }
}
