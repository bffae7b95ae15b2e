// SPDX-License-Identifier: Apache-2.0
//! The calls that users meet first.

use crate::checkpoint::{Checkpoint, Object};
use crate::collective::Collective;
use crate::context::Context;
use crate::error::Result;
use crate::info::Steps;
use crate::job::Job;
use crate::limits::span_ns;
use crate::options::{CSaveOptions, LoadOptions, OpenOptions, SaveOptions, options};
use crate::progress::ProgressListener;
use crate::report::Report;
use crate::state::State;
use crate::storage::Storage;
use crate::tensor::Tensor;
use crate::text::{Parts, c_path, c_text};
use shardwright_sys::{ffi, raw};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A path of the file system, or a key prefix in a storage.
#[derive(Clone, Debug)]
pub struct Location<'a> {
    storage: Option<&'a Storage>,
    path: PathBuf,
}

impl<'a> Location<'a> {
    /// A path of the file system.
    pub fn path(path: impl AsRef<Path>) -> Location<'a> {
        Location { storage: None, path: path.as_ref().to_owned() }
    }

    /// A key prefix in a storage.
    pub fn storage(storage: &'a Storage, prefix: &str) -> Location<'a> {
        Location { storage: Some(storage), path: PathBuf::from(prefix) }
    }

    /// A place below this one, in the same storage.
    pub fn join(&self, part: impl AsRef<Path>) -> Location<'a> {
        Location { storage: self.storage, path: self.path.join(part) }
    }

    /// The path, or the key prefix.
    pub fn as_path(&self) -> &Path {
        &self.path
    }
}

/// Storage handle and text of a location.
pub(crate) struct CLocation {
    pub storage: *mut ffi::shw_storage,
    pub path: CString,
}

impl CLocation {
    pub fn of(location: &Location) -> Result<CLocation> {
        let storage = location.storage.map_or(std::ptr::null_mut(), Storage::handle);
        Ok(CLocation { storage, path: c_path(&location.path)? })
    }
}

fn collective_handle(collective: Option<&mut Collective>) -> *mut ffi::shw_collective {
    collective.map_or(std::ptr::null_mut(), |c| c.handle())
}

/// What is done before a call that ranks make together: when it fails, the other ranks are told, so that they fail at once
/// instead of waiting for this one. The library does so itself from there on.
fn or_decline<T>(call: i32, collective: *mut ffi::shw_collective, prepare: impl FnOnce() -> Result<T>) -> Result<T> {
    prepare().inspect_err(|error| {
        if !collective.is_null() {
            // SAFETY: the handle lives for the call. That the others cannot be told does not change what failed here.
            let _ = unsafe { raw::collective_decline(collective, call, error.status(), error.message().as_bytes()) };
        }
    })
}

/// Release of the loaded library.
pub fn version() -> String {
    // SAFETY: static text.
    unsafe { CStr::from_ptr(ffi::shw_version_string()) }.to_string_lossy().into_owned()
}

/// Saves the state as one checkpoint; durable when it returns. The previous one stays until the commit.
pub fn save(state: &State, path: impl AsRef<Path>, options: &SaveOptions) -> Result<Report> {
    save_at(&Context::shared()?, state, &Location::path(path), None, options)
}

/// Fills the state from the checkpoint at a path.
pub fn load_into(state: &mut State, path: impl AsRef<Path>, options: &LoadOptions) -> Result<Report> {
    load_at(&Context::shared()?, state, &Location::path(path), None, options)
}

/// Everything that a checkpoint holds.
#[derive(Debug)]
#[non_exhaustive]
pub struct Loaded {
    /// Name to tensor.
    pub tensors: BTreeMap<String, Tensor>,
    /// Name to byte object.
    pub objects: BTreeMap<String, Object>,
}

/// Reads a whole checkpoint without a target; of rank_local entries those of rank 0.
pub fn load(path: impl AsRef<Path>) -> Result<Loaded> {
    load_all(&Context::shared()?, &Location::path(path), None, &OpenOptions::default())
}

/// As [`load`] with a context and any storage; of rank_local entries those of the collective's rank.
pub fn load_all(
    context: &Context,
    location: &Location,
    collective: Option<&Collective>,
    options: &OpenOptions,
) -> Result<Loaded> {
    let rank = collective.map_or(0, Collective::rank);
    let checkpoint = Checkpoint::open_with(context, location, options)?.for_rank(rank);
    let mut tensors = BTreeMap::new();
    for name in checkpoint.keys()? {
        let tensor = checkpoint.read(&name)?;
        tensors.insert(name, tensor);
    }
    Ok(Loaded { tensors, objects: checkpoint.objects()? })
}

/// As [`save`] with a context, any storage and a collective (none = one rank).
pub fn save_at(
    context: &Context,
    state: &State,
    location: &Location,
    collective: Option<&mut Collective>,
    options: &SaveOptions,
) -> Result<Report> {
    let collective = collective_handle(collective);
    let (at, c) = or_decline(ffi::SHW_CALL_SAVE, collective, || Ok((CLocation::of(location)?, options.to_c()?)))?;
    // SAFETY: handles, text and options live for the call.
    let report =
        unsafe { raw::save(context.handle(), state.handle(), at.storage, at.path.as_ptr(), collective, &c.options) }?;
    Ok(Report::new(report))
}

/// As [`load_into`] with a context, any storage and a collective (none = one rank).
pub fn load_at(
    context: &Context,
    state: &mut State,
    location: &Location,
    collective: Option<&mut Collective>,
    options: &LoadOptions,
) -> Result<Report> {
    let collective = collective_handle(collective);
    let (at, c) = or_decline(ffi::SHW_CALL_LOAD, collective, || Ok((CLocation::of(location)?, options.to_c()?)))?;
    // SAFETY: handles, text and options live for the call.
    let outcome =
        unsafe { raw::load(context.handle(), state.handle(), at.storage, at.path.as_ptr(), collective, &c.options) };
    state.loaded(outcome.map(Report::new).map_err(Into::into))
}

/// Saves in the background, with the shared context and one rank. The job owns the state and gives it back.
pub fn save_async(state: State<'static>, location: &Location, options: &SaveOptions) -> Result<Job> {
    save_async_at(&Context::shared()?, state, location, None, options)
}

/// As [`save_async`] with a context and a collective (none = one rank), which the job owns and gives back. The jobs of a
/// context run one after the other. A failure here, before there is a job, is told to the other ranks; state and collective
/// go with it.
pub fn save_async_at(
    context: &Context,
    state: State<'static>,
    location: &Location,
    collective: Option<Collective>,
    options: &SaveOptions,
) -> Result<Job> {
    start_save(context, state, collective, &options.progress, || Ok((CLocation::of(location)?, options.to_c()?)))
}

/// Saves in the background to where, and how, `prepare` says, which may also add to the state.
pub(crate) fn start_save(
    context: &Context,
    state: State<'static>,
    collective: Option<Collective>,
    progress: &Option<ProgressListener>,
    prepare: impl FnOnce() -> Result<(CLocation, CSaveOptions)>,
) -> Result<Job> {
    let end = collective.as_ref().map_or(std::ptr::null_mut(), Collective::handle);
    let (at, c) = or_decline_job(ffi::SHW_CALL_SAVE, context, end, prepare)?;
    // SAFETY: the state's memory is owned by it, and the job keeps it and the collective until it is terminal.
    let handle =
        unsafe { raw::save_async(context.handle(), state.handle(), at.storage, at.path.as_ptr(), end, &c.options) }?;
    Ok(Job::new(handle, state, collective, progress, context.clone()))
}

/// Makes the memory into which jobs of the shared context copy such a state, so that the first copy is as fast as later ones.
/// What counts is the size of the tensors.
pub fn prepare(state: &State) -> Result<()> {
    prepare_at(&Context::shared()?, state)
}

/// As [`prepare`] for the jobs of a context.
pub fn prepare_at(context: &Context, state: &State) -> Result<()> {
    // SAFETY: both live for the call.
    Ok(unsafe { raw::prepare(context.handle(), state.handle()) }?)
}

/// Loads in the background, with the shared context and one rank. The job owns the state and gives it back.
pub fn load_async(state: State<'static>, location: &Location, options: &LoadOptions) -> Result<Job> {
    load_async_at(&Context::shared()?, state, location, None, options)
}

/// As [`load_async`] with a context and a collective (none = one rank), as [`save_async_at`] does it.
pub fn load_async_at(
    context: &Context,
    state: State<'static>,
    location: &Location,
    collective: Option<Collective>,
    options: &LoadOptions,
) -> Result<Job> {
    let end = collective.as_ref().map_or(std::ptr::null_mut(), Collective::handle);
    let prepare = || Ok((CLocation::of(location)?, options.to_c()?));
    let (at, c) = or_decline_job(ffi::SHW_CALL_LOAD, context, end, prepare)?;
    // SAFETY: as in save_async_at.
    let handle =
        unsafe { raw::load_async(context.handle(), state.handle(), at.storage, at.path.as_ptr(), end, &c.options) }?;
    Ok(Job::new(handle, state, collective, &options.progress, context.clone()))
}

/// As or_decline before a job of the context, in its turn.
fn or_decline_job<T>(
    call: i32,
    context: &Context,
    collective: *mut ffi::shw_collective,
    prepare: impl FnOnce() -> Result<T>,
) -> Result<T> {
    prepare().inspect_err(|error| {
        if collective.is_null() {
            return;
        }
        let message = error.message().as_bytes();
        // SAFETY: handles and text live for the call; the job goes on without its handle.
        unsafe {
            let told = raw::collective_decline_async(context.handle(), collective, call, error.status(), message);
            ffi::shw_job_release(told.unwrap_or(std::ptr::null_mut()));
        }
    })
}

options! {
/// Options of [`collect_garbage`](crate::collect_garbage).
pub struct GarbageOptions {
    /// Generations that changed within this span stay; None = 24 hours, zero = none stays for its age.
    pub grace: Option<Duration>,
    /// Whether anything is removed; without it the report only says what would be.
    pub apply: bool,
}
}

/// Lists generations that no manifest names, and removes them with `apply`.
pub fn collect_garbage(location: &Location, options: &GarbageOptions) -> Result<Report> {
    let context = Context::shared()?;
    let at = CLocation::of(location)?;
    let grace_ns = options.grace.map_or(0, |grace| if grace.is_zero() { -1 } else { span_ns(Some(grace)) });
    let flags = if options.apply { ffi::SHW_GC_APPLY } else { 0 };
    // SAFETY: handles and text live for the call.
    Ok(Report::new(unsafe { raw::checkpoint_gc(context.handle(), at.storage, at.path.as_ptr(), grace_ns, flags) }?))
}

options! {
/// Options of [`remove_entries`](crate::remove_entries).
pub struct RemoveOptions {
    /// Names end behind the prefix, or go on with "." or "/", so that "layer1" has no "layer10".
    pub whole_parts: bool,
    /// Whether anything is removed; without it the report only says what would be.
    pub apply: bool,
}
}

/// Finds (with `apply` removes) tensors and objects of a checkpoint of torch DCP or Megatron whose names begin with `prefix`,
/// and the files that hold nothing else.
///
/// The report's `removed` has their names, its summary counts the files, and its JSON has the bytes of both. The index without
/// the entries, which loses nothing else, is durable before a file goes; digests and integrity.json follow. What shares its
/// file with something else stays there and is in no index. Killed, the next call finishes it, whatever its prefix. NOT_FOUND
/// also when no name begins so, UNIMPLEMENTED for other formats, UNAVAILABLE while a save runs there.
///
/// ```no_run
/// use shardwright::{Location, RemoveOptions, remove_entries};
///
/// let run = Location::path("run/iter_0001000");
/// println!("would go: {:?}", remove_entries(&run, "optimizer.", &RemoveOptions::new())?.removed());
/// remove_entries(&run, "optimizer.", &RemoveOptions::new().apply(true))?;
/// # Ok::<(), shardwright::Error>(())
/// ```
pub fn remove_entries(location: &Location, prefix: &str, options: &RemoveOptions) -> Result<Report> {
    let context = Context::shared()?;
    let at = CLocation::of(location)?;
    let names = c_text("prefix", prefix)?;
    let apply = if options.apply { ffi::SHW_REMOVE_APPLY } else { 0 };
    let whole_parts = if options.whole_parts { ffi::SHW_REMOVE_WHOLE_PARTS } else { 0 };
    // SAFETY: handles and texts live for the call.
    Ok(Report::new(unsafe {
        raw::checkpoint_remove(context.handle(), at.storage, at.path.as_ptr(), names.as_ptr(), apply | whole_parts)
    }?))
}

/// The newest whole step of a run directory (step-NNNNNNNN directories below `run`).
///
/// Steps that are damaged or were never committed are passed over with a warning in the log. NOT_FOUND when no step is
/// whole; when a step cannot be looked at, that is the failure: an older one does not stand in for it.
pub fn latest<'a>(run: &Location<'a>) -> Result<Location<'a>> {
    let context = Context::shared()?;
    let at = CLocation::of(run)?;
    // SAFETY: handles and text live for the call.
    let parts = Parts::new(unsafe { raw::checkpoint_latest(context.handle(), at.storage, at.path.as_ptr()) }?);
    Ok(Location { storage: run.storage, path: PathBuf::from(OsString::from_vec(parts.bytes().to_vec())) })
}

/// What the pickles at a file, or below a directory, would import and call if they were unpickled; nothing of them is. One
/// JSON object as text: `globals`, `unknown`, `failures`, `unread`, `files`, `pickles`, `notes`. NOT_FOUND when nothing is
/// there.
pub fn scan_pickles(location: &Location) -> Result<String> {
    let context = Context::shared()?;
    let at = CLocation::of(location)?;
    // SAFETY: handles and text live for the call.
    let parts = Parts::new(unsafe { raw::scan_pickles(context.handle(), at.storage, at.path.as_ptr()) }?);
    Ok(String::from_utf8_lossy(&parts.bytes()).into_owned())
}

/// Writes files with pickles once more, with None in place of what is not known; the source is only read. Of a directory,
/// indexes and other files with pickles are written, data files stay where they are, and an index leaves out entries whose
/// items are not clean. One JSON object as text: `files`, each with `file`, `replaced` and `left_out`.
pub fn clean_pickles(source: &Location, target: &Location) -> Result<String> {
    let context = Context::shared()?;
    let (from, to) = (CLocation::of(source)?, CLocation::of(target)?);
    // SAFETY: handles and text live for the call.
    let parts = Parts::new(unsafe {
        raw::clean_pickles(context.handle(), from.storage, from.path.as_ptr(), to.storage, to.path.as_ptr())
    }?);
    Ok(String::from_utf8_lossy(&parts.bytes()).into_owned())
}

/// Checkpoints of a run directory. NOT_FOUND when there is none.
pub fn list_steps(location: &Location) -> Result<Steps> {
    let context = Context::shared()?;
    let at = CLocation::of(location)?;
    // SAFETY: handles and text live for the call.
    let parts = Parts::new(unsafe { raw::checkpoint_list_steps(context.handle(), at.storage, at.path.as_ptr()) }?);
    Steps::of(&String::from_utf8_lossy(&parts.bytes()))
}
