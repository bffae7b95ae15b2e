// SPDX-License-Identifier: Apache-2.0
//! Storages that a host brings.

use crate::error::{Error, ErrorKind, Result, guard, quietly};
use crate::memory::{borrowed, borrowed_mut};
use shardwright_sys::ffi;
use std::ffi::{c_char, c_void};

/// How an object is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenMode {
    /// For reading.
    Read,
    /// For writing, invisible until commit.
    Create,
    /// For writing, visible at once; ALREADY_EXISTS when the key exists.
    CreateVisible,
    /// For writing into an object that is there; storages with positional writes are asked for it.
    Update,
}

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockMode {
    /// Beside any number of other shared holders.
    Shared,
    /// Alone.
    Exclusive,
}

/// Condition of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommitCondition {
    /// None.
    None,
    /// The key must not exist.
    IfAbsent,
    /// The key must have this version.
    IfVersion(String),
}

/// What a storage can do, each by itself: `Capabilities::ATOMIC_COMMIT | Capabilities::DURABLE`. What it lacks is done
/// another way or refused, naming the capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities(pub(crate) u64);

impl Capabilities {
    /// None.
    pub const NONE: Capabilities = Capabilities(0);
    /// Objects of [`OpenMode::CreateVisible`] are written by several threads in any order.
    pub const POSITIONAL_WRITE: Capabilities = Capabilities(ffi::SHW_STORAGE_POSITIONAL_WRITE);
    /// Commit shows all of an object or nothing; a save without it is refused.
    pub const ATOMIC_COMMIT: Capabilities = Capabilities(ffi::SHW_STORAGE_ATOMIC_COMMIT);
    /// Commit takes conditions; without it only one writer may save at a path.
    pub const CONDITIONAL_COMMIT: Capabilities = Capabilities(ffi::SHW_STORAGE_CONDITIONAL_COMMIT);
    /// Several threads read one object at the same time.
    pub const CONCURRENT_READ: Capabilities = Capabilities(ffi::SHW_STORAGE_CONCURRENT_READ);
    /// Large files are written in blocks at multiples of the alignment, then truncated to their length.
    pub const DIRECT_IO: Capabilities = Capabilities(ffi::SHW_STORAGE_DIRECT_IO);
    /// Objects of [`OpenMode::Create`] are written in parts of a least size.
    pub const MULTIPART: Capabilities = Capabilities(ffi::SHW_STORAGE_MULTIPART);
    /// What was synced or committed outlives a power loss.
    pub const DURABLE: Capabilities = Capabilities(ffi::SHW_STORAGE_DURABLE);

    /// Whether all of the others are among these.
    pub fn contains(self, others: Capabilities) -> bool {
        self.0 & others.0 == others.0
    }
}

impl std::ops::BitOr for Capabilities {
    type Output = Capabilities;
    fn bitor(self, other: Capabilities) -> Capabilities {
        Capabilities(self.0 | other.0)
    }
}

/// Facts about one object.
#[derive(Clone, Debug, Default)]
pub struct ObjectStat {
    /// Bytes.
    pub size: u64,
    /// Nanoseconds since 1970-01-01 UTC.
    pub modified_ns: i64,
    /// Opaque text that changes whenever the content does, such as an ETag; empty = not offered.
    pub version: String,
}

/// A lock that a storage gave; dropping it, on any thread, gives it back.
pub type StorageLock = Box<dyn Send>;

/// A storage of the host: keys are text with `/`. Methods run on threads of the library, several at the same time. A panic in
/// the drop of the storage or of what it gave ends there: nobody waits for it.
pub trait HostStorage: Send + Sync + 'static {
    /// An open object.
    type Object: Send + Sync + 'static;
    /// Opens an object. NOT_FOUND, ALREADY_EXISTS.
    fn open(&self, key: &str, mode: OpenMode) -> Result<Self::Object>;
    /// Size, time and version of a key. NOT_FOUND.
    fn stat(&self, key: &str) -> Result<ObjectStat>;
    /// Objects whose key begins with the prefix, ascending.
    fn list(&self, prefix: &str) -> Result<Vec<(String, ObjectStat)>>;
    /// Fills `data` from `offset` on and returns how many bytes there were.
    fn read_at(&self, object: &Self::Object, offset: u64, data: &mut [u8]) -> Result<usize>;
    /// Writes all; offsets arrive ascending and gap-free unless [`Capabilities::POSITIONAL_WRITE`] or
    /// [`Capabilities::MULTIPART`] is offered.
    fn write_at(&self, object: &Self::Object, offset: u64, data: &[u8]) -> Result<()>;
    /// Bytes are durable when it returns, where [`Capabilities::DURABLE`] is offered.
    fn sync(&self, object: &Self::Object) -> Result<()>;
    /// Publishes atomically; a lost race is ABORTED.
    fn commit(&self, object: &Self::Object, condition: CommitCondition) -> Result<()>;
    /// Undoes what was written: nothing of it is visible. The object is dropped afterwards. Dropping one of
    /// [`OpenMode::Create`] that was neither committed nor aborted aborts it; one of [`OpenMode::CreateVisible`] stays.
    fn abort(&self, object: &Self::Object);
    /// Removes a key; a missing one is fine.
    fn remove(&self, key: &str) -> Result<()>;

    /// What the storage can do; asked once. A save needs [`Capabilities::ATOMIC_COMMIT`], which is all that this offers.
    fn capabilities(&self) -> Capabilities {
        Capabilities::ATOMIC_COMMIT
    }

    /// Multiple of address, offset and size of writes, a power of two, for [`Capabilities::DIRECT_IO`]; asked once.
    fn alignment(&self) -> u64 {
        1
    }

    /// Least size of a part but the last, for [`Capabilities::MULTIPART`]; asked once.
    fn part_bytes(&self) -> u64 {
        0
    }

    /// As `list`, one level: keys that go on behind the next `/` after the prefix are given once, as what they begin with up
    /// to and with it. This gives all keys, of which the library takes one of each.
    fn list_level(&self, prefix: &str) -> Result<Vec<(String, ObjectStat)>> {
        self.list(prefix)
    }

    /// Sets the length of an object behind the last write, for [`Capabilities::DIRECT_IO`].
    fn truncate(&self, object: &Self::Object, size: u64) -> Result<()> {
        let _ = (object, size);
        Err(Error::new(ErrorKind::Unimplemented, "the storage has no truncate"))
    }

    /// Free bytes where the key would live; a save that needs more fails before it writes. UNIMPLEMENTED = not offered.
    fn space(&self, key: &str) -> Result<u64> {
        Err(not_offered("space", key))
    }

    /// Takes an advisory lock without waiting; none when the lock of somebody else forbids it. Saves share the lock of a
    /// path, garbage collection has it alone. UNIMPLEMENTED = not offered: collection then needs its full grace period.
    fn lock(&self, key: &str, mode: LockMode) -> Result<Option<StorageLock>> {
        let _ = mode;
        Err(not_offered("lock", key))
    }
}

fn not_offered(method: &str, key: &str) -> Error {
    Error::new(ErrorKind::Unimplemented, format!("the storage has no {method} for '{key}'"))
}

type Err = *mut *mut ffi::shw_error;

/// Table for the library; `user` is a box that `release` frees.
pub(crate) fn vtable_of<S: HostStorage>(storage: S) -> ffi::shw_storage_vtable {
    // SAFETY: a plain struct for which all zero is valid.
    let mut table: ffi::shw_storage_vtable = unsafe { std::mem::zeroed() };
    table.struct_size = size_of::<ffi::shw_storage_vtable>() as u32;
    table.abi_major = ffi::SHW_ABI_MAJOR;
    table.abi_minor = ffi::SHW_ABI_MINOR;
    table.capabilities = storage.capabilities().0;
    table.alignment = storage.alignment();
    table.part_bytes = storage.part_bytes();
    table.name = c"rust".as_ptr();
    table.user = Box::into_raw(Box::new(storage)).cast();
    table.open = Some(open::<S>);
    table.close = Some(close::<S>);
    table.stat = Some(stat::<S>);
    table.list = Some(list::<S>);
    table.read_at = Some(read_at::<S>);
    table.write_at = Some(write_at::<S>);
    table.truncate = Some(truncate::<S>);
    table.sync = Some(sync::<S>);
    table.commit = Some(commit::<S>);
    table.abort = Some(abort::<S>);
    table.remove = Some(remove::<S>);
    table.space = Some(space::<S>);
    table.lock = Some(lock::<S>);
    table.unlock = Some(unlock);
    table.release = Some(release::<S>);
    table
}

/// # Safety
/// `user` is the box of vtable_of.
unsafe fn this<'a, S>(user: *mut c_void) -> &'a S {
    unsafe { &*user.cast::<S>() }
}

/// # Safety
/// `object` is the box of open.
unsafe fn object_of<'a, S: HostStorage>(object: *mut c_void) -> &'a S::Object {
    unsafe { &*object.cast::<S::Object>() }
}

/// # Safety
/// `key` has `size` bytes.
unsafe fn text<'a>(key: *const c_char, size: u64) -> Result<&'a str> {
    std::str::from_utf8(unsafe { borrowed(key.cast::<u8>(), size) })
        .map_err(|_| Error::new(ErrorKind::InvalidArgument, "key is not UTF-8"))
}

unsafe extern "C" fn open<S: HostStorage>(
    user: *mut c_void,
    key: *const c_char,
    key_size: u64,
    mode: i32,
    object: *mut *mut c_void,
    err: Err,
) -> ffi::shw_status {
    guard(err, || unsafe {
        let mode = match mode {
            ffi::SHW_STORAGE_READ => OpenMode::Read,
            ffi::SHW_STORAGE_CREATE => OpenMode::Create,
            ffi::SHW_STORAGE_UPDATE => OpenMode::Update,
            _ => OpenMode::CreateVisible,
        };
        let made = this::<S>(user).open(text(key, key_size)?, mode)?;
        *object = Box::into_raw(Box::new(made)).cast();
        Ok(())
    })
}

unsafe extern "C" fn close<S: HostStorage>(_: *mut c_void, object: *mut c_void) {
    quietly(|| drop(unsafe { Box::from_raw(object.cast::<S::Object>()) }));
}

unsafe extern "C" fn stat<S: HostStorage>(
    user: *mut c_void,
    key: *const c_char,
    key_size: u64,
    sink: ffi::shw_storage_list_fn,
    sink_user: *mut c_void,
    err: Err,
) -> ffi::shw_status {
    let mut taken = ffi::SHW_OK;
    let status = guard(err, || unsafe {
        let Some(sink) = sink else { return Ok(()) };
        let name = text(key, key_size)?;
        let found = this::<S>(user).stat(name)?;
        taken = sink(sink_user, &entry_of(name, &found));
        Ok(())
    });
    if status == ffi::SHW_OK { taken } else { status }
}

/// The entry borrows from both.
fn entry_of(key: &str, found: &ObjectStat) -> ffi::shw_storage_entry {
    // SAFETY: a plain struct for which all zero is valid.
    let mut entry: ffi::shw_storage_entry = unsafe { std::mem::zeroed() };
    entry.struct_size = size_of::<ffi::shw_storage_entry>() as u32;
    entry.key = key.as_ptr().cast();
    entry.key_size = key.len() as u64;
    entry.size = found.size;
    entry.modified_ns = found.modified_ns;
    entry.version = found.version.as_ptr().cast();
    entry.version_size = found.version.len() as u64;
    entry
}

unsafe extern "C" fn list<S: HostStorage>(
    user: *mut c_void,
    prefix: *const c_char,
    prefix_size: u64,
    delimiter: i32,
    sink: ffi::shw_storage_list_fn,
    sink_user: *mut c_void,
    err: Err,
) -> ffi::shw_status {
    let mut stopped = ffi::SHW_OK;
    let status = guard(err, || unsafe {
        let Some(sink) = sink else { return Ok(()) };
        let prefix = text(prefix, prefix_size)?;
        let all = delimiter == ffi::SHW_STORAGE_NO_DELIMITER;
        let storage = this::<S>(user);
        for (key, found) in if all { storage.list(prefix)? } else { storage.list_level(prefix)? } {
            stopped = sink(sink_user, &entry_of(&key, &found));
            if stopped != ffi::SHW_OK {
                break;
            }
        }
        Ok(())
    });
    if status == ffi::SHW_OK { stopped } else { status }
}

unsafe extern "C" fn read_at<S: HostStorage>(
    user: *mut c_void,
    object: *mut c_void,
    offset: u64,
    data: *mut c_void,
    size: u64,
    done: *mut u64,
    err: Err,
) -> ffi::shw_status {
    guard(err, || unsafe {
        let data = borrowed_mut(data.cast::<u8>(), size);
        let count = this::<S>(user).read_at(object_of::<S>(object), offset, data)?;
        if count > data.len() {
            let text = format!("read_at gave {count} as the number of bytes; it was asked for {size}");
            return Err(Error::new(ErrorKind::Internal, text));
        }
        *done = count as u64;
        if count < data.len() {
            return Err(Error::new(ErrorKind::OutOfRange, format!("the object ends {count} bytes after {offset}")));
        }
        Ok(())
    })
}

unsafe extern "C" fn write_at<S: HostStorage>(
    user: *mut c_void,
    object: *mut c_void,
    offset: u64,
    data: *const c_void,
    size: u64,
    err: Err,
) -> ffi::shw_status {
    guard(err, || unsafe {
        this::<S>(user).write_at(object_of::<S>(object), offset, borrowed(data.cast::<u8>(), size))
    })
}

unsafe extern "C" fn truncate<S: HostStorage>(
    user: *mut c_void,
    object: *mut c_void,
    size: u64,
    err: Err,
) -> ffi::shw_status {
    guard(err, || unsafe { this::<S>(user).truncate(object_of::<S>(object), size) })
}

unsafe extern "C" fn sync<S: HostStorage>(user: *mut c_void, object: *mut c_void, err: Err) -> ffi::shw_status {
    guard(err, || unsafe { this::<S>(user).sync(object_of::<S>(object)) })
}

unsafe extern "C" fn commit<S: HostStorage>(
    user: *mut c_void,
    object: *mut c_void,
    condition: i32,
    version: *const c_char,
    version_size: u64,
    err: Err,
) -> ffi::shw_status {
    guard(err, || unsafe {
        let condition = match condition {
            ffi::SHW_COMMIT_IF_ABSENT => CommitCondition::IfAbsent,
            ffi::SHW_COMMIT_IF_VERSION => CommitCondition::IfVersion(text(version, version_size)?.to_owned()),
            _ => CommitCondition::None,
        };
        this::<S>(user).commit(object_of::<S>(object), condition)
    })
}

unsafe extern "C" fn abort<S: HostStorage>(user: *mut c_void, object: *mut c_void) {
    quietly(|| unsafe { this::<S>(user).abort(object_of::<S>(object)) });
}

unsafe extern "C" fn remove<S: HostStorage>(
    user: *mut c_void,
    key: *const c_char,
    key_size: u64,
    err: Err,
) -> ffi::shw_status {
    guard(err, || unsafe { this::<S>(user).remove(text(key, key_size)?) })
}

unsafe extern "C" fn space<S: HostStorage>(
    user: *mut c_void,
    key: *const c_char,
    key_size: u64,
    free_bytes: *mut u64,
    err: Err,
) -> ffi::shw_status {
    guard(err, || unsafe {
        *free_bytes = this::<S>(user).space(text(key, key_size)?)?;
        Ok(())
    })
}

unsafe extern "C" fn lock<S: HostStorage>(
    user: *mut c_void,
    key: *const c_char,
    key_size: u64,
    mode: i32,
    lock: *mut *mut c_void,
    err: Err,
) -> ffi::shw_status {
    let mut held = false;
    let status = guard(err, || unsafe {
        let mode = if mode == ffi::SHW_LOCK_SHARED { LockMode::Shared } else { LockMode::Exclusive };
        if let Some(taken) = this::<S>(user).lock(text(key, key_size)?, mode)? {
            *lock = Box::into_raw(Box::new(taken)).cast();
            held = true;
        }
        Ok(())
    });
    if status == ffi::SHW_OK && !held { ffi::SHW_PENDING } else { status }
}

unsafe extern "C" fn unlock(_: *mut c_void, lock: *mut c_void) {
    quietly(|| drop(unsafe { Box::from_raw(lock.cast::<StorageLock>()) }));
}

unsafe extern "C" fn release<S: HostStorage>(user: *mut c_void) {
    // SAFETY: the library calls this once, after the last object was closed.
    quietly(|| drop(unsafe { Box::from_raw(user.cast::<S>()) }));
}
