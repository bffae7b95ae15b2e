// SPDX-License-Identifier: Apache-2.0
//! What checkpoints and runs say of themselves.

use shardwright::{Checkpoint, Completeness, DType, ErrorKind, Location, SaveOptions, State, list_steps};

fn save(state: &State, path: &std::path::Path) {
    let options = SaveOptions::new().metadata([("step".to_owned(), "7".to_owned())].into());
    shardwright::save(state, path, &options).unwrap();
}

#[test]
fn an_info_says_what_is_in_a_checkpoint() {
    let folder = std::env::temp_dir().join(format!("rust-infos-{}", std::process::id()));
    let (weights, counts) = ([1.0f32; 6], [1i64, 2]);
    let mut state = State::new();
    state.add("w", &[2, 3], &weights).unwrap();
    state.add("n", &[2], &counts).unwrap();
    state.add_object("o", ("text/plain", b"hello"), "", shardwright::Kind::Auto).unwrap();
    save(&state, &folder);
    let info = Checkpoint::open(&folder).unwrap().info().unwrap();
    assert_eq!((&info.format[..], info.world_size, info.has_digests), ("native", 1, true));
    assert!(!info.generation.is_empty() && info.created.unwrap().elapsed().is_ok());
    assert_eq!(info.metadata["step"], "7");
    assert_eq!((info.tensor_bytes, info.object_bytes, info.chunk_count), (40, 5, 2));
    let mut by_dtype = info.bytes_by_dtype.clone();
    by_dtype.sort_by_key(|(dtype, _)| dtype.number());
    assert_eq!(by_dtype, [(DType::INT64, 16), (DType::FLOAT32, 24)]);
    assert_eq!((info.files.len(), info.files[0].rank, info.files[0].byte_size), (1, 0, info.file_bytes));
    assert_eq!((info.tensors.len(), &info.objects[0].name[..], info.objects[0].byte_size), (2, "o", 5));
    assert!(info.json.contains("\"schema\":1"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn steps_of_a_run_say_which_are_whole() {
    let run = std::env::temp_dir().join(format!("rust-steps-{}", std::process::id()));
    let weights = [1.0f32; 6];
    let mut state = State::new();
    state.add("w", &[6], &weights).unwrap();
    for step in ["step-00000003", "step-00000010"] {
        save(&state, &run.join(step));
    }
    std::fs::remove_file(run.join("step-00000010").join("manifest.shw")).unwrap();
    let found = list_steps(&Location::path(&run)).unwrap();
    let named: Vec<_> = found.steps.iter().map(|each| (&each.name[..], each.number, each.completeness)).collect();
    let wanted = [("step-00000003", 3, Completeness::Whole), ("step-00000010", 10, Completeness::Uncommitted)];
    assert_eq!(named, wanted);
    assert_eq!(found.newest_whole.as_ref(), Some(&found.steps[0]));
    assert!(found.steps[0].message.is_empty() && !found.steps[1].message.is_empty());
    std::fs::remove_dir_all(&run).unwrap();
    assert_eq!(list_steps(&Location::path(&run)).unwrap_err().kind(), ErrorKind::NotFound);
}
