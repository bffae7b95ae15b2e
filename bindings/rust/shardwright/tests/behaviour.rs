// SPDX-License-Identifier: Apache-2.0
//! What the contract does not reach: ownership, panics, jobs, logging and large tensors of the Rust layer.

use shardwright::{
    Checkpoint, CommitCondition, Context, DType, DigestAlgorithm, ErrorKind, Format, HostStorage, JobState, Kind,
    LoadOptions, Location, LogLevel, ObjectStat, OpenMode, OpenOptions, RawMemory, Result, SaveOptions, Shard, State,
    Storage, Tensor, TensorSpec, Verify, save_at,
};
use std::io::{Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A directory that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("rust-behaviour-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn owned_state() -> State<'static> {
    let mut state = State::new();
    let bytes: Vec<u8> = (0..48).collect();
    state.add_owned(&TensorSpec::whole("w", DType::from_name("float32").unwrap(), &[4, 3]), &bytes).unwrap();
    state.add_json("step", "7").unwrap();
    state
}

#[test]
fn saves_and_loads_borrowed_slices() {
    let scratch = Scratch::new();
    let weights = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let mut state = State::new();
    state.add("model.w", &[2, 3], &weights).unwrap();
    let report = shardwright::save(&state, scratch.0.join("p"), &SaveOptions::default()).unwrap();
    assert!(report.json().contains("\"schema\":1"));

    let mut target = [0.0f32; 6];
    let mut into = State::new();
    into.add_mut("model.w", &[2, 3], &mut target).unwrap();
    let report = shardwright::load_into(&mut into, scratch.0.join("p"), &LoadOptions::default()).unwrap();
    assert_eq!(report.loaded(), ["model.w"]);
    drop(into);
    assert_eq!(target, weights);
}

#[test]
fn load_without_a_target_gives_tensors_and_objects() {
    let scratch = Scratch::new();
    shardwright::save(&owned_state(), scratch.0.join("p"), &SaveOptions::default()).unwrap();
    let loaded = shardwright::load(scratch.0.join("p")).unwrap();
    assert_eq!(loaded.tensors["w"].shape(), [4, 3]);
    assert_eq!(loaded.tensors["w"].bytes()[5], 5);
    assert!(loaded.tensors["w"].elements::<f32>().is_ok());
    assert_eq!(loaded.tensors["w"].elements::<i64>().unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(loaded.objects["step"].bytes, b"7");
}

#[test]
fn a_large_object_is_read_as_a_stream() {
    let scratch = Scratch::new();
    let bytes: Vec<u8> = (0..3_000_001u32).map(|i| (i % 251) as u8).collect();
    let mut state = State::new();
    state.add_object("blob", ("application/octet-stream", &bytes), "", Kind::Auto).unwrap();
    shardwright::save(&state, scratch.0.join("p"), &SaveOptions::default()).unwrap();
    let checkpoint = Checkpoint::open(scratch.0.join("p")).unwrap();
    let mut stream = checkpoint.open_object("blob").unwrap();
    assert_eq!(stream.size(), bytes.len() as u64);
    let mut found = Vec::new();
    stream.read_to_end(&mut found).unwrap();
    assert!(found == bytes);
    assert_eq!(stream.seek(SeekFrom::End(-7)).unwrap(), 2_999_994);
    found.clear();
    stream.read_to_end(&mut found).unwrap();
    assert_eq!(found, bytes[2_999_994..]);
    assert_eq!(stream.seek(SeekFrom::Start(5)).unwrap(), 5);
    let mut some = [0; 3];
    stream.read_exact(&mut some).unwrap();
    assert_eq!(some, [5, 6, 7]);
    assert!(stream.seek(SeekFrom::Current(-9)).is_err());
    assert_eq!(checkpoint.open_object("blub").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn jobs_own_their_buffers_and_give_them_back() {
    let scratch = Scratch::new();
    let job =
        shardwright::save_async(owned_state(), &Location::path(scratch.0.join("p")), &SaveOptions::default()).unwrap();
    let done = job.finish();
    let (summary, state) = (done.outcome.unwrap().summary().unwrap(), done.state);
    assert_eq!(summary.bytes_total, 48 + 1); // payload: the tensor and the object
    assert!(summary.is_durable && summary.has_digests && summary.elapsed > Duration::ZERO);
    assert!(done.collective.is_none());
    assert_eq!(state.tensor_bytes("w").unwrap()[47], 47);
    assert_eq!(state.object("step").unwrap(), (String::from("application/json"), b"7".to_vec()));
}

#[test]
fn a_job_that_fails_ends_failed_and_keeps_its_state() {
    let scratch = Scratch::new();
    let location = Location::path(scratch.0.join("nothing"));
    let job = shardwright::load_async(owned_state(), &location, &LoadOptions::default()).unwrap();
    assert_eq!(job.wait(None).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(job.state(), JobState::Failed);
    assert_eq!(job.report().unwrap_err().kind(), ErrorKind::FailedPrecondition);
    let done = job.finish();
    assert_eq!(done.outcome.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(done.state.tensor_names(), ["w"]);
}

#[test]
fn every_handle_says_what_it_is() {
    let storage = Storage::memory().unwrap();
    let location = Location::storage(&storage, "p");
    let context = Context::shared().unwrap();
    let report = save_at(&context, &owned_state(), &location, None, &SaveOptions::default()).unwrap();
    let checkpoint = Checkpoint::open_at(&context, &location).unwrap();
    let elsewhere = Location::storage(&storage, "q");
    let job = shardwright::save_async(owned_state(), &elsewhere, &SaveOptions::default()).unwrap();
    assert!(job.wait(None).unwrap());
    let text = format!("{:?} {:?} {:?}", location, checkpoint.read("w").unwrap(), owned_state());
    assert!(text.contains("storage: Some(Storage(\"memory\"))"), "{text}");
    assert!(text.contains("Tensor(float32, [4, 3])"), "{text}");
    assert!(text.contains("State { tensors: [\"w\"], objects: [\"step\"] }"), "{text}");
    let text = format!("{report:?} {checkpoint:?} {job:?} {context:?} {:?}", Context::builder().threads(3));
    for said in
        ["\"operation\":\"save\"", "Checkpoint(", ", 1 tensors)", "Job(Succeeded)", "Context { .. }", "threads: 3"]
    {
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn dropping_in_any_order_is_fine() {
    let scratch = Scratch::new();
    let context = Context::builder().threads(1).build().unwrap();
    let storage = Storage::memory().unwrap();
    save_at(&context, &owned_state(), &Location::storage(&storage, "run/a"), None, &SaveOptions::default()).unwrap();
    let checkpoint = Checkpoint::open_at(&context, &Location::storage(&storage, "run/a")).unwrap();
    let tensor = checkpoint.read("w").unwrap();
    drop(storage);
    drop(context);
    assert_eq!(checkpoint.digests(DigestAlgorithm::Xxh3).unwrap().len(), 1);
    drop(checkpoint);
    assert_eq!(tensor.bytes().len(), 48);
    drop(scratch);
}

#[test]
fn opening_takes_options() {
    let context = Context::builder().threads(1).build().unwrap();
    let storage = Storage::memory().unwrap();
    let location = Location::storage(&storage, "run/a");
    save_at(&context, &owned_state(), &location, None, &SaveOptions::default()).unwrap();
    let good = OpenOptions::new().format(Format::Native).threads(1).verify(Verify::Off);
    assert_eq!(Checkpoint::open_with(&context, &location, &good).unwrap().read("w").unwrap().bytes().len(), 48);
    let other = OpenOptions::new().format(Format::TorchDcp);
    let refused = Checkpoint::open_with(&context, &location, &other).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument);
    let late = OpenOptions::new().deadline(Some(Duration::from_nanos(1)));
    let late = Checkpoint::open_with(&context, &location, &late).unwrap().read("w").err().unwrap();
    assert_eq!(late.kind(), ErrorKind::DeadlineExceeded);
}

struct PanickingStorage;

#[derive(Debug)]
struct Payload(u32);

impl HostStorage for PanickingStorage {
    type Object = ();
    fn open(&self, _: &str, _: OpenMode) -> Result<()> {
        std::panic::panic_any(Payload(42))
    }
    fn stat(&self, _: &str) -> Result<ObjectStat> {
        std::panic::panic_any(Payload(42))
    }
    fn list(&self, _: &str) -> Result<Vec<(String, ObjectStat)>> {
        std::panic::panic_any(Payload(42))
    }
    fn read_at(&self, (): &(), _: u64, _: &mut [u8]) -> Result<usize> {
        std::panic::panic_any(Payload(42))
    }
    fn write_at(&self, (): &(), _: u64, _: &[u8]) -> Result<()> {
        std::panic::panic_any(Payload(42))
    }
    fn sync(&self, (): &()) -> Result<()> {
        std::panic::panic_any(Payload(42))
    }
    fn commit(&self, (): &(), _: CommitCondition) -> Result<()> {
        std::panic::panic_any(Payload(42))
    }
    fn abort(&self, (): &()) {}
    fn remove(&self, _: &str) -> Result<()> {
        std::panic::panic_any(Payload(42))
    }
}

#[test]
fn a_panic_in_a_callback_comes_out_as_itself() {
    let storage = Storage::host(PanickingStorage).unwrap();
    let context = Context::shared().unwrap();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        save_at(&context, &owned_state(), &Location::storage(&storage, "x"), None, &SaveOptions::default())
    }));
    let payload = outcome.expect_err("the panic goes on");
    assert_eq!(payload.downcast::<Payload>().unwrap().0, 42);
}

fn absent<T>() -> Result<T> {
    Err(shardwright::Error::new(ErrorKind::NotFound, "nothing is there"))
}

/// The storage of one rank, which panics with its rank when a rank that is named writes.
struct PanicsOnRank {
    rank: u32,
    panicking: &'static [u32],
    _alive: Arc<()>,
}

impl HostStorage for PanicsOnRank {
    type Object = ();
    fn open(&self, _: &str, mode: OpenMode) -> Result<()> {
        if matches!(mode, OpenMode::Read) { absent() } else { Ok(()) }
    }
    fn stat(&self, _: &str) -> Result<ObjectStat> {
        absent()
    }
    fn list(&self, _: &str) -> Result<Vec<(String, ObjectStat)>> {
        Ok(Vec::new())
    }
    fn read_at(&self, (): &(), _: u64, _: &mut [u8]) -> Result<usize> {
        absent()
    }
    fn write_at(&self, (): &(), _: u64, _: &[u8]) -> Result<()> {
        if self.panicking.contains(&self.rank) {
            std::panic::panic_any(Payload(self.rank))
        }
        Ok(())
    }
    fn sync(&self, (): &()) -> Result<()> {
        Ok(())
    }
    fn commit(&self, (): &(), _: CommitCondition) -> Result<()> {
        Ok(())
    }
    fn abort(&self, (): &()) {}
    fn remove(&self, _: &str) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_dropped_job_gives_back_what_it_was_lent() {
    let alive = Arc::new(());
    let storage = Storage::host(PanicsOnRank { rank: 0, panicking: &[], _alive: Arc::clone(&alive) }).unwrap();
    let job =
        shardwright::save_async(owned_state(), &Location::storage(&storage, "p"), &SaveOptions::default()).unwrap();
    drop(storage);
    assert_eq!(Arc::strong_count(&alive), 2);
    drop(job); // has ended by then
    assert_eq!(Arc::strong_count(&alive), 1);
}

/// By rank of three: what its save panicked with, or its error.
fn saves_of_ranks(panicking: &'static [u32]) -> Vec<std::result::Result<ErrorKind, u32>> {
    let ends = shardwright::thread_collectives(3).unwrap();
    std::thread::scope(|scope| {
        let work = |(rank, mut end): (usize, shardwright::Collective)| {
            scope.spawn(move || {
                let storage =
                    Storage::host(PanicsOnRank { rank: rank as u32, panicking, _alive: Arc::new(()) }).unwrap();
                let (context, location) = (Context::shared().unwrap(), Location::storage(&storage, "x"));
                let kind = vec![(String::from("*"), shardwright::Kind::RankLocal)]; // so that each rank writes
                let options = SaveOptions::new().kind(kind);
                let save = || save_at(&context, &owned_state(), &location, Some(&mut end), &options);
                match catch_unwind(AssertUnwindSafe(save)) {
                    Ok(outcome) => Ok(outcome.expect_err("a rank of the team failed").kind()),
                    Err(payload) => Err(payload.downcast::<Payload>().expect("the panic of the storage").0),
                }
            })
        };
        let threads: Vec<_> = ends.into_iter().enumerate().map(work).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn each_worker_of_a_team_gets_its_own_panic_and_the_others_an_error() {
    let told = Ok(ErrorKind::HostException);
    assert_eq!(saves_of_ranks(&[0, 1, 2]), [Err(0), Err(1), Err(2)]);
    assert_eq!(saves_of_ranks(&[1]), [told, Err(1), told]);
    assert_eq!(saves_of_ranks(&[1, 2]), [told, Err(1), Err(2)]);
}

struct PanicsInDrop(&'static std::sync::atomic::AtomicUsize);

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        std::panic::panic_any(Payload(43))
    }
}

impl HostStorage for PanicsInDrop {
    type Object = PanicsInDrop;
    fn open(&self, _: &str, mode: OpenMode) -> Result<PanicsInDrop> {
        if matches!(mode, OpenMode::Read) { absent() } else { Ok(PanicsInDrop(self.0)) }
    }
    fn stat(&self, _: &str) -> Result<ObjectStat> {
        absent()
    }
    fn list(&self, _: &str) -> Result<Vec<(String, ObjectStat)>> {
        Ok(Vec::new())
    }
    fn read_at(&self, _: &PanicsInDrop, _: u64, _: &mut [u8]) -> Result<usize> {
        Ok(0)
    }
    fn write_at(&self, _: &PanicsInDrop, _: u64, _: &[u8]) -> Result<()> {
        Err(shardwright::Error::new(ErrorKind::ResourceExhausted, "this storage is full"))
    }
    fn sync(&self, _: &PanicsInDrop) -> Result<()> {
        Ok(())
    }
    fn commit(&self, _: &PanicsInDrop, _: CommitCondition) -> Result<()> {
        Ok(())
    }
    fn abort(&self, _: &PanicsInDrop) {
        std::panic::panic_any(PanicsInDrop(self.0)) // the payload panics when it is dropped
    }
    fn remove(&self, _: &str) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_panic_in_the_drop_of_a_storage_and_its_objects_ends_there() {
    static DROPPED: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let storage = Storage::host(PanicsInDrop(&DROPPED)).unwrap();
    let context = Context::shared().unwrap();
    let location = Location::storage(&storage, "x");
    let error = save_at(&context, &owned_state(), &location, None, &SaveOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ResourceExhausted, "{error}");
    let of_objects = DROPPED.load(std::sync::atomic::Ordering::SeqCst);
    assert!(of_objects > 0);
    drop(storage);
    assert_eq!(DROPPED.load(std::sync::atomic::Ordering::SeqCst), of_objects + 1);
}

#[test]
fn kinds_of_errors_have_the_names_of_the_library() {
    for kind in ErrorKind::ALL {
        // SAFETY: static text.
        let wanted = unsafe { std::ffi::CStr::from_ptr(shardwright_sys::ffi::shw_status_name(kind.status())) };
        assert_eq!(kind.name(), wanted.to_str().unwrap());
        assert_eq!(shardwright::Error::new(*kind, "made").kind(), *kind);
    }
}

#[test]
fn log_records_reach_the_host() {
    let scratch = Scratch::new();
    let seen = Arc::new(Mutex::new(0));
    let count = Arc::clone(&seen);
    let context = Context::builder().log(LogLevel::Trace, move |_, _, _| *count.lock().unwrap() += 1).build().unwrap();
    let location = Location::path(scratch.0.join("p"));
    save_at(&context, &owned_state(), &location, None, &SaveOptions::default()).unwrap();
    // The library may have nothing to say about a good save; what it says must not disturb it.
    assert!(*seen.lock().unwrap() < 1_000_000);
}

#[test]
fn errors_carry_code_details_and_causes() {
    let error = Checkpoint::open("/nonexistent/path").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.details().contains_key("file"), "{error} {:?}", error.details());
    assert_eq!(error.status(), ErrorKind::NotFound.status());
    assert_eq!(format!("{}", error.kind()), "NOT_FOUND");
}

#[test]
fn a_tensor_is_made_from_elements() {
    let tensor = Tensor::from_elements(&[2, 2], &[1i32, 2, 3, 4]).unwrap();
    assert_eq!(tensor.elements::<i32>().unwrap(), [1, 2, 3, 4]);
    assert_eq!(Tensor::from_elements(&[3], &[1i32]).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

/// More than 4 GiB and more than 2^31 elements, of which only the ends are written: a sparse file as memory.
#[test]
fn tensors_above_four_gib_are_saved_sliced_and_loaded() {
    let scratch = Scratch::new();
    let columns = 1i64 << 16;
    let rows = (1i64 << 16) + 8;
    let dtype = DType::from_name("uint8").unwrap();
    let size = (rows * columns) as usize;
    assert!(size > 1 << 32);
    // A sparse file mapped as memory: holes read as zero and cost no disk.
    let file = scratch.0.join("sparse");
    std::fs::File::create(&file).unwrap().set_len(size as u64).unwrap();
    let map = Map::of(&file, size);
    let bytes = map.bytes();
    bytes[0] = 1;
    bytes[size - 1] = 2;
    let mut state = State::new();
    let memory = RawMemory { data: bytes.as_mut_ptr(), size, read_only: false };
    let corner = [(&[0, 0][..], &[rows, columns][..], 0)];
    let shape = [rows, columns];
    let spec = TensorSpec {
        shard: Some(Shard { global_shape: &shape, boxes: &corner }),
        ..TensorSpec::whole("big", dtype, &shape)
    };
    // SAFETY: the map outlives the state.
    unsafe { state.add_raw(&spec, memory) }.unwrap();
    let options = SaveOptions::new().durability(shardwright::Durability::None);
    shardwright::save(&state, scratch.0.join("p"), &options).unwrap();
    let checkpoint = Checkpoint::open(scratch.0.join("p")).unwrap();
    let last = checkpoint.read_box("big", &[rows - 1, columns - 2], &[1, 2]).unwrap();
    assert_eq!(last.bytes(), [0, 2]);
    bytes[size - 1] = 0;
    shardwright::load_into(&mut state, scratch.0.join("p"), &LoadOptions::default()).unwrap();
    assert_eq!(bytes[size - 1], 2);
}

/// A shared memory map of a file.
struct Map {
    data: *mut u8,
    size: usize,
}

unsafe extern "C" {
    fn mmap(address: *mut u8, length: usize, protection: i32, flags: i32, fd: i32, offset: i64) -> *mut u8;
    fn munmap(address: *mut u8, length: usize) -> i32;
}

impl Map {
    fn of(path: &std::path::Path, size: usize) -> Map {
        use std::os::fd::AsRawFd;
        let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
        // SAFETY: a fresh shared read-write mapping.
        let data = unsafe { mmap(std::ptr::null_mut(), size, 3, 1, file.as_raw_fd(), 0) };
        assert_ne!(data as isize, -1);
        Map { data, size }
    }

    #[allow(clippy::mut_from_ref)]
    fn bytes(&self) -> &mut [u8] {
        // SAFETY: the map lives as long as self; the one test that uses it has one such slice.
        unsafe { std::slice::from_raw_parts_mut(self.data, self.size) }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: mapped by of().
        unsafe { munmap(self.data, self.size) };
    }
}
