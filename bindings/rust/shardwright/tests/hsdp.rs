// SPDX-License-Identifier: Apache-2.0
//! Training: threads are ranks, and one process that adds in the promised order is what all of them equal, bit for bit.

#[allow(dead_code)] // it saves and loads in the program
#[path = "../../../../examples/hsdp_loop/rust/src/training.rs"]
mod training;

#[path = "support/ranks.rs"]
mod ranks;

use ranks::{
    COLUMNS, ROWS, Transport, alone, ends_of_threads, iterate, meshes, message_of, on_ranks, weight, with_layer,
};
use shardwright::hsdp::{
    Communicator, Content, EstimatedUnit, EstimatedWorld, GradState, HostCommunicator, Hsdp, HsdpOptions, Lane,
    MemoryKind, Mesh, Operation, Param, Phase, Setting, UnitLayout, UnitOptions, UnitState, estimate,
    fake_communicator, open_communicator, over, thread_communicators,
};
use shardwright::{
    Checkpoint, Context, DType, Error, ErrorKind, LoadOptions, Location, Result, SaveOptions, State, load_at, save_at,
    thread_collectives,
};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use training::Training;

// ---- a transport of the host ----

#[derive(Default)]
struct Round {
    parts: Vec<Option<Vec<u8>>>,
    taken: usize,
    failure: Option<(ErrorKind, String)>,
}

/// Ranks that leave their bytes on a table until all have taken them.
struct Team {
    size: usize,
    round: Mutex<Round>,
    changed: Condvar,
}

struct Member {
    team: Arc<Team>,
    rank: usize,
    panics: bool,
}

impl Team {
    fn members(size: usize) -> Vec<Member> {
        let round = Mutex::new(Round { parts: vec![None; size], ..Round::default() });
        let team = Arc::new(Team { size, round, changed: Condvar::new() });
        (0..size).map(|rank| Member { team: Arc::clone(&team), rank, panics: false }).collect()
    }
}

impl Member {
    /// `take` sees the bytes of all ranks.
    fn exchange(&self, operation: &Operation, data: &[u8], take: impl FnOnce(&[Option<Vec<u8>>])) -> Result<()> {
        assert!(!self.panics, "the transport of rank {} is broken", self.rank);
        let limit = operation.timeout.unwrap_or(Duration::from_secs(60));
        let wait = |round, until: &dyn Fn(&Round) -> bool| -> Result<_> {
            let waiting = |round: &mut Round| round.failure.is_none() && !until(round);
            let (round, timed) = self.team.changed.wait_timeout_while(round, limit, waiting).unwrap();
            match &round.failure {
                Some((kind, message)) => Err(Error::new(*kind, message.clone())),
                None if timed.timed_out() => Err(Error::new(ErrorKind::DeadlineExceeded, "a rank did not come")),
                None => Ok(round),
            }
        };
        let round = self.team.round.lock().unwrap();
        let mut round = wait(round, &|round: &Round| round.parts[self.rank].is_none())?; // the last one has been taken by all
        round.parts[self.rank] = Some(data.to_vec());
        self.team.changed.notify_all();
        let mut round = wait(round, &|round: &Round| round.parts.iter().all(Option::is_some))?;
        take(&round.parts);
        round.taken += 1;
        if round.taken == self.team.size {
            *round = Round { parts: vec![None; self.team.size], ..Round::default() };
            self.team.changed.notify_all();
        }
        wait(round, &|round: &Round| round.parts[self.rank].is_none()).map(drop)
    }
}

impl HostCommunicator for Member {
    fn rank(&self) -> i32 {
        self.rank as i32
    }
    fn size(&self) -> i32 {
        self.team.size as i32
    }
    fn all_gather(&self, operation: &Operation, data: &[u8], out: &mut [u8]) -> Result<()> {
        self.exchange(operation, data, |parts| {
            out.copy_from_slice(&parts.iter().flatten().flatten().copied().collect::<Vec<_>>())
        })
    }
    fn all_to_all(&self, operation: &Operation, data: &[u8], out: &mut [u8]) -> Result<()> {
        let size = data.len() / self.team.size;
        self.exchange(operation, data, |parts| {
            for (from, part) in parts.iter().flatten().enumerate() {
                out[from * size..][..size].copy_from_slice(&part[self.rank * size..][..size]);
            }
        })
    }
    fn abort(&self, kind: ErrorKind, message: &str) {
        self.team.round.lock().unwrap().failure.get_or_insert((kind, message.to_owned()));
        self.team.changed.notify_all();
    }
}

fn ends_of_the_host(size: i32) -> Vec<Communicator> {
    Team::members(size as usize).into_iter().map(|member| Communicator::host(member).unwrap()).collect()
}

fn ends_over_collectives(size: i32) -> Vec<Communicator> {
    thread_collectives(size).unwrap().into_iter().map(|end| over(end).unwrap()).collect()
}

// ---- ranks ----

fn options_of(replicas: i32) -> HsdpOptions {
    match replicas {
        1 => HsdpOptions::default(),
        _ => HsdpOptions::new().shard_axis(Some(1)).replicate_axis(Some(0)),
    }
}

// ---- the loop of all languages ----

fn train_the_loop(transport: Transport) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/bindings/hsdp.json");
    let text = std::fs::read_to_string(path).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let worlds = document["worlds"].as_array().unwrap();
    assert_eq!(worlds.len(), 3);
    for world in worlds {
        let (shards, replicas) = (world["shards"].as_i64().unwrap() as i32, world["replicas"].as_i64().unwrap() as i32);
        let wanted: Vec<_> = world["digests"].as_array().unwrap().iter().map(|each| each.as_str().unwrap()).collect();
        let found = on_ranks(meshes(shards, replicas, transport), |rank, mesh| {
            let mut training = Training::new(&mesh, rank, &options_of(replicas)).unwrap();
            wanted.iter().map(|_| training.step().and_then(|()| training.digest()).unwrap()).collect::<Vec<_>>()
        });
        assert!(found.iter().all(|rank| rank == &wanted), "{replicas} x {shards}");
    }
}

#[test]
fn every_rank_has_the_digests_of_all_languages() {
    train_the_loop(ends_of_threads);
}

#[test]
fn a_transport_of_the_host_gives_the_same_bits() {
    train_the_loop(ends_of_the_host);
}

#[test]
fn a_collective_of_bytes_gives_the_same_bits() {
    train_the_loop(ends_over_collectives);
}

// ---- one small unit ----

#[test]
fn gradients_are_averaged_and_clipped() {
    on_ranks(meshes(2, 1, ends_of_threads), |rank, mesh| {
        let (mut hsdp, unit) = with_layer(&mesh, &UnitOptions::default()).unwrap();
        iterate(&mut hsdp, unit, rank as f32 + 1.0).unwrap();
        assert_eq!(hsdp.grad_state(unit).unwrap(), GradState::Ready);
        assert!(hsdp.grad::<f32>(unit, 0).unwrap().unwrap().iter().all(|g| *g == 1.5));
        let norm = hsdp.clip_grads(1.0, 2.0).unwrap();
        assert!((norm - 1.5 * 15f64.sqrt()).abs() < 1e-5);
        assert!((hsdp.global_norm(2.0).unwrap() - 1.0).abs() < 1e-5);
        hsdp.zero_grads().unwrap();
        assert!(hsdp.grad::<f32>(unit, 0).unwrap().is_none());
        hsdp.set(Setting::DivideFactor(1.0)).unwrap();
        iterate(&mut hsdp, unit, rank as f32 + 1.0).unwrap();
        assert!(hsdp.grad::<f32>(unit, 0).unwrap().unwrap().iter().all(|g| *g == 3.0));
    });
}

#[test]
fn boxes_layouts_and_states_are_told() {
    on_ranks(meshes(2, 1, ends_of_threads), |rank, mesh| {
        let (mut hsdp, unit) = with_layer(&mesh, &UnitOptions::default()).unwrap();
        let place = hsdp.local_box(unit, 0).unwrap();
        assert_eq!((place.offsets, place.sizes), (vec![3 * i64::from(rank), 0], vec![3 - i64::from(rank), 3]));
        assert_eq!(place.global_shape, [5, 3]);
        assert_eq!(hsdp.layout(unit, 0).unwrap().rank_count(), 2);
        assert_eq!((hsdp.param_count(unit).unwrap(), hsdp.param_name(unit, 0).unwrap()), (1, "weight".to_owned()));
        assert_eq!(hsdp.state(unit).unwrap(), UnitState::Sharded);
        let gather = hsdp.begin_unshard(unit).unwrap();
        drop(gather); // it goes on in the unit
        assert_eq!(hsdp.state(unit).unwrap(), UnitState::Gathering);
        let early = hsdp.update::<f32>(unit, 0, |_, _| unreachable!()).unwrap_err();
        assert_eq!(early.kind(), ErrorKind::FailedPrecondition);
        hsdp.wait(unit).unwrap();
        assert_eq!(hsdp.full::<f32>(unit, 0).unwrap(), weight());
        hsdp.reshard(unit, Phase::Backward).unwrap();
        let gone = hsdp.full::<f32>(unit, 0).unwrap_err();
        assert!(gone.message().contains("SHARDED"), "{gone}");
    });
    let ragged = UnitOptions::new().layout(UnitLayout::Ragged);
    let (hsdp, unit) = with_layer(&Mesh::new(&[1], 0).unwrap(), &ragged).unwrap();
    assert_eq!(hsdp.layout(unit, 0).unwrap_err().kind(), ErrorKind::Unimplemented);
}

#[test]
fn what_some_ranks_save_others_load() {
    let folder = std::env::temp_dir().join(format!("shardwright-hsdp-{}", std::process::id()));
    let ends = Mutex::new(thread_collectives(2).unwrap().into_iter().map(Some).collect::<Vec<_>>());
    let context = Context::shared().unwrap();
    on_ranks(meshes(2, 1, ends_of_threads), |rank, mesh| {
        let mut end = ends.lock().unwrap()[rank as usize].take().unwrap();
        let (mut hsdp, _) = with_layer(&mesh, &UnitOptions::default()).unwrap();
        let mut state = State::new();
        hsdp.add_to_state("model.", Content::Params, &mut state).unwrap();
        save_at(&context, &state, &Location::path(&folder), Some(&mut end), &SaveOptions::default()).unwrap();
    });
    assert_eq!(Checkpoint::open(&folder).unwrap().tensors().unwrap()[0].name, "model.weight");
    for size in [1, 3] {
        let ends = Mutex::new(thread_collectives(size).unwrap().into_iter().map(Some).collect::<Vec<_>>());
        on_ranks(meshes(size, 1, ends_of_threads), |rank, mesh| {
            let mut end = ends.lock().unwrap()[rank as usize].take().unwrap();
            let mut hsdp = Hsdp::new(&mesh, &HsdpOptions::default()).unwrap();
            let empty = Param::empty("weight", &[ROWS as i64, COLUMNS as i64], DType::FLOAT32);
            let unit = hsdp.add_unit("layer", &UnitOptions::default(), &[empty]).unwrap();
            let mut state = State::new();
            hsdp.add_to_state("model.", Content::Params, &mut state).unwrap();
            load_at(&context, &mut state, &Location::path(&folder), Some(&mut end), &LoadOptions::default()).unwrap();
            drop(state);
            hsdp.step_event().unwrap();
            hsdp.unshard(unit).unwrap();
            assert_eq!(hsdp.full::<f32>(unit, 0).unwrap(), weight());
        });
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn memory_is_foretold() {
    let weight = weight();
    let params = vec![Param::new("weight", &[ROWS as i64, COLUMNS as i64], &weight)];
    let unit = EstimatedUnit { params, adds_grads: true, ..EstimatedUnit::default() };
    let world = EstimatedWorld { shards: 2, replicas: 1, ordered_sums: true };
    let kinds = [
        MemoryKind::All,
        MemoryKind::Shard,
        MemoryKind::Gathered,
        MemoryKind::LocalGrads,
        MemoryKind::Packed,
        MemoryKind::ShardGrads,
    ];
    let measured = on_ranks(meshes(2, 1, ends_of_threads), |_, mesh| {
        let (mut hsdp, unit) = with_layer(&mesh, &UnitOptions::default()).unwrap();
        for _ in 0..2 {
            iterate(&mut hsdp, unit, 1.0).unwrap();
            hsdp.zero_grads().unwrap();
        }
        kinds.map(|kind| hsdp.stats(kind).unwrap().peak_bytes)
    });
    let foretold = kinds
        .map(|kind| estimate(std::slice::from_ref(&unit), &world, &HsdpOptions::default(), kind).unwrap().peak_bytes);
    assert_eq!(measured, [foretold, foretold]);
    assert!(foretold.iter().all(|bytes| *bytes > 0));
}

#[test]
fn ranks_talk_through_a_plugin() {
    let context = Context::builder().build().unwrap();
    message_of(open_communicator(&context, "sample_team", "rust 0 2"), ErrorKind::NotFound);
    // SAFETY: it is one of ours.
    unsafe { context.load_plugin("sample_team") }.unwrap();
    let mut places: Vec<_> = (0..2).map(|rank| Mesh::new(&[2], rank).unwrap()).collect();
    for (rank, mesh) in places.iter_mut().enumerate() {
        let end = open_communicator(&context, "sample_team", &format!("rust {rank} 2")).unwrap();
        assert_eq!((end.rank(), end.size()), (rank as i32, 2));
        mesh.set_communicator(0, Lane::Gather, &end).unwrap();
    }
    on_ranks(places, |_, mesh| {
        let (mut hsdp, unit) = with_layer(&mesh, &UnitOptions::default()).unwrap();
        hsdp.unshard(unit).unwrap();
        assert_eq!(hsdp.full::<f32>(unit, 0).unwrap(), weight());
    });
    let text = message_of(open_communicator(&context, "sample_team", "rust 0"), ErrorKind::InvalidArgument);
    assert!(text.contains("NAME RANK SIZE"), "{text}");
}

// ---- what is wrong ----

#[test]
fn arguments_are_checked() {
    let (mut hsdp, unit) = alone();
    let (other, other_unit) = alone();
    let invalid = ErrorKind::InvalidArgument;
    assert!(message_of(hsdp.pre_forward(other_unit), invalid).contains("another context"));
    drop(other);
    hsdp.pre_forward(unit).unwrap();
    assert!(message_of(hsdp.full::<f64>(unit, 0), invalid).contains("float32, not float64"));
    assert!(message_of(hsdp.add_grads(unit, &[(0, &[1f32][..])]), invalid).contains("has 1 elements"));
    message_of(hsdp.add_grads(unit, &[(7, &[1f32][..])]), ErrorKind::OutOfRange);
    let short = hsdp.add_unit("short", &UnitOptions::default(), &[Param::new("w", &[2, 2], &[1f32])]);
    assert!(message_of(short, invalid).contains("'w'"));
    message_of(Mesh::new(&[2], 2), invalid);
    let lonely = Hsdp::new(&Mesh::new(&[2], 0).unwrap(), &HsdpOptions::default());
    message_of(lonely, ErrorKind::FailedPrecondition);
    let mut mesh = Mesh::new(&[2], 0).unwrap();
    message_of(mesh.set_communicator(0, Lane::Gather, &fake_communicator(0, 3).unwrap()), invalid);
}

#[test]
fn ranks_that_disagree_about_a_unit_are_told_on_all() {
    for (rank, error) in on_ranks(meshes(2, 1, ends_of_threads), |rank, mesh| {
        let mut hsdp = Hsdp::new(&mesh, &HsdpOptions::default()).unwrap();
        let columns = COLUMNS as i64 + i64::from(rank);
        let empty = Param::empty("weight", &[ROWS as i64, columns], DType::FLOAT32);
        hsdp.add_unit("layer", &UnitOptions::default(), &[empty]).unwrap_err()
    })
    .into_iter()
    .enumerate()
    {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "rank {rank}: {error}");
        assert!(error.message().contains("layer"), "{error}");
    }
}

#[test]
fn another_order_on_one_rank_is_named() {
    let errors = on_ranks(meshes(2, 1, ends_of_threads), |rank, mesh| {
        let mut hsdp = Hsdp::new(&mesh, &HsdpOptions::new().prefetch_depth(0)).unwrap();
        let weight = weight();
        let mut unit = |name: &str| {
            hsdp.add_unit(name, &UnitOptions::default(), &[Param::new("w", &[ROWS as i64, COLUMNS as i64], &weight)])
                .unwrap()
        };
        let mut order = [unit("first"), unit("second")];
        order.rotate_left(rank as usize);
        order.into_iter().try_for_each(|each| hsdp.pre_forward(each))
    });
    for error in errors.into_iter().map(|outcome| outcome.unwrap_err()) {
        assert_eq!(error.kind(), ErrorKind::Aborted, "{error}");
        assert!(error.message().contains("first") || error.message().contains("second"), "{error}");
    }
}

#[test]
fn a_transport_that_panics_fails_all_ranks() {
    let mut members = Team::members(2);
    members[1].panics = true;
    let ends: Vec<_> = members.into_iter().map(|member| Communicator::host(member).unwrap()).collect();
    let mut places: Vec<_> = (0..2).map(|rank| Mesh::new(&[2], rank).unwrap()).collect();
    for (mesh, end) in places.iter_mut().zip(&ends) {
        mesh.set_communicator(0, Lane::Gather, end).unwrap();
    }
    let outcomes = on_ranks(places, |_, mesh| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| with_layer(&mesh, &UnitOptions::default()).map(drop)))
    });
    let panic = outcomes[1].as_ref().unwrap_err(); // goes on where the call was made
    assert_eq!(panic.downcast_ref::<String>().unwrap(), "the transport of rank 1 is broken");
    let told = outcomes[0].as_ref().unwrap().as_ref().unwrap_err();
    assert!(told.message().contains("rank 1"), "{told}");
}

#[test]
fn an_abort_wakes_ranks_that_wait() {
    let ends = thread_communicators(2).unwrap();
    let mut mesh = Mesh::new(&[2], 0).unwrap();
    mesh.set_communicator(0, Lane::Gather, &ends[0]).unwrap();
    let error = std::thread::scope(|threads| {
        let waits = threads.spawn(move || with_layer(&mesh, &UnitOptions::default()).map(drop).unwrap_err());
        ends[1].abort(ErrorKind::Unavailable, "no data is left").unwrap();
        waits.join().unwrap()
    });
    assert!(error.message().contains("no data is left"), "{error}");
}

/// Says another size each time.
struct Growing(std::sync::atomic::AtomicI32);

impl HostCommunicator for Growing {
    fn rank(&self) -> i32 {
        0
    }
    fn size(&self) -> i32 {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
    }
    fn all_gather(&self, _: &Operation, data: &[u8], out: &mut [u8]) -> Result<()> {
        Err(Error::new(ErrorKind::Unavailable, format!("room for {} ranks", out.len() / data.len())))
    }
    fn all_to_all(&self, _: &Operation, _: &[u8], _: &mut [u8]) -> Result<()> {
        Ok(())
    }
    fn abort(&self, _: ErrorKind, _: &str) {}
}

#[test]
fn buffers_do_not_grow_with_what_a_transport_says_later() {
    let mut mesh = Mesh::new(&[2], 0).unwrap();
    mesh.set_communicator(0, Lane::Gather, &Communicator::host(Growing(2.into())).unwrap()).unwrap();
    let told = message_of(with_layer(&mesh, &UnitOptions::default()).map(drop), ErrorKind::Unavailable);
    assert!(told.contains("room for 2 ranks"), "{told}");
}
