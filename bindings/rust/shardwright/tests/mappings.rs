// SPDX-License-Identifier: Apache-2.0
//! States as a mapping stores them, parts of grids, replicas.

use shardwright::{
    Checkpoint, Context, ErrorKind, Grid, Kind, LoadOptions, Location, Mapping, ObjectBatch, ObjectSpec, SaveOptions,
    Shard, State, Storage, TensorBatch, TensorSpec, load_at, save_at,
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
fn flat_ranges_are_split_as_their_part() {
    let rules =
        r#"{"schema": 1, "rules": [{"match": "w", "steps": [{"split": {"axis": 0, "suffixes": ["0", "1"]}}]}]}"#;
    let rules = Mapping::parse(rules, &[]).unwrap();
    let dtype = shardwright::DType::from_name("uint8").unwrap();
    let boxes: [(&[i64], &[i64], i64); 2] = [(&[5, 1], &[1, 1], 0), (&[6, 0], &[1, 2], 1)];
    let shard = Some(Shard { global_shape: &[8, 2], boxes: &boxes });
    let mapped = |fragments: &[i64]| {
        let mut state = State::new();
        let mut batch = TensorBatch::new();
        batch.add_spec(&TensorSpec { shard, fragments, ..TensorSpec::whole("w", dtype, &[3]) }, &[3, 4, 5])?;
        // A whole tensor beside it, of which nobody says parts.
        batch.add("bias", &[1], &[1.0f32])?;
        state.add_batch(batch)?;
        state.mapped(&rules)
    };
    assert_eq!(mapped(&[2, 1]).unwrap().tensor_names(), ["bias", "w0", "w1"]);
    assert_eq!(mapped(&[]).unwrap_err().details()["parameter"], "split.axis");
    assert!(mapped(&[2]).unwrap_err().message().contains("1 fragments"));
    assert!(mapped(&[3, 1]).unwrap_err().message().contains("3 equal parts"));
    let mut batch = TensorBatch::new();
    let whole = TensorSpec { fragments: &[1], ..TensorSpec::whole("w", dtype, &[1]) };
    batch.add_spec(&whole, &[3]).unwrap();
    batch.add_grid_part("g", &[1], Grid { fragments: &[2], index: &[0] }, &[1.0f32]).unwrap();
    assert_eq!(State::new().add_batch(batch).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

fn cells(own: &[u8], replica: bool) -> State<'static> {
    let mut batch = ObjectBatch::new();
    let grid = Some(Grid { fragments: &[2, 4], index: &[0, 1] });
    batch.add(&ObjectSpec { grid, ..ObjectSpec::flat("rng", "text/plain") }, own).unwrap();
    let grid = Some(Grid { fragments: &[1], index: &[0] });
    batch.add(&ObjectSpec { grid, replica, ..ObjectSpec::flat("all", "text/plain") }, own).unwrap();
    let mut state = State::new();
    state.add_objects(&batch).unwrap();
    state
}

#[test]
fn cells_of_objects_are_saved_under_their_own_names() {
    let (context, storage) = (Context::shared().unwrap(), Storage::memory().unwrap());
    let (all, some) = (Location::storage(&storage, "p"), Location::storage(&storage, "q"));
    save_at(&context, &cells(b"x", false), &all, None, &SaveOptions::new()).unwrap();
    let mut target = cells(b"", true);
    load_at(&context, &mut target, &all, None, &LoadOptions::new()).unwrap();
    for name in ["rng/shard_0.1_2.4", "all/shard_0_1"] {
        assert_eq!(target.object(name).unwrap().1, b"x");
    }
    save_at(&context, &cells(b"x", true), &some, None, &SaveOptions::new()).unwrap();
    let checkpoint = Checkpoint::open_at(&context, &some).unwrap();
    assert_eq!(checkpoint.objects().unwrap().into_keys().collect::<Vec<_>>(), ["rng/shard_0.1_2.4"]);
}

#[test]
fn cells_that_do_not_fit_are_named() {
    let mut batch = ObjectBatch::new();
    let grid = |fragments, index| ObjectSpec {
        grid: Some(Grid { fragments, index }),
        ..ObjectSpec::flat("rng", "text/plain")
    };
    assert!(batch.add(&grid(&[], &[]), b"").unwrap_err().message().contains("0 indices in a grid of 0 axes"));
    assert!(batch.add(&grid(&[2], &[0, 1]), b"").unwrap_err().message().contains("2 indices in a grid of 1 axes"));
    batch.add(&grid(&[2], &[2]), b"").unwrap();
    let error = State::new().add_objects(&batch).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(error.details()["tensor"], "rng");
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
    assert_eq!(error.details()["rule"], "1");
    let mut state = State::new();
    state.add("v", &[1], &data).unwrap();
    let both = r#"{"schema": 1, "rules": [{"match": "*"}, {"match": "v"}]}"#;
    let error = state.mapped(&Mapping::parse(both, &[]).unwrap()).unwrap_err();
    assert_eq!((&error.details()["rule"][..], &error.details()["tensor"][..]), ("1,2", "v"));
}
