// SPDX-License-Identifier: Apache-2.0
//! Communicators: collectives over elements of tensors, what units gather and reduce with.

use crate::collective::Collective;
use crate::context::Context;
use crate::error::{ErrorKind, Result};
use crate::hsdp::host_communicator::{self, HostCommunicator};
use crate::limits::span_ns;
use crate::text::sized_text;
use shardwright_sys::{ffi, raw};
use std::ffi::CString;
use std::time::Duration;

/// One rank's end of a transport of tensors. Meshes that use it keep it alive.
pub struct Communicator(*mut ffi::shw_communicator);

// SAFETY: a communicator may move between threads; operations go through a mesh, abort and getters may run beside them.
unsafe impl Send for Communicator {}
// SAFETY: as above.
unsafe impl Sync for Communicator {}

/// The ends of `size` ranks in this process, each for a thread of its own.
pub fn thread_communicators(size: i32) -> Result<Vec<Communicator>> {
    // SAFETY: the group handle is released after its members were taken.
    unsafe {
        let group = raw::communicator_group_create(size)?;
        let members = (0..size).map(|rank| Ok(Communicator(raw::communicator_group_member(group, rank)?))).collect();
        ffi::shw_communicator_group_release(group);
        members
    }
}

/// One rank of `size` that moves nothing and always succeeds.
pub fn fake_communicator(rank: i32, size: i32) -> Result<Communicator> {
    // SAFETY: plain values.
    Ok(Communicator(unsafe { raw::communicator_create_fake(rank, size) }?))
}

/// A communicator behind an emulated link: operations end `latency` after their bytes have come at `bytes_per_second` (0 =
/// at once).
pub fn delayed(inner: &Communicator, latency: Duration, bytes_per_second: f64) -> Result<Communicator> {
    // SAFETY: the handle lives for the call; what is made keeps it alive.
    Ok(Communicator(unsafe { raw::communicator_create_delay(inner.0, span_ns(Some(latency)), bytes_per_second) }?))
}

/// A communicator over a collective of bytes. Works everywhere, and waits for other ranks where an operation begins.
pub fn over(collective: Collective) -> Result<Communicator> {
    // SAFETY: the handle lives for the call; what is made keeps the transport alive.
    Ok(Communicator(unsafe { raw::communicator_create_over(collective.handle()) }?))
}

/// A communicator of a plugin that the context has loaded ([`Context::load_plugin`]), made from text that the plugin understands.
pub fn open_communicator(context: &Context, plugin: &str, config: &str) -> Result<Communicator> {
    let plugin = CString::new(plugin)
        .map_err(|_| crate::Error::new(ErrorKind::InvalidArgument, format!("plugin name {plugin:?} holds a NUL")))?;
    // SAFETY: texts and context live for the call.
    let handle = unsafe { raw::context_open_communicator(context.handle(), plugin.as_ptr(), config.as_bytes()) }?;
    Ok(Communicator(handle))
}

impl Communicator {
    /// A transport of the host.
    pub fn host(transport: impl HostCommunicator) -> Result<Communicator> {
        let vtable = host_communicator::vtable_of(transport);
        // SAFETY: on success the library owns `user`; on failure it is taken back here.
        match unsafe { raw::communicator_create(&vtable) } {
            Ok(handle) => Ok(Communicator(handle)),
            Err(error) => {
                if let Some(release) = vtable.release {
                    unsafe { release(vtable.user) };
                }
                Err(error.into())
            }
        }
    }

    /// Rank of this end, from 0.
    pub fn rank(&self) -> i32 {
        // SAFETY: the handle lives as long as self.
        unsafe { ffi::shw_communicator_rank(self.0) }
    }

    /// Number of ranks.
    pub fn size(&self) -> i32 {
        // SAFETY: the handle lives as long as self.
        unsafe { ffi::shw_communicator_size(self.0) }
    }

    /// Name of the transport.
    pub fn name(&self) -> String {
        // SAFETY: the handle lives as long as self.
        sized_text(|size| unsafe { ffi::shw_communicator_name(self.0, size) })
    }

    /// Wakes all ranks that wait here and ends the communicator; they fail with the kind and the message.
    pub fn abort(&self, kind: ErrorKind, message: &str) -> Result<()> {
        // SAFETY: handle and text live for the call.
        Ok(unsafe { raw::communicator_abort(self.0, kind.status(), message.as_bytes()) }?)
    }

    pub(super) fn handle(&self) -> *mut ffi::shw_communicator {
        self.0
    }
}

impl std::fmt::Debug for Communicator {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Communicator")
            .field("name", &self.name())
            .field("rank", &self.rank())
            .field("size", &self.size())
            .finish()
    }
}

impl Drop for Communicator {
    fn drop(&mut self) {
        // SAFETY: owned, released once.
        unsafe { ffi::shw_communicator_release(self.0) }
    }
}
