// SPDX-License-Identifier: Apache-2.0
//! The extension `megatron` of the library: a table of functions that grids and owners are asked of.

use crate::error::Result;
use shardwright_sys::error::RawError;
use shardwright_sys::{ffi, raw};

/// Its functions.
pub(crate) fn megatron() -> Result<&'static ffi::shw_megatron_api> {
    // SAFETY: the name is static; a table of this version has this type and lives for the process.
    unsafe {
        let functions = raw::get_extension(ffi::SHW_MEGATRON_NAME.as_ptr(), ffi::SHW_MEGATRON_VERSION as u32)?;
        Ok(&*functions.cast::<ffi::shw_megatron_api>())
    }
}

/// A function of the table.
pub(crate) fn slot<F>(function: Option<F>) -> F {
    function.expect("no slot of an extension is NULL")
}

/// Status and error object of a call as a result.
pub(crate) fn answered(
    call: impl FnOnce(*mut *mut ffi::shw_error) -> ffi::shw_status,
) -> std::result::Result<(), RawError> {
    let mut err = std::ptr::null_mut();
    let status = call(&mut err);
    RawError::check(status, err)
}
