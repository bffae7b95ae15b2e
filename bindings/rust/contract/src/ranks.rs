// SPDX-License-Identifier: Apache-2.0
//! The steps in which several ranks save or load together, one thread per rank.

use crate::Failure;
use crate::interpreter::Interpreter;
use crate::words::{load_options, save_options};
use serde_json::Value;
use shardwright::{
    Collective, Context, Error, LoadOptions, Loaded, Location, OpenOptions, Result, SaveOptions, State,
    thread_collectives,
};

/// What one rank brings; no state = the rank is absent.
struct Rank {
    state: Option<State<'static>>,
    collective: Collective,
    save: SaveOptions,
    load: LoadOptions,
    location: Location<'static>,
}

fn work(context: &Context, op: &str, rank: &mut Rank) -> Result<()> {
    let Some(state) = &mut rank.state else {
        return Ok(());
    };
    let collective = Some(&mut rank.collective);
    if op == "save_ranks" {
        shardwright::save_at(context, state, &rank.location, collective, &rank.save).map(drop)
    } else {
        shardwright::load_at(context, state, &rank.location, collective, &rank.load).map(drop)
    }
}

fn ranks_of(interpreter: &Interpreter, step: &Value) -> std::result::Result<Vec<Rank>, Failure> {
    let saving = step["op"] == "save_ranks";
    let states: Vec<&Value> = step["states"].as_array().into_iter().flatten().collect();
    let collectives = thread_collectives(states.len() as i32)?;
    let mut ranks = Vec::new();
    for (i, (state, collective)) in states.into_iter().zip(collectives).enumerate() {
        let state = if state.is_null() { None } else { Some(interpreter.state(state)?) };
        ranks.push(Rank {
            state,
            collective,
            save: save_options(if saving { &step["options"][i] } else { &Value::Null })?,
            load: load_options(if saving { &Value::Null } else { &step["options"][i] })?,
            location: interpreter.location(step),
        });
    }
    Ok(ranks)
}

/// All ranks that take part must end alike; the error of the first one is the step's.
fn agree(outcomes: Vec<Result<()>>) -> std::result::Result<(), Failure> {
    let code = |r: &Result<()>| r.as_ref().err().map(Error::kind);
    let first = outcomes.first().and_then(code);
    if outcomes.iter().any(|o| code(o) != first) {
        return Err(Failure::Wrong(format!("the ranks ended differently: {outcomes:?}")));
    }
    Ok(outcomes.into_iter().next().unwrap_or(Ok(()))?)
}

/// Runs `save_ranks` or `load_ranks`.
pub fn run(interpreter: &mut Interpreter, step: &Value) -> std::result::Result<(), Failure> {
    let op = step["op"].as_str().unwrap_or_default();
    if op == "save_ranks" {
        interpreter.note_save(step);
    }
    // An absent rank keeps its collective unused until the others ended, or leaves at once.
    let (mut present, mut absent): (Vec<Rank>, Vec<Rank>) =
        ranks_of(interpreter, step)?.into_iter().partition(|r| r.state.is_some());
    if step["absent"] == "gone" {
        absent.clear();
    }
    let context = &interpreter.context;
    let outcomes = std::thread::scope(|scope| {
        let threads: Vec<_> = present.iter_mut().map(|rank| scope.spawn(move || work(context, op, rank))).collect();
        threads.into_iter().map(|t| t.join().expect("a rank's thread")).collect()
    });
    drop(absent);
    agree(outcomes)
}

/// Runs `load_all`: every rank, or one without a collective, loads everything that it is given.
pub fn load_all(interpreter: &Interpreter, step: &Value) -> std::result::Result<(), Failure> {
    let mut ends: Vec<Option<Collective>> = vec![None];
    if let Some(size) = step["size"].as_i64() {
        ends = thread_collectives(size as i32)?.into_iter().map(Some).collect();
    }
    let location = interpreter.location(step);
    for (end, expected) in ends.iter().zip(step["expected"].as_array().into_iter().flatten()) {
        let options = OpenOptions::default();
        let loaded = shardwright::load_all(&interpreter.context, &location, end.as_ref(), &options)?;
        let found = described(&loaded);
        if found != *expected {
            return Err(Failure::Wrong(format!("expected {expected}, found {found}")));
        }
    }
    Ok(())
}

/// Tensors as hex, objects as text.
fn described(loaded: &Loaded) -> Value {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let tensors = loaded.tensors.iter().map(|(name, t)| (name.clone(), Value::String(hex(t.bytes()))));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let objects = loaded.objects.iter().map(|(name, o)| (name.clone(), Value::String(text(&o.bytes))));
    serde_json::json!({
        "tensors": tensors.collect::<serde_json::Map<_, _>>(), "objects": objects.collect::<serde_json::Map<_, _>>(),
    })
}
