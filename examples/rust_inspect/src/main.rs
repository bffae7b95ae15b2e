// SPDX-License-Identifier: Apache-2.0
//! Reads any checkpoint from Rust: prints the SHA-256 digest of every tensor and a slice of one.
//!
//! `rust_inspect CHECKPOINT NAME`: tab-separated lines "tensor", name, dtype, shape, digest; then "slice", name, bytes of
//! `NAME[2:4, 0:4]` in hex.

use shardwright::{Checkpoint, DigestAlgorithm};
use std::process::ExitCode;

fn print(path: &str, name: &str) -> shardwright::Result<()> {
    let checkpoint = Checkpoint::open(path)?;
    let digests = checkpoint.digests(DigestAlgorithm::Sha256)?;
    for (info, (_, digest)) in checkpoint.tensors()?.iter().zip(digests) {
        let shape: Vec<String> = info.shape.iter().map(i64::to_string).collect();
        println!("tensor\t{}\t{}\t{}\t{digest}", info.name, info.dtype, shape.join(","));
    }
    let slice = checkpoint.read_box(name, &[2, 0], &[2, 4])?;
    let hex: String = slice.bytes().iter().map(|b| format!("{b:02x}")).collect();
    println!("slice\t{name}\t{hex}");
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, path, name] = &arguments[..] else {
        eprintln!("usage: rust_inspect CHECKPOINT NAME");
        return ExitCode::from(2);
    };
    match print(path, name) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
