// SPDX-License-Identifier: Apache-2.0
//! Devices: where units have their memory.

use crate::context::Context;
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::text::sized_text;
use shardwright_sys::{ffi, raw};
use std::ffi::CString;

/// Memory of a kind, and lanes on which work runs beside the host. Contexts that use it keep it alive.
pub struct Device(*mut ffi::shw_device);

// SAFETY: a device may be used from any thread.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

impl Device {
    /// The host, which is what a context has without a device. Lanes are threads; inline ones run what is put on them where it is
    /// put, which makes an order of events that repeats.
    pub fn host(inline_lanes: bool) -> Result<Device> {
        // SAFETY: plain values.
        Ok(Device(unsafe { raw::device_create_host(inline_lanes.into()) }?))
    }

    /// A device of a plugin that the context has loaded ([`Context::load_plugin`]), made from text that the plugin understands:
    /// `Device::open(&context, "cuda", "{\"device\": 0}")`. UNIMPLEMENTED where the plugin has none; UNAVAILABLE naming what is missing
    /// for it.
    pub fn open(context: &Context, plugin: &str, config: &str) -> Result<Device> {
        let plugin = CString::new(plugin)
            .map_err(|_| Error::new(ErrorKind::InvalidArgument, format!("plugin name {plugin:?} holds a NUL")))?;
        // SAFETY: texts and context live for the call.
        let handle = unsafe { raw::context_open_device(context.handle(), plugin.as_ptr(), config.as_bytes()) }?;
        Ok(Device(handle))
    }

    /// Name of the device, such as "host".
    pub fn name(&self) -> String {
        // SAFETY: the handle lives as long as self.
        sized_text(|size| unsafe { ffi::shw_device_name(self.0, size) })
    }

    /// DLPack's type of the device, and which one of that type: where its memory lies.
    pub fn number(&self) -> (i32, i32) {
        // SAFETY: the handle lives as long as self.
        unsafe { (ffi::shw_device_type(self.0), ffi::shw_device_id(self.0)) }
    }

    /// Whether its memory is memory of the host.
    pub fn is_host(&self) -> bool {
        is_host_type(self.number().0)
    }

    pub(super) fn handle(&self) -> *const ffi::shw_device {
        self.0
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.debug_struct("Device").field("name", &self.name()).field("number", &self.number()).finish()
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: owned, released once.
        unsafe { ffi::shw_device_release(self.0) }
    }
}

/// Which memory of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum View {
    /// This rank's part.
    Local,
    /// The whole parameter, while its unit is unsharded.
    Full,
    /// The gradient of this rank's part.
    Grad,
}

impl View {
    pub(super) fn number(self) -> i32 {
        match self {
            View::Local => ffi::SHW_HSDP_VIEW_LOCAL,
            View::Full => ffi::SHW_HSDP_VIEW_FULL,
            View::Grad => ffi::SHW_HSDP_VIEW_GRAD,
        }
    }
}

/// Memory of a unit where it lies: dense and row-major, there until the state of the unit changes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ViewMemory {
    /// Where it begins, for what reaches that device; 0 where there is none.
    pub address: usize,
    /// Size of the elements.
    pub byte_size: u64,
    /// Their type.
    pub dtype: DType,
    /// DLPack's type of the device, and which one of that type.
    pub device: (i32, i32),
}

impl ViewMemory {
    pub(super) fn of(view: &ffi::shw_tensor) -> ViewMemory {
        ViewMemory {
            address: view.data as usize,
            byte_size: view.byte_size,
            dtype: DType(view.dtype),
            device: (view.device_type, view.device_id),
        }
    }
}

/// Memory that the host reaches, by DLPack's numbers.
fn is_host_type(device_type: i32) -> bool {
    matches!(device_type, ffi::SHW_DEVICE_CPU | ffi::SHW_DEVICE_CUDA_HOST | ffi::SHW_DEVICE_ROCM_HOST)
}

/// UNIMPLEMENTED naming the device where slices of the view would not reach it.
pub(super) fn check_on_host(view: &ffi::shw_tensor) -> Result<()> {
    if is_host_type(view.device_type) {
        return Ok(());
    }
    let text = format!(
        "the view lies on a device ({}, {}), and slices reach memory of the host only: use its address (Hsdp::memory) there",
        view.device_type, view.device_id
    );
    Err(Error::new(ErrorKind::Unimplemented, text))
}
