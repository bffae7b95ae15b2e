// SPDX-License-Identifier: Apache-2.0
//! Runs the behaviour contract of the bindings: `rust_contract contract.json [FOLDER]`. Prints a line per scenario and, at
//! the end, `N passed, N failed, N skipped`.

mod files;
mod interpreter;
mod pattern;
mod planning;
mod ranks;
mod torch;
mod words;

use interpreter::Interpreter;
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;

/// What a step failed with: an error of the library, an exception of the host, or a result that is wrong.
pub enum Failure {
    Library(shardwright::Error),
    Host,
    Wrong(String),
}

impl From<shardwright::Error> for Failure {
    fn from(error: shardwright::Error) -> Failure {
        Failure::Library(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::Wrong(error.to_string())
    }
}

/// The payload with which the failing host storage panics.
pub struct HostPanic;

fn run_step(interpreter: &mut Interpreter, step: &Value) -> Result<(), Failure> {
    match catch_unwind(AssertUnwindSafe(|| interpreter.step(step))) {
        Ok(outcome) => outcome,
        Err(payload) if payload.is::<HostPanic>() => Err(Failure::Host),
        Err(payload) => std::panic::resume_unwind(payload),
    }
}

/// The error has these details and no others.
fn check_details(wanted: &Value, error: &shardwright::Error) -> Result<(), String> {
    let found = error.details();
    for (key, value) in wanted.as_object().into_iter().flatten() {
        let holds = found.get(key).is_some_and(|text| words::matches(value.as_str().unwrap_or_default(), text));
        if !holds {
            return Err(format!("detail {key} is not {value} in {found:?} of {error}"));
        }
    }
    match found.keys().find(|key| wanted.get(key).is_none()) {
        Some(key) => Err(format!("detail {key} was not expected, in {found:?} of {error}")),
        None => Ok(()),
    }
}

/// Compares the end of the last step with what the scenario wants.
fn check_end(scenario: &Value, end: Result<(), Failure>) -> Result<(), String> {
    let code = scenario["code"].as_str().unwrap_or("OK");
    match end {
        Ok(()) if code == "OK" => Ok(()),
        Ok(()) => Err(format!("succeeded, {code} was expected")),
        Err(Failure::Host) if code == "HOST_EXCEPTION" => Ok(()),
        Err(Failure::Host) => Err(String::from("a host exception came out")),
        Err(Failure::Wrong(text)) => Err(text),
        Err(Failure::Library(error)) if error.kind().name() != code => Err(format!("{code} was expected, got {error}")),
        Err(Failure::Library(error)) => {
            check_details(&scenario["details"], &error)?;
            let mut texts = scenario["says"].as_array().into_iter().flatten().filter_map(Value::as_str);
            texts
                .find(|text| !error.message().contains(text))
                .map_or(Ok(()), |text| Err(format!("the message lacks '{text}': {error}")))
        }
    }
}

fn run_scenario(scenario: &Value, directory: &Path) -> Result<(), String> {
    let mut interpreter = Interpreter::new(directory);
    let steps = scenario["steps"].as_array().ok_or("no steps")?;
    for (i, step) in steps.iter().enumerate() {
        let end = run_step(&mut interpreter, step);
        if i + 1 == steps.len() {
            check_end(scenario, end)?;
        } else if let Err(failure) = end {
            let text = match failure {
                Failure::Library(error) => error.to_string(),
                Failure::Host => String::from("host exception"),
                Failure::Wrong(text) => text,
            };
            return Err(format!("step {i} ({}): {text}", step["op"]));
        }
    }
    interpreter.check_digests(&scenario["digest"])
}

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: rust_contract contract.json [FOLDER]");
        return ExitCode::from(2);
    };
    let text = std::fs::read_to_string(&path).expect("the contract file");
    let contract: Value = serde_json::from_str(&text).expect("JSON");
    // Panics of the host storage are part of a scenario and need no trace on stderr.
    std::panic::set_hook(Box::new(|info| {
        if !info.payload().is::<HostPanic>() {
            eprintln!("{info}");
        }
    }));
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for scenario in contract["scenarios"].as_array().expect("scenarios") {
        let name = scenario["name"].as_str().unwrap_or("?");
        if let Some(reason) = scenario["skip"]["rust"].as_str() {
            println!("skipped: {name}: {reason}");
            skipped += 1;
            continue;
        }
        let directory = match std::env::args().nth(2) {
            Some(folder) => files::kept_directory(&Path::new(&folder).join(name)),
            None => files::scratch_directory(),
        };
        match run_scenario(scenario, directory.path()) {
            Ok(()) => {
                println!("passed: {name}");
                passed += 1;
            }
            Err(text) => {
                println!("FAILED: {name}: {text}");
                failed += 1;
            }
        }
    }
    println!("{passed} passed, {failed} failed, {skipped} skipped");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
