// SPDX-License-Identifier: Apache-2.0
//! The steps that write items of torch.distributed.checkpoint for an index of somebody else's.

use crate::Failure;
use crate::interpreter::Interpreter;
use crate::pattern::text_of;
use serde_json::{Value, json};
use shardwright::{SaveOptions, torch_items};

/// Runs `torch_items` or `torch_digests`.
pub fn run(interpreter: &mut Interpreter, step: &Value) -> Result<(), Failure> {
    let (location, options) = (interpreter.location(step), SaveOptions::default());
    if step["op"] == "torch_digests" {
        let index = std::fs::read(interpreter.root.join(text_of(&step["index"])))?;
        let results = interpreter.kept(&step["results"]);
        return Ok(torch_items::write_digests(&interpreter.context, &location, &index, &results, &options)?);
    }
    let state = interpreter.state(&step["state"])?;
    let written = torch_items::write(&interpreter.context, &state, &location, &text_of(&step["name"]), &options)?;
    interpreter.plans.insert(text_of(&step["id"]), written.result);
    let places: Value = written.places.iter().map(|p| json!([p.name, p.offset, p.length])).collect();
    if step["places"].is_array() && step["places"] != places {
        return Err(Failure::Wrong(format!("items lie at {places}")));
    }
    Ok(())
}
