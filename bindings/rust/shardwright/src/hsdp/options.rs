// SPDX-License-Identifier: Apache-2.0
//! What contexts and units are made with, and what is told of them.

use crate::dtype::{DType, Element};
use crate::error::{Error, ErrorKind, Result};
use crate::hsdp::device_tensor::DeviceTensor;
use crate::limits::{DEFAULT_TIMEOUT, span_ns};
use crate::memory::as_bytes;
use crate::options::options;
use crate::text::Blob;
use shardwright_sys::ffi;
use std::time::Duration;

options! {
/// Options of a context.
pub struct HsdpOptions {
    /// Axis over which parameters are sharded; none = whole on each rank.
    pub shard_axis: Option<i32> = Some(0),
    /// Axis over which they are replicated.
    pub replicate_axis: Option<i32>,
    /// Work beside the caller: 0 none, 1 one lane for all, 3 one each for gathers, reductions and sums over replicas.
    pub lanes: i32,
    /// Packed gradients that live at once; at least 1.
    pub max_inflight_reduce: i32 = 1,
    /// Units that are gathered ahead; 0 none.
    pub prefetch_depth: i32 = 1,
    /// Their bytes; 0 = no limit.
    pub prefetch_bytes_max: u64,
    /// Communicators may sum in an order of their own; results then depend on it.
    pub unordered: bool,
    /// First iterations after which ranks compare what they issued; 0 none.
    pub order_guard_steps: i32 = 3,
    /// Of each collective; none = no limit.
    pub timeout: Option<Duration> = Some(DEFAULT_TIMEOUT),
}
}

impl HsdpOptions {
    /// As C has them, of a mesh that may be NULL, on a device, NULL = the host.
    pub(super) fn raw(&self, mesh: *mut ffi::shw_hsdp_mesh, device: *const ffi::shw_device) -> ffi::shw_hsdp_options {
        ffi::shw_hsdp_options {
            struct_size: size_of::<ffi::shw_hsdp_options>() as u32,
            flags: if self.unordered { ffi::SHW_HSDP_UNORDERED as u32 } else { 0 },
            mesh,
            device,
            shard_axis: self.shard_axis.unwrap_or(-1),
            replicate_axis: self.replicate_axis.unwrap_or(-1),
            lanes: self.lanes,
            max_inflight_reduce: self.max_inflight_reduce,
            prefetch_depth: or_none(self.prefetch_depth),
            order_guard_steps: or_none(self.order_guard_steps),
            prefetch_bytes_max: self.prefetch_bytes_max,
            timeout_ns: span_ns(self.timeout),
        }
    }
}

/// A count as C takes it: there 0 is the default and -1 is none.
pub(super) fn or_none(count: i32) -> i32 {
    if count == 0 { -1 } else { count }
}

/// How parameters of a unit are cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum UnitLayout {
    /// Each along one dimension, as torch.chunk cuts.
    #[default]
    Row,
    /// All as one range of rows that is cut evenly.
    Ragged,
}

/// What becomes of whole parameters after forward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Reshard {
    /// Freed, but not those of a unit inside whose forward the others run.
    #[default]
    Auto,
    /// Freed, and gathered again for backward.
    Always,
    /// Kept.
    Never,
    /// Each of so many neighbours keeps a part.
    Secondary(i64),
}

impl Reshard {
    pub(super) fn columns(self) -> (i32, i64) {
        match self {
            Reshard::Auto => (ffi::SHW_HSDP_RESHARD_AUTO, 0),
            Reshard::Always => (ffi::SHW_HSDP_RESHARD, 0),
            Reshard::Never => (ffi::SHW_HSDP_KEEP, 0),
            Reshard::Secondary(size) => (ffi::SHW_HSDP_RESHARD_SECONDARY, size),
        }
    }

    pub(super) fn of(policy: i64, size: i64) -> Reshard {
        match i32::try_from(policy).unwrap_or(ffi::SHW_HSDP_RESHARD_AUTO) {
            ffi::SHW_HSDP_RESHARD => Reshard::Always,
            ffi::SHW_HSDP_KEEP => Reshard::Never,
            ffi::SHW_HSDP_RESHARD_SECONDARY => Reshard::Secondary(size),
            _ => Reshard::Auto,
        }
    }
}

/// What a parameter without a gradient adds to a reduction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Unused {
    /// Zeros.
    #[default]
    Zero,
    /// Nothing, in which case the ranks must agree.
    Skip,
}

options! {
/// Options of a unit; dtypes are by default what parameters are stored in.
pub struct UnitOptions {
    /// In which parameters are gathered.
    pub param_dtype: Option<DType>,
    /// In which gradients travel and are summed; none = `grad_dtype`.
    pub reduce_dtype: Option<DType>,
    /// In which outputs are wanted; kept for the host.
    pub output_dtype: Option<DType>,
    /// Of the gradient of the shard.
    pub grad_dtype: Option<DType>,
    /// How parameters are cut.
    pub layout: UnitLayout,
    /// What becomes of whole parameters after forward.
    pub reshard_after_forward: Reshard,
    /// What a parameter without a gradient adds.
    pub unused: Unused,
    /// Shards and their gradients stay in memory of the host, so that slices reach them on every device.
    pub offload: bool,
}
}

impl UnitOptions {
    pub(super) fn raw(&self) -> ffi::shw_hsdp_unit_options {
        let number = |dtype: Option<DType>| dtype.map_or(0, |d| d.0);
        let (reshard_after_forward, secondary_size) = self.reshard_after_forward.columns();
        ffi::shw_hsdp_unit_options {
            struct_size: size_of::<ffi::shw_hsdp_unit_options>() as u32,
            flags: if self.offload { ffi::SHW_HSDP_UNIT_OFFLOAD as u32 } else { 0 },
            param_dtype: number(self.param_dtype),
            reduce_dtype: number(self.reduce_dtype),
            output_dtype: number(self.output_dtype),
            grad_dtype: number(self.grad_dtype),
            layout: match self.layout {
                UnitLayout::Row => ffi::SHW_HSDP_LAYOUT_ROW,
                UnitLayout::Ragged => ffi::SHW_HSDP_LAYOUT_RAGGED,
            },
            reshard_after_forward,
            secondary_size,
            unused: match self.unused {
                Unused::Zero => ffi::SHW_HSDP_UNUSED_ZERO,
                Unused::Skip => ffi::SHW_HSDP_UNUSED_SKIP,
            },
            reserved0: 0,
        }
    }
}

/// Where the elements of a parameter are.
#[derive(Clone, Copy, Debug)]
enum Elements<'a> {
    /// It begins as zero.
    Nowhere,
    Host(&'a [u8]),
    Device(&'a DeviceTensor),
}

/// A parameter of a unit, whole.
#[derive(Clone, Debug)]
pub struct Param<'a> {
    name: String,
    shape: Vec<i64>,
    dtype: DType,
    elements: Elements<'a>,
    /// Dimension that is cut; negative counts from the end.
    pub shard_dim: i32,
    /// It gets no gradient.
    pub frozen: bool,
    /// It is not sharded, and its gradients are summed over all ranks.
    pub replicate: bool,
    /// It is left out, as if it were not among the parameters; those after it have its number.
    pub ignore: bool,
    /// Further names of the same parameter.
    pub aliases: Vec<String>,
}

impl<'a> Param<'a> {
    /// A parameter with its elements, row-major, which are copied when the unit is added.
    pub fn new<T: Element>(name: &str, shape: &[i64], data: &'a [T]) -> Param<'a> {
        Param { elements: Elements::Host(as_bytes(data)), ..Param::empty(name, shape, T::DTYPE) }
    }

    /// A parameter whose elements lie on the device of the units, from where they are copied when the unit is added.
    pub fn on_device(name: &str, tensor: &'a DeviceTensor) -> Param<'a> {
        Param { elements: Elements::Device(tensor), ..Param::empty(name, tensor.shape(), tensor.dtype()) }
    }

    /// A parameter whose shard begins as zero, and which the host fills.
    pub fn empty(name: &str, shape: &[i64], dtype: DType) -> Param<'a> {
        Param {
            name: name.to_owned(),
            shape: shape.to_vec(),
            dtype,
            elements: Elements::Nowhere,
            shard_dim: 0,
            frozen: false,
            replicate: false,
            ignore: false,
            aliases: Vec::new(),
        }
    }

    fn flags(&self) -> u32 {
        let flag = |is_set: bool, bit: u64| if is_set { bit as u32 } else { 0 };
        flag(self.frozen, ffi::SHW_HSDP_PARAM_FROZEN)
            | flag(self.replicate, ffi::SHW_HSDP_PARAM_REPLICATE)
            | flag(self.ignore, ffi::SHW_HSDP_PARAM_IGNORE)
    }

    fn check(&self) -> Result<()> {
        let elements = self.shape.iter().try_fold(1i64, |product, extent| product.checked_mul(*extent)).unwrap_or(-1);
        let wanted = u64::try_from(elements).map(|count| self.dtype.byte_size(count)).unwrap_or(u64::MAX);
        match self.elements {
            Elements::Host(data) if !self.ignore && data.len() as u64 != wanted => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("parameter '{}' of shape {:?} has {} bytes of elements", self.name, self.shape, data.len()),
            )),
            _ => Ok(()),
        }
    }

    fn tensor(&self) -> ffi::shw_tensor {
        match self.elements {
            Elements::Nowhere => tensor_of(self.dtype, &self.shape, None),
            Elements::Host(data) => tensor_of(self.dtype, &self.shape, Some(data)),
            Elements::Device(tensor) => tensor.described(),
        }
    }
}

/// A tensor that is only read; it borrows shape and elements, of which there may be none.
pub(super) fn tensor_of(dtype: DType, shape: &[i64], data: Option<&[u8]>) -> ffi::shw_tensor {
    // SAFETY: a plain struct for which all zero is valid.
    let mut tensor: ffi::shw_tensor = unsafe { std::mem::zeroed() };
    tensor.struct_size = size_of::<ffi::shw_tensor>() as u32;
    if let Some(data) = data {
        tensor.data = data.as_ptr().cast_mut().cast();
        tensor.byte_size = data.len() as u64;
    }
    tensor.device_type = ffi::SHW_DEVICE_CPU;
    tensor.dtype = dtype.0;
    tensor.ndim = shape.len() as i32;
    tensor.shape = shape.as_ptr();
    tensor
}

/// Runs `call` on the parameters as C has them. INVALID_ARGUMENT for elements that do not fill their shape.
pub(super) fn with_batch<R>(params: &[Param], call: impl FnOnce(&ffi::shw_hsdp_param_batch) -> R) -> Result<R> {
    params.iter().try_for_each(Param::check)?;
    let names = Blob::of(params.iter().map(|p| p.name.as_bytes()));
    let aliases = Blob::of(params.iter().flat_map(|p| p.aliases.iter().map(String::as_bytes)));
    let mut alias_ranges = vec![0];
    for param in params {
        alias_ranges.push(alias_ranges[alias_ranges.len() - 1] + param.aliases.len() as u64);
    }
    let tensors: Vec<_> = params.iter().map(Param::tensor).collect();
    let shard_dims: Vec<_> = params.iter().map(|p| p.shard_dim).collect();
    let flags: Vec<_> = params.iter().map(Param::flags).collect();
    let batch = ffi::shw_hsdp_param_batch {
        struct_size: size_of::<ffi::shw_hsdp_param_batch>() as u32,
        flags: 0,
        count: params.len() as u64,
        names: names.bytes.as_ptr().cast(),
        name_offsets: names.offsets.as_ptr(),
        tensors: tensors.as_ptr(),
        shard_dims: shard_dims.as_ptr(),
        param_flags: flags.as_ptr(),
        aliases: aliases.bytes.as_ptr().cast(),
        alias_offsets: aliases.offsets.as_ptr(),
        alias_ranges: alias_ranges.as_ptr(),
    };
    Ok(call(&batch))
}

/// Where in an iteration a unit is resharded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// As its policy after forward says.
    Forward,
    /// Always.
    Backward,
}

/// Where the parameters of a unit are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnitState {
    /// Each rank has its part.
    Sharded,
    /// They are being gathered.
    Gathering,
    /// They are whole.
    Unsharded,
    /// Each of some neighbours has a part.
    Secondary,
}

/// How far the gradients of a unit are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GradState {
    /// There are none.
    None,
    /// Whole, of this rank.
    Local,
    /// Packed for all ranks.
    Packed,
    /// On their way over the shard axis.
    Scattering,
    /// Summed over the shard axis, waiting for the replicas.
    Partial,
    /// On their way over the replicas.
    Replicating,
    /// In the gradient of the shard.
    Ready,
}

/// What a state gets of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Content {
    /// Parameters.
    Params,
    /// The gradients that are there.
    Grads,
}

/// What memory of a unit is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(i32)]
pub enum MemoryKind {
    /// Of every kind.
    All = ffi::SHW_HSDP_MEMORY_ALL,
    /// Parameters of this rank.
    Shard = ffi::SHW_HSDP_MEMORY_SHARD,
    /// The same in the dtype that travels.
    Cast = ffi::SHW_HSDP_MEMORY_CAST,
    /// Shards of all ranks.
    Gathered = ffi::SHW_HSDP_MEMORY_GATHERED,
    /// Whole parameters.
    Params = ffi::SHW_HSDP_MEMORY_PARAMS,
    /// Whole gradients of this rank.
    LocalGrads = ffi::SHW_HSDP_MEMORY_LOCAL_GRADS,
    /// Gradients as parts for all ranks.
    Packed = ffi::SHW_HSDP_MEMORY_PACKED,
    /// Parts of all ranks before they are added.
    Landing = ffi::SHW_HSDP_MEMORY_LANDING,
    /// Their sum.
    Scattered = ffi::SHW_HSDP_MEMORY_SCATTERED,
    /// The same, waiting for the replicas.
    Partial = ffi::SHW_HSDP_MEMORY_PARTIAL,
    /// Parts that neighbours keep from forward to backward.
    Secondary = ffi::SHW_HSDP_MEMORY_SECONDARY,
    /// Gradients of this rank's parameters.
    ShardGrads = ffi::SHW_HSDP_MEMORY_SHARD_GRADS,
}

/// Memory that is and was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Memory {
    /// Bytes now.
    pub current_bytes: u64,
    /// The most bytes that there were.
    pub peak_bytes: u64,
    /// Buffers now.
    pub current_buffers: u64,
    /// Buffers that there ever were.
    pub total_buffers: u64,
    /// Of this rank's shards; part of `current_bytes`.
    pub padding_bytes: u64,
    /// Units that are not sharded now.
    pub unsharded_units: u64,
}

impl Memory {
    pub(super) fn of(raw: &ffi::shw_hsdp_memory) -> Memory {
        Memory {
            current_bytes: raw.current_bytes,
            peak_bytes: raw.peak_bytes,
            current_buffers: raw.current_buffers,
            total_buffers: raw.total_buffers,
            padding_bytes: raw.padding_bytes,
            unsharded_units: raw.unsharded_units,
        }
    }
}
