// SPDX-License-Identifier: Apache-2.0
//! What a rank holds or wants, in flat columns: one call of the library however many entries there are.

use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::options::Kind;
use crate::planning::Digest;
use crate::text::Blob;
use shardwright_sys::ffi;
use std::ops::Range;

/// What one entry is, apart from its boxes: a tensor with an element type, or a byte object without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Name, unique among the entries of a rank.
    pub name: &'a str,
    /// Element type; None = a byte object.
    pub dtype: Option<DType>,
    /// Extents of the whole tensor; empty for objects.
    pub shape: &'a [i64],
    /// Who holds it. Auto: replicated for objects and for one box that is the whole tensor.
    pub kind: Kind,
    /// Bytes of an object; 0 = not known, and for tensors.
    pub object_size: u64,
    /// Nested path as JSON array text; empty = flat.
    pub path: &'a str,
    /// Bytes of the host's own; a merged plan has those of the first rank that lists the entry.
    pub attributes: &'a [u8],
    /// [Digest](crate::planning::content_digest) of the content that holders must agree on; zeros = not compared.
    pub digest: Digest,
}

impl<'a> Entry<'a> {
    /// A tensor of this global shape.
    pub fn tensor(name: &'a str, dtype: DType, shape: &'a [i64]) -> Entry<'a> {
        Entry { name, dtype: Some(dtype), shape, ..Entry::default() }
    }

    /// A byte object of so many bytes, 0 = not known.
    pub fn object(name: &'a str, object_size: u64) -> Entry<'a> {
        Entry { name, object_size, ..Entry::default() }
    }
}

/// Entries with their boxes. Boxes are numbered through all entries in their order; a byte object has one box of no
/// dimensions. Names that come twice are refused where the batch is used. Thread-compatible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryBatch {
    names: Blob,
    dtypes: Vec<i32>,
    kinds: Vec<Kind>,
    shapes: Vec<i64>,
    shape_offsets: Vec<u64>,
    box_ranges: Vec<u64>,
    value_offsets: Vec<usize>, // where the boxes of each entry begin in the two columns below
    box_offsets: Vec<i64>,
    box_sizes: Vec<i64>,
    numbers: Option<Vec<u64>>,
    order: Option<Vec<u64>>,
    secondary: Option<Vec<bool>>,
    object_sizes: Vec<u64>,
    paths: Blob,
    attributes: Blob,
    digests: Vec<Digest>,
}

impl Default for EntryBatch {
    fn default() -> Self {
        Self::new()
    }
}

fn invalid(parameter: &str, text: String) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("{parameter}: {text}")).with_detail("parameter", parameter)
}

/// NULL where the column says nothing.
fn pointer<T>(column: &[T], says_something: bool) -> *const T {
    if says_something { column.as_ptr() } else { std::ptr::null() }
}

impl EntryBatch {
    /// An empty batch.
    pub fn new() -> EntryBatch {
        EntryBatch {
            names: Blob::of::<&str>([]),
            dtypes: Vec::new(),
            kinds: Vec::new(),
            shapes: Vec::new(),
            shape_offsets: vec![0],
            box_ranges: vec![0],
            value_offsets: vec![0],
            box_offsets: Vec::new(),
            box_sizes: Vec::new(),
            numbers: None,
            order: None,
            secondary: None,
            object_sizes: Vec::new(),
            paths: Blob::of::<&str>([]),
            attributes: Blob::of::<&str>([]),
            digests: Vec::new(),
        }
    }

    /// Adds a byte object, or a tensor that is held as a whole.
    pub fn add(&mut self, entry: &Entry) {
        if entry.dtype.is_some() {
            self.box_offsets.resize(self.box_offsets.len() + entry.shape.len(), 0);
            self.box_sizes.extend_from_slice(entry.shape);
        }
        self.push(entry, 1);
    }

    /// Adds a tensor of which these boxes (offsets, sizes) are held; [`Layout::boxes`](crate::Layout::boxes) gives such.
    /// INVALID_ARGUMENT, nothing added, for a box of other dimensions than the tensor.
    pub fn add_boxes<O: AsRef<[i64]>, S: AsRef<[i64]>>(
        &mut self,
        entry: &Entry,
        boxes: impl IntoIterator<Item = (O, S)>,
    ) -> Result<()> {
        let (begin, ndim) = (self.box_offsets.len(), entry.shape.len());
        let mut count = 0;
        for (offsets, sizes) in boxes {
            let (offsets, sizes) = (offsets.as_ref(), sizes.as_ref());
            if offsets.len() != ndim || sizes.len() != ndim {
                self.box_offsets.truncate(begin);
                self.box_sizes.truncate(begin);
                let lengths = format!("{} offsets and {} sizes", offsets.len(), sizes.len());
                return Err(invalid("boxes", format!("box {count} of {} has {lengths}, not {ndim}", entry.name)));
            }
            self.box_offsets.extend_from_slice(offsets);
            self.box_sizes.extend_from_slice(sizes);
            count += 1;
        }
        self.push(entry, count);
        Ok(())
    }

    /// Adds a tensor without boxes: its layout gives them ([`global_plan::describe`](crate::global_plan::describe)).
    pub fn add_laid_out(&mut self, entry: &Entry) {
        self.push(entry, 0);
    }

    /// All but the values of the boxes, which are there already.
    fn push(&mut self, entry: &Entry, boxes: u64) {
        self.names.push(entry.name);
        self.dtypes.push(entry.dtype.map_or(0, DType::number));
        self.kinds.push(entry.kind);
        self.shapes.extend_from_slice(entry.shape);
        self.shape_offsets.push(self.shapes.len() as u64);
        self.box_ranges.push(self.box_ranges[self.len() - 1] + boxes);
        self.value_offsets.push(self.box_offsets.len());
        self.object_sizes.push(entry.object_size);
        self.paths.push(entry.path);
        self.attributes.push(entry.attributes);
        self.digests.push(entry.digest);
    }

    /// One number per box, below 2^32 - 1. Local plans: number of the piece in its entry; merged plans: rank that writes.
    /// Not set: 0, 1, 2, ... in each entry of a local plan, 0 in merged ones.
    pub fn set_numbers(&mut self, numbers: Vec<u64>) {
        self.numbers = Some(numbers);
    }

    /// All boxes in the order in which the host lists them. Not set: as they stand.
    pub fn set_order(&mut self, order: Vec<u64>) {
        self.order = Some(order);
    }

    /// One mark per box: not a main replica, only wanted by others (preset megatron with owner exact chooses those last).
    pub fn set_secondary(&mut self, secondary: Vec<bool>) {
        self.secondary = Some(secondary);
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.dtypes.len()
    }

    /// True without entries.
    pub fn is_empty(&self) -> bool {
        self.dtypes.is_empty()
    }

    /// Number of boxes of all entries.
    pub fn box_count(&self) -> usize {
        self.box_ranges[self.len()] as usize
    }

    /// Entry `index`.
    ///
    /// # Panics
    /// When there is no such entry.
    pub fn entry(&self, index: usize) -> Entry<'_> {
        let number = self.dtypes[index];
        let shape = self.shape_offsets[index] as usize..self.shape_offsets[index + 1] as usize;
        Entry {
            name: self.names.text(index),
            dtype: (number != 0).then(|| DType(number)),
            shape: &self.shapes[shape],
            kind: self.kinds[index],
            object_size: self.object_sizes[index],
            path: self.paths.text(index),
            attributes: self.attributes.part(index),
            digest: self.digests[index],
        }
    }

    /// All entries in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Entry<'_>> {
        (0..self.len()).map(|i| self.entry(i))
    }

    /// The names of the entries.
    pub fn names(&self) -> Vec<&str> {
        (0..self.len()).map(|i| self.names.text(i)).collect()
    }

    /// Numbers of the boxes of entry `index`.
    pub fn box_range(&self, index: usize) -> Range<usize> {
        self.box_ranges[index] as usize..self.box_ranges[index + 1] as usize
    }

    /// Offsets and sizes of each box of entry `index`.
    pub fn boxes(&self, index: usize) -> impl ExactSizeIterator<Item = (&[i64], &[i64])> {
        let (begin, ndim) =
            (self.value_offsets[index], (self.shape_offsets[index + 1] - self.shape_offsets[index]) as usize);
        (0..self.box_range(index).len()).map(move |i| {
            let values = begin + i * ndim..begin + (i + 1) * ndim;
            (&self.box_offsets[values.clone()], &self.box_sizes[values])
        })
    }

    /// Numbers of the boxes, as [`EntryBatch::set_numbers`] says; plans always have them.
    pub fn numbers(&self) -> Option<&[u64]> {
        self.numbers.as_deref()
    }

    /// Order in which the host lists the boxes; None = as they stand.
    pub fn order(&self) -> Option<&[u64]> {
        self.order.as_deref()
    }

    /// Marks of the boxes that are not main replicas; None = all are.
    pub fn secondary(&self) -> Option<&[bool]> {
        self.secondary.as_deref()
    }

    /// For C; it borrows from self. INVALID_ARGUMENT for a column of the wrong length.
    pub(crate) fn to_c(&self) -> Result<ffi::shw_entry_batch> {
        self.check("numbers", self.numbers.as_ref().map(Vec::len))?;
        self.check("order", self.order.as_ref().map(Vec::len))?;
        self.check("secondary", self.secondary.as_ref().map(Vec::len))?;
        // SAFETY: a plain struct for which all zero is valid.
        let mut c: ffi::shw_entry_batch = unsafe { std::mem::zeroed() };
        c.struct_size = size_of::<ffi::shw_entry_batch>() as u32;
        c.count = self.len() as u64;
        c.names = self.names.bytes.as_ptr().cast();
        c.name_offsets = self.names.offsets.as_ptr();
        c.dtypes = self.dtypes.as_ptr();
        c.kinds = self.kinds.as_ptr().cast(); // Kind is an i32
        c.shapes = self.shapes.as_ptr();
        c.shape_offsets = self.shape_offsets.as_ptr();
        c.box_ranges = self.box_ranges.as_ptr();
        c.box_offsets = self.box_offsets.as_ptr();
        c.box_sizes = self.box_sizes.as_ptr();
        c.numbers = self.numbers.as_ref().map_or(std::ptr::null(), |column| column.as_ptr());
        c.order = self.order.as_ref().map_or(std::ptr::null(), |column| column.as_ptr());
        c.secondary = self.secondary.as_ref().map_or(std::ptr::null(), |column| column.as_ptr().cast());
        c.object_sizes = self.object_sizes.as_ptr();
        c.paths = pointer(&self.paths.bytes, !self.paths.bytes.is_empty()).cast();
        c.path_offsets = pointer(&self.paths.offsets, !self.paths.bytes.is_empty());
        c.attributes = pointer(&self.attributes.bytes, !self.attributes.bytes.is_empty()).cast();
        c.attribute_offsets = pointer(&self.attributes.offsets, !self.attributes.bytes.is_empty());
        c.digests = pointer(&self.digests, self.digests.iter().any(|digest| *digest != Digest::default())).cast();
        Ok(c)
    }

    fn check(&self, column: &str, length: Option<usize>) -> Result<()> {
        match length {
            Some(length) if length != self.box_count() => {
                Err(invalid(column, format!("{length} values for {} boxes", self.box_count())))
            }
            _ => Ok(()),
        }
    }

    /// A copy of what the library gave.
    ///
    /// # Safety
    /// The arrays are those of shw_plan_entries and their plan lives.
    pub(crate) unsafe fn copy_of(c: &ffi::shw_entry_batch) -> Result<EntryBatch> {
        let count = c.count as usize;
        if count == 0 {
            return Ok(EntryBatch::new());
        }
        // SAFETY: as the caller says; lengths are those of planning.h.
        unsafe {
            let shape_offsets = copied(c.shape_offsets, count + 1);
            let box_ranges = copied(c.box_ranges, count + 1);
            let value_offsets = value_offsets(&shape_offsets, &box_ranges);
            let (boxes, values) = (box_ranges[count] as usize, value_offsets[count]);
            let numbers = |column: *const u64| (!column.is_null()).then(|| copied(column, boxes));
            let marks = |column: Vec<u8>| column.into_iter().map(|mark| mark != 0).collect();
            Ok(EntryBatch {
                names: texts(c.names, c.name_offsets, count, true)?,
                dtypes: copied(c.dtypes, count),
                kinds: copied(c.kinds, count).into_iter().map(kind_of).collect::<Result<_>>()?,
                shapes: copied(c.shapes, shape_offsets[count] as usize),
                box_offsets: copied(c.box_offsets, values),
                box_sizes: copied(c.box_sizes, values),
                numbers: numbers(c.numbers),
                order: numbers(c.order),
                secondary: (!c.secondary.is_null()).then(|| marks(copied(c.secondary, boxes))),
                object_sizes: copied(c.object_sizes, count),
                paths: texts(c.paths, c.path_offsets, count, true)?,
                attributes: texts(c.attributes, c.attribute_offsets, count, false)?,
                digests: copied(c.digests.cast::<Digest>(), count),
                shape_offsets,
                box_ranges,
                value_offsets,
            })
        }
    }
}

/// Where the values of each entry's boxes begin, and the end.
fn value_offsets(shape_offsets: &[u64], box_ranges: &[u64]) -> Vec<usize> {
    let mut offsets = vec![0];
    for (shape, boxes) in shape_offsets.windows(2).zip(box_ranges.windows(2)) {
        offsets.push(offsets[offsets.len() - 1] + ((shape[1] - shape[0]) * (boxes[1] - boxes[0])) as usize);
    }
    offsets
}

fn kind_of(number: i32) -> Result<Kind> {
    [Kind::Auto, Kind::Replicated, Kind::Sharded, Kind::RankLocal]
        .into_iter()
        .find(|kind| *kind as i32 == number)
        .ok_or_else(|| Error::new(ErrorKind::Unimplemented, format!("kind {number} is newer than this crate")))
}

/// `count` values; zeros for NULL.
///
/// # Safety
/// The pointer is NULL or has as many values.
unsafe fn copied<T: Copy + Default>(data: *const T, count: usize) -> Vec<T> {
    if data.is_null() {
        return vec![T::default(); count];
    }
    unsafe { std::slice::from_raw_parts(data, count) }.to_vec()
}

/// `count` texts of a blob; empty ones where there are no offsets. `utf8`: each must be.
///
/// # Safety
/// The offsets are NULL or ascend from 0, and cut the blob.
unsafe fn texts(data: *const std::ffi::c_char, offsets: *const u64, count: usize, utf8: bool) -> Result<Blob> {
    let offsets = unsafe { copied(offsets, count + 1) };
    let bytes = unsafe { copied(data.cast::<u8>(), offsets[count] as usize) };
    let blob = Blob { bytes, offsets };
    if utf8 && (0..count).any(|i| std::str::from_utf8(blob.part(i)).is_err()) {
        return Err(Error::new(ErrorKind::DataLoss, "a name or path of the plan is not UTF-8"));
    }
    Ok(blob)
}
