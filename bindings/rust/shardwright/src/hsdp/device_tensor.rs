// SPDX-License-Identifier: Apache-2.0
//! Tensors by their address, on a device or in memory of the host.

use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use shardwright_sys::ffi;

/// A dense row-major tensor by its address: memory that a framework or an allocator of the host has on a device. An [`Hsdp`] on that
/// device takes it where it lies, as a parameter ([`Param::on_device`]), as a gradient ([`Hsdp::add_device_grads`],
/// [`Hsdp::take_device_grads`]), and in a state that has its shards ([`State::add_on_device`]); on another device it is UNIMPLEMENTED
/// naming both.
///
/// ```no_run
/// use shardwright::hsdp::{Device, DeviceTensor, Hsdp, HsdpOptions, Mesh, Param, UnitOptions};
/// use shardwright::{Context, DType};
///
/// # fn allocate_on_gpu(bytes: usize) -> usize { bytes }
/// let context = Context::builder().build()?;
/// // SAFETY: a plugin of this library.
/// unsafe { context.load_plugin("cuda") }?;
/// let device = Device::open(&context, "cuda", "")?;
/// let mut hsdp = Hsdp::on_device(&context, &device, &Mesh::new(&[1], 0)?, &HsdpOptions::default())?;
/// let address = allocate_on_gpu(4 * 3 * 4); // and filled, by a stream that was waited for
/// // SAFETY: 48 bytes of that device, which nobody writes before the tensor is dropped.
/// let weight = unsafe { DeviceTensor::new(address, DType::FLOAT32, &[4, 3], device.number()) }?;
/// hsdp.add_unit("layer", &UnitOptions::default(), &[Param::on_device("weight", &weight)])?;
/// # Ok::<(), shardwright::Error>(())
/// ```
///
/// [`Hsdp`]: crate::hsdp::Hsdp
/// [`Hsdp::add_device_grads`]: crate::hsdp::Hsdp::add_device_grads
/// [`Hsdp::take_device_grads`]: crate::hsdp::Hsdp::take_device_grads
/// [`Param::on_device`]: crate::hsdp::Param::on_device
/// [`State::add_on_device`]: crate::State::add_on_device
#[derive(Debug)]
pub struct DeviceTensor {
    address: usize,
    byte_size: u64,
    dtype: DType,
    shape: Vec<i64>,
    device: (i32, i32),
}

impl DeviceTensor {
    /// The tensor that begins at an address of a device, which is given by DLPack's type and which one of that type
    /// ([`Device::number`](crate::hsdp::Device::number)); (1, 0) is the host. INVALID_ARGUMENT for a shape that is none, and for
    /// address 0 where there are elements.
    ///
    /// # Safety
    /// From the address on, that device has as many bytes as dtype and shape need, as long as the tensor lives. What wrote them has
    /// ended: streams are not waited for. As long as the tensor is borrowed, or was given away, nobody writes them, and as long as it
    /// is borrowed mutably nobody else reads them either. An address of the host that is said to be one of a device is refused only
    /// where that is another device than the one of the call.
    pub unsafe fn new(address: usize, dtype: DType, shape: &[i64], device: (i32, i32)) -> Result<DeviceTensor> {
        let invalid = |text: String| Error::new(ErrorKind::InvalidArgument, text);
        let bytes_of = |count: u64| match dtype.byte_size(count) {
            0 if count > 0 => None, // too many, or no dtype
            bytes => Some(bytes),
        };
        let count = shape.iter().try_fold(1u64, |count, extent| count.checked_mul(u64::try_from(*extent).ok()?));
        let byte_size = count.and_then(bytes_of);
        let byte_size = byte_size.ok_or_else(|| invalid(format!("{shape:?} is no shape of {dtype}")))?;
        if address == 0 && byte_size > 0 {
            return Err(invalid(format!("address 0 for {byte_size} bytes of shape {shape:?}")));
        }
        Ok(DeviceTensor { address, byte_size, dtype, shape: shape.to_vec(), device })
    }

    /// Where it begins.
    pub fn address(&self) -> usize {
        self.address
    }

    /// Size of the elements.
    pub fn byte_size(&self) -> u64 {
        self.byte_size
    }

    /// Their type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Extents.
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// DLPack's type of the device, and which one of that type.
    pub fn device(&self) -> (i32, i32) {
        self.device
    }

    /// As C has it, to be read; borrows the shape.
    pub(super) fn described(&self) -> ffi::shw_tensor {
        // SAFETY: a plain struct for which all zero is valid.
        let mut tensor: ffi::shw_tensor = unsafe { std::mem::zeroed() };
        tensor.struct_size = size_of::<ffi::shw_tensor>() as u32;
        tensor.flags = ffi::SHW_TENSOR_READ_ONLY as u32;
        tensor.data = self.address as *mut _;
        tensor.byte_size = self.byte_size;
        (tensor.device_type, tensor.device_id) = self.device;
        tensor.dtype = self.dtype.0;
        tensor.ndim = self.shape.len() as i32;
        tensor.shape = self.shape.as_ptr();
        tensor
    }
}

impl AsRef<DeviceTensor> for DeviceTensor {
    fn as_ref(&self) -> &DeviceTensor {
        self
    }
}
