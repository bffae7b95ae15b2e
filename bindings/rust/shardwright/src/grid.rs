// SPDX-License-Identifier: Apache-2.0
//! Shards of grids as Megatron Core describes them, and their flat ranges.

use crate::error::{Error, ErrorKind, Result};
use crate::layout::{Piece, pieces_of};
use crate::megatron::{answered, megatron, slot};
use shardwright_sys::ffi;
use std::ops::Range;

/// One shard of a tensor: a local shape that lacks some leading axes of the global tensor, where it lies, and into how
/// many equal parts each axis is cut. Nothing is checked before it is asked for boxes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GridShard {
    /// Extents of the local tensor.
    pub local_shape: Vec<i64>,
    /// Extents of the whole tensor, prepended axes included.
    pub global_shape: Vec<i64>,
    /// First element per axis of the whole tensor.
    pub offsets: Vec<i64>,
    /// Equal parts per axis; None = irregular grid.
    pub fragments: Option<Vec<i64>>,
    /// Leading axes of the whole tensor that the local one lacks; the shard has extent 1 there.
    pub prepended: usize,
    /// Row-major elements of the local shape that the rank holds; None = all.
    pub flat_range: Option<Range<i64>>,
    /// Fragments times local shape need not be the global shape.
    pub shape_may_differ: bool,
}

/// The entry in which Megatron Core up to 0.14 stored a flat range: one axis per part number, one for a part's elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlatEntry {
    /// Extents of the entry.
    pub shape: Vec<i64>,
    /// First element per axis of the range's chunk.
    pub offsets: Vec<i64>,
    /// Extent per axis of the chunk.
    pub sizes: Vec<i64>,
}

impl GridShard {
    /// The regular shard at places (axis, index, count) of the grid: it is part `index` of `count` on that axis. The last
    /// place of an axis counts. INVALID_ARGUMENT for an axis or a part that is not there.
    pub fn at(local_shape: &[i64], prepended: usize, places: &[(i64, i64, i64)]) -> Result<GridShard> {
        let mut shard = GridShard { local_shape: local_shape.to_vec(), prepended, ..GridShard::default() };
        let axes = local_shape.len() + prepended;
        let numbers: Vec<i64> = places.iter().flat_map(|&(axis, index, count)| [axis, index, count]).collect();
        let (mut global, mut offsets, mut fragments) = (vec![0; axes], vec![0; axes], vec![0; axes]);
        let described = shard.described()?;
        // SAFETY: the arrays live for the call and have the room that the function asks for.
        let call = slot(megatron()?.grid_place);
        answered(|err| unsafe {
            call(
                &described,
                numbers.as_ptr(),
                places.len() as u64,
                global.as_mut_ptr(),
                offsets.as_mut_ptr(),
                fragments.as_mut_ptr(),
                err,
            )
        })?;
        shard.global_shape = global;
        shard.offsets = offsets;
        shard.fragments = Some(fragments);
        Ok(shard)
    }

    /// What the rank holds, after a check of everything: one box, or those of the flat range. INVALID_ARGUMENT for parts
    /// that do not agree, OUT_OF_RANGE when shard or range leave the tensor.
    pub fn pieces(&self) -> Result<Vec<Piece>> {
        self.check_lengths()?;
        let ndim = self.global_shape.len();
        let described = self.described()?;
        let empty = self.flat_range.as_ref().is_some_and(Range::is_empty);
        // SAFETY: what the description points to lives as long as self, the arrays for the call.
        let call = slot(megatron()?.grid_boxes);
        read_boxes(ndim, if empty { 0 } else { 1 }, |values, capacity, size, starts, err| unsafe {
            call(&described, values, capacity, size, starts, err)
        })
    }

    /// The flattened entry of the flat range.
    pub fn flat_entry(&self) -> Result<FlatEntry> {
        self.check_lengths()?;
        let axes = self.global_shape.len() + 1;
        let mut entry = FlatEntry { shape: vec![0; axes], offsets: vec![0; axes], sizes: vec![0; axes] };
        let described = self.described()?;
        // SAFETY: as above.
        let call = slot(megatron()?.grid_flat_entry);
        answered(|err| unsafe {
            call(&described, entry.shape.as_mut_ptr(), entry.offsets.as_mut_ptr(), entry.sizes.as_mut_ptr(), err)
        })?;
        Ok(entry)
    }

    fn check_lengths(&self) -> Result<()> {
        let axes = self.local_shape.len() + self.prepended;
        let fragments = self.fragments.as_ref().map_or(axes, Vec::len);
        if [self.global_shape.len(), self.offsets.len(), fragments] == [axes; 3] {
            return Ok(());
        }
        let text =
            format!("{} local and {} prepended axes do not fit {:?}", self.local_shape.len(), self.prepended, self);
        Err(Error::new(ErrorKind::InvalidArgument, text))
    }

    /// For C; it borrows from self.
    fn described(&self) -> Result<ffi::shw_grid_shard> {
        // SAFETY: a plain struct for which all zero is valid.
        let mut shard: ffi::shw_grid_shard = unsafe { std::mem::zeroed() };
        shard.struct_size = size_of::<ffi::shw_grid_shard>() as u32;
        let flag = |set: bool, bit: u64| if set { bit as u32 } else { 0 };
        shard.flags = flag(self.flat_range.is_some(), ffi::SHW_GRID_FLAT)
            | flag(self.shape_may_differ, ffi::SHW_GRID_SHAPE_MAY_DIFFER);
        let count = |axes: usize| {
            i32::try_from(axes).map_err(|_| Error::new(ErrorKind::InvalidArgument, format!("{axes} axes")))
        };
        shard.local_ndim = count(self.local_shape.len())?;
        shard.prepended = count(self.prepended)?;
        shard.local_shape = self.local_shape.as_ptr();
        shard.global_shape = self.global_shape.as_ptr();
        shard.offsets = self.offsets.as_ptr();
        shard.fragments = self.fragments.as_ref().map_or(std::ptr::null(), |parts| parts.as_ptr());
        if let Some(range) = &self.flat_range {
            shard.flat_begin = range.start;
            shard.flat_size = range.end - range.start;
        }
        Ok(shard)
    }
}

/// The boxes of a tensor of this shape that the chunk of a flattened entry holds; local offsets count its elements.
pub fn flat_entry_pieces(shape: &[i64], entry: &FlatEntry) -> Result<Vec<Piece>> {
    let axes = shape.len() + 1;
    if [entry.shape.len(), entry.offsets.len(), entry.sizes.len()] != [axes; 3] {
        let text = format!("{entry:?} does not fit a tensor of {} dimensions", shape.len());
        return Err(Error::new(ErrorKind::InvalidArgument, text));
    }
    let chunk = [&entry.offsets[..], &entry.sizes[..]].concat();
    let ndim = shape.len();
    let scalars = u64::from(entry.sizes[ndim] > 0);
    // SAFETY: the arrays live for the call.
    let call = slot(megatron()?.grid_flat_boxes);
    read_boxes(ndim, scalars, |values, capacity, size, starts, err| unsafe {
        call(shape.as_ptr(), ndim as i32, entry.shape.as_ptr(), chunk.as_ptr(), values, capacity, size, starts, err)
    })
}

/// Which of `stored` equal parts of an axis meet part `index` of `wanted` equal parts, exactly.
pub fn overlapping_parts(stored: i64, wanted: i64, index: i64) -> Result<Range<i64>> {
    let (mut begin, mut count) = (0, 0);
    let call = slot(megatron()?.grid_overlap);
    // SAFETY: both live for the call.
    answered(|err| unsafe { call(stored, wanted, index, &mut begin, &mut count, err) })?;
    Ok(begin..begin + count)
}

/// Calls with room for the most boxes that a range can have: 2 per dimension, less one. `scalars`: how many boxes there are
/// of a tensor without dimensions.
fn read_boxes(
    ndim: usize,
    scalars: u64,
    call: impl FnOnce(*mut i64, u64, *mut u64, *mut i64, *mut *mut ffi::shw_error) -> ffi::shw_status,
) -> Result<Vec<Piece>> {
    let most = (2 * ndim).max(2) - 1;
    let mut values = vec![0i64; most * ndim * 2];
    let mut starts = vec![0i64; most];
    let mut size = 0;
    let (room, first) = (values.len() as u64, values.as_mut_ptr());
    answered(|err| call(first, room, &mut size, starts.as_mut_ptr(), err))?;
    let count = if ndim == 0 { scalars as usize } else { size as usize / (2 * ndim) };
    Ok(pieces_of(&values, &starts[..count], ndim))
}
