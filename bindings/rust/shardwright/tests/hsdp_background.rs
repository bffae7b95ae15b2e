// SPDX-License-Identifier: Apache-2.0
//! Saves of shards in the background: what is saved are the parameters as they were when the save began.

#[path = "support/ranks.rs"]
mod ranks;

use ranks::{COLUMNS, ROWS, alone, ends_of_threads, iterate, meshes, message_of, on_ranks, weight};
use shardwright::hsdp::{Content, Hsdp, HsdpOptions, Mesh, Param, Phase, SaveJob, Unit, UnitOptions};
use shardwright::{
    Checkpoint, Collective, Context, ErrorKind, JobState, Location, SaveOptions, State, save_at, thread_collectives,
};
use std::path::{Path, PathBuf};
use std::sync::{Barrier, Mutex};

fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("shardwright-hsdp-{name}-{}", std::process::id()))
}

/// A unit in a context of its own, as ranks of one process need it for jobs.
fn in_own_context(mesh: &Mesh) -> (Hsdp, Unit) {
    let context = Context::builder().build().unwrap();
    let mut hsdp = Hsdp::in_context(&context, mesh, &HsdpOptions::default()).unwrap();
    let weight = weight();
    let params = [Param::new("weight", &[ROWS as i64, COLUMNS as i64], &weight)];
    let unit = hsdp.add_unit("layer", &UnitOptions::default(), &params).unwrap();
    (hsdp, unit)
}

fn save(hsdp: &mut Hsdp, path: &Path, end: Option<Collective>) -> SaveJob {
    save_with(hsdp, path, end, &SaveOptions::default())
}

fn save_with(hsdp: &mut Hsdp, path: &Path, end: Option<Collective>, options: &SaveOptions) -> SaveJob {
    let mut beside = State::new();
    beside.add_json("step", "7").unwrap();
    hsdp.save_async("model.", beside, &Location::path(path), end, options).unwrap()
}

fn saved(path: &Path) -> Vec<f32> {
    let checkpoint = Checkpoint::open(path).unwrap();
    let tensor = checkpoint.read("model.weight").unwrap();
    tensor.bytes().chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
}

#[test]
fn training_goes_on_while_shards_are_saved() {
    let path = folder("goes-on");
    let ends = Mutex::new(thread_collectives(2).unwrap().into_iter().map(Some).collect::<Vec<_>>());
    on_ranks(meshes(2, 1, ends_of_threads), |rank, mesh| {
        let end = ends.lock().unwrap()[rank as usize].take();
        let (mut hsdp, unit) = in_own_context(&mesh);
        let job = save(&mut hsdp, &path, end);
        iterate(&mut hsdp, unit, 1.0).unwrap();
        hsdp.update::<f32>(unit, 0, |param, grad| std::iter::zip(param, grad).for_each(|(p, g)| *p -= g)).unwrap();
        assert!(job.wait_staged(None).unwrap());
        let finished = job.finish();
        finished.outcome.unwrap();
        assert_eq!(finished.collective.unwrap().rank(), rank);
        hsdp.unshard(unit).unwrap();
        assert_eq!(hsdp.full::<f32>(unit, 0).unwrap()[0], 0.0);
    });
    assert_eq!(saved(&path), weight());
    let checkpoint = Checkpoint::open(&path).unwrap();
    assert_eq!(&checkpoint.objects().unwrap()["step"].bytes[..], b"7");
    std::fs::remove_dir_all(&path).unwrap();
}

/// A save that writes from the shards themselves, which it can't before the other rank has come. That begins when the shards are about to change, and has much to
/// do before: who does not wait for it changes them long before it comes.
fn change_while_a_save_waits(name: &str, change: impl FnOnce(&mut Hsdp, Unit, SaveJob)) {
    let (path, work) = (folder(name), folder(&format!("{name}-work")));
    let mut ends = thread_collectives(2).unwrap();
    let (mut other, first) = (ends.pop().unwrap(), ends.pop().unwrap());
    let comes = Barrier::new(2);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let context = Context::builder().build().unwrap();
            comes.wait();
            for _ in 0..20 {
                save_at(&context, &State::new(), &Location::path(&work), None, &SaveOptions::default()).unwrap();
            }
            save_at(&context, &State::new(), &Location::path(&path), Some(&mut other), &SaveOptions::default())
        });
        let (mut hsdp, unit) = in_own_context(&Mesh::new(&[1], 0).unwrap());
        let job = save_with(&mut hsdp, &path, Some(first), &SaveOptions::new().hold(true));
        comes.wait();
        change(&mut hsdp, unit, job);
    });
    assert_eq!(saved(&path), weight());
    std::fs::remove_dir_all(&path).unwrap();
    std::fs::remove_dir_all(&work).unwrap();
}

#[test]
fn an_update_waits_until_the_save_has_copied() {
    change_while_a_save_waits("update", |hsdp, unit, job| {
        let mut found = JobState::Queued;
        hsdp.update::<f32>(unit, 0, |param, _| {
            found = job.state();
            param.fill(0.0);
        })
        .unwrap();
        job.finish().outcome.unwrap();
        assert!(matches!(found, JobState::Staged | JobState::Succeeded), "{found:?}");
    });
}

#[test]
fn a_job_that_is_forgotten_is_waited_for_too() {
    change_while_a_save_waits("forgotten", |hsdp, unit, job| {
        std::mem::forget(job);
        hsdp.update::<f32>(unit, 0, |param, _| param.fill(0.0)).unwrap();
    });
}

#[test]
fn a_state_waits_until_the_save_has_copied() {
    change_while_a_save_waits("state", |hsdp, _, job| {
        let mut state = State::new();
        hsdp.add_to_state("model.", Content::Params, &mut state).unwrap();
        let found = job.state();
        job.finish().outcome.unwrap();
        assert!(matches!(found, JobState::Staged | JobState::Succeeded), "{found:?}");
    });
}

#[test]
fn shards_outlive_their_context_in_a_save() {
    let path = folder("outlives");
    let (mut hsdp, _) = in_own_context(&Mesh::new(&[1], 0).unwrap());
    let job = save(&mut hsdp, &path, None);
    drop(hsdp);
    job.finish().outcome.unwrap();
    assert_eq!(saved(&path), weight());
    std::fs::remove_dir_all(&path).unwrap();
}

#[test]
fn a_save_that_fails_gives_the_shards_free() {
    let path = folder("fails");
    std::fs::write(&path, b"no directory").unwrap();
    let (mut hsdp, unit) = in_own_context(&Mesh::new(&[1], 0).unwrap());
    let job = save(&mut hsdp, &path.join("below"), None);
    hsdp.update::<f32>(unit, 0, |param, _| param.fill(0.0)).unwrap();
    assert!(job.finish().outcome.is_err());
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn names_that_are_taken_are_refused() {
    let (mut hsdp, _) = in_own_context(&Mesh::new(&[1], 0).unwrap());
    let mut beside = State::new();
    beside.add_json("weight", "7").unwrap();
    let doubled = hsdp.save_async("", beside, &Location::path(folder("none")), None, &SaveOptions::default());
    message_of(doubled, ErrorKind::AlreadyExists);
}

#[test]
fn shards_that_are_gathered_are_not_lent() {
    let (mut hsdp, unit) = alone();
    let gather = hsdp.begin_unshard(unit).unwrap();
    message_of(hsdp.add_to_state("", Content::Params, &mut State::new()), ErrorKind::FailedPrecondition);
    drop(gather);
    hsdp.reshard(unit, Phase::Backward).unwrap();
    hsdp.add_to_state("", Content::Params, &mut State::new()).unwrap();
}
