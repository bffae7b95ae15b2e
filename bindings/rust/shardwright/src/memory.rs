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
