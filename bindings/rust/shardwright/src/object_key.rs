// SPDX-License-Identifier: Apache-2.0
//! Names of byte objects that are cells of grids.

use crate::error::{Error, ErrorKind, Result};
use crate::text::copy_bytes;
use shardwright_sys::{ffi, raw};

/// What the name of such an object says, as in "key/shard_0.3_1.8".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectKey {
    /// What all cells share.
    pub key: String,
    /// The cell.
    pub index: Vec<i64>,
    /// Extents of the grid; the last is -1 where older names leave it out.
    pub shape: Vec<i64>,
}

impl ObjectKey {
    /// Takes a name apart; the last "/shard_" counts, so any key comes back. INVALID_ARGUMENT for another name.
    ///
    /// ```
    /// use shardwright::ObjectKey;
    ///
    /// let key = ObjectKey::parse("mlp._extra_state/shard_0.3_1.8")?;
    /// assert_eq!((key.key.as_str(), &key.index[..], &key.shape[..]), ("mlp._extra_state", &[0, 3][..], &[1, 8][..]));
    /// assert_eq!(key.name()?, "mlp._extra_state/shard_0.3_1.8");
    /// # Ok::<(), shardwright::Error>(())
    /// ```
    pub fn parse(name: &str) -> Result<ObjectKey> {
        let mut cell = [0i64; 128]; // at most 64 axes
        let (mut size, mut key_size) = (0, 0);
        // SAFETY: the values fit, and the other arguments live for the call.
        unsafe {
            raw::object_key_parse(name.as_bytes(), cell.as_mut_ptr(), cell.len() as u64, &mut size, &mut key_size)
        }?;
        let (index, shape) = cell[..size as usize].split_at(size as usize / 2);
        Ok(ObjectKey { key: name[..key_size as usize].to_owned(), index: index.to_vec(), shape: shape.to_vec() })
    }

    /// The name of the object. INVALID_ARGUMENT for a cell outside the grid.
    pub fn name(&self) -> Result<String> {
        if self.index.len() != self.shape.len() {
            let text = format!("{} indices in a grid of {} axes", self.index.len(), self.shape.len());
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        let (index, shape) = (self.index.as_ptr(), self.shape.as_ptr());
        // SAFETY: both have as many values; the buffer is released after its bytes were copied.
        let bytes = unsafe {
            let buffer = raw::object_key(self.key.as_bytes(), index, shape, self.index.len() as i32)?;
            let bytes = copy_bytes(ffi::shw_buffer_data(buffer), ffi::shw_buffer_size(buffer));
            ffi::shw_buffer_release(buffer);
            bytes
        };
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
