// SPDX-License-Identifier: Apache-2.0
//! Storages of the host that offer what is optional: free space and locks.

use shardwright::{
    Capabilities, CommitCondition, Context, DType, Error, ErrorKind, GarbageOptions, HostStorage, Location, LockMode,
    ObjectStat, OpenMode, Report, Result, SaveOptions, State, Storage, StorageLock, TensorSpec, collect_garbage,
    save_at,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the test sets and sees.
struct Control {
    free_bytes: u64,
    locks_held: AtomicI32,
    locks_taken: AtomicI32,
    modes: Mutex<Vec<LockMode>>,
}

/// Whole objects in memory.
struct Offering {
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
    control: Arc<Control>,
}

/// An object that is written, or a copy of one that is read.
struct Open {
    key: String,
    bytes: Mutex<Vec<u8>>,
}

/// Gives the lock back.
struct Held(Arc<Control>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.locks_held.fetch_sub(1, Ordering::SeqCst);
    }
}

impl HostStorage for Offering {
    type Object = Open;
    fn open(&self, key: &str, mode: OpenMode) -> Result<Open> {
        let found = self.objects.lock().unwrap().get(key).cloned();
        let bytes = match (mode, found) {
            (OpenMode::Read, None) => return Err(Error::new(ErrorKind::NotFound, key)),
            (OpenMode::Read, Some(bytes)) => bytes,
            _ => Vec::new(),
        };
        Ok(Open { key: key.to_owned(), bytes: Mutex::new(bytes) })
    }
    fn stat(&self, key: &str) -> Result<ObjectStat> {
        match self.objects.lock().unwrap().get(key) {
            Some(bytes) => Ok(ObjectStat { size: bytes.len() as u64, ..ObjectStat::default() }),
            None => Err(Error::new(ErrorKind::NotFound, key)),
        }
    }
    fn list(&self, prefix: &str) -> Result<Vec<(String, ObjectStat)>> {
        let objects = self.objects.lock().unwrap();
        let found = objects.iter().filter(|(key, _)| key.starts_with(prefix));
        Ok(found.map(|(key, b)| (key.clone(), ObjectStat { size: b.len() as u64, ..ObjectStat::default() })).collect())
    }
    fn read_at(&self, object: &Open, offset: u64, data: &mut [u8]) -> Result<usize> {
        let bytes = object.bytes.lock().unwrap();
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(data.len());
        data[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
    fn write_at(&self, object: &Open, offset: u64, data: &[u8]) -> Result<()> {
        let mut bytes = object.bytes.lock().unwrap();
        bytes.resize(offset as usize, 0);
        bytes.extend_from_slice(data);
        Ok(())
    }
    fn sync(&self, _: &Open) -> Result<()> {
        Ok(())
    }
    fn commit(&self, object: &Open, _: CommitCondition) -> Result<()> {
        self.objects.lock().unwrap().insert(object.key.clone(), object.bytes.lock().unwrap().clone());
        Ok(())
    }
    fn abort(&self, _: &Open) {}
    fn remove(&self, key: &str) -> Result<()> {
        self.objects.lock().unwrap().remove(key);
        Ok(())
    }
    fn capabilities(&self) -> Capabilities {
        Capabilities::ATOMIC_COMMIT | Capabilities::MULTIPART | Capabilities::DURABLE
    }
    fn part_bytes(&self) -> u64 {
        1 << 20
    }
    fn space(&self, _: &str) -> Result<u64> {
        Ok(self.control.free_bytes)
    }
    fn lock(&self, _: &str, mode: LockMode) -> Result<Option<StorageLock>> {
        self.control.modes.lock().unwrap().push(mode);
        if self.control.locks_held.compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            return Ok(None);
        }
        self.control.locks_taken.fetch_add(1, Ordering::SeqCst);
        Ok(Some(Box::new(Held(Arc::clone(&self.control)))))
    }
}

fn storage(free_bytes: u64) -> (Storage, Arc<Control>) {
    let control = Arc::new(Control {
        free_bytes,
        locks_held: AtomicI32::new(0),
        locks_taken: AtomicI32::new(0),
        modes: Mutex::default(),
    });
    let offering = Offering { objects: Mutex::default(), control: Arc::clone(&control) };
    (Storage::host(offering).unwrap(), control)
}

fn save(storage: &Storage) -> Result<Report> {
    let mut state = State::new();
    state.add_owned(&TensorSpec::whole("w", DType::from_name("uint8").unwrap(), &[4]), &[1, 2, 3, 4])?;
    save_at(&Context::shared()?, &state, &Location::storage(storage, "p"), None, &SaveOptions::default())
}

#[test]
fn a_save_that_does_not_fit_fails_before_it_writes() {
    let (storage, _) = storage(100);
    let error = save(&storage).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ResourceExhausted, "{error}");
    assert_eq!(error.details()["found"], "100");
    assert!(storage.list("").unwrap().is_empty());
}

#[test]
fn what_a_storage_offers_is_what_its_methods_say() {
    let (storage, _) = storage(1 << 40);
    assert!(storage.capabilities().contains(Capabilities::MULTIPART | Capabilities::DURABLE));
    assert!(!storage.capabilities().contains(Capabilities::POSITIONAL_WRITE));
    let report = save(&storage).unwrap();
    assert!(report.json().contains("\"durability\":\"full\""), "{}", report.json());
    assert_eq!(storage.list_level("").unwrap(), ["p/"]);
}

#[test]
fn a_save_takes_the_lock_and_gives_it_back() {
    let (storage, control) = storage(1 << 40);
    save(&storage).unwrap();
    assert_eq!(control.locks_taken.load(Ordering::SeqCst), 1);
    assert_eq!(control.locks_held.load(Ordering::SeqCst), 0);
}

#[test]
fn garbage_collection_keeps_away_from_a_lock_that_is_held() {
    let (storage, control) = storage(1 << 40);
    save(&storage).unwrap();
    storage.put("p/g-0000000000000000/rank-00000.shw", b"left over").unwrap();
    let location = Location::storage(&storage, "p");
    control.locks_held.store(1, Ordering::SeqCst);
    let report = collect_garbage(&location, &GarbageOptions::new().grace(Some(Duration::ZERO)).apply(true)).unwrap();
    assert!(report.json().contains("a save is running"), "{}", report.json());
    control.locks_held.store(0, Ordering::SeqCst);
    let report = collect_garbage(&location, &GarbageOptions::new().grace(Some(Duration::ZERO)).apply(true)).unwrap();
    assert!(!report.json().contains("a save is running"), "{}", report.json());
    assert_eq!(control.locks_taken.load(Ordering::SeqCst), 2);
    assert_eq!(*control.modes.lock().unwrap(), [LockMode::Shared, LockMode::Exclusive, LockMode::Exclusive]);
    assert_eq!(control.locks_held.load(Ordering::SeqCst), 0);
}
