// SPDX-License-Identifier: Apache-2.0
//! Transports of the host: their calls, limits of time and aborts.

use shardwright::{
    Checkpoint, Collective, Context, DType, Error, ErrorKind, Gathered, HostCollective, Location, Parts, Reduction,
    Result, SaveOptions, State, Storage, TensorSpec, save_at, thread_collectives,
};
use std::sync::{Arc, Barrier, Mutex, mpsc};
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
    aborts: Vec<(ErrorKind, String)>,
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
        Err(Error::new(ErrorKind::DeadlineExceeded, "rank 1 did not come"))
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
    fn abort(&self, code: ErrorKind, message: &str) {
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
    let options = SaveOptions::new().deadline(Some(Duration::from_secs(3600)));
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
    let options = SaveOptions::new().deadline(Some(Duration::from_millis(200)));
    let (saved, told, _storage) = save_over(2, &options);
    let error = saved.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DeadlineExceeded, "{error}");
    let told = told.lock().unwrap();
    let limit = told.timeouts[0].expect("the deadline is a limit");
    assert!(limit <= Duration::from_millis(200), "{limit:?}");
    let (code, message) = &told.aborts[0];
    assert_eq!(*code, ErrorKind::DeadlineExceeded, "{message}");
    assert!(message.contains("all_reduce_i64 of collective"), "{message}");
}

/// Where the ranks of this process exchange what they bring, for one operation after the other.
struct Meeting {
    come: Barrier,
    brought: Mutex<Vec<Vec<u8>>>,
}

/// One of the ranks of a meeting; `rooted` gives it gather_v and scatter_v.
struct End {
    rank: i32,
    rooted: bool,
    meeting: Arc<Meeting>,
    calls: Arc<Mutex<Vec<&'static str>>>,
}

const ENDS: i32 = 3;

impl End {
    fn exchange(&self, name: &'static str, mine: &[u8]) -> Vec<Vec<u8>> {
        self.calls.lock().unwrap().push(name);
        self.meeting.brought.lock().unwrap()[self.rank as usize] = mine.to_vec();
        self.meeting.come.wait();
        let found = self.meeting.brought.lock().unwrap().clone();
        self.meeting.come.wait();
        found
    }
}

impl HostCollective for End {
    fn rank(&self) -> i32 {
        self.rank
    }
    fn size(&self) -> i32 {
        ENDS
    }
    fn barrier(&self, _: Option<Duration>) -> Result<()> {
        self.exchange("barrier", &[]);
        Ok(())
    }
    fn broadcast(&self, data: &mut [u8], root: i32, _: Option<Duration>) -> Result<()> {
        let found = self.exchange("broadcast", data);
        data.copy_from_slice(&found[root as usize]);
        Ok(())
    }
    fn all_gather(&self, data: &[u8], out: &mut [u8], _: Option<Duration>) -> Result<()> {
        out.copy_from_slice(&self.exchange("all_gather", data).concat());
        Ok(())
    }
    fn all_gather_v(&self, data: &[u8], out: &mut [u8], _: &[u64], _: Option<Duration>) -> Result<()> {
        out.copy_from_slice(&self.exchange("all_gather_v", data).concat());
        Ok(())
    }
    fn is_rooted(&self) -> bool {
        self.rooted
    }
    fn gather_v(&self, data: &[u8], gathered: Option<Gathered>, root: i32, _: Option<Duration>) -> Result<()> {
        assert_eq!(gathered.is_some(), self.rank == root);
        let found = self.exchange("gather_v", data);
        if let Some(gathered) = gathered {
            assert!(gathered.sizes.iter().zip(&found).all(|(size, part)| *size == part.len() as u64));
            gathered.out.copy_from_slice(&found.concat());
        }
        Ok(())
    }
    fn scatter_v(&self, parts: Option<Parts>, data: &mut [u8], root: i32, _: Option<Duration>) -> Result<()> {
        assert_eq!(parts.is_some(), self.rank == root);
        let sizes = parts.as_ref().map_or(vec![], |p| p.sizes.iter().flat_map(|size| size.to_le_bytes()).collect());
        let sizes = self.exchange("scatter_v", &sizes).swap_remove(root as usize);
        let sizes: Vec<usize> =
            sizes.chunks(8).map(|size| u64::from_le_bytes(size.try_into().unwrap()) as usize).collect();
        let all = self.exchange("scatter_v", parts.map_or(&[], |p| p.bytes)).swap_remove(root as usize);
        let begin: usize = sizes[..self.rank as usize].iter().sum();
        data.copy_from_slice(&all[begin..begin + data.len()]);
        Ok(())
    }
    fn all_reduce_i64(&self, values: &mut [i64], operation: Reduction, _: Option<Duration>) -> Result<()> {
        let mine: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let found = self.exchange("all_reduce_i64", &mine);
        for (i, value) in values.iter_mut().enumerate() {
            let column = found.iter().map(|each| i64::from_le_bytes(each[8 * i..8 * i + 8].try_into().unwrap()));
            *value = match operation {
                Reduction::Min => column.min().unwrap(),
                Reduction::Max => column.max().unwrap(),
                Reduction::Sum => column.sum(),
                other => return Err(Error::new(ErrorKind::Unimplemented, format!("{other:?} is not known"))),
            };
        }
        Ok(())
    }
    fn abort(&self, _: ErrorKind, message: &str) {
        panic!("{message}");
    }
}

/// What `of` makes of the ends carries the save.
fn saved_over(rooted: bool, of: fn(Collective) -> Result<Collective>) -> Vec<(u64, Vec<&'static str>)> {
    let meeting =
        Arc::new(Meeting { come: Barrier::new(ENDS as usize), brought: Mutex::new(vec![vec![]; ENDS as usize]) });
    let (context, storage) = (Context::shared().unwrap(), Storage::memory().unwrap());
    std::thread::scope(|scope| {
        let ranks: Vec<_> = (0..ENDS)
            .map(|rank| {
                let (meeting, context, storage) = (Arc::clone(&meeting), &context, &storage);
                scope.spawn(move || {
                    let calls = Arc::new(Mutex::new(vec![]));
                    let host = Collective::host(End { rank, rooted, meeting, calls: Arc::clone(&calls) }).unwrap();
                    let mut end = of(host).unwrap();
                    assert_eq!((end.rank(), end.size()), (rank, ENDS));
                    let location = Location::storage(storage, "p");
                    let saved = save_at(context, &owned_state(), &location, Some(&mut end), &SaveOptions::default());
                    let received = saved.unwrap().summary().unwrap().bytes_received;
                    let calls = calls.lock().unwrap().clone();
                    (received, calls)
                })
            })
            .collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

#[test]
fn a_save_uses_what_the_transport_has() {
    for rooted in [false, true] {
        for (received, calls) in saved_over(rooted, Ok) {
            assert_eq!(calls.contains(&"gather_v"), rooted, "{calls:?}");
            assert_eq!(calls.contains(&"scatter_v"), rooted, "{calls:?}");
            assert_eq!(calls.contains(&"all_gather_v"), !rooted, "{calls:?}");
            assert!(received > 0 && received <= 65536, "{received}");
        }
    }
}

#[test]
fn ranks_of_one_machine_meet_in_its_memory() {
    for (received, calls) in saved_over(false, Collective::node) {
        assert_eq!(calls, ["all_gather"]);
        assert!(received > 0 && received <= 65536, "{received}");
    }
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
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
    assert_eq!(errors[0].details()["rank"], "1");
}
