// SPDX-License-Identifier: Apache-2.0
//! Opens the library at run time and keeps its function table for the process.

use crate::ffi;
use crate::table::shw_api;
use core::ffi::{CStr, c_char, c_int, c_void};
use std::env;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;

const SONAME: &str = "libshardwright.so.0";
const RTLD_NOW: c_int = 2;

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}

struct Table(*const shw_api);
// SAFETY: the table is constant for the process.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

static TABLE: OnceLock<Result<Table, String>> = OnceLock::new();

/// Loads the library once; the error lists every place that was tried.
pub fn load() -> Result<(), String> {
    TABLE.get_or_init(find).as_ref().map(|_| ()).map_err(Clone::clone)
}

/// The function table. Panics with the list of tried places when the library cannot be loaded; call [`load`] first to
/// get that as an error.
pub fn table() -> &'static shw_api {
    match TABLE.get_or_init(find) {
        // SAFETY: the library is never unloaded.
        Ok(table) => unsafe { &*table.0 },
        Err(text) => panic!("{text}"),
    }
}

fn candidates() -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Some(path) = env::var_os("SHW_LIBRARY_PATH") {
        let path = PathBuf::from(path);
        found.push(if path.is_dir() { path.join(SONAME) } else { path });
    }
    found.push(PathBuf::from(SONAME));
    if let Some(folder) = env::current_exe().ok().as_deref().and_then(|p| p.parent()) {
        found.push(folder.join(SONAME));
    }
    found
}

fn find() -> Result<Table, String> {
    let mut tried = Vec::new();
    for path in candidates() {
        match open(&path) {
            Ok(table) => return Ok(table),
            Err(text) => tried.push(format!("{}: {text}", path.display())),
        }
    }
    Err(format!("libshardwright could not be loaded; tried {}", tried.join("; ")))
}

fn open(path: &std::path::Path) -> Result<Table, String> {
    let text = CString::new(path.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
    // SAFETY: plain calls of the dynamic loader with valid strings.
    unsafe {
        let library = dlopen(text.as_ptr(), RTLD_NOW);
        if library.is_null() {
            return Err(last_error());
        }
        let symbol = dlsym(library, c"shw_get_api".as_ptr());
        if symbol.is_null() {
            return Err(last_error());
        }
        type GetApi = unsafe extern "C" fn(u32, u32, *mut *const shw_api, *mut *mut ffi::shw_error) -> ffi::shw_status;
        let get_api: GetApi = core::mem::transmute(symbol);
        let mut table = core::ptr::null();
        match get_api(ffi::SHW_ABI_MAJOR, ffi::SHW_ABI_MINOR, &mut table, core::ptr::null_mut()) {
            ffi::SHW_OK => Ok(Table(table)),
            status => Err(format!(
                "refuses interface {}.{} of this crate (status {status})",
                ffi::SHW_ABI_MAJOR,
                ffi::SHW_ABI_MINOR
            )),
        }
    }
}

unsafe fn last_error() -> String {
    let text = unsafe { dlerror() };
    if text.is_null() {
        String::from("unknown error")
    } else {
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}
