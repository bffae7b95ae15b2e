// SPDX-License-Identifier: Apache-2.0
//! Transports between ranks: built in, or of the host.

use crate::error::{Error, ErrorKind, Result, guard, quietly};
use crate::limits::limit_of;
use crate::memory::{borrowed, borrowed_mut};
use shardwright_sys::{ffi, raw};
use std::ffi::c_void;
use std::slice;
use std::sync::{Arc, Weak};
use std::time::Duration;

pub use host::{Gathered, HostCollective, Parts, Reduction};

/// One rank's end of a transport. Used by one call at a time; a job that is given it gives it back when it has ended.
pub struct Collective(Arc<Owned>);

struct Owned(*mut ffi::shw_collective);

// SAFETY: a collective may move between threads; calls on it need &mut Collective, abort and getters may run beside them.
unsafe impl Send for Owned {}
// SAFETY: as above.
unsafe impl Sync for Owned {}

/// Wakes the ranks that wait in a collective, from any thread. It does not keep the collective alive.
#[derive(Clone)]
pub struct Aborter(Weak<Owned>);

/// The ends of `size` ranks in this process, each for a thread of its own.
pub fn thread_collectives(size: i32) -> Result<Vec<Collective>> {
    // SAFETY: the group handle is released after its members were taken.
    unsafe {
        let group = raw::collective_group_create(size)?;
        let members = (0..size).map(|rank| Ok(Collective::of(raw::collective_group_member(group, rank)?))).collect();
        ffi::shw_collective_group_release(group);
        members
    }
}

impl Collective {
    fn of(handle: *mut ffi::shw_collective) -> Collective {
        Collective(Arc::new(Owned(handle)))
    }

    /// What ends the waiting of a call that has the collective, beside its [`Cancellation`](crate::Cancellation).
    pub fn aborter(&self) -> Aborter {
        Aborter(Arc::downgrade(&self.0))
    }

    /// A single rank.
    pub fn single() -> Result<Collective> {
        // SAFETY: no arguments.
        Ok(Collective::of(unsafe { raw::collective_create_single() }?))
    }

    /// A transport of the host.
    pub fn host(transport: impl HostCollective) -> Result<Collective> {
        let vtable = host::vtable_of(transport);
        // SAFETY: on success the library owns `user`; on failure it is taken back here.
        match unsafe { raw::collective_create(&vtable) } {
            Ok(handle) => Ok(Collective::of(handle)),
            Err(error) => {
                if let Some(release) = vtable.release {
                    unsafe { release(vtable.user) };
                }
                Err(error.into())
            }
        }
    }

    /// The ranks of another transport through the memory of their machine, where all of them run on one (2 to 64 ranks of
    /// one user that reach each other's memory); else that transport. An operation takes some microseconds there. All ranks
    /// make it together.
    pub fn node(inner: Collective) -> Result<Collective> {
        // SAFETY: the handle lives as long as inner; what is made keeps the transport alive.
        Ok(Collective::of(unsafe { raw::collective_create_node(inner.handle(), std::ptr::null()) }?))
    }

    /// Rank of this end.
    pub fn rank(&self) -> i32 {
        // SAFETY: the handle lives as long as self.
        unsafe { ffi::shw_collective_rank(self.handle()) }
    }

    /// Number of ranks.
    pub fn size(&self) -> i32 {
        // SAFETY: the handle lives as long as self.
        unsafe { ffi::shw_collective_size(self.handle()) }
    }

    pub(crate) fn handle(&self) -> *mut ffi::shw_collective {
        self.0.0
    }
}

impl Aborter {
    /// All ranks that wait here fail with the kind and the message. Nothing is left to wake after the collective was dropped.
    pub fn abort(&self, kind: ErrorKind, message: &str) -> Result<()> {
        let Some(collective) = self.0.upgrade() else { return Ok(()) };
        // SAFETY: handle and text live for the call.
        Ok(unsafe { raw::collective_abort(collective.0, kind.status(), message.as_bytes()) }?)
    }
}

impl std::fmt::Debug for Aborter {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Aborter").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Collective {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Collective").field("rank", &self.rank()).field("size", &self.size()).finish()
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: owned, released once.
        unsafe { ffi::shw_collective_release(self.0) }
    }
}

mod host {
    use super::*;

    /// Operation of a reduction.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub enum Reduction {
        /// The smallest value.
        Min,
        /// The largest value.
        Max,
        /// The sum; OUT_OF_RANGE when it does not fit.
        Sum,
    }

    impl Reduction {
        fn of(number: i32) -> Result<Reduction> {
            match number {
                ffi::SHW_REDUCE_MIN => Ok(Reduction::Min),
                ffi::SHW_REDUCE_MAX => Ok(Reduction::Max),
                ffi::SHW_REDUCE_SUM => Ok(Reduction::Sum),
                _ => Err(Error::new(ErrorKind::Unimplemented, format!("reduction {number} is not known"))),
            }
        }
    }

    /// Where the root of a gather_v receives, and every rank in an all_to_all_v.
    #[derive(Debug)]
    pub struct Gathered<'a> {
        /// Room for the bytes of all ranks, back to back.
        pub out: &'a mut [u8],
        /// Bytes of each rank.
        pub sizes: &'a [u64],
    }

    /// What the root of a scatter_v sends, and every rank in an all_to_all_v.
    #[derive(Debug)]
    pub struct Parts<'a> {
        /// The bytes for all ranks, back to back.
        pub bytes: &'a [u8],
        /// Bytes for each rank.
        pub sizes: &'a [u64],
    }

    /// A transport that a host brings: byte operations that all ranks call in the same order. Methods run on threads of
    /// the library, one at a time, apart from `abort`, which may come while another one waits. An operation that takes
    /// longer than `timeout` (none = no limit) fails with DEADLINE_EXCEEDED.
    pub trait HostCollective: Send + Sync + 'static {
        /// Rank of this end, from 0.
        fn rank(&self) -> i32;
        /// Number of ranks.
        fn size(&self) -> i32;
        /// Waits until all ranks are here.
        fn barrier(&self, timeout: Option<Duration>) -> Result<()>;
        /// The root's bytes reach all.
        fn broadcast(&self, data: &mut [u8], root: i32, timeout: Option<Duration>) -> Result<()>;
        /// Equal sizes in rank order into `out`.
        fn all_gather(&self, data: &[u8], out: &mut [u8], timeout: Option<Duration>) -> Result<()>;
        /// `sizes[rank]` bytes of each rank back to back into `out`.
        fn all_gather_v(&self, data: &[u8], out: &mut [u8], sizes: &[u64], timeout: Option<Duration>) -> Result<()>;
        /// Whether `gather_v` and `scatter_v` are there, on all ranks or on none; without them every rank receives what
        /// is meant for all.
        fn is_rooted(&self) -> bool {
            false
        }
        /// The root gets the bytes of all ranks back to back; it alone has `gathered`.
        fn gather_v(
            &self,
            data: &[u8],
            gathered: Option<Gathered>,
            root: i32,
            timeout: Option<Duration>,
        ) -> Result<()> {
            let _ = (data, gathered, root, timeout);
            Err(Error::new(ErrorKind::Unimplemented, "this transport has no gather_v"))
        }
        /// The root gives each rank the part that fills `data`; it alone has `parts`.
        fn scatter_v(&self, parts: Option<Parts>, data: &mut [u8], root: i32, timeout: Option<Duration>) -> Result<()> {
            let _ = (parts, data, root, timeout);
            Err(Error::new(ErrorKind::Unimplemented, "this transport has no scatter_v"))
        }
        /// Whether `all_to_all_v` is there, on all ranks or on none; without it every rank receives what is meant for all.
        fn has_all_to_all(&self) -> bool {
            false
        }
        /// Each rank gets its part of `sent` and has room in `received` for what each has for it, itself included. What it
        /// expects of a rank is what that one sends it.
        fn all_to_all_v(&self, sent: Parts, received: Gathered, timeout: Option<Duration>) -> Result<()> {
            let _ = (sent, received, timeout);
            Err(Error::new(ErrorKind::Unimplemented, "this transport has no all_to_all_v"))
        }
        /// Reduces in place.
        fn all_reduce_i64(&self, values: &mut [i64], operation: Reduction, timeout: Option<Duration>) -> Result<()>;
        /// Wakes all ranks that wait here; they fail with the kind and the message.
        fn abort(&self, kind: ErrorKind, message: &str);
    }

    /// What the library holds. Buffers are as large as the size that it was told, whatever the transport says later.
    struct Host {
        transport: Box<dyn HostCollective>,
        size: usize,
    }

    pub(super) fn vtable_of(transport: impl HostCollective) -> ffi::shw_collective_vtable {
        let (rank, size) = (transport.rank(), transport.size());
        let (is_rooted, has_all_to_all) = (transport.is_rooted(), transport.has_all_to_all());
        let host = Host { transport: Box::new(transport), size: usize::try_from(size).unwrap_or(0) };
        // SAFETY: a plain struct for which all zero is valid.
        let mut table: ffi::shw_collective_vtable = unsafe { std::mem::zeroed() };
        table.struct_size = size_of::<ffi::shw_collective_vtable>() as u32;
        table.abi_major = ffi::SHW_ABI_MAJOR;
        table.abi_minor = ffi::SHW_ABI_MINOR;
        table.rank = rank;
        table.size = size;
        table.name = c"rust".as_ptr();
        table.user = Box::into_raw(Box::new(host)).cast();
        table.barrier = Some(barrier);
        table.broadcast = Some(broadcast);
        table.all_gather = Some(all_gather);
        table.all_gather_v = Some(all_gather_v);
        if is_rooted {
            table.gather_v = Some(gather_v);
            table.scatter_v = Some(scatter_v);
        }
        if has_all_to_all {
            table.all_to_all_v = Some(all_to_all_v);
        }
        table.all_reduce_i64 = Some(all_reduce_i64);
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
    /// `sizes` is NULL or has one value per rank.
    unsafe fn sizes_of_root<'a>(sizes: *const u64, host: &Host) -> Option<&'a [u64]> {
        if sizes.is_null() { None } else { Some(unsafe { slice::from_raw_parts(sizes, host.size) }) }
    }

    type Call = *const ffi::shw_collective_call;
    type Err = *mut *mut ffi::shw_error;

    /// # Safety
    /// `call` is NULL or valid.
    unsafe fn timeout_of(call: Call) -> Option<Duration> {
        limit_of(unsafe { call.as_ref() }.map_or(0, |c| c.timeout_ns))
    }

    unsafe extern "C" fn barrier(user: *mut c_void, call: Call, err: Err) -> ffi::shw_status {
        guard(err, || unsafe { host(user).transport.barrier(timeout_of(call)) })
    }

    unsafe extern "C" fn broadcast(
        user: *mut c_void,
        call: Call,
        data: *mut c_void,
        size: u64,
        root: i32,
        err: Err,
    ) -> ffi::shw_status {
        guard(err, || unsafe {
            host(user).transport.broadcast(borrowed_mut(data.cast::<u8>(), size), root, timeout_of(call))
        })
    }

    unsafe extern "C" fn all_gather(
        user: *mut c_void,
        call: Call,
        data: *const c_void,
        size: u64,
        out: *mut c_void,
        err: Err,
    ) -> ffi::shw_status {
        guard(err, || unsafe {
            let host = host(user);
            let total = size * host.size as u64;
            host.transport.all_gather(
                borrowed(data.cast::<u8>(), size),
                borrowed_mut(out.cast::<u8>(), total),
                timeout_of(call),
            )
        })
    }

    unsafe extern "C" fn all_gather_v(
        user: *mut c_void,
        call: Call,
        data: *const c_void,
        size: u64,
        out: *mut c_void,
        sizes: *const u64,
        err: Err,
    ) -> ffi::shw_status {
        guard(err, || unsafe {
            let host = host(user);
            let sizes = slice::from_raw_parts(sizes, host.size);
            let out = borrowed_mut(out.cast::<u8>(), sizes.iter().sum());
            host.transport.all_gather_v(borrowed(data.cast::<u8>(), size), out, sizes, timeout_of(call))
        })
    }

    unsafe extern "C" fn gather_v(
        user: *mut c_void,
        call: Call,
        data: *const c_void,
        size: u64,
        out: *mut c_void,
        sizes: *const u64,
        root: i32,
        err: Err,
    ) -> ffi::shw_status {
        guard(err, || unsafe {
            let host = host(user);
            let gathered = sizes_of_root(sizes, host)
                .map(|sizes| Gathered { out: borrowed_mut(out.cast::<u8>(), sizes.iter().sum()), sizes });
            host.transport.gather_v(borrowed(data.cast::<u8>(), size), gathered, root, timeout_of(call))
        })
    }

    unsafe extern "C" fn scatter_v(
        user: *mut c_void,
        call: Call,
        parts: *const c_void,
        sizes: *const u64,
        data: *mut c_void,
        size: u64,
        root: i32,
        err: Err,
    ) -> ffi::shw_status {
        guard(err, || unsafe {
            let host = host(user);
            let parts = sizes_of_root(sizes, host)
                .map(|sizes| Parts { bytes: borrowed(parts.cast::<u8>(), sizes.iter().sum()), sizes });
            host.transport.scatter_v(parts, borrowed_mut(data.cast::<u8>(), size), root, timeout_of(call))
        })
    }

    unsafe extern "C" fn all_to_all_v(
        user: *mut c_void,
        call: Call,
        sent: *const c_void,
        sent_sizes: *const u64,
        received: *mut c_void,
        received_sizes: *const u64,
        err: Err,
    ) -> ffi::shw_status {
        guard(err, || unsafe {
            let host = host(user);
            let ranks = host.size;
            let sizes = slice::from_raw_parts(sent_sizes, ranks);
            let sent = Parts { bytes: borrowed(sent.cast::<u8>(), sizes.iter().sum()), sizes };
            let sizes = slice::from_raw_parts(received_sizes, ranks);
            let received = Gathered { out: borrowed_mut(received.cast::<u8>(), sizes.iter().sum()), sizes };
            host.transport.all_to_all_v(sent, received, timeout_of(call))
        })
    }

    unsafe extern "C" fn all_reduce_i64(
        user: *mut c_void,
        call: Call,
        values: *mut i64,
        count: u64,
        operation: i32,
        err: Err,
    ) -> ffi::shw_status {
        guard(err, || unsafe {
            host(user).transport.all_reduce_i64(
                borrowed_mut(values, count),
                Reduction::of(operation)?,
                timeout_of(call),
            )
        })
    }

    unsafe extern "C" fn abort(user: *mut c_void, code: ffi::shw_status, message: *const core::ffi::c_char, size: u64) {
        quietly(|| {
            let text = unsafe { shardwright_sys::error::copy_text(message, size) };
            unsafe { host(user) }.transport.abort(ErrorKind::of(code), &text);
        });
    }

    unsafe extern "C" fn release(user: *mut c_void) {
        // SAFETY: the library calls this once, last.
        quietly(|| drop(unsafe { Box::from_raw(user.cast::<Host>()) }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// A rank that is alone and notes what is called.
    struct Alone {
        between_all: bool,
        calls: Arc<Mutex<Vec<&'static str>>>,
    }

    impl Alone {
        fn called(&self, name: &'static str) -> Result<()> {
            self.calls.lock().unwrap().push(name);
            Ok(())
        }
    }

    impl HostCollective for Alone {
        fn rank(&self) -> i32 {
            0
        }
        fn size(&self) -> i32 {
            1
        }
        fn barrier(&self, _: Option<Duration>) -> Result<()> {
            self.called("barrier")
        }
        fn broadcast(&self, _: &mut [u8], _: i32, _: Option<Duration>) -> Result<()> {
            self.called("broadcast")
        }
        fn all_gather(&self, data: &[u8], out: &mut [u8], _: Option<Duration>) -> Result<()> {
            out.copy_from_slice(data);
            self.called("all_gather")
        }
        fn all_gather_v(&self, data: &[u8], out: &mut [u8], _: &[u64], _: Option<Duration>) -> Result<()> {
            out.copy_from_slice(data);
            self.called("all_gather_v")
        }
        fn has_all_to_all(&self) -> bool {
            self.between_all
        }
        fn all_to_all_v(&self, sent: Parts, received: Gathered, _: Option<Duration>) -> Result<()> {
            assert_eq!((sent.sizes, received.sizes), (&[4][..], &[4][..]));
            received.out.copy_from_slice(sent.bytes);
            self.called("all_to_all_v")
        }
        fn all_reduce_i64(&self, _: &mut [i64], _: Reduction, _: Option<Duration>) -> Result<()> {
            self.called("all_reduce_i64")
        }
        fn abort(&self, _: ErrorKind, _: &str) {}
    }

    fn calls_of_an_all_to_all(between_all: bool) -> Vec<&'static str> {
        let calls = Arc::new(Mutex::new(vec![]));
        let end = Collective::host(Alone { between_all, calls: Arc::clone(&calls) }).unwrap();
        let (sent, sizes, mut received) = ([1u8, 2, 3, 4], [4u64], [0u8; 4]);
        // SAFETY: rows of one size, buffers of as many bytes.
        unsafe {
            raw::collective_all_to_all_v(
                end.handle(),
                std::ptr::null(),
                sent.as_ptr().cast(),
                sizes.as_ptr(),
                received.as_mut_ptr().cast(),
                sizes.as_ptr(),
            )
        }
        .unwrap();
        assert_eq!(received, sent);
        calls.lock().unwrap().clone()
    }

    #[test]
    fn an_all_to_all_uses_what_the_transport_has() {
        assert_eq!(calls_of_an_all_to_all(true), ["all_to_all_v"]);
        assert_eq!(calls_of_an_all_to_all(false), ["all_gather", "all_gather_v"]);
    }
}
