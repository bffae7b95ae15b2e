// SPDX-License-Identifier: Apache-2.0
//! Opened checkpoints.

use crate::context::Context;
use crate::dtype::DType;
use crate::error::Result;
use crate::options::OpenOptions;
use crate::report::Report;
use crate::tensor::Tensor;
use crate::text::{Parts, sized_text};
use crate::workflow::{CLocation, Location};
use shardwright_sys::{ffi, raw};
use std::collections::BTreeMap;
use std::path::Path;

/// Algorithm of a tensor digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DigestAlgorithm {
    /// XXH3-128.
    #[default]
    Xxh3,
    /// SHA-256.
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
pub struct TensorInfo {
    /// Fully qualified name.
    pub name: String,
    /// Nested path as JSON array text; empty = flat.
    pub path: String,
    /// Element type.
    pub dtype: DType,
    /// Global extents.
    pub shape: Vec<i64>,
    /// Owner of a rank-local entry, else -1.
    pub rank: i32,
    /// Bytes of all elements.
    pub byte_size: u64,
    /// Chunks that hold them.
    pub chunk_count: u64,
}

/// Where one chunk lies.
#[derive(Clone, Debug)]
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
pub struct Object {
    /// E.g. "application/json".
    pub content_type: String,
    /// The bytes as stored.
    pub bytes: Vec<u8>,
}

/// An opened checkpoint. Immutable, thread-safe.
pub struct Checkpoint {
    handle: *mut ffi::shw_checkpoint,
    _context: Context,
}

// SAFETY: checkpoints are immutable.
unsafe impl Send for Checkpoint {}
// SAFETY: as above.
unsafe impl Sync for Checkpoint {}

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
        Ok(Checkpoint { handle, _context: context.clone() })
    }

    /// Format, e.g. "native".
    pub fn format(&self) -> String {
        // SAFETY: the handle lives as long as self, here and below.
        sized_text(|s| unsafe { ffi::shw_checkpoint_format(self.handle, s) })
    }

    /// Id of the save that made it.
    pub fn generation(&self) -> String {
        sized_text(|s| unsafe { ffi::shw_checkpoint_generation(self.handle, s) })
    }

    /// Ranks that wrote it.
    pub fn world_size(&self) -> i32 {
        unsafe { ffi::shw_checkpoint_world_size(self.handle) }
    }

    /// Text that was saved with it.
    pub fn metadata(&self) -> BTreeMap<String, String> {
        let count = unsafe { ffi::shw_checkpoint_metadata_count(self.handle) };
        (0..count)
            .map(|i| {
                let key = sized_text(|s| unsafe { ffi::shw_checkpoint_metadata_key(self.handle, i, s) });
                (key, sized_text(|s| unsafe { ffi::shw_checkpoint_metadata_value(self.handle, i, s) }))
            })
            .collect()
    }

    /// What is in it as JSON text.
    pub fn info(&self) -> Result<String> {
        let parts = Parts::new(unsafe { raw::checkpoint_info(self.handle) }?);
        Ok(String::from_utf8_lossy(&parts.bytes()).into_owned())
    }

    /// Number of tensors.
    pub fn tensor_count(&self) -> usize {
        unsafe { ffi::shw_checkpoint_tensor_count(self.handle) as usize }
    }

    /// Names of the tensors in stored order.
    pub fn keys(&self) -> Result<Vec<String>> {
        Ok(Parts::new(unsafe { raw::checkpoint_tensor_names(self.handle) }?).texts())
    }

    /// All tensors in stored order.
    pub fn tensors(&self) -> Result<Vec<TensorInfo>> {
        let count = self.tensor_count();
        // SAFETY: all zero is valid; the array has `count` elements of the stated size.
        let mut infos: Vec<ffi::shw_tensor_info> = vec![unsafe { std::mem::zeroed() }; count];
        for info in &mut infos {
            info.struct_size = size_of::<ffi::shw_tensor_info>() as u32;
        }
        unsafe { raw::checkpoint_tensor_infos(self.handle, 0, count as u64, infos.as_mut_ptr()) }?;
        Ok(infos.iter().enumerate().map(|(i, info)| self.tensor_info(i as u64, info)).collect())
    }

    fn tensor_info(&self, index: u64, info: &ffi::shw_tensor_info) -> TensorInfo {
        let shape = if info.ndim == 0 {
            Vec::new()
        } else {
            // SAFETY: the shape has ndim extents and lives as long as the checkpoint.
            unsafe {
                std::slice::from_raw_parts(ffi::shw_checkpoint_tensor_shape(self.handle, index), info.ndim as usize)
                    .to_vec()
            }
        };
        TensorInfo {
            name: sized_text(|s| unsafe { ffi::shw_checkpoint_tensor_name(self.handle, index, s) }),
            path: sized_text(|s| unsafe { ffi::shw_checkpoint_tensor_path(self.handle, index, s) }),
            dtype: DType { code: info.dtype_code, bits: info.dtype_bits },
            shape,
            rank: info.rank,
            byte_size: info.byte_size,
            chunk_count: info.chunk_count,
        }
    }

    /// Where every chunk lies.
    pub fn chunks(&self) -> Result<Vec<ChunkInfo>> {
        let count = unsafe { ffi::shw_checkpoint_chunk_count(self.handle) };
        // SAFETY: as in tensors().
        let mut infos: Vec<ffi::shw_chunk_info> = vec![unsafe { std::mem::zeroed() }; count as usize];
        for info in &mut infos {
            info.struct_size = size_of::<ffi::shw_chunk_info>() as u32;
        }
        unsafe { raw::checkpoint_chunk_infos(self.handle, 0, count, infos.as_mut_ptr()) }?;
        let file = |i| sized_text(|s| unsafe { ffi::shw_checkpoint_file_name(self.handle, i, s) });
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
        unsafe { raw::checkpoint_tensor_infos(self.handle, index, 1, &mut info) }?;
        Ok(info)
    }

    fn find(&self, name: &str) -> Result<u64> {
        Ok(unsafe { raw::checkpoint_find_tensor(self.handle, name.as_bytes(), -1) }?)
    }

    /// Reads a whole tensor. NOT_FOUND with the nearest names.
    pub fn read(&self, name: &str) -> Result<Tensor> {
        let index = self.find(name)?;
        Tensor::from_handle(unsafe {
            raw::checkpoint_read_tensor(
                self.handle,
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
            return Err(crate::Error::new(crate::StatusCode::InvalidArgument, text));
        }
        // SAFETY: both arrays have as many values as is said.
        Tensor::from_handle(unsafe {
            raw::checkpoint_read_tensor(self.handle, index, offsets.as_ptr(), sizes.as_ptr(), sizes.len() as i32)
        }?)
    }

    /// Name to content type and bytes of all byte objects.
    pub fn objects(&self) -> Result<BTreeMap<String, Object>> {
        let names = Parts::new(unsafe { raw::checkpoint_object_names(self.handle) }?).texts();
        let bytes =
            Parts::new(unsafe { raw::checkpoint_read_objects(self.handle, std::ptr::null(), names.len() as u64) }?)
                .all();
        let kind = |i| sized_text(|s| unsafe { ffi::shw_checkpoint_object_content_type(self.handle, i, s) });
        let objects = bytes.into_iter().enumerate().map(|(i, bytes)| Object { content_type: kind(i as u64), bytes });
        Ok(names.into_iter().zip(objects).collect())
    }

    /// As [`Checkpoint::verify`], but the first damage is the error: DATA_LOSS, ABORTED, PERMISSION_DENIED.
    pub fn check(&self, deep: bool) -> Result<Report> {
        let flags = if deep { ffi::SHW_VERIFY_DEEP } else { 0 };
        Ok(Report::new(unsafe { raw::checkpoint_verify(self.handle, flags) }?))
    }

    /// Checks structure, sizes and index digests; with `deep` every byte. Damage is in the report's findings.
    pub fn verify(&self, deep: bool) -> Result<Report> {
        let flags = ffi::SHW_VERIFY_LIST | if deep { ffi::SHW_VERIFY_DEEP } else { 0 };
        Ok(Report::new(unsafe { raw::checkpoint_verify(self.handle, flags) }?))
    }

    /// Name to hex digest of each whole tensor's row-major bytes, whatever layout or format holds it.
    pub fn digests(&self, algorithm: DigestAlgorithm) -> Result<Vec<(String, String)>> {
        let count = self.tensor_count() as u64;
        let parts =
            Parts::new(unsafe { raw::checkpoint_digests(self.handle, std::ptr::null(), count, algorithm.number()) }?);

        Ok(self.keys()?.into_iter().zip(parts.texts()).collect())
    }

    pub(crate) fn handle(&self) -> *mut ffi::shw_checkpoint {
        self.handle
    }
}

impl std::fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Checkpoint({}, {} tensors)", self.generation(), self.tensor_count())
    }
}

impl Drop for Checkpoint {
    fn drop(&mut self) {
        // SAFETY: owned, released once.
        unsafe { ffi::shw_checkpoint_release(self.handle) }
    }
}
