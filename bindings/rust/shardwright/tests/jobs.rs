// SPDX-License-Identifier: Apache-2.0
//! Jobs of several ranks and contexts, and calls that are cancelled.

use shardwright::{
    Cancellation, Checkpoint, Collective, CommitCondition, Context, Error, ErrorKind, HostStorage, JobState,
    LoadOptions, Location, ObjectStat, OpenMode, OpenOptions, Progress, ProgressListener, Result, SaveOptions, State,
    Storage, TensorSpec, load_async_at, save_async_at, save_at, thread_collectives,
};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

fn state_of(rank: i32) -> State<'static> {
    let mut state = State::new();
    let float32 = shardwright::DType::from_name("float32").unwrap();
    let kind = shardwright::Kind::RankLocal;
    let spec = TensorSpec { kind, ..TensorSpec::whole("w", float32, &[2]) };
    state.add_owned(&spec, &[rank as u8; 8]).unwrap();
    state
}

/// What each rank makes of its end, on threads of their own.
fn on_ranks<R: Send>(ends: Vec<Collective>, work: impl Fn(i32, Collective) -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> =
            ends.into_iter().enumerate().map(|(rank, end)| scope.spawn(move || work(rank as i32, end))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn jobs_have_a_context_and_a_collective_and_give_it_back() {
    let storage = Storage::memory().unwrap();
    on_ranks(thread_collectives(2).unwrap(), |rank, end| {
        let context = Context::builder().threads(1).build().unwrap();
        let location = Location::storage(&storage, "p");
        let job = save_async_at(&context, state_of(rank), &location, Some(end), &SaveOptions::new()).unwrap();
        let saved = job.finish();
        saved.outcome.unwrap();
        let mut other = state_of(9);
        other.add_json("note", "null").unwrap(); // wanted, but not stored
        let options = LoadOptions::new().missing(shardwright::Missing::Report);
        let job = load_async_at(&context, other, &location, saved.collective, &options).unwrap();
        let loaded = job.finish();
        assert_eq!(loaded.outcome.unwrap().missing(), ["note"]);
        assert_eq!(loaded.state.tensor_bytes("w").unwrap(), [rank as u8; 8]);
        let end = loaded.collective.unwrap();
        assert_eq!((end.rank(), end.size()), (rank, 2));
    });
    let checkpoint = Checkpoint::open_at(&Context::shared().unwrap(), &Location::storage(&storage, "p")).unwrap();
    assert_eq!((checkpoint.world_size(), checkpoint.ranks("w").unwrap()), (2, vec![0, 1]));
}

#[test]
fn a_rank_that_fails_before_its_job_tells_the_others() {
    let ends = thread_collectives(2).unwrap();
    let kinds = on_ranks(ends, |rank, end| {
        let context = Context::builder().threads(1).build().unwrap();
        let storage = Storage::memory().unwrap();
        let location = Location::storage(&storage, if rank == 0 { "p" } else { "p\0q" });
        let outcome = save_async_at(&context, state_of(rank), &location, Some(end), &SaveOptions::new())
            .and_then(|job| job.finish().outcome);
        outcome.unwrap_err().kind()
    });
    assert_eq!(kinds, [ErrorKind::InvalidArgument; 2]);
}

#[test]
fn a_cancelled_call_ends() {
    let cancellation = Cancellation::new().unwrap();
    let (context, storage) = (Context::shared().unwrap(), Storage::memory().unwrap());
    let location = Location::storage(&storage, "p");
    let options = SaveOptions::new().cancellation(Some(cancellation.clone()));
    save_at(&context, &state_of(0), &location, None, &options).unwrap();
    let open = OpenOptions::new().cancellation(Some(cancellation.clone()));
    let checkpoint = Checkpoint::open_with(&context, &location, &open).unwrap();
    checkpoint.read("w").unwrap();
    cancellation.cancel();
    let load = LoadOptions::new().cancellation(Some(cancellation.clone()));
    for error in [
        save_at(&context, &state_of(0), &location, None, &options).unwrap_err(),
        shardwright::load_at(&context, &mut state_of(0), &location, None, &load).unwrap_err(),
        checkpoint.read("w").unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    }
    Checkpoint::open_at(&context, &location).unwrap().verify(true).unwrap(); // the first save is still there
}

#[test]
fn a_rank_that_waits_for_others_is_woken() {
    let mut ends = thread_collectives(2).unwrap();
    let (cancellation, aborter) = (Cancellation::new().unwrap(), ends[0].aborter());
    let storage = Storage::memory().unwrap();
    let _absent = ends.pop();
    std::thread::scope(|scope| {
        let options = SaveOptions::new().cancellation(Some(cancellation.clone()));
        let (mut end, location) = (ends.remove(0), Location::storage(&storage, "p"));
        let call = scope
            .spawn(move || save_at(&Context::shared().unwrap(), &state_of(0), &location, Some(&mut end), &options));
        cancellation.cancel();
        aborter.abort(ErrorKind::Cancelled, "cancelled by the host").unwrap();
        assert_eq!(call.join().unwrap().unwrap_err().kind(), ErrorKind::Cancelled);
    });
    aborter.abort(ErrorKind::Cancelled, "nobody is left").unwrap();
}

#[derive(Clone, Copy, PartialEq)]
enum At {
    Outside,
    Gate,
    Inside,
}

/// Where writes wait.
struct Gate(Mutex<At>, Condvar);

impl Gate {
    fn set(&self, at: At) {
        *self.0.lock().unwrap() = at;
        self.1.notify_all();
    }

    fn wait_for(&self, wanted: At) {
        drop(self.1.wait_while(self.0.lock().unwrap(), |at| *at != wanted).unwrap());
    }
}

/// A storage whose first write comes to the gate and waits until it is let in.
struct Gated(Arc<Gate>);

fn absent<T>() -> Result<T> {
    Err(Error::new(ErrorKind::NotFound, "nothing is there"))
}

impl HostStorage for Gated {
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
        if *self.0.0.lock().unwrap() == At::Outside {
            self.0.set(At::Gate);
        }
        self.0.wait_for(At::Inside);
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
fn a_job_is_cancelled_and_a_shutdown_says_when_it_is_late() {
    let gate = Arc::new(Gate(Mutex::new(At::Outside), Condvar::new()));
    let storage = Storage::host(Gated(Arc::clone(&gate))).unwrap();
    let context = Context::builder().threads(1).build().unwrap();
    let location = Location::storage(&storage, "p");
    let job = save_async_at(&context, state_of(0), &location, None, &SaveOptions::new()).unwrap();
    gate.wait_for(At::Gate);
    let late = context.shutdown(Some(Duration::from_millis(2)));
    job.cancel();
    gate.set(At::Inside);
    assert_eq!(late.unwrap_err().kind(), ErrorKind::DeadlineExceeded);
    assert_eq!(job.wait(None).unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(job.state(), JobState::Cancelled);
    assert_eq!(job.finish().state.tensor_names(), ["w"]);
}

#[test]
fn a_job_refuses_the_cancellation_of_calls() {
    let storage = Storage::memory().unwrap();
    let options = SaveOptions::new().cancellation(Some(Cancellation::new().unwrap()));
    let error = shardwright::save_async(state_of(0), &Location::storage(&storage, "p"), &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn progress_is_told_until_the_call_or_job_has_succeeded() {
    let storage = Storage::memory().unwrap();
    let (context, location) = (Context::shared().unwrap(), Location::storage(&storage, "p"));
    let seen: Arc<Mutex<Vec<Progress>>> = Arc::default();
    let keep = Arc::clone(&seen);
    let listener = ProgressListener::new(move |now| keep.lock().unwrap().push(now.clone()));
    let save = SaveOptions::new().progress(Some(listener.clone()));
    let load = LoadOptions::new().progress(Some(listener));
    let ended = |bytes: u64| {
        let told = std::mem::take(&mut *seen.lock().unwrap());
        let last = told.last().expect("it was told");
        assert_eq!((last.state, last.bytes_done, last.bytes_total), (JobState::Succeeded, bytes, bytes));
        assert!(told[..told.len() - 1].iter().all(|each| each.state == JobState::Running), "{told:?}");
        assert!(told.is_sorted_by_key(|each| (each.bytes_done, each.items_done, each.elapsed)), "{told:?}");
    };
    save_at(&context, &state_of(0), &location, None, &save).unwrap();
    ended(8);
    shardwright::load_at(&context, &mut state_of(0), &location, None, &load).unwrap();
    ended(8);
    let job = save_async_at(&context, state_of(0), &location, None, &save).unwrap();
    drop(save); // the job has what it needs
    job.finish().outcome.unwrap();
    ended(8);
    load_async_at(&context, state_of(0), &location, None, &load).unwrap().finish().outcome.unwrap();
    ended(8);
}

#[test]
fn a_panic_in_a_progress_listener_ends_there() {
    let storage = Storage::memory().unwrap();
    let options = SaveOptions::new().progress(Some(ProgressListener::new(|_| panic!("in a listener"))));
    let (context, location) = (Context::shared().unwrap(), Location::storage(&storage, "p"));
    save_at(&context, &state_of(0), &location, None, &options).unwrap();
}
