// SPDX-License-Identifier: Apache-2.0
//! Transports of the host: their calls, limits of time and aborts.

use shardwright::{
    Checkpoint, Collective, Context, DType, Error, HostCollective, Location, Reduction, Result, SaveOptions, State,
    StatusCode, Storage, TensorSpec, save_at, thread_collectives,
};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

fn owned_state() -> State<'static> {
    let mut state = State::new();
    state.add_owned(&TensorSpec::whole("w", DType::from_name("uint8").unwrap(), &[4]), &[1, 2, 3, 4]).unwrap();
    state
}

/// What a transport was told.
#[derive(Default)]
struct Told {
    timeouts: Vec<Option<Duration>>,
    aborts: Vec<(StatusCode, String)>,
}

/// Rank 0 of `ranks`; where there are two, the other one never comes.
struct FirstRank {
    ranks: i32,
    told: Arc<Mutex<Told>>,
}

impl FirstRank {
    fn meet(&self, timeout: Option<Duration>) -> Result<()> {
        self.told.lock().unwrap().timeouts.push(timeout);
        if self.ranks == 1 {
            return Ok(());
        }
        let (_other_rank, message) = mpsc::channel::<()>();
        let _ = message.recv_timeout(timeout.unwrap_or(Duration::from_secs(60)));
        Err(Error::new(StatusCode::DeadlineExceeded, "rank 1 did not come"))
    }
}

impl HostCollective for FirstRank {
    fn rank(&self) -> i32 {
        0
    }
    fn size(&self) -> i32 {
        self.ranks
    }
    fn barrier(&self, timeout: Option<Duration>) -> Result<()> {
        self.meet(timeout)
    }
    fn broadcast(&self, _: &mut [u8], _: i32, timeout: Option<Duration>) -> Result<()> {
        self.meet(timeout)
    }
    fn all_gather(&self, data: &[u8], out: &mut [u8], timeout: Option<Duration>) -> Result<()> {
        self.meet(timeout)?;
        out.copy_from_slice(data);
        Ok(())
    }
    fn all_gather_v(&self, data: &[u8], out: &mut [u8], _: &[u64], timeout: Option<Duration>) -> Result<()> {
        self.all_gather(data, out, timeout)
    }
    fn all_reduce_i64(&self, _: &mut [i64], operation: Reduction, timeout: Option<Duration>) -> Result<()> {
        assert!(matches!(operation, Reduction::Min | Reduction::Max | Reduction::Sum));
        self.meet(timeout)
    }
    fn abort(&self, code: StatusCode, message: &str) {
        self.told.lock().unwrap().aborts.push((code, message.to_owned()));
    }
}

fn save_over(ranks: i32, options: &SaveOptions) -> (Result<()>, Arc<Mutex<Told>>, Storage) {
    let told = Arc::new(Mutex::new(Told::default()));
    let mut collective = Collective::host(FirstRank { ranks, told: Arc::clone(&told) }).unwrap();
    let (context, storage) = (Context::shared().unwrap(), Storage::memory().unwrap());
    let location = Location::storage(&storage, "p");
    let saved = save_at(&context, &owned_state(), &location, Some(&mut collective), options).map(drop);
    (saved, told, storage)
}

#[test]
fn a_transport_of_the_host_carries_a_save() {
    let options = SaveOptions { deadline: Some(Duration::from_secs(3600)), ..SaveOptions::default() };
    let (saved, told, storage) = save_over(1, &options);
    saved.unwrap();
    let checkpoint = Checkpoint::open_at(&Context::shared().unwrap(), &Location::storage(&storage, "p")).unwrap();
    assert_eq!(checkpoint.keys().unwrap(), ["w"]);
    let told = told.lock().unwrap();
    assert!(told.aborts.is_empty());
    assert!(told.timeouts.iter().all(|t| t.is_some_and(|t| t <= Duration::from_secs(3600))), "{:?}", told.timeouts);
}

#[test]
fn a_transport_keeps_the_limit_of_the_call_and_hears_why_it_is_aborted() {
    let options = SaveOptions { deadline: Some(Duration::from_millis(200)), ..SaveOptions::default() };
    let (saved, told, _storage) = save_over(2, &options);
    let error = saved.unwrap_err();
    assert_eq!(error.code(), StatusCode::DeadlineExceeded, "{error}");
    let told = told.lock().unwrap();
    let limit = told.timeouts[0].expect("the deadline is a limit");
    assert!(limit <= Duration::from_millis(200), "{limit:?}");
    let (code, message) = &told.aborts[0];
    assert_eq!(*code, StatusCode::DeadlineExceeded, "{message}");
    assert!(message.contains("all_gather of collective"), "{message}");
}

#[test]
fn a_rank_that_cannot_call_tells_the_others() {
    let mut ranks = thread_collectives(2).unwrap();
    let (mut second, mut first) = (ranks.pop().unwrap(), ranks.pop().unwrap());
    let (context, storage) = (Context::shared().unwrap(), Storage::memory().unwrap());
    let errors = std::thread::scope(|scope| {
        let good = scope.spawn(|| {
            let location = Location::storage(&storage, "p");
            save_at(&context, &owned_state(), &location, Some(&mut first), &SaveOptions::default()).unwrap_err()
        });
        let location = Location::path("a path\0with a NUL");
        let bad = save_at(&context, &owned_state(), &location, Some(&mut second), &SaveOptions::default()).unwrap_err();
        [good.join().unwrap(), bad]
    });
    for error in &errors {
        assert_eq!(error.code(), StatusCode::InvalidArgument, "{error}");
    }
    assert_eq!(errors[0].details()["rank"], "1");
}
