// SPDX-License-Identifier: Apache-2.0
//! Element types by their torch names.

use shardwright_sys::{ffi, raw};
use std::ffi::{CStr, CString};
use std::fmt;

use crate::error::{Error, ErrorKind, Result};

/// Element type, by its number in the library.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DType(pub(crate) i32);

impl DType {
    /// One byte, 0 or 1.
    pub const BOOL: DType = DType(ffi::SHW_BOOL);
    /// 8-bit integer.
    pub const INT8: DType = DType(ffi::SHW_INT8);
    /// 16-bit integer.
    pub const INT16: DType = DType(ffi::SHW_INT16);
    /// 32-bit integer.
    pub const INT32: DType = DType(ffi::SHW_INT32);
    /// 64-bit integer.
    pub const INT64: DType = DType(ffi::SHW_INT64);
    /// 8-bit integer without sign.
    pub const UINT8: DType = DType(ffi::SHW_UINT8);
    /// 16-bit integer without sign.
    pub const UINT16: DType = DType(ffi::SHW_UINT16);
    /// 32-bit integer without sign.
    pub const UINT32: DType = DType(ffi::SHW_UINT32);
    /// 64-bit integer without sign.
    pub const UINT64: DType = DType(ffi::SHW_UINT64);
    /// 16-bit float.
    pub const FLOAT16: DType = DType(ffi::SHW_FLOAT16);
    /// Brain float, 16 bits.
    pub const BFLOAT16: DType = DType(ffi::SHW_BFLOAT16);
    /// 32-bit float.
    pub const FLOAT32: DType = DType(ffi::SHW_FLOAT32);
    /// 64-bit float.
    pub const FLOAT64: DType = DType(ffi::SHW_FLOAT64);
    /// Complex number of two 16-bit floats.
    pub const COMPLEX32: DType = DType(ffi::SHW_COMPLEX32);
    /// Complex number of two 32-bit floats.
    pub const COMPLEX64: DType = DType(ffi::SHW_COMPLEX64);
    /// Complex number of two 64-bit floats.
    pub const COMPLEX128: DType = DType(ffi::SHW_COMPLEX128);
    /// 8-bit float, 3 bits of exponent and 4 of mantissa.
    pub const FLOAT8_E3M4: DType = DType(ffi::SHW_FLOAT8_E3M4);
    /// 8-bit float, 4 bits of exponent and 3 of mantissa.
    pub const FLOAT8_E4M3: DType = DType(ffi::SHW_FLOAT8_E4M3);
    /// 8-bit float, 4 bits of exponent and 3 of mantissa, finite, one zero, bias 11.
    pub const FLOAT8_E4M3B11FNUZ: DType = DType(ffi::SHW_FLOAT8_E4M3B11FNUZ);
    /// 8-bit float, 4 bits of exponent and 3 of mantissa, finite.
    pub const FLOAT8_E4M3FN: DType = DType(ffi::SHW_FLOAT8_E4M3FN);
    /// 8-bit float, 4 bits of exponent and 3 of mantissa, finite, one zero.
    pub const FLOAT8_E4M3FNUZ: DType = DType(ffi::SHW_FLOAT8_E4M3FNUZ);
    /// 8-bit float, 5 bits of exponent and 2 of mantissa.
    pub const FLOAT8_E5M2: DType = DType(ffi::SHW_FLOAT8_E5M2);
    /// 8-bit float, 5 bits of exponent and 2 of mantissa, finite, one zero.
    pub const FLOAT8_E5M2FNUZ: DType = DType(ffi::SHW_FLOAT8_E5M2FNUZ);
    /// 8-bit float, 8 bits of exponent and 0 of mantissa, finite, no sign.
    pub const FLOAT8_E8M0FNU: DType = DType(ffi::SHW_FLOAT8_E8M0FNU);
    /// 6-bit float, 2 bits of exponent and 3 of mantissa, finite.
    pub const FLOAT6_E2M3FN: DType = DType(ffi::SHW_FLOAT6_E2M3FN);
    /// 6-bit float, 3 bits of exponent and 2 of mantissa, finite.
    pub const FLOAT6_E3M2FN: DType = DType(ffi::SHW_FLOAT6_E3M2FN);
    /// 4-bit float, 2 bits of exponent and 1 of mantissa, finite.
    pub const FLOAT4_E2M1FN: DType = DType(ffi::SHW_FLOAT4_E2M1FN);
    /// 4-bit integer.
    pub const INT4: DType = DType(ffi::SHW_INT4);
    /// 4-bit integer without sign.
    pub const UINT4: DType = DType(ffi::SHW_UINT4);

    /// From torch's name, e.g. `bfloat16`. INVALID_ARGUMENT for other texts.
    pub fn from_name(name: &str) -> Result<DType> {
        let text = CString::new(name)
            .map_err(|_| Error::new(ErrorKind::InvalidArgument, format!("dtype name {name:?} holds a NUL")))?;
        // SAFETY: the text is valid for the call.
        Ok(DType(unsafe { raw::dtype_parse(text.as_ptr()) }?))
    }

    /// Number of the type, the same in all languages and in files.
    pub fn number(self) -> i32 {
        self.0
    }

    /// torch's name.
    pub fn name(self) -> &'static str {
        // SAFETY: static text of the library.
        unsafe { CStr::from_ptr(ffi::shw_dtype_name(self.0)) }.to_str().unwrap_or("invalid")
    }

    /// Bytes of `count` packed elements.
    pub fn byte_size(self, count: u64) -> u64 {
        // SAFETY: plain values.
        unsafe { ffi::shw_dtype_byte_size(self.0, count) }
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
    pub trait Sealed {
        /// Whether any bit pattern is a value.
        const ANY_BITS: bool = true;
    }
}

/// Rust types that are tensor elements as they lie in memory: integers, `f32`, `f64`, `bool`, and with the feature `half` its
/// `f16` and `bf16`.
pub trait Element: Copy + Send + Sync + 'static + sealed::Sealed {
    /// The matching element type.
    const DTYPE: DType;
}

/// The first of these bytes that is no bool of Rust, and its place.
pub(crate) fn first_no_bool(bytes: &[u8]) -> Option<(usize, u8)> {
    bytes.iter().copied().enumerate().find(|(_, byte)| *byte > 1)
}

macro_rules! elements {
    ($($type:ty = $dtype:ident;)*) => {
        $(impl sealed::Sealed for $type {}
        impl Element for $type { const DTYPE: DType = DType::$dtype; })*
    };
}

impl sealed::Sealed for bool {
    const ANY_BITS: bool = false;
}
impl Element for bool {
    const DTYPE: DType = DType::BOOL;
}

#[cfg(feature = "half")]
elements! {
    half::f16 = FLOAT16; half::bf16 = BFLOAT16;
}

elements! {
    i8 = INT8; i16 = INT16; i32 = INT32; i64 = INT64;
    u8 = UINT8; u16 = UINT16; u32 = UINT32; u64 = UINT64;
    f32 = FLOAT32; f64 = FLOAT64;
}

#[cfg(feature = "serde")]
impl serde::Serialize for DType {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for DType {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<DType, D::Error> {
        let name = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        DType::from_name(&name).map_err(serde::de::Error::custom)
    }
}
