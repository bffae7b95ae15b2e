// SPDX-License-Identifier: Apache-2.0
//! Entries of a state that lie on a device, behind the shards of units there.

use crate::error::Result;
use crate::hsdp::device_tensor::DeviceTensor;
use crate::layout::Layout;
use crate::state::State;
use crate::tensor_batch::{RawMemory, TensorBatch, TensorSpec, invalid};

impl<'a> State<'a> {
    /// Adds a tensor that lies on a device, as `spec` describes it, to be saved: such as what an optimizer keeps there. The state has
    /// shards of units on that device already ([`Hsdp::add_to_state`](crate::hsdp::Hsdp::add_to_state)), by which it is copied:
    /// UNIMPLEMENTED where it has not, naming the device. INVALID_ARGUMENT where the spec has strides, or another dtype or shape than
    /// the tensor.
    pub fn add_on_device(&mut self, spec: &TensorSpec, tensor: &'a DeviceTensor) -> Result<()> {
        self.add_one(|batch| batch.add_on_device(spec, tensor))
    }

    /// As [`State::add_on_device`], to be filled by a load (it may be saved too).
    pub fn add_on_device_mut(&mut self, spec: &TensorSpec, tensor: &'a mut DeviceTensor) -> Result<()> {
        self.add_one(|batch| batch.add_on_device_mut(spec, tensor))
    }

    /// As [`State::add_laid_out`] for a part that lies on a device, by [`Hsdp::layout`](crate::hsdp::Hsdp::layout) cut as a parameter.
    pub fn add_laid_out_on_device(
        &mut self,
        name: &str,
        global_shape: &[i64],
        held: (&Layout, i32),
        tensor: &'a DeviceTensor,
    ) -> Result<()> {
        self.add_one(|batch| batch.add_laid_out_on_device(name, global_shape, held, tensor))
    }

    /// As [`State::add_laid_out_on_device`], to be filled by a load (it may be saved too).
    pub fn add_laid_out_on_device_mut(
        &mut self,
        name: &str,
        global_shape: &[i64],
        held: (&Layout, i32),
        tensor: &'a mut DeviceTensor,
    ) -> Result<()> {
        self.add_one(|batch| batch.add_laid_out_on_device_mut(name, global_shape, held, tensor))
    }
}

impl<'a> TensorBatch<'a> {
    /// Adds a tensor that lies on a device, as `spec` describes it, to be saved: such as what an optimizer keeps there. It enters a
    /// state that has shards of units on that device already ([`Hsdp::add_to_state`](crate::hsdp::Hsdp::add_to_state)), by which it
    /// is copied. INVALID_ARGUMENT where the spec has strides, or another dtype or shape than the tensor.
    pub fn add_on_device(&mut self, spec: &TensorSpec, tensor: &'a DeviceTensor) -> Result<()> {
        self.push_on_device(spec, tensor, true)
    }

    /// As [`TensorBatch::add_on_device`], to be filled by a load (it may be saved too).
    pub fn add_on_device_mut(&mut self, spec: &TensorSpec, tensor: &'a mut DeviceTensor) -> Result<()> {
        self.push_on_device(spec, tensor, false)
    }

    /// As [`TensorBatch::add_laid_out`] for a part that lies on a device.
    pub fn add_laid_out_on_device(
        &mut self,
        name: &str,
        global_shape: &[i64],
        held: (&Layout, i32),
        tensor: &'a DeviceTensor,
    ) -> Result<()> {
        self.laid_out((name, tensor.dtype(), global_shape), held, |batch, spec| batch.add_on_device(spec, tensor))
    }

    /// As [`TensorBatch::add_laid_out_on_device`], to be filled by a load (it may be saved too).
    pub fn add_laid_out_on_device_mut(
        &mut self,
        name: &str,
        global_shape: &[i64],
        held: (&Layout, i32),
        tensor: &'a mut DeviceTensor,
    ) -> Result<()> {
        self.laid_out((name, tensor.dtype(), global_shape), held, |batch, spec| batch.add_on_device_mut(spec, tensor))
    }

    /// The memory is borrowed for 'a, exclusively unless it is only read.
    fn push_on_device(&mut self, spec: &TensorSpec, tensor: &DeviceTensor, read_only: bool) -> Result<()> {
        if !spec.strides.is_empty() || spec.dtype != tensor.dtype() || spec.shape != tensor.shape() {
            let found = format!("{:?} of {} with strides {:?}", spec.shape, spec.dtype, spec.strides);
            let wanted = format!("{:?} of {}, dense", tensor.shape(), tensor.dtype());
            return Err(invalid(spec.name, format!("it is described as {found}, and lies on the device as {wanted}")));
        }
        let (data, size) = (tensor.address() as *mut u8, tensor.byte_size() as usize);
        self.push(spec, RawMemory { data, size, read_only }, tensor.device())
    }
}
