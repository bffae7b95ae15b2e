// SPDX-License-Identifier: Apache-2.0
//! Opened checkpoints.

use crate::context::Context;
use crate::dtype::DType;
use crate::error::Result;
use crate::info::CheckpointInfo;
use crate::object_reader::ObjectReader;
use crate::options::OpenOptions;
use crate::report::Report;
use crate::tensor::Tensor;
use crate::text::{Parts, sized_text};
use crate::workflow::{CLocation, Location};
use shardwright_sys::{ffi, raw};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// Algorithm of a tensor digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum DigestAlgorithm {
    /// XXH3-128.
    #[cfg_attr(feature = "serde", serde(rename = "xxh3"))]
    #[default]
    Xxh3,
    /// SHA-256.
    #[cfg_attr(feature = "serde", serde(rename = "sha256"))]
    Sha256,
}

impl DigestAlgorithm {
    fn number(self) -> i32 {
        match self {
            DigestAlgorithm::Xxh3 => ffi::SHW_DIGEST_XXH3,
            DigestAlgorithm::Sha256 => ffi::SHW_DIGEST_SHA256,
        }
    }
}

/// One stored tensor.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct TensorInfo {
    /// Fully qualified name.
    pub name: String,
    /// Nested path as JSON array text; empty = flat.
    pub path: String,
    /// Element type.
    pub dtype: DType,
    /// Global extents.
    pub shape: Vec<i64>,
    /// Owner of a rank_local entry, else -1.
    pub rank: i32,
    /// Bytes of all elements.
    pub byte_size: u64,
    /// Chunks that hold them.
    pub chunk_count: u64,
}

/// Where one chunk lies.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ChunkInfo {
    /// Number of its tensor.
    pub tensor: usize,
    /// File, relative to the checkpoint.
    pub file: String,
    /// First byte in the file.
    pub offset: u64,
    /// Bytes.
    pub byte_size: u64,
}

/// A byte object with its content type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Object {
    /// E.g. "application/json".
    pub content_type: String,
    /// The bytes as stored.
    pub bytes: Vec<u8>,
}

/// An opened checkpoint. Immutable, thread-safe.
pub struct Checkpoint {
    handle: Handle,
    /// Whose rank_local entries names stand for; ALL_RANKS = those of the lowest rank that has one.
    rank: i32,
    _context: Context,
}

const ALL_RANKS: i32 = -1;

/// The owned handle.
struct Handle(*mut ffi::shw_checkpoint);

// SAFETY: checkpoints are immutable.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Checkpoint {
    /// Opens what lies at a path of the file system and recognises its format. NOT_FOUND, DATA_LOSS, UNIMPLEMENTED, ...
    pub fn open(path: impl AsRef<Path>) -> Result<Checkpoint> {
        Checkpoint::open_at(&Context::shared()?, &Location::path(path))
    }

    /// As [`Checkpoint::open`] with a context and any storage.
    pub fn open_at(context: &Context, location: &Location) -> Result<Checkpoint> {
        Checkpoint::open_with(context, location, &OpenOptions::default())
    }

    /// As [`Checkpoint::open_at`] with options.
    pub fn open_with(context: &Context, location: &Location, options: &OpenOptions) -> Result<Checkpoint> {
        let at = CLocation::of(location)?;
        let options = options.to_c();
        // SAFETY: handles, text and options live for the call.
        let handle = unsafe { raw::checkpoint_open(context.handle(), at.storage, at.path.as_ptr(), &options) }?;
        Ok(Checkpoint { handle: Handle(handle), rank: ALL_RANKS, _context: context.clone() })
    }

    /// The same checkpoint as this rank sees it: entries that all share and its own rank_local ones. Without it all
    /// entries are seen, and a rank_local name stands for the entry of the lowest rank.
    pub fn for_rank(self, rank: i32) -> Checkpoint {
        Checkpoint { rank: rank.max(ALL_RANKS), ..self }
    }

    /// Format, e.g. "native".
    pub fn format(&self) -> String {
        // SAFETY: the handle lives as long as self, here and below.
        sized_text(|s| unsafe { ffi::shw_checkpoint_format(self.handle.0, s) })
    }

    /// Id of the save that made it.
    pub fn generation(&self) -> String {
        sized_text(|s| unsafe { ffi::shw_checkpoint_generation(self.handle.0, s) })
    }

    /// Ranks that wrote it.
    pub fn world_size(&self) -> i32 {
        unsafe { ffi::shw_checkpoint_world_size(self.handle.0) }
    }

    /// Text that was saved with it.
    pub fn metadata(&self) -> BTreeMap<String, String> {
        let count = unsafe { ffi::shw_checkpoint_metadata_count(self.handle.0) };
        (0..count)
            .map(|i| {
                let key = sized_text(|s| unsafe { ffi::shw_checkpoint_metadata_key(self.handle.0, i, s) });
                (key, sized_text(|s| unsafe { ffi::shw_checkpoint_metadata_value(self.handle.0, i, s) }))
            })
            .collect()
    }

    /// What is in it.
    pub fn info(&self) -> Result<CheckpointInfo> {
        let parts = Parts::new(unsafe { raw::checkpoint_info(self.handle.0) }?);
        let json = String::from_utf8_lossy(&parts.bytes()).into_owned();
        CheckpointInfo::of(json, self.tensors()?, self.metadata())
    }

    /// Number of stored tensors, of rank_local ones one per rank.
    pub fn tensor_count(&self) -> usize {
        unsafe { ffi::shw_checkpoint_tensor_count(self.handle.0) as usize }
    }

    /// Names of the tensors in stored order, each once; of a checkpoint [for a rank](Checkpoint::for_rank) those that
    /// this rank is given.
    pub fn keys(&self) -> Result<Vec<String>> {
        Ok(self.shown_tensors()?.into_iter().map(|(name, _)| name).collect())
    }

    /// Ranks that have a rank_local tensor or object of that name, ascending; none for one that all share. NOT_FOUND
    /// with the nearest names.
    pub fn ranks(&self, name: &str) -> Result<Vec<i32>> {
        let (tensors, objects) = (self.tensor_owners()?, self.object_owners()?);
        let found: BTreeSet<i32> =
            tensors.into_iter().chain(objects).filter(|(n, _)| n == name).map(|(_, rank)| rank).collect();
        if found.is_empty() {
            // SAFETY: the handle lives as long as self.
            unsafe { raw::checkpoint_find_tensor(self.handle.0, name.as_bytes(), ALL_RANKS) }?;
        }
        Ok(found.into_iter().filter(|rank| *rank >= 0).collect())
    }

    /// Name and owner (-1 = shared) of each stored tensor.
    fn tensor_owners(&self) -> Result<Vec<(String, i32)>> {
        let names = Parts::new(unsafe { raw::checkpoint_tensor_names(self.handle.0) }?).texts();
        Ok(names.into_iter().zip(self.raw_infos()?).map(|(name, info)| (name, info.rank)).collect())
    }

    /// Name and owner (-1 = shared) of each stored object.
    fn object_owners(&self) -> Result<Vec<(String, i32)>> {
        let names = Parts::new(unsafe { raw::checkpoint_object_names(self.handle.0) }?).texts();
        let rank = |i| unsafe { ffi::shw_checkpoint_object_rank(self.handle.0, i) };
        Ok(names.into_iter().enumerate().map(|(i, name)| (name, rank(i as u64))).collect())
    }

    /// Each name and the number of the tensor that it stands for, in stored order.
    fn shown_tensors(&self) -> Result<Vec<(String, u64)>> {
        Ok(shown(self.tensor_owners()?, self.rank))
    }

    /// All stored tensors in stored order, of rank_local ones those of all ranks.
    pub fn tensors(&self) -> Result<Vec<TensorInfo>> {
        Ok(self.raw_infos()?.iter().enumerate().map(|(i, info)| self.tensor_info(i as u64, info)).collect())
    }

    fn raw_infos(&self) -> Result<Vec<ffi::shw_tensor_info>> {
        let count = self.tensor_count();
        // SAFETY: all zero is valid; the array has `count` elements of the stated size.
        let mut infos: Vec<ffi::shw_tensor_info> = vec![unsafe { std::mem::zeroed() }; count];
        for info in &mut infos {
            info.struct_size = size_of::<ffi::shw_tensor_info>() as u32;
        }
        unsafe { raw::checkpoint_tensor_infos(self.handle.0, 0, count as u64, infos.as_mut_ptr()) }?;
        Ok(infos)
    }

    fn tensor_info(&self, index: u64, info: &ffi::shw_tensor_info) -> TensorInfo {
        let shape = if info.ndim == 0 {
            Vec::new()
        } else {
            // SAFETY: the shape has ndim extents and lives as long as the checkpoint.
            unsafe {
                std::slice::from_raw_parts(ffi::shw_checkpoint_tensor_shape(self.handle.0, index), info.ndim as usize)
                    .to_vec()
            }
        };
        TensorInfo {
            name: sized_text(|s| unsafe { ffi::shw_checkpoint_tensor_name(self.handle.0, index, s) }),
            path: sized_text(|s| unsafe { ffi::shw_checkpoint_tensor_path(self.handle.0, index, s) }),
            dtype: DType(info.dtype),
            shape,
            rank: info.rank,
            byte_size: info.byte_size,
            chunk_count: info.chunk_count,
        }
    }

    /// Where every chunk lies.
    pub fn chunks(&self) -> Result<Vec<ChunkInfo>> {
        let count = unsafe { ffi::shw_checkpoint_chunk_count(self.handle.0) };
        // SAFETY: as in tensors().
        let mut infos: Vec<ffi::shw_chunk_info> = vec![unsafe { std::mem::zeroed() }; count as usize];
        for info in &mut infos {
            info.struct_size = size_of::<ffi::shw_chunk_info>() as u32;
        }
        unsafe { raw::checkpoint_chunk_infos(self.handle.0, 0, count, infos.as_mut_ptr()) }?;
        let file = |i| sized_text(|s| unsafe { ffi::shw_checkpoint_file_name(self.handle.0, i, s) });
        Ok(infos
            .iter()
            .map(|c| ChunkInfo {
                tensor: c.tensor as usize,
                file: file(c.file),
                offset: c.offset,
                byte_size: c.byte_size,
            })
            .collect())
    }

    fn raw_info(&self, index: u64) -> Result<ffi::shw_tensor_info> {
        // SAFETY: all zero is valid; one element of the stated size is written.
        let mut info: ffi::shw_tensor_info = unsafe { std::mem::zeroed() };
        info.struct_size = size_of::<ffi::shw_tensor_info>() as u32;
        unsafe { raw::checkpoint_tensor_infos(self.handle.0, index, 1, &mut info) }?;
        Ok(info)
    }

    fn find(&self, name: &str) -> Result<u64> {
        Ok(unsafe { raw::checkpoint_find_tensor(self.handle.0, name.as_bytes(), self.rank) }?)
    }

    /// Reads a whole tensor. NOT_FOUND with the nearest names.
    pub fn read(&self, name: &str) -> Result<Tensor> {
        let index = self.find(name)?;
        Tensor::from_handle(unsafe {
            raw::checkpoint_read_tensor(
                self.handle.0,
                index,
                std::ptr::null(),
                std::ptr::null(),
                self.raw_info(index)?.ndim,
            )
        }?)
    }

    /// Reads the box at `offsets` of these `sizes`; only the digest blocks that hold it are read. OUT_OF_RANGE.
    pub fn read_box(&self, name: &str, offsets: &[i64], sizes: &[i64]) -> Result<Tensor> {
        let index = self.find(name)?;
        if offsets.len() != sizes.len() {
            let text = format!("{} offsets but {} sizes", offsets.len(), sizes.len());
            return Err(crate::Error::new(crate::ErrorKind::InvalidArgument, text));
        }
        // SAFETY: both arrays have as many values as is said.
        Tensor::from_handle(unsafe {
            raw::checkpoint_read_tensor(self.handle.0, index, offsets.as_ptr(), sizes.as_ptr(), sizes.len() as i32)
        }?)
    }

    /// Name to content type and bytes of the byte objects; of a checkpoint [for a rank](Checkpoint::for_rank) those that
    /// this rank is given.
    pub fn objects(&self) -> Result<BTreeMap<String, Object>> {
        let shown = shown(self.object_owners()?, self.rank);
        let indices: Vec<u64> = shown.iter().map(|(_, i)| *i).collect();
        // SAFETY: the array has as many values as is said.
        let parts = unsafe { raw::checkpoint_read_objects(self.handle.0, indices.as_ptr(), indices.len() as u64) }?;
        let kind = |i| sized_text(|s| unsafe { ffi::shw_checkpoint_object_content_type(self.handle.0, i, s) });
        let objects = Parts::new(parts).all().into_iter().zip(&indices);
        let objects = objects.map(|(bytes, i)| Object { content_type: kind(*i), bytes });
        Ok(shown.into_iter().map(|(name, _)| name).zip(objects).collect())
    }

    /// What a byte object is, for people; nothing of it is run. One JSON object as text: `content_type`, `bytes`, and
    /// `value`, in which a pickle says what would be made of it. NOT_FOUND with the nearest names.
    pub fn describe_object(&self, name: &str) -> Result<String> {
        let index = unsafe { raw::checkpoint_find_object(self.handle.0, name.as_bytes(), self.rank) }?;
        let parts = Parts::new(unsafe { raw::checkpoint_describe_object(self.handle.0, index) }?);
        Ok(String::from_utf8_lossy(&parts.bytes()).into_owned())
    }

    /// One byte object as a stream, for those that are larger than memory need be. NOT_FOUND with the nearest names.
    pub fn open_object(&self, name: &str) -> Result<ObjectReader<'_>> {
        let index = unsafe { raw::checkpoint_find_object(self.handle.0, name.as_bytes(), self.rank) }?;
        let size = unsafe { ffi::shw_checkpoint_object_size(self.handle.0, index) };
        Ok(ObjectReader::new(self, index, size))
    }

    /// Bytes of an object from `offset` on; fewer only where it ends.
    pub(crate) fn object_part(&self, index: u64, offset: u64, size: u64) -> Result<Vec<u8>> {
        let parts = unsafe { raw::checkpoint_read_object_part(self.handle.0, index, offset, size) }?;
        Ok(Parts::new(parts).all().into_iter().next().unwrap_or_default())
    }

    /// Checks the manifest and each file's size, header and index, with `deep` every byte; all of it is read again.
    /// Damage is DATA_LOSS with the place of the first; [`Checkpoint::find_damage`] lists all.
    pub fn verify(&self, deep: bool) -> Result<Report> {
        let flags = if deep { ffi::SHW_VERIFY_DEEP } else { 0 };
        Ok(Report::new(unsafe { raw::checkpoint_verify(self.handle.0, flags) }?))
    }

    /// As [`Checkpoint::verify`], but all damage is in the report's findings.
    pub fn find_damage(&self, deep: bool) -> Result<Report> {
        let flags = if deep { ffi::SHW_VERIFY_DEEP } else { 0 };
        Ok(Report::new(unsafe { raw::checkpoint_find_damage(self.handle.0, flags) }?))
    }

    /// Each name of [`Checkpoint::keys`] and the hex digest of its whole tensor's row-major bytes, whatever layout or
    /// format holds it.
    pub fn digests(&self, algorithm: DigestAlgorithm) -> Result<Vec<(String, String)>> {
        let (names, indices): (Vec<String>, Vec<u64>) = self.shown_tensors()?.into_iter().unzip();
        let (count, algorithm) = (indices.len() as u64, algorithm.number());
        // SAFETY: the array has as many values as is said.
        let parts = unsafe { raw::checkpoint_digests(self.handle.0, indices.as_ptr(), count, algorithm) }?;
        Ok(names.into_iter().zip(Parts::new(parts).texts()).collect())
    }

    pub(crate) fn handle(&self) -> *mut ffi::shw_checkpoint {
        self.handle.0
    }
}

/// Of entries of one name: seen by a rank its own, else the shared one; seen by all the shared one, else the lowest.
fn shown(owners: Vec<(String, i32)>, rank: i32) -> Vec<(String, u64)> {
    let mut chosen: HashMap<&str, usize> = HashMap::new();
    for (i, (name, owner)) in owners.iter().enumerate() {
        if rank < 0 || *owner < 0 || *owner == rank {
            let kept = chosen.entry(name).or_insert(i);
            if (*owner < owners[*kept].1) == (rank < 0) {
                *kept = i;
            }
        }
    }
    let mut numbers: Vec<usize> = chosen.into_values().collect();
    numbers.sort_unstable();
    numbers.into_iter().map(|i| (owners[i].0.clone(), i as u64)).collect()
}

impl std::fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Checkpoint({}, {} tensors)", self.generation(), self.tensor_count())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: owned, released once.
        unsafe { ffi::shw_checkpoint_release(self.0) }
    }
}
