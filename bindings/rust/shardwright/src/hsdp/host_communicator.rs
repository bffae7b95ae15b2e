// SPDX-License-Identifier: Apache-2.0
//! Communicators that a host brings.

use crate::dtype::DType;
use crate::error::{ErrorKind, Result, guard, quietly};
use crate::limits::limit_of;
use crate::memory::{borrowed, borrowed_mut};
use shardwright_sys::ffi;
use std::ffi::{c_char, c_void};
use std::time::Duration;

/// One operation, equal on all ranks.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Number of the operation on this communicator.
    pub sequence: u64,
    /// Element type.
    pub dtype: DType,
    /// Elements that a rank contributes to each part.
    pub count: u64,
    /// How long it may take; none = no limit.
    pub timeout: Option<Duration>,
}

/// A transport of tensors that a host brings: operations that all ranks call in the same order, and that return when they have
/// ended. Sums are made by the library, in rank order. Methods run on threads of the library, one at a time, apart from `abort`,
/// which may come while another one waits. One that takes longer than its limit fails with DEADLINE_EXCEEDED.
pub trait HostCommunicator: Send + Sync + 'static {
    /// Rank of this end, from 0.
    fn rank(&self) -> i32;
    /// Number of ranks.
    fn size(&self) -> i32;
    /// The bytes of all ranks, which are as many on each, in rank order into `out`.
    fn all_gather(&self, operation: &Operation, data: &[u8], out: &mut [u8]) -> Result<()>;
    /// Sends each rank its part of `data`; `out` gets what each has for this one. Parts are equal, in rank order.
    fn all_to_all(&self, operation: &Operation, data: &[u8], out: &mut [u8]) -> Result<()>;
    /// Wakes all ranks that wait here; they fail with the kind and the message.
    fn abort(&self, kind: ErrorKind, message: &str);
}

/// What the library holds. Buffers are as large as the size that it was told, whatever the transport says later.
struct Host {
    transport: Box<dyn HostCommunicator>,
    size: u64,
}

type Call = *const ffi::shw_communicator_call;
type Err = *mut *mut ffi::shw_error;

pub(super) fn vtable_of(transport: impl HostCommunicator) -> ffi::shw_communicator_vtable {
    let (rank, size) = (transport.rank(), transport.size());
    let host = Host { transport: Box::new(transport), size: u64::try_from(size).unwrap_or(0) };
    // SAFETY: a plain struct for which all zero is valid.
    let mut table: ffi::shw_communicator_vtable = unsafe { std::mem::zeroed() };
    table.struct_size = size_of::<ffi::shw_communicator_vtable>() as u32;
    table.abi_major = ffi::SHW_ABI_MAJOR;
    table.abi_minor = ffi::SHW_ABI_MINOR;
    table.capabilities = (ffi::SHW_COMMUNICATOR_HOST_MEMORY | ffi::SHW_COMMUNICATOR_ORDERED_SUM) as u64;
    table.rank = rank;
    table.size = size;
    table.name = c"rust".as_ptr();
    table.user = Box::into_raw(Box::new(host)).cast();
    table.all_gather = Some(all_gather);
    table.all_to_all = Some(all_to_all);
    table.work_wait = Some(work_wait);
    table.work_test = Some(work_test);
    table.work_release = Some(work_release);
    table.abort = Some(abort);
    table.release = Some(release);
    table
}

/// # Safety
/// `user` is the box of vtable_of.
unsafe fn host<'a>(user: *mut c_void) -> &'a Host {
    unsafe { &*user.cast::<Host>() }
}

/// # Safety
/// `call` is valid.
unsafe fn operation_of(call: Call) -> Operation {
    let call = unsafe { &*call };
    Operation {
        sequence: call.sequence,
        dtype: DType(call.dtype),
        count: call.count,
        timeout: limit_of(call.timeout_ns),
    }
}

/// Operations end where they begin; their work is the transport itself, which nobody looks at.
/// # Safety
/// `work` is valid.
unsafe fn ended(user: *mut c_void, work: *mut *mut c_void) -> Result<()> {
    unsafe { *work = user };
    Ok(())
}

unsafe extern "C" fn all_gather(
    user: *mut c_void,
    call: Call,
    data: *const c_void,
    out: *mut c_void,
    work: *mut *mut c_void,
    err: Err,
) -> ffi::shw_status {
    guard(err, || unsafe {
        let (host, operation) = (host(user), operation_of(call));
        let size = operation.dtype.byte_size(operation.count);
        host.transport.all_gather(
            &operation,
            borrowed(data.cast::<u8>(), size),
            borrowed_mut(out.cast::<u8>(), size * host.size),
        )?;
        ended(user, work)
    })
}

unsafe extern "C" fn all_to_all(
    user: *mut c_void,
    call: Call,
    data: *const c_void,
    out: *mut c_void,
    work: *mut *mut c_void,
    err: Err,
) -> ffi::shw_status {
    guard(err, || unsafe {
        let (host, operation) = (host(user), operation_of(call));
        let size = operation.dtype.byte_size(operation.count) * host.size;
        host.transport.all_to_all(
            &operation,
            borrowed(data.cast::<u8>(), size),
            borrowed_mut(out.cast::<u8>(), size),
        )?;
        ended(user, work)
    })
}

unsafe extern "C" fn work_wait(_: *mut c_void, _: *mut c_void, _: i64, _: Err) -> ffi::shw_status {
    ffi::SHW_OK
}

unsafe extern "C" fn work_test(_: *mut c_void, _: *mut c_void, _: Err) -> ffi::shw_status {
    ffi::SHW_OK
}

unsafe extern "C" fn work_release(_: *mut c_void, _: *mut c_void) {}

unsafe extern "C" fn abort(user: *mut c_void, code: ffi::shw_status, message: *const c_char, size: u64) {
    quietly(|| {
        let text = unsafe { shardwright_sys::error::copy_text(message, size) };
        unsafe { host(user) }.transport.abort(ErrorKind::of(code), &text);
    });
}

unsafe extern "C" fn release(user: *mut c_void) {
    // SAFETY: the library calls this once, last.
    quietly(|| drop(unsafe { Box::from_raw(user.cast::<Host>()) }));
}
