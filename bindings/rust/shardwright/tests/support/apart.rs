// SPDX-License-Identifier: Apache-2.0
//! A device whose memory faults under the host's hands (tests/conformance/device/apart_table.c), and tensors there.
#![allow(dead_code)] // each file of tests uses a part

use shardwright::hsdp::{Device, DeviceTensor, Hsdp, Unit, View};
use shardwright::{Context, DType};

pub const APART: (i32, i32) = (12, 5);

pub fn context() -> Context {
    let context = Context::builder().build().unwrap();
    // SAFETY: it is one of ours.
    unsafe { context.load_plugin("apart") }.unwrap();
    context
}

pub fn apart(context: &Context) -> Device {
    Device::open(context, "apart", "").unwrap()
}

fn ask(context: &Context, question: &str) -> usize {
    context.ask_plugin("apart", question).unwrap().parse().unwrap()
}

/// Where the host finds float32 elements that lie at an address of the device.
pub fn behind(context: &Context, address: usize) -> *mut f32 {
    ask(context, &format!("behind {address}")) as *mut f32
}

/// What a view of the device holds.
pub fn seen(context: &Context, hsdp: &Hsdp, unit: Unit, view: View, index: usize) -> Vec<f32> {
    let found = hsdp.memory(unit, view, index).unwrap();
    assert_eq!((found.device, found.dtype), (APART, DType::FLOAT32));
    // SAFETY: the plugin keeps it there, and nobody changes it meanwhile.
    unsafe { std::slice::from_raw_parts(behind(context, found.address), found.byte_size as usize / 4) }.to_vec()
}

/// Elements in memory of the device, which ends with them.
pub struct Floats {
    context: Context,
    tensor: DeviceTensor,
}

impl Floats {
    pub fn new(context: &Context, shape: &[i64], values: &[f32]) -> Floats {
        let address = ask(context, &format!("allocate {}", size_of_val(values)));
        // SAFETY: the memory is there until it is released by drop; the borrow checker keeps set away from readers.
        let tensor = unsafe { DeviceTensor::new(address, DType::FLOAT32, shape, APART) }.unwrap();
        let mut made = Floats { context: context.clone(), tensor };
        made.set(values);
        made
    }

    pub fn set(&mut self, values: &[f32]) {
        assert_eq!(self.tensor.byte_size(), size_of_val(values) as u64);
        // SAFETY: as many elements, which nobody else uses.
        unsafe { std::slice::from_raw_parts_mut(behind(&self.context, self.tensor.address()), values.len()) }
            .copy_from_slice(values);
    }

    pub fn get(&self) -> Vec<f32> {
        let count = self.tensor.byte_size() as usize / 4;
        // SAFETY: as many elements, which nobody writes.
        unsafe { std::slice::from_raw_parts(behind(&self.context, self.tensor.address()), count) }.to_vec()
    }
}

impl AsRef<DeviceTensor> for Floats {
    fn as_ref(&self) -> &DeviceTensor {
        &self.tensor
    }
}

impl AsMut<DeviceTensor> for Floats {
    fn as_mut(&mut self) -> &mut DeviceTensor {
        &mut self.tensor
    }
}

impl Drop for Floats {
    fn drop(&mut self) {
        ask(&self.context, &format!("release {} {}", self.tensor.address(), self.tensor.byte_size()));
    }
}
