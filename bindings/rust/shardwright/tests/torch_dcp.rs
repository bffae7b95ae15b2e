// SPDX-License-Identifier: Apache-2.0
//! Directories of torch.distributed.checkpoint: those of torch, and ours. What torch reads of ours is in tests/interop.

use serde_json::Value;
use shardwright::{
    Checkpoint, Context, DType, DigestAlgorithm, ErrorKind, Format, Kind, LoadOptions, Location, RemoveOptions,
    SaveOptions, Shard, State, Storage, load_at, remove_entries, save_at, thread_collectives, torch_items,
};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const ROWS: i64 = 7;
const COLUMNS: i64 = 3;

/// A directory that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("rust-torch-dcp-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn torch_format() -> SaveOptions {
    SaveOptions::new().format(Format::TorchDcp)
}

// ---- what torch wrote ----

/// Folders of tests/golden/torch_dcp: what their makers recorded, and where the checkpoint lies.
fn golden(broken: bool) -> Vec<(Value, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/golden/torch_dcp");
    let mut cases = Vec::new();
    for entry in fs::read_dir(root).unwrap() {
        let folder = entry.unwrap().path();
        let Ok(text) = fs::read_to_string(folder.join("expected.json")) else { continue };
        let expected: Value = serde_json::from_str(&text).unwrap();
        let path = folder.join(expected["path"].as_str().unwrap());
        if expected["fail_on"].is_string() == broken {
            cases.push((expected, path));
        }
    }
    assert!(cases.len() > 5);
    cases
}

#[test]
fn tensors_that_torch_wrote_have_the_digests_of_their_maker() {
    for (expected, path) in golden(false) {
        let checkpoint = Checkpoint::open(&path).unwrap();
        assert_eq!(checkpoint.format(), "torch-dcp", "{path:?}");
        let said = expected["tensors"].as_object().unwrap();
        let digests = checkpoint.digests(DigestAlgorithm::Sha256).unwrap();
        assert_eq!(digests.len(), said.len(), "{path:?}");
        for (name, digest) in &digests {
            assert_eq!(said[name]["sha256"], **digest, "{path:?}: {name}");
        }
        for tensor in checkpoint.tensors().unwrap() {
            assert_eq!(said[&tensor.name]["dtype"], tensor.dtype.name(), "{path:?}: {}", tensor.name);
            assert_eq!(said[&tensor.name]["shape"], serde_json::json!(tensor.shape), "{path:?}: {}", tensor.name);
            assert_eq!(checkpoint.read(&tensor.name).unwrap().shape(), tensor.shape);
        }
    }
}

#[test]
fn objects_that_torch_wrote_are_found() {
    for (expected, path) in golden(false) {
        let loaded = shardwright::load(&path).unwrap();
        let said = expected["objects"].as_object().unwrap();
        let (wanted, found): (BTreeSet<_>, BTreeSet<_>) = (said.keys().collect(), loaded.objects.keys().collect());
        assert_eq!(wanted, found, "{path:?}");
        for (name, object) in said.iter().filter(|(_, o)| o["type"] == "int" && o["value"].is_i64()) {
            let value: Value = serde_json::from_slice(&loaded.objects[name].bytes).unwrap();
            assert_eq!(value, object["value"], "{path:?}: {name}");
        }
    }
}

#[test]
fn what_is_broken_or_hostile_is_an_error() {
    for (_, path) in golden(true) {
        let read = |checkpoint: Checkpoint| {
            checkpoint.digests(DigestAlgorithm::Xxh3)?;
            checkpoint.verify(true).map(drop)
        };
        assert!(Checkpoint::open(&path).and_then(read).is_err(), "{path:?}");
    }
}

// ---- what ranks write together ----

/// Rows that a rank of a number of ranks has, as torch.chunk cuts them; the last ranks may have none.
fn rows_of(rank: i32, ranks: i32) -> (i64, Vec<f32>) {
    let chunk = (ROWS + i64::from(ranks) - 1) / i64::from(ranks);
    let begin = ROWS.min(i64::from(rank) * chunk);
    let end = ROWS.min(begin + chunk);
    (begin, (begin * COLUMNS..end * COLUMNS).map(|value| value as f32).collect())
}

/// Runs `work` with rank and state of each rank of a thread collective.
fn on_ranks(ranks: i32, work: impl Fn(i32, shardwright::Collective) + Sync) {
    std::thread::scope(|scope| {
        for (rank, collective) in (0..).zip(thread_collectives(ranks).unwrap()) {
            let work = &work;
            scope.spawn(move || work(rank, collective));
        }
    });
}

fn save_on(ranks: i32, path: &Path) {
    on_ranks(ranks, |rank, mut collective| {
        let (begin, rows) = rows_of(rank, ranks);
        let count = rows.len() as i64 / COLUMNS;
        let boxes = [(&[begin, 0][..], &[count, COLUMNS][..], 0)];
        let mut state = State::new();
        let shard = Shard { global_shape: &[ROWS, COLUMNS], boxes: &boxes };
        state.add_shard("rows", &[count, COLUMNS], shard, &rows).unwrap();
        state.add_json("step", "12").unwrap();
        state.add_json("seed", &rank.to_string()).unwrap();
        let options = torch_format().kind(vec![(String::from("seed"), Kind::RankLocal)]);
        let context = Context::shared().unwrap();
        save_at(&context, &state, &Location::path(path), Some(&mut collective), &options).unwrap();
    });
}

fn sha256_of_rows(checkpoint: &Checkpoint) -> String {
    checkpoint.digests(DigestAlgorithm::Sha256).unwrap().remove(0).1
}

#[test]
fn ranks_write_a_directory_that_has_the_digests_of_one_rank() {
    let scratch = Scratch::new();
    save_on(1, &scratch.0.join("alone"));
    let alone = sha256_of_rows(&Checkpoint::open(scratch.0.join("alone")).unwrap());
    for ranks in 2..5 {
        save_on(ranks, &scratch.0.join("p"));
        let checkpoint = Checkpoint::open(scratch.0.join("p")).unwrap();
        assert_eq!(checkpoint.format(), "torch-dcp");
        assert!(checkpoint.info().unwrap().has_digests);
        assert_eq!(sha256_of_rows(&checkpoint), alone);
        assert_eq!(checkpoint.objects().unwrap()["step"].bytes, b"12");
        assert_eq!(checkpoint.ranks("seed").unwrap(), (0..ranks).collect::<Vec<_>>());
        assert!(checkpoint.verify(true).unwrap().findings().is_empty());
    }
}

#[test]
fn other_numbers_of_ranks_load_it() {
    let scratch = Scratch::new();
    save_on(3, &scratch.0);
    for ranks in [1, 2, 8] {
        on_ranks(ranks, |rank, mut collective| {
            let (begin, wanted) = rows_of(rank, ranks);
            let count = wanted.len() as i64 / COLUMNS;
            let boxes = [(&[begin, 0][..], &[count, COLUMNS][..], 0)];
            let mut found = vec![-1.0f32; wanted.len()];
            let mut into = State::new();
            let shard = Shard { global_shape: &[ROWS, COLUMNS], boxes: &boxes };
            into.add_shard_mut("rows", &[count, COLUMNS], shard, &mut found).unwrap();
            let (context, place) = (Context::shared().unwrap(), Location::path(&scratch.0));
            load_at(&context, &mut into, &place, Some(&mut collective), &LoadOptions::default()).unwrap();
            drop(into);
            assert_eq!(found, wanted);
        });
    }
}

#[test]
fn elements_that_torch_has_not_are_refused_by_name() {
    let scratch = Scratch::new();
    let mut state = State::new();
    state.add_bytes("odd", DType::from_name("float8_e4m3").unwrap(), &[4], &[0; 4]).unwrap();
    let error = shardwright::save(&state, scratch.0.join("p"), &torch_format()).unwrap_err();
    assert_eq!((error.kind(), &error.details()["tensor"][..]), (ErrorKind::Unimplemented, "odd"));
    assert_eq!(Checkpoint::open(scratch.0.join("p")).unwrap_err().kind(), ErrorKind::NotFound);
}

// ---- items for an index of somebody else's ----

const WEIGHTS: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

fn items() -> State<'static> {
    let mut state = State::new();
    state.add("w", &[2, 3], &WEIGHTS).unwrap();
    state.add_json("step", "7").unwrap();
    state
}

/// An index that names the items as the files of its generation have them, and the name of such a file: those of a save of
/// the same entries.
fn index_of(saved: &Path) -> (Vec<u8>, String) {
    shardwright::save(&items(), saved, &torch_format()).unwrap();
    let names = fs::read_dir(saved).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    (fs::read(saved.join(".metadata")).unwrap(), names.into_iter().find(|name| name.ends_with(".distcp")).unwrap())
}

#[test]
fn items_and_digests_make_a_checkpoint_of_an_index() {
    let scratch = Scratch::new();
    let (index, name) = index_of(&scratch.0.join("saved"));
    let (context, path) = (Context::shared().unwrap(), scratch.0.join("p"));
    let (here, options) = (Location::path(&path), SaveOptions::default());
    let written = torch_items::write(&context, &items(), &here, &name, &options).unwrap();
    let names: Vec<&str> = written.places.iter().map(|place| &place.name[..]).collect();
    assert_eq!(names, ["w", "step"]);
    let size = fs::metadata(path.join(&name)).unwrap().len();
    assert!(written.places.iter().all(|p| p.length > 0 && p.offset % 64 == 0 && p.offset + p.length <= size));
    torch_items::write_digests(&context, &here, &index, &[written.result], &options).unwrap();
    let again = torch_items::write(&context, &items(), &here, &name, &options).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::AlreadyExists);

    fs::write(path.join(".metadata"), &index).unwrap();
    let checkpoint = Checkpoint::open(&path).unwrap();
    assert!(checkpoint.info().unwrap().has_digests);
    assert!(checkpoint.verify(true).unwrap().findings().is_empty());
    assert_eq!(checkpoint.read("w").unwrap().elements::<f32>().unwrap(), WEIGHTS);
    assert_eq!(checkpoint.objects().unwrap()["step"].bytes, b"7");

    let mut file = fs::read(path.join(&name)).unwrap();
    let payload: Vec<u8> = WEIGHTS.iter().flat_map(|value| value.to_le_bytes()).collect();
    let at = file.windows(payload.len()).position(|window| window == payload).unwrap();
    file[at] ^= 1;
    fs::write(path.join(&name), file).unwrap();
    assert_eq!(Checkpoint::open(&path).unwrap().read("w").unwrap_err().kind(), ErrorKind::DataLoss);
}

#[test]
fn items_that_do_not_fit_are_refused() {
    let scratch = Scratch::new();
    let (context, options) = (Context::shared().unwrap(), SaveOptions::default());
    let (here, index) = (Location::path(scratch.0.join("p")), index_of(&scratch.0.join("saved")).0);
    let write = |name: &str| torch_items::write(&context, &items(), &here, name, &options);
    for name in ["__0_0.distcp", "__0_0\0.distcp"] {
        let error = write(name).unwrap_err();
        assert_eq!((error.kind(), &error.details()["parameter"][..]), (ErrorKind::InvalidArgument, "name"), "{name:?}");
    }
    let one = write(&format!("__0_0.{}.distcp", "0".repeat(32))).unwrap().result;
    let other = write(&format!("__1_0.{}.distcp", "f".repeat(32))).unwrap().result;
    let digests = |index: &[u8], results: &[&Vec<u8>]| {
        torch_items::write_digests(&context, &here, index, results, &options).unwrap_err().kind()
    };
    assert_eq!(digests(&index, &[&one, &other]), ErrorKind::InvalidArgument);
    assert_eq!(digests(&index, &[]), ErrorKind::InvalidArgument);
    assert_eq!(digests(&[0; 9], &[&one]), ErrorKind::DataLoss);
}

// ---- removal of entries ----

const FORMATS: [Format; 2] = [Format::TorchDcp, Format::Megatron];

fn save_model(location: &Location, format: Format) {
    let mut state = State::new();
    for name in ["layer1.w", "layer10.w", "optimizer.m"] {
        state.add(name, &[2, 3], &WEIGHTS).unwrap();
    }
    state.add_json("optimizer.step", "7").unwrap();
    save_at(&Context::shared().unwrap(), &state, location, None, &SaveOptions::new().format(format)).unwrap();
}

/// Names of the tensors of a checkpoint that is whole.
fn whole_keys(location: &Location) -> BTreeSet<String> {
    let checkpoint = Checkpoint::open_at(&Context::shared().unwrap(), location).unwrap();
    assert!(checkpoint.verify(true).unwrap().findings().is_empty());
    checkpoint.keys().unwrap().into_iter().collect()
}

#[test]
fn entries_go_from_both_formats_and_from_storages() {
    let (scratch, memory) = (Scratch::new(), Storage::memory().unwrap());
    for (number, format) in FORMATS.into_iter().enumerate() {
        let name = number.to_string();
        for at in [Location::path(scratch.0.join(&name)), Location::storage(&memory, &name)] {
            save_model(&at, format);
            let all = whole_keys(&at);
            let dry = remove_entries(&at, "optimizer.", &RemoveOptions::new()).unwrap();
            assert_eq!(dry.removed(), ["optimizer.m", "optimizer.step"]);
            assert_eq!((dry.summary().unwrap().file_count, whole_keys(&at)), (0, all));
            remove_entries(&at, "optimizer.", &RemoveOptions::new().apply(true)).unwrap();
            assert_eq!(whole_keys(&at), BTreeSet::from(["layer1.w", "layer10.w"].map(String::from)));
        }
    }
}

#[test]
fn whole_parts_of_names_are_removed_where_that_is_wanted() {
    let scratch = Scratch::new();
    let at = Location::path(scratch.0.join("p"));
    save_model(&at, Format::TorchDcp);
    let removed = |whole| remove_entries(&at, "layer1", &RemoveOptions::new().whole_parts(whole)).unwrap().removed();
    assert_eq!(removed(true), ["layer1.w"]);
    assert_eq!(removed(false), ["layer1.w", "layer10.w"]);
}

#[test]
fn removals_that_cannot_be_are_refused() {
    let scratch = Scratch::new();
    let at = Location::path(scratch.0.join("p"));
    save_model(&at, Format::Native);
    let kind = |at: &Location, prefix| remove_entries(at, prefix, &RemoveOptions::new()).unwrap_err().kind();
    assert_eq!(kind(&at, "optimizer."), ErrorKind::Unimplemented);
    assert_eq!(kind(&at, ""), ErrorKind::InvalidArgument);
    assert_eq!(kind(&at, "a\0b"), ErrorKind::InvalidArgument);
    assert_eq!(kind(&Location::path(scratch.0.join("nowhere")), "a"), ErrorKind::NotFound);
}
