// SPDX-License-Identifier: Apache-2.0
//! Element types by their torch names.

use shardwright_sys::{ffi, raw};
use std::ffi::{CStr, CString};
use std::fmt;

use crate::error::{Error, Result, StatusCode};

/// Element type: DLPack code and bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DType {
    pub(crate) code: u8,
    pub(crate) bits: u8,
}

impl DType {
    /// From torch's name, e.g. `bfloat16`. INVALID_ARGUMENT for other texts.
    pub fn from_name(name: &str) -> Result<DType> {
        let text = CString::new(name)
            .map_err(|_| Error::new(StatusCode::InvalidArgument, format!("dtype name {name:?} holds a NUL")))?;
        // SAFETY: the text is valid for the call.
        let packed = unsafe { raw::dtype_parse(text.as_ptr()) }?;
        Ok(DType { code: (packed & 0xFF) as u8, bits: ((packed >> 8) & 0xFF) as u8 })
    }

    /// Number of the flat arrays of the C interface: code + 256 x bits.
    pub fn number(self) -> i32 {
        i32::from(self.code) + 256 * i32::from(self.bits)
    }

    pub(crate) fn of_number(number: i32) -> DType {
        DType { code: (number & 0xFF) as u8, bits: ((number >> 8) & 0xFF) as u8 }
    }

    /// torch's name.
    pub fn name(self) -> &'static str {
        // SAFETY: static text of the library.
        unsafe { CStr::from_ptr(ffi::shw_dtype_name(self.code, self.bits)) }.to_str().unwrap_or("invalid")
    }

    /// Bytes of `count` packed elements.
    pub fn byte_size(self, count: u64) -> u64 {
        // SAFETY: plain values.
        unsafe { ffi::shw_dtype_byte_size(self.code, self.bits, count) }
    }
}

impl fmt::Debug for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

mod sealed {
    pub trait Sealed {}
}

/// Rust types that are tensor elements as they lie in memory. Any bit pattern is a value of each.
pub trait Element: Copy + Send + Sync + 'static + sealed::Sealed {
    /// The matching element type.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($type:ty = $code:literal, $bits:literal;)*) => {
        $(impl sealed::Sealed for $type {}
        impl Element for $type { const DTYPE: DType = DType { code: $code, bits: $bits }; })*
    };
}

elements! {
    i8 = 0, 8; i16 = 0, 16; i32 = 0, 32; i64 = 0, 64;
    u8 = 1, 8; u16 = 1, 16; u32 = 1, 32; u64 = 1, 64;
    f32 = 2, 32; f64 = 2, 64;
}
