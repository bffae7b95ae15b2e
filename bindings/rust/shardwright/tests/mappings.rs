// SPDX-License-Identifier: Apache-2.0
//! States as a mapping stores them, parts of grids, replicas.

use shardwright::{
    Checkpoint, Context, ErrorKind, Grid, Kind, LoadOptions, Location, Mapping, SaveOptions, State, Storage,
    TensorBatch, TensorSpec, load_at, save_at,
};

const NAME: &str = "layers.0.mlp.linear_fc1.bias";

fn fused(values: &mut [f32]) -> State<'_> {
    let mut state = State::new();
    state.add_mut(NAME, &[4], values).unwrap();
    state.add_object("extra", ("text/plain", b"x"), "", Kind::Auto).unwrap();
    state.mapped(&Mapping::shipped("swiglu", &[]).unwrap()).unwrap()
}

#[test]
fn a_mapped_state_sees_the_memory_of_the_other() {
    let (context, storage) = (Context::shared().unwrap(), Storage::memory().unwrap());
    let location = Location::storage(&storage, "p");
    let (mut values, mut loaded) = ([1.0f32, 2.0, 3.0, 4.0], [0.0f32; 4]);
    save_at(&context, &fused(&mut values), &location, None, &SaveOptions::new()).unwrap();
    let mut target = fused(&mut loaded);
    load_at(&context, &mut target, &location, None, &LoadOptions::new()).unwrap();
    assert_eq!(target.object("extra").unwrap().1, b"x");
    drop(target);
    assert_eq!(loaded, [1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn replicas_are_not_saved() {
    let (context, storage) = (Context::shared().unwrap(), Storage::memory().unwrap());
    let location = Location::storage(&storage, "p");
    let (mine, other) = ([5.0f32], [6.0f32; 2]);
    let mut batch = TensorBatch::new();
    let grid = Grid { fragments: &[1], index: &[0] };
    batch.add_grid_part("w", &[1], grid, &mine).unwrap();
    let dtype = shardwright::DType::from_name("float32").unwrap();
    let bytes: Vec<u8> = other.iter().flat_map(|value| value.to_ne_bytes()).collect();
    let part = Some(Grid { fragments: &[3, 2], index: &[2, 0] });
    let spec = TensorSpec { grid: part, replica: true, ..TensorSpec::whole("r", dtype, &[2]) };
    batch.add_owned(&spec, &bytes).unwrap();
    let mut state = State::new();
    state.add_batch(batch).unwrap();
    state.add_replica_object("o", ("text/plain", b"x"), "", Kind::Auto).unwrap();
    save_at(&context, &state, &location, None, &SaveOptions::new()).unwrap();
    let checkpoint = Checkpoint::open_at(&context, &location).unwrap();
    assert_eq!(checkpoint.keys().unwrap(), ["w"]);
}

#[test]
fn wrong_grids_and_rules_are_named() {
    let mut state = State::new();
    let data = [1.0f32];
    let mut batch = TensorBatch::new();
    let error = batch.add_grid_part("w", &[1], Grid { fragments: &[2], index: &[0, 0] }, &data).unwrap_err();
    assert!(error.message().contains("1 fragments and 2 indices"), "{error}");
    assert_eq!(Mapping::shipped("bert", &[]).unwrap_err().kind(), ErrorKind::NotFound);
    let error = Mapping::shipped("gpt", &[("layers", 2)]).unwrap_err();
    assert!(error.message().contains("first_layer"), "{error}");
    state.add("v", &[1], &data).unwrap();
    let rules = Mapping::parse(r#"{"schema": 1, "rules": [{"match": "w"}]}"#, &[]).unwrap();
    let error = state.mapped(&rules).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("rule 1 ('w')"), "{error}");
}
