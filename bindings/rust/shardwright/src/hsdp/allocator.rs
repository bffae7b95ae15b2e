// SPDX-License-Identifier: Apache-2.0
//! Memory of the host for whole parameters.

use crate::error::{Error, ErrorKind, Result, guard, quietly};
use shardwright_sys::ffi;
use std::collections::HashMap;
use std::ffi::c_void;

/// Alignment that memory of the host must have: that of the widest element.
pub const ALIGNMENT: usize = 16;

/// A host that owns the memory of whole parameters, such as a pool of its own. Called on the thread that calls the unit; dropped with
/// the unit's context, on any thread.
pub trait HostAllocator: Send + 'static {
    /// What is lent; it stays as it is, and is not looked at by the host, until it is given back.
    type Memory: AsMut<[u8]> + Send + 'static;

    /// Memory for a whole parameter: exactly so many bytes, at a multiple of [`ALIGNMENT`], of whatever content.
    fn allocate(&mut self, param: usize, bytes: usize) -> Result<Self::Memory>;

    /// Takes memory back; what it holds is the parameter as it was gathered last.
    fn deallocate(&mut self, param: usize, memory: Self::Memory);
}

/// What the library holds: the host, and what it lent, by parameter and address.
struct Lender<A: HostAllocator> {
    host: A,
    lent: HashMap<(usize, usize), Lent<A::Memory>>,
}

/// Memory that stays where it is.
struct Lent<M>(*mut M);

// SAFETY: it owns what it points to.
unsafe impl<M: Send> Send for Lent<M> {}

impl<M> Lent<M> {
    fn take(self) -> M {
        let memory = self.0;
        std::mem::forget(self);
        // SAFETY: made by Box, owned.
        *unsafe { Box::from_raw(memory) }
    }
}

impl<M> Drop for Lent<M> {
    fn drop(&mut self) {
        // SAFETY: made by Box, owned.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

impl<A: HostAllocator> Lender<A> {
    fn allocate(&mut self, param: usize, bytes: usize) -> Result<*mut u8> {
        let lent = Lent(Box::into_raw(Box::new(self.host.allocate(param, bytes)?)));
        // SAFETY: nobody touches the memory but through these bytes until it is given back.
        let found = unsafe { (*lent.0).as_mut() };
        let address = found.as_mut_ptr();
        if found.len() != bytes || address as usize % ALIGNMENT != 0 {
            let found = format!("{} bytes at {address:p}", found.len());
            self.host.deallocate(param, lent.take());
            let text =
                format!("memory of the host for parameter {param}: {found}, not {bytes} at a multiple of {ALIGNMENT}");
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        self.lent.insert((param, address as usize), lent);
        Ok(address)
    }

    fn deallocate(&mut self, param: usize, address: *mut u8) {
        if let Some(lent) = self.lent.remove(&(param, address as usize)) {
            self.host.deallocate(param, lent.take());
        }
    }
}

/// The table of a host; its `user` is owned by whoever holds the table.
pub(super) fn table_of<A: HostAllocator>(host: A) -> ffi::shw_hsdp_allocator {
    ffi::shw_hsdp_allocator {
        struct_size: size_of::<ffi::shw_hsdp_allocator>() as u32,
        flags: 0,
        user: Box::into_raw(Box::new(Lender { host, lent: HashMap::new() })).cast(),
        allocate: Some(allocate::<A>),
        deallocate: Some(deallocate::<A>),
        release: Some(release::<A>),
    }
}

unsafe extern "C" fn allocate<A: HostAllocator>(
    user: *mut c_void,
    param: u64,
    bytes: u64,
    out: *mut *mut c_void,
    err: *mut *mut ffi::shw_error,
) -> ffi::shw_status {
    // SAFETY: the library calls one at a time, with what table_of gave.
    guard(err, || unsafe {
        *out = (*user.cast::<Lender<A>>()).allocate(param as usize, bytes as usize)?.cast();
        Ok(())
    })
}

unsafe extern "C" fn deallocate<A: HostAllocator>(user: *mut c_void, param: u64, memory: *mut c_void, _: u64) {
    // SAFETY: as above.
    quietly(|| unsafe { (*user.cast::<Lender<A>>()).deallocate(param as usize, memory.cast()) });
}

unsafe extern "C" fn release<A: HostAllocator>(user: *mut c_void) {
    // SAFETY: the library calls this once, last.
    quietly(|| drop(unsafe { Box::from_raw(user.cast::<Lender<A>>()) }));
}
