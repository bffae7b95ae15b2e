// SPDX-License-Identifier: Apache-2.0
//! Mappings: rules that say how entries are stored.

use crate::error::Result;
use crate::text::Blob;
use shardwright_sys::{ffi, raw};
use std::ffi::CString;

/// Rules that say under which names, in which shapes and in which boxes the entries of a state are stored; for
/// [`State::mapped`](crate::State::mapped). Immutable, any thread.
#[derive(Debug)]
pub struct Mapping {
    handle: *mut ffi::shw_mapping,
}

// SAFETY: nothing in a mapping is tied to a thread.
unsafe impl Send for Mapping {}
// SAFETY: it never changes.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Rules in JSON, with the values of "$name" in them. INVALID_ARGUMENT names line, rule and member of what is wrong, and
    /// parameters that are missing or not known.
    pub fn parse(json: &str, parameters: &[(&str, i64)]) -> Result<Mapping> {
        Mapping::made(parameters, |spec| {
            spec.json = json.as_ptr().cast();
            spec.json_size = json.len() as u64;
        })
    }

    /// Rules that the library brings: "swiglu", "gpt", "gpt_swiglu", "moe", "mamba"; NOT_FOUND for others.
    pub fn shipped(name: &str, parameters: &[(&str, i64)]) -> Result<Mapping> {
        let name = CString::new(name.replace('\0', "?")).unwrap_or_default();
        Mapping::made(parameters, |spec| spec.shipped = name.as_ptr())
    }

    fn made(parameters: &[(&str, i64)], set: impl FnOnce(&mut ffi::shw_mapping_spec)) -> Result<Mapping> {
        let names = Blob::of(parameters.iter().map(|(name, _)| name));
        let values: Vec<i64> = parameters.iter().map(|(_, value)| *value).collect();
        // SAFETY: a plain struct for which all zero is valid.
        let mut spec: ffi::shw_mapping_spec = unsafe { std::mem::zeroed() };
        spec.struct_size = size_of::<ffi::shw_mapping_spec>() as u32;
        set(&mut spec);
        spec.parameter_names = names.bytes.as_ptr().cast();
        spec.parameter_name_offsets = names.offsets.as_ptr();
        spec.parameter_values = values.as_ptr();
        spec.parameter_count = values.len() as u64;
        // SAFETY: everything lives for the call, which copies it.
        Ok(Mapping { handle: unsafe { raw::mapping_create(&spec) }? })
    }

    pub(crate) fn handle(&self) -> *const ffi::shw_mapping {
        self.handle
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: owned, released once.
        unsafe { ffi::shw_mapping_release(self.handle) }
    }
}
