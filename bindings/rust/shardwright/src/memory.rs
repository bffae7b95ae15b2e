// SPDX-License-Identifier: Apache-2.0
//! Memory on its way over the C interface: slices of what it lends, and bytes of elements.

use crate::dtype::Element;

/// `count` values that C lends; NULL is allowed for none.
///
/// # Safety
/// `count` values at `data`, or none, that nobody changes as long as the result lives.
pub(crate) unsafe fn borrowed<'a, T>(data: *const T, count: u64) -> &'a [T] {
    if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data, count as usize) } }
}

/// # Safety
/// As borrowed, and nobody else sees the values.
pub(crate) unsafe fn borrowed_mut<'a, T>(data: *mut T, count: u64) -> &'a mut [T] {
    if count == 0 { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(data, count as usize) } }
}

pub(crate) fn as_bytes<T: Element>(data: &[T]) -> &[u8] {
    // SAFETY: elements have no padding.
    unsafe { std::slice::from_raw_parts(data.as_ptr().cast(), std::mem::size_of_val(data)) }
}

pub(crate) fn as_bytes_mut<T: Element>(data: &mut [T]) -> &mut [u8] {
    // SAFETY: elements have no padding, and any bit pattern is a value.
    unsafe { std::slice::from_raw_parts_mut(data.as_mut_ptr().cast(), std::mem::size_of_val(data)) }
}

/// Memory of one tensor that a state owns.
pub(crate) struct Owned {
    lines: Vec<Line>,
    size: usize,
}

/// The alignment of the library's own buffers, for every element type and for vector copies and casts.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line(#[allow(dead_code)] [u8; 64]); // read and written as bytes of the whole

impl Owned {
    pub(crate) fn copy_of(data: &[u8]) -> Owned {
        let mut lines = vec![Line([0; 64]); data.len().div_ceil(64)];
        // SAFETY: the vector has at least as many bytes.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), lines.as_mut_ptr().cast::<u8>(), data.len()) };
        Owned { lines, size: data.len() }
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.lines.as_mut_ptr().cast()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the vector has at least `size` bytes.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.size) }
    }
}
