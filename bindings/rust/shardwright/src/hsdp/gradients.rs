// SPDX-License-Identifier: Apache-2.0
//! Gradients on their way into a unit: copied, or given away and read where they lie.

use crate::dtype::{DType, Element};
use crate::error::{Error, ErrorKind, Result, quietly};
use crate::hsdp::device_tensor::DeviceTensor;
use crate::hsdp::options::tensor_of;
use crate::hsdp::units::{Hsdp, Unit};
use crate::memory::as_bytes;
use shardwright_sys::{ffi, raw};
use std::ffi::c_void;

impl Hsdp {
    /// Hands in gradients of whole parameters by their numbers, all or none: a copy is added to what is there.
    /// INVALID_ARGUMENT where the elements do not fill the shape of the parameter.
    pub fn add_grads<T: Element>(&mut self, unit: Unit, grads: &[(usize, &[T])]) -> Result<()> {
        let shapes = grads
            .iter()
            .map(|(index, data)| self.shape_of_grad(unit, *index, data.len()))
            .collect::<Result<Vec<_>>>()?;
        let params: Vec<_> = grads.iter().map(|(index, _)| *index as u64).collect();
        let tensors: Vec<_> = std::iter::zip(grads, &shapes)
            .map(|((_, data), shape)| tensor_of(T::DTYPE, shape, Some(as_bytes(data))))
            .collect();
        // SAFETY: everything lives for the call.
        unsafe { self.add_described(unit, &params, &tensors) }
    }

    /// As [`Hsdp::add_grads`], of gradients that lie on the device of the units. UNIMPLEMENTED naming one that lies on another.
    pub fn add_device_grads(&mut self, unit: Unit, grads: &[(usize, &DeviceTensor)]) -> Result<()> {
        let params: Vec<_> = grads.iter().map(|(index, _)| *index as u64).collect();
        let tensors: Vec<_> = grads.iter().map(|(_, tensor)| tensor.described()).collect();
        // SAFETY: everything lives for the call, the memory as whoever made the tensors says.
        unsafe { self.add_described(unit, &params, &tensors) }
    }

    /// # Safety
    /// As many parameters as tensors, which live for the call: it copies them.
    unsafe fn add_described(&mut self, unit: Unit, params: &[u64], tensors: &[ffi::shw_tensor]) -> Result<()> {
        let (handle, count) = (self.raw(unit)?, params.len() as u64);
        let mode = ffi::SHW_HSDP_ADD;
        Ok(unsafe { raw::hsdp_unit_add_grads(handle, params.as_ptr(), tensors.as_ptr(), count, mode) }?)
    }

    /// Gives gradients of whole parameters away, all or none: the first of a parameter is read where it lies until it was reduced, and
    /// dropped then, on any thread; further ones are added to it. They are dropped at once where the call fails.
    /// INVALID_ARGUMENT as in [`Hsdp::add_grads`].
    pub fn take_grads<T, G>(&mut self, unit: Unit, grads: impl IntoIterator<Item = (usize, G)>) -> Result<()>
    where
        T: Element,
        G: AsRef<[T]> + Send + 'static,
    {
        self.give(unit, grads, |this, index, grad: &G| {
            let elements = grad.as_ref();
            let shape = this.shape_of_grad(unit, index, elements.len())?;
            let data = elements.as_ptr().cast_mut().cast();
            Ok(Described { data, dtype: T::DTYPE, shape, device: (ffi::SHW_DEVICE_CPU, 0) })
        })
    }

    /// As [`Hsdp::take_grads`], of gradients that lie on the device of the units, with what keeps their memory.
    ///
    /// ```no_run
    /// use shardwright::hsdp::{DeviceTensor, Hsdp, Unit};
    ///
    /// /// A gradient in memory of a GPU, which is freed with it.
    /// struct Grad(DeviceTensor);
    ///
    /// impl AsRef<DeviceTensor> for Grad {
    ///     fn as_ref(&self) -> &DeviceTensor {
    ///         &self.0
    ///     }
    /// }
    ///
    /// impl Drop for Grad {
    ///     fn drop(&mut self) {
    ///         // on whichever thread is the last one to read it
    ///     }
    /// }
    ///
    /// fn backward(hsdp: &mut Hsdp, unit: Unit, grad: Grad) -> shardwright::Result<()> {
    ///     hsdp.take_device_grads(unit, [(0, grad)])
    /// }
    /// ```
    pub fn take_device_grads<G>(&mut self, unit: Unit, grads: impl IntoIterator<Item = (usize, G)>) -> Result<()>
    where
        G: AsRef<DeviceTensor> + Send + 'static,
    {
        self.give(unit, grads, |_, _, grad: &G| {
            let tensor = grad.as_ref();
            let data = tensor.address() as *mut _;
            Ok(Described { data, dtype: tensor.dtype(), shape: tensor.shape().to_vec(), device: tensor.device() })
        })
    }

    /// `describe` is called once for each gradient, when that lies where it will stay.
    fn give<G: Send + 'static>(
        &mut self,
        unit: Unit,
        grads: impl IntoIterator<Item = (usize, G)>,
        describe: impl Fn(&Hsdp, usize, &G) -> Result<Described>,
    ) -> Result<()> {
        let handle = self.raw(unit)?;
        let (mut params, mut given) = (Vec::new(), Vec::new());
        for (index, grad) in grads {
            given.push(Lent::new(grad, |grad| describe(self, index, grad))?);
            params.push(index as u64);
        }
        let managed: Vec<_> = given.iter().map(|lent| lent.0).collect();
        // SAFETY: arrays live for the call; on success the tensors are the library's.
        unsafe {
            raw::hsdp_unit_add_grads_dlpack(
                handle,
                params.as_ptr(),
                managed.as_ptr().cast(),
                params.len() as u64,
                ffi::SHW_HSDP_TAKE,
            )
        }?;
        given.into_iter().for_each(std::mem::forget);
        Ok(())
    }

    /// Shape of a parameter whose gradient has so many elements.
    fn shape_of_grad(&self, unit: Unit, index: usize, elements: usize) -> Result<Vec<i64>> {
        let shape = self.local_box(unit, index)?.global_shape;
        if elements as i64 == shape.iter().product::<i64>() {
            return Ok(shape);
        }
        let text = format!("gradient of parameter {index} has {elements} elements, its shape is {shape:?}");
        Err(Error::new(ErrorKind::InvalidArgument, text))
    }
}

/// DLTensor of DLPack 1.
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    dtype: u32,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// DLManagedTensorVersioned of DLPack 1.
#[repr(C)]
struct Managed {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
    flags: u64,
    tensor: Tensor,
}

const DLPACK_MAJOR: u32 = 1;
const READ_ONLY: u64 = 1;

/// Dense elements and where they lie.
struct Described {
    data: *mut c_void,
    dtype: DType,
    shape: Vec<i64>,
    device: (i32, i32),
}

/// A gradient that was given away, with what describes it.
#[repr(C)] // begins with what the library sees
struct Given<G> {
    managed: Managed,
    shape: Vec<i64>,
    grad: G,
}

/// One that is not the library's yet.
struct Lent(*mut Managed);

impl Lent {
    /// What `describe` says stays as long as the gradient stays where it is.
    fn new<G: Send + 'static>(grad: G, describe: impl FnOnce(&G) -> Result<Described>) -> Result<Lent> {
        // SAFETY: a plain struct for which all zero is valid.
        let mut managed: Managed = unsafe { std::mem::zeroed() };
        managed.major = DLPACK_MAJOR;
        managed.flags = READ_ONLY;
        managed.deleter = Some(end::<G>);
        let given = Box::into_raw(Box::new(Given { managed, shape: Vec::new(), grad }));
        let lent = Lent(given.cast());
        // SAFETY: what was given stays where it is, and nobody touches it until its deleter runs: so do its elements.
        unsafe {
            let described = describe(&(*given).grad)?;
            let tensor = &mut (*given).managed.tensor;
            tensor.data = described.data;
            tensor.dtype = ffi::shw_dtype_to_dlpack(described.dtype.number());
            (tensor.device_type, tensor.device_id) = described.device;
            tensor.ndim = described.shape.len() as i32;
            (*given).shape = described.shape;
            tensor.shape = (*given).shape.as_mut_ptr();
        }
        Ok(lent)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // SAFETY: it was made by new, and the library did not take it.
        unsafe {
            if let Some(deleter) = (*self.0).deleter {
                deleter(self.0)
            }
        }
    }
}

/// # Safety
/// The tensor is that of a `Given<G>`; called once.
unsafe extern "C" fn end<G>(managed: *mut Managed) {
    quietly(|| drop(unsafe { Box::from_raw(managed.cast::<Given<G>>()) }));
}
