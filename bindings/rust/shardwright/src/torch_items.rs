// SPDX-License-Identifier: Apache-2.0
//! Items of torch.distributed.checkpoint for hosts whose own planner and index say which they are, such as a storage writer
//! of a trainer that keeps torch's `.metadata`. A save with [`Format::TorchDcp`](crate::Format) does all of this by itself.
//!
//! All ranks agree on a generation, 32 lower-case hex digits that nobody has used before. Each rank writes its entries into
//! files of its own; one rank makes the index and puts the digests of what all wrote beside it:
//!
//! ```
//! use shardwright::{Context, Location, SaveOptions, State, torch_items};
//!
//! # let folder = std::env::temp_dir().join(format!("shw-torch-items-{}", std::process::id()));
//! let weights = [1.0f32, 2.0, 3.0, 4.0];
//! let mut state = State::new();
//! state.add("weight", &[2, 2], &weights)?;
//! let name = "__0_0.0123456789abcdef0123456789abcdef.distcp";
//! let (context, place) = (Context::shared()?, Location::path(&folder));
//! let written = torch_items::write(&context, &state, &place, name, &SaveOptions::default())?;
//! assert_eq!(written.places[0].name, "weight");
//! // The index has these offsets and lengths; its bytes, and the results of all ranks, go to write_digests.
//! # std::fs::remove_dir_all(&folder).unwrap();
//! # Ok::<(), shardwright::Error>(())
//! ```

use crate::context::Context;
use crate::error::{Error, ErrorKind, Result};
use crate::options::SaveOptions;
use crate::state::State;
use crate::text::{Blob, Parts};
use crate::workflow::{CLocation, Location};
use shardwright_sys::raw;
use std::ffi::CString;

/// Where an item lies in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ItemPlace {
    /// Name of the entry, the key of the index.
    pub name: String,
    /// First byte in the file.
    pub offset: u64,
    /// Bytes of the item.
    pub length: u64,
}

/// What a file of items holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenItems {
    /// Every item: of each tensor its boxes in their order, then the objects.
    pub places: Vec<ItemPlace>,
    /// For [`write_digests`]; may travel to another rank.
    pub result: Vec<u8>,
}

/// Writes all of a state into a new file of items of a directory, which is made where it is not there; no other rank takes
/// part, and nothing refers to the file yet.
///
/// `name` is `__R_K.GENERATION.distcp` of rank R, its K-th file; the name of an entry is its key in the index. Of the options
/// durability, digests, file_mode, threads, memory_budget, deadline and cancellation count. INVALID_ARGUMENT for another
/// name, ALREADY_EXISTS for a file that is there, UNIMPLEMENTED for dtypes that torch has not; after a failure nothing of the
/// file is left.
pub fn write(
    context: &Context,
    state: &State,
    location: &Location,
    name: &str,
    options: &SaveOptions,
) -> Result<WrittenItems> {
    let (at, how) = (CLocation::of(location)?, options.to_c()?);
    let file = CString::new(name).map_err(|_| {
        Error::new(ErrorKind::InvalidArgument, "the name of the file has a NUL").with_detail("parameter", "name")
    })?;
    // SAFETY: handles, texts and options live for the call.
    let parts = Parts::new(unsafe {
        raw::torch_items_write(
            context.handle(),
            state.handle(),
            at.storage,
            at.path.as_ptr(),
            file.as_ptr(),
            &how.options,
        )
    }?);
    let mut names = state.tensor_names();
    names.extend(state.object_names());
    let place = |row: &[u64]| ItemPlace { name: names[row[0] as usize].clone(), offset: row[1], length: row[2] };
    Ok(WrittenItems { places: parts.values(0).chunks_exact(3).map(place).collect(), result: parts.part(1) })
}

/// Puts the digests of an index beside it, before or after `.metadata` itself is put in place.
///
/// `index` are the very bytes that `.metadata` has or is going to have; `results` are those of [`write()`], of all ranks and
/// files. Items of the index that are in none of them have no digests. Of the options durability counts. INVALID_ARGUMENT for
/// results of several generations and for none, DATA_LOSS for bytes that are no index.
pub fn write_digests<R: AsRef<[u8]>>(
    context: &Context,
    location: &Location,
    index: &[u8],
    results: &[R],
    options: &SaveOptions,
) -> Result<()> {
    let (at, how, blob) = (CLocation::of(location)?, options.to_c()?, Blob::of(results));
    // SAFETY: handles, texts, slices and options live for the call.
    Ok(unsafe {
        raw::torch_digests_write(
            context.handle(),
            at.storage,
            at.path.as_ptr(),
            index,
            blob.bytes.as_ptr().cast(),
            blob.offsets.as_ptr(),
            blob.count(),
            &how.options,
        )
    }?)
}
