// SPDX-License-Identifier: Apache-2.0
//! Declarations of the shardwright C interface, generated from its headers.
//!
//! [`ffi`] mirrors C, [`raw`] turns error objects into results, [`table`] is the function table for hosts that open the
//! library themselves. Most programs want the crate `shardwright` instead.
#![allow(non_camel_case_types)]

pub mod error;
#[cfg(feature = "load-dynamic")]
pub mod loader;

/// Constants, structs, callbacks and functions as in C.
#[path = "generated/ffi.rs"]
pub mod ffi;
#[path = "generated/layout.rs"]
mod layout;
/// One function per C function, with results in place of out-parameters.
#[allow(clippy::missing_safety_doc, clippy::too_many_arguments)]
#[path = "generated/raw.rs"]
pub mod raw;
/// The function table of the library.
#[path = "generated/table.rs"]
pub mod table;
