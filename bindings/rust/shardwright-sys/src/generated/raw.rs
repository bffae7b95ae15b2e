// SPDX-License-Identifier: Apache-2.0
// Generated from the C headers by bindings/rust/generator; not edited.

use super::ffi::{self, *};
use crate::error::RawError;
use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;

/// Gives the functions of an extension, such as shw_megatron_api for "megatron"; they live for the process. NOT_FOUND names the extensions that there are. Versions are whole: another one than the library's is UNIMPLEMENTED with both.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn get_extension(name: *const c_char, version: u32) -> Result<*const c_void, RawError> {
    let mut out = MaybeUninit::<*const c_void>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_get_extension(name, version, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes a buffer of one part by copying `size` bytes.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn buffer_create(data: &[u8]) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_buffer_create(data.as_ptr().cast(), data.len() as u64, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes a buffer by copying a blob that `offsets` (part_count + 1 ascending values, the first 0) cuts into parts.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn buffer_create_parts(
    data: *const c_void,
    offsets: *const u64,
    part_count: u64,
) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_buffer_create_parts(data, offsets, part_count, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Checks a descriptor: size, flags, dtype, device, shape, strides, extents, addresses.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn tensor_check(tensor: *const shw_tensor) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_tensor_check(tensor, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Describes a versioned DLPack tensor; nothing is consumed, `out` borrows from `managed`.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn tensor_from_dlpack(managed: *const DLManagedTensorVersioned) -> Result<shw_tensor, RawError> {
    let mut out = MaybeUninit::<shw_tensor>::zeroed();
    unsafe { (*out.as_mut_ptr()).struct_size = size_of::<shw_tensor>() as u32 };
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_tensor_from_dlpack(managed, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Describes a legacy DLPack tensor; nothing is consumed, `out` borrows from `managed`.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn tensor_from_dlpack_legacy(managed: *const DLManagedTensor) -> Result<shw_tensor, RawError> {
    let mut out = MaybeUninit::<shw_tensor>::zeroed();
    unsafe { (*out.as_mut_ptr()).struct_size = size_of::<shw_tensor>() as u32 };
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_tensor_from_dlpack_legacy(managed, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Finds the dtype of a name.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn dtype_parse(name: *const c_char) -> Result<i32, RawError> {
    let mut out = MaybeUninit::<i32>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_dtype_parse(name, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes a host tensor filled with zeros; its first byte is aligned to 4096 bytes.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn owned_tensor_create(dtype: i32, shape: *const i64, ndim: i32) -> Result<*mut shw_owned_tensor, RawError> {
    let mut out = MaybeUninit::<*mut shw_owned_tensor>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_owned_tensor_create(dtype, shape, ndim, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Describes the tensor; `out` borrows data and shape until the tensor is released.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn owned_tensor_describe(tensor: *const shw_owned_tensor) -> Result<shw_tensor, RawError> {
    let mut out = MaybeUninit::<shw_tensor>::zeroed();
    unsafe { (*out.as_mut_ptr()).struct_size = size_of::<shw_tensor>() as u32 };
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_owned_tensor_describe(tensor, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Exports the tensor as versioned DLPack; it keeps the bytes alive until its deleter is called, which may happen on any thread and after the release of this handle.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn owned_tensor_dlpack(tensor: *const shw_owned_tensor) -> Result<*mut DLManagedTensorVersioned, RawError> {
    let mut out = MaybeUninit::<*mut DLManagedTensorVersioned>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_owned_tensor_dlpack(tensor, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Exports the tensor as legacy DLPack, otherwise as shw_owned_tensor_dlpack.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn owned_tensor_dlpack_legacy(tensor: *const shw_owned_tensor) -> Result<*mut DLManagedTensor, RawError> {
    let mut out = MaybeUninit::<*mut DLManagedTensor>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_owned_tensor_dlpack_legacy(tensor, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes a layout; everything in `spec` is copied. UNIMPLEMENTED names an axis that is called "interleaved_parallel" under a tensor map.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn layout_create(spec: *const shw_layout_spec) -> Result<*mut shw_layout, RawError> {
    let mut out = MaybeUninit::<*mut shw_layout>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_layout_create(spec, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Number of boxes that `rank` holds of a tensor of this global shape: 0 when it is not in the mesh.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn layout_box_count(
    layout: *const shw_layout,
    shape: *const i64,
    ndim: i32,
    rank: i32,
) -> Result<u64, RawError> {
    let mut out = MaybeUninit::<u64>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_layout_box_count(layout, shape, ndim, rank, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Writes the boxes that `rank` holds: for each box `ndim` offsets, then `ndim` sizes. A box may be empty; it then begins at the end of each dimension of which the rank holds nothing. `size` receives the number of values; BUFFER_TOO_SMALL, nothing else written, when it is above `capacity` (also counted in values).
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn layout_boxes(
    layout: *const shw_layout,
    shape: *const i64,
    ndim: i32,
    rank: i32,
    boxes: *mut i64,
    capacity: u64,
    size: *mut u64,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_layout_boxes(layout, shape, ndim, rank, boxes, capacity, size, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Writes for each of these boxes the element of the local tensor at which it begins; `size` and `capacity` as in shw_layout_boxes.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn layout_local_offsets(
    layout: *const shw_layout,
    shape: *const i64,
    ndim: i32,
    rank: i32,
    offsets: *mut i64,
    capacity: u64,
    size: *mut u64,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_layout_local_offsets(layout, shape, ndim, rank, offsets, capacity, size, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Writes the shape of the local tensor of `rank`: `ndim` extents, or the number of elements where an axis is flat, or 0 outside the mesh; `size` and `capacity` as in shw_layout_boxes.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn layout_local_shape(
    layout: *const shw_layout,
    shape: *const i64,
    ndim: i32,
    rank: i32,
    extents: *mut i64,
    capacity: u64,
    size: *mut u64,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_layout_local_shape(layout, shape, ndim, rank, extents, capacity, size, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Makes an empty state.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn state_create() -> Result<*mut shw_state, RawError> {
    let mut out = MaybeUninit::<*mut shw_state>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_state_create(out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Sets memory aside for that many more tensors whose names have `name_bytes` bytes in all, so that a host that adds them in pieces pays about as much as for one batch. Both are hints: fewer or more may follow.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn state_reserve(state: *mut shw_state, tensors: u64, name_bytes: u64) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_state_reserve(state, tensors, name_bytes, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Adds all tensors of the batch or none. ALREADY_EXISTS names both paths of a doubled name.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn state_add_tensors(state: *mut shw_state, batch: *const shw_tensor_batch) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_state_add_tensors(state, batch, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Adds one tensor of `name_size` bytes of name. `global_shape` and `offsets` NULL = it is whole; else it is the box of its own shape that begins at `offsets` of a tensor of `global_shape`, and both have `tensor->ndim` values. `kind` SHW_KIND_. Many tensors are added faster in one batch.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn state_add_tensor(
    state: *mut shw_state,
    name: &[u8],
    tensor: *const shw_tensor,
    global_shape: *const i64,
    offsets: *const i64,
    kind: i32,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_state_add_tensor(
            state,
            name.as_ptr().cast(),
            name.len() as u64,
            tensor,
            global_shape,
            offsets,
            kind,
            &mut err,
        )
    };
    RawError::check(status, err)?;
    Ok(())
}

/// As shw_state_add_tensors with versioned DLPack tensors, `batch->count` of them, in place of `batch->tensors`. On success all are consumed: their deleters run once when the state ends.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn state_add_dlpack(
    state: *mut shw_state,
    batch: *const shw_tensor_batch,
    managed: *const *mut DLManagedTensorVersioned,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_state_add_dlpack(state, batch, managed, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// As shw_state_add_dlpack with legacy DLPack tensors.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn state_add_dlpack_legacy(
    state: *mut shw_state,
    batch: *const shw_tensor_batch,
    managed: *const *mut DLManagedTensor,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_state_add_dlpack_legacy(state, batch, managed, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Adds all objects of the batch or none. A load stores the bytes that it found in the entry.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn state_add_objects(state: *mut shw_state, batch: *const shw_object_batch) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_state_add_objects(state, batch, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Adds one byte object: a copy of `size` bytes. `content_type` NULL = "application/octet-stream", `kind` SHW_KIND_.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn state_add_object(
    state: *mut shw_state,
    name: &[u8],
    content_type: *const c_char,
    data: &[u8],
    kind: i32,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_state_add_object(
            state,
            name.as_ptr().cast(),
            name.len() as u64,
            content_type,
            data.as_ptr().cast(),
            data.len() as u64,
            kind,
            &mut err,
        )
    };
    RawError::check(status, err)?;
    Ok(())
}

/// Makes the name of an object that is the cell `cell` of a grid of `shape`, both of `ndim` (1 to 64) values: the key, "/shard_", the cell joined by ".", "_", the shape joined by ".", as in "key/shard_0.3_1.8". `out`: the text as a buffer of one part.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn object_key(
    key: &[u8],
    cell: *const i64,
    shape: *const i64,
    ndim: i32,
) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_object_key(key.as_ptr().cast(), key.len() as u64, cell, shape, ndim, out.as_mut_ptr(), &mut err)
    };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Takes such a name apart: the key is its first `key_size` bytes (the last "/shard_" counts, so any key comes back), and `values` receives the cell, then the shape, half of `size` values each; BUFFER_TOO_SMALL, nothing else written, when `size` is above `capacity`. The last extent is -1 where older names leave it out.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn object_key_parse(
    name: &[u8],
    values: *mut i64,
    capacity: u64,
    size: *mut u64,
    key_size: *mut u64,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_object_key_parse(name.as_ptr().cast(), name.len() as u64, values, capacity, size, key_size, &mut err)
    };
    RawError::check(status, err)?;
    Ok(())
}

/// Describes the local memory of a tensor; `out` borrows until the state changes or is released.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn state_tensor(state: *const shw_state, index: u64) -> Result<shw_tensor, RawError> {
    let mut out = MaybeUninit::<shw_tensor>::zeroed();
    unsafe { (*out.as_mut_ptr()).struct_size = size_of::<shw_tensor>() as u32 };
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_state_tensor(state, index, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Writes the shape of the whole tensor; `size` receives the number of extents. BUFFER_TOO_SMALL, nothing else written, when it is above `capacity`.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn state_global_shape(
    state: *const shw_state,
    index: u64,
    extents: *mut i64,
    capacity: u64,
    size: *mut u64,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_state_global_shape(state, index, extents, capacity, size, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Writes the boxes of a tensor that the state holds: for each box its offsets, then its sizes, as many values as the whole tensor has extents each. `size` and `capacity` count values, as in shw_state_global_shape.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn state_boxes(
    state: *const shw_state,
    index: u64,
    boxes: *mut i64,
    capacity: u64,
    size: *mut u64,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_state_boxes(state, index, boxes, capacity, size, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Finds a tensor by name; `out` receives its number.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn state_find_tensor(state: *const shw_state, name: &[u8]) -> Result<u64, RawError> {
    let mut out = MaybeUninit::<u64>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_state_find_tensor(state, name.as_ptr().cast(), name.len() as u64, out.as_mut_ptr(), &mut err)
    };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Finds an object by name; `out` receives its number.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn state_find_object(state: *const shw_state, name: &[u8]) -> Result<u64, RawError> {
    let mut out = MaybeUninit::<u64>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_state_find_object(state, name.as_ptr().cast(), name.len() as u64, out.as_mut_ptr(), &mut err)
    };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes a mapping; everything in `spec` is copied. INVALID_ARGUMENT names line, rule and member of what is wrong, and parameters that are missing or not known.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn mapping_create(spec: *const shw_mapping_spec) -> Result<*mut shw_mapping, RawError> {
    let mut out = MaybeUninit::<*mut shw_mapping>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_mapping_create(spec, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes a state of what the mapping says of the entries of another one, which `out` keeps alive and which must not change before `out` is released. Tensors share their memory; objects are copied, number i of one being number i of the other, so that what a load found is read from `out`. Boxes that one stored tensor gets from several entries are one entry. Loads set to zero what a "pad" leaves out. INVALID_ARGUMENT names rule and entry (details `rule`, from 1, and `tensor`): two for one entry, none for a rule, axes not divided, padding that would cut what is none, entries of one tensor that do not fit; OUT_OF_RANGE: a number above its count; UNIMPLEMENTED: sub-byte elements.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn state_map(state: *const shw_state, mapping: *const shw_mapping) -> Result<*mut shw_state, RawError> {
    let mut out = MaybeUninit::<*mut shw_state>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_state_map(state, mapping, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Checks a plan buffer of any kind in all respects; the first finding is the error.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn plan_validate(data: &[u8]) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_plan_validate(data.as_ptr().cast(), data.len() as u64, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Lists all findings about a plan buffer, one sentence per part of `out`; no part = valid.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn plan_findings(data: &[u8]) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_plan_findings(data.as_ptr().cast(), data.len() as u64, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes a plan from bytes that another rank or run has made; they are checked and copied.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn plan_create(data: &[u8]) -> Result<*mut shw_plan, RawError> {
    let mut out = MaybeUninit::<*mut shw_plan>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_plan_create(data.as_ptr().cast(), data.len() as u64, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Writes item `index`; `out->struct_size` must be set.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn plan_item_at(plan: *const shw_plan, index: u64) -> Result<shw_plan_item, RawError> {
    let mut out = MaybeUninit::<shw_plan_item>::zeroed();
    unsafe { (*out.as_mut_ptr()).struct_size = size_of::<shw_plan_item>() as u32 };
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_plan_item_at(plan, index, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// The plan as JSON text with "schema": 1, with at most `item_limit` items of each list.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn plan_json(plan: *const shw_plan, item_limit: u64) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_plan_json(plan, item_limit, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Writes the figures of the report; `out->struct_size` must be set.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn report_summarize(report: *const shw_report) -> Result<shw_report_summary, RawError> {
    let mut out = MaybeUninit::<shw_report_summary>::zeroed();
    unsafe { (*out.as_mut_ptr()).struct_size = size_of::<shw_report_summary>() as u32 };
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_report_summarize(report, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Waits until the job is terminal and returns its status, or PENDING (`err` untouched) when `timeout_ns` passed: 0 = do not wait, negative = no limit. A failure gives a copy of the error.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn job_wait(job: *mut shw_job, timeout_ns: i64) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_job_wait(job, timeout_ns, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Waits until the job no longer reads the tensors of the host: OK when it is staged, succeeded or was a load that ended; else PENDING or the failure. Time-outs as in shw_job_wait.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn job_wait_staged(job: *mut shw_job, timeout_ns: i64) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_job_wait_staged(job, timeout_ns, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Writes how far the job is; `out->struct_size` must be set.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn job_progress(job: *const shw_job) -> Result<shw_progress, RawError> {
    let mut out = MaybeUninit::<shw_progress>::zeroed();
    unsafe { (*out.as_mut_ptr()).struct_size = size_of::<shw_progress>() as u32 };
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_job_progress(job, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Has `on_done(user)` called once, when the job has ended, in whatever way, and uses nothing that it was lent any more. It runs on the context's background thread, calls nothing of the library and returns soon; shw_context_shutdown answers OK after it. The handle may be released before; kept for a thread that this wakes, it takes DLPack memory along. FAILED_PRECONDITION, and no call, when the job has ended already or has a function.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn job_on_done(job: *mut shw_job, on_done: shw_job_done_fn, user: *mut c_void) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_job_on_done(job, on_done, user, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Report of a job that succeeded; FAILED_PRECONDITION before that.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn job_report(job: *const shw_job) -> Result<*mut shw_report, RawError> {
    let mut out = MaybeUninit::<*mut shw_report>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_job_report(job, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// As shw_collective_decline, as a job: in its turn behind the jobs that the context has, as shw_save_async and shw_load_async would be. The job ends FAILED with what the others were told.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn collective_decline_async(
    context: *mut shw_context,
    collective: *mut shw_collective,
    call: i32,
    code: shw_status,
    message: &[u8],
) -> Result<*mut shw_job, RawError> {
    let mut out = MaybeUninit::<*mut shw_job>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_collective_decline_async(
            context,
            collective,
            call,
            code,
            message.as_ptr().cast(),
            message.len() as u64,
            out.as_mut_ptr(),
            &mut err,
        )
    };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes a cancellation for the options of saves, loads and planners. Jobs have shw_job_cancel.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn cancellation_create() -> Result<*mut shw_cancellation, RawError> {
    let mut out = MaybeUninit::<*mut shw_cancellation>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_cancellation_create(out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes a storage of the files below a directory, which need not exist yet. Keys never leave it.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn storage_create_posix(root: *const c_char) -> Result<*mut shw_storage, RawError> {
    let mut out = MaybeUninit::<*mut shw_storage>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_storage_create_posix(root, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes an empty storage in memory.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn storage_create_memory() -> Result<*mut shw_storage, RawError> {
    let mut out = MaybeUninit::<*mut shw_storage>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_storage_create_memory(out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes a storage of a host's table, which is copied. On success the storage owns `vtable->user` and calls the table's release once.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn storage_create(vtable: *const shw_storage_vtable) -> Result<*mut shw_storage, RawError> {
    let mut out = MaybeUninit::<*mut shw_storage>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_storage_create(vtable, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Writes a whole object, durable where the storage is, under one of the SHW_COMMIT_ conditions. `expected_version`, of SHW_COMMIT_IF_VERSION, is what shw_storage_version told. A storage without ATOMIC_COMMIT, or without CONDITIONAL_COMMIT where there is a condition, is FAILED_PRECONDITION.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn storage_put(
    storage: *mut shw_storage,
    key: &[u8],
    data: &[u8],
    condition: i32,
    expected_version: &[u8],
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_storage_put(
            storage,
            key.as_ptr().cast(),
            key.len() as u64,
            data.as_ptr().cast(),
            data.len() as u64,
            condition,
            expected_version.as_ptr().cast(),
            expected_version.len() as u64,
            &mut err,
        )
    };
    RawError::check(status, err)?;
    Ok(())
}

/// Reads exactly `size` bytes at `offset`; OUT_OF_RANGE when the object ends before.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn storage_read(
    storage: *mut shw_storage,
    key: &[u8],
    offset: u64,
    data: *mut c_void,
    size: u64,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status =
        unsafe { ffi::shw_storage_read(storage, key.as_ptr().cast(), key.len() as u64, offset, data, size, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Writes size and time of an object; `out->struct_size` must be set.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn storage_stat_key(storage: *mut shw_storage, key: &[u8]) -> Result<shw_storage_stat, RawError> {
    let mut out = MaybeUninit::<shw_storage_stat>::zeroed();
    unsafe { (*out.as_mut_ptr()).struct_size = size_of::<shw_storage_stat>() as u32 };
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_storage_stat_key(storage, key.as_ptr().cast(), key.len() as u64, out.as_mut_ptr(), &mut err)
    };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Gives the version of an object: opaque UTF-8 text that changes whenever the content does; empty when the storage has no versions.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn storage_version(storage: *mut shw_storage, key: &[u8]) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status =
        unsafe { ffi::shw_storage_version(storage, key.as_ptr().cast(), key.len() as u64, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Lists the keys that begin with a prefix, ascending, one per part of `out`. `delimiter` SHW_STORAGE_DELIMITER: one level; what lies deeper is given once, up to and with its next "/".
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn storage_list(
    storage: *mut shw_storage,
    prefix: &[u8],
    delimiter: i32,
) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_storage_list(
            storage,
            prefix.as_ptr().cast(),
            prefix.len() as u64,
            delimiter,
            out.as_mut_ptr(),
            &mut err,
        )
    };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Removes an object; a missing key is OK.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn storage_remove(storage: *mut shw_storage, key: &[u8]) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_storage_remove(storage, key.as_ptr().cast(), key.len() as u64, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Makes the collective of a single rank.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn collective_create_single() -> Result<*mut shw_collective, RawError> {
    let mut out = MaybeUninit::<*mut shw_collective>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_collective_create_single(out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes `size` ranks in this process, each to be used by a thread of its own.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn collective_group_create(size: i32) -> Result<*mut shw_collective_group, RawError> {
    let mut out = MaybeUninit::<*mut shw_collective_group>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_collective_group_create(size, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Gives the collective of one rank of the group; each rank can be taken once. A rank whose collective is released while others wait makes them return ABORTED naming it.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn collective_group_member(
    group: *mut shw_collective_group,
    rank: i32,
) -> Result<*mut shw_collective, RawError> {
    let mut out = MaybeUninit::<*mut shw_collective>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_collective_group_member(group, rank, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes a collective of a host's table, which is copied. On success the collective owns `vtable->user` and calls the table's release once.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn collective_create(vtable: *const shw_collective_vtable) -> Result<*mut shw_collective, RawError> {
    let mut out = MaybeUninit::<*mut shw_collective>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_collective_create(vtable, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes a collective of the ranks of another one through the memory of their machine, where all of them run on one (2 to 64 ranks of one user that reach each other's memory). An operation that takes a network a fraction of a millisecond takes some microseconds there. Where they do not, `out` is another end of the same transport. Collective over `collective`: one all_gather, with `call`. `out` keeps that transport alive and aborts it when it is aborted or fails; until `out` is released the transport is used through it alone. A rank whose process ends is named (UNAVAILABLE) to all that wait for it.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn collective_create_node(
    collective: *mut shw_collective,
    call: *const shw_collective_call,
) -> Result<*mut shw_collective, RawError> {
    let mut out = MaybeUninit::<*mut shw_collective>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_collective_create_node(collective, call, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Waits until all ranks are here. `call` NULL = all zero, here and below.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn collective_barrier(
    collective: *mut shw_collective,
    call: *const shw_collective_call,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_collective_barrier(collective, call, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Sends the root's bytes to all ranks; `size` is equal on all.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn collective_broadcast(
    collective: *mut shw_collective,
    call: *const shw_collective_call,
    data: *mut c_void,
    size: u64,
    root: i32,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_collective_broadcast(collective, call, data, size, root, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Gathers `size` bytes of each rank in rank order into `gathered` (size x ranks bytes).
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn collective_all_gather(
    collective: *mut shw_collective,
    call: *const shw_collective_call,
    data: &[u8],
    gathered: *mut c_void,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_collective_all_gather(collective, call, data.as_ptr().cast(), data.len() as u64, gathered, &mut err)
    };
    RawError::check(status, err)?;
    Ok(())
}

/// Gathers sizes[rank] bytes of each rank back to back; `sizes` has one value per rank.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn collective_all_gather_v(
    collective: *mut shw_collective,
    call: *const shw_collective_call,
    data: &[u8],
    gathered: *mut c_void,
    sizes: *const u64,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_collective_all_gather_v(
            collective,
            call,
            data.as_ptr().cast(),
            data.len() as u64,
            gathered,
            sizes,
            &mut err,
        )
    };
    RawError::check(status, err)?;
    Ok(())
}

/// The root gets sizes[rank] bytes of each rank back to back in `gathered`. Both are the root's only (one size per rank) and not looked at elsewhere. Sizes that are not those of the ranks are INVALID_ARGUMENT on all of them.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn collective_gather_v(
    collective: *mut shw_collective,
    call: *const shw_collective_call,
    data: &[u8],
    gathered: *mut c_void,
    sizes: *const u64,
    root: i32,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_collective_gather_v(
            collective,
            call,
            data.as_ptr().cast(),
            data.len() as u64,
            gathered,
            sizes,
            root,
            &mut err,
        )
    };
    RawError::check(status, err)?;
    Ok(())
}

/// Gives each rank sizes[rank] bytes, which lie back to back in the root's `parts`; the rank gets them in `data`, whose size it knows. `parts` and `sizes` are the root's only (one size per rank) and not looked at elsewhere. Sizes as with gather_v.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn collective_scatter_v(
    collective: *mut shw_collective,
    call: *const shw_collective_call,
    parts: *const c_void,
    sizes: *const u64,
    data: *mut c_void,
    size: u64,
    root: i32,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_collective_scatter_v(collective, call, parts, sizes, data, size, root, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Sends sent_sizes[rank] bytes to each rank and receives received_sizes[rank] bytes from it, this rank itself included. The parts lie back to back in rank order in `sent` and in `received`, which have no byte in common; both rows have one size per rank. What a rank expects of another one must be what that one sends it: else all fail with INVALID_ARGUMENT, and no byte moves.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn collective_all_to_all_v(
    collective: *mut shw_collective,
    call: *const shw_collective_call,
    sent: *const c_void,
    sent_sizes: *const u64,
    received: *mut c_void,
    received_sizes: *const u64,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_collective_all_to_all_v(collective, call, sent, sent_sizes, received, received_sizes, &mut err)
    };
    RawError::check(status, err)?;
    Ok(())
}

/// Reduces `count` values in place on all ranks with one of the SHW_REDUCE_ operations.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn collective_all_reduce_i64(
    collective: *mut shw_collective,
    call: *const shw_collective_call,
    values: *mut i64,
    count: u64,
    operation: i32,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_collective_all_reduce_i64(collective, call, values, count, operation, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Wakes all ranks that wait in this collective; they return `code` with the message.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn collective_abort(
    collective: *mut shw_collective,
    code: shw_status,
    message: &[u8],
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status =
        unsafe { ffi::shw_collective_abort(collective, code, message.as_ptr().cast(), message.len() as u64, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Takes part in the save or load (SHW_CALL_) that the other ranks make now, in place of this rank's own call, and tells them that it failed: they return `code` with `message` at once. For a host that finds out, on its way to shw_save or shw_load, that it cannot make the call; those tell the others of their own arguments themselves. Returns when all ranks have heard; nothing happens on a collective of one rank. shw_collective_decline_async goes with jobs. Refused in a callback, as the calls themselves, the collective is aborted, unless a call or job has it.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn collective_decline(
    collective: *mut shw_collective,
    call: i32,
    code: shw_status,
    message: &[u8],
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_collective_decline(collective, call, code, message.as_ptr().cast(), message.len() as u64, &mut err)
    };
    RawError::check(status, err)?;
    Ok(())
}

/// Makes a context and starts its threads. SHW_PLUGIN_PATH and SHW_LOG (a level name; raises or lowers `log_level`) of the environment are read here only, and never in set-uid processes.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn context_create(options: *const shw_context_options) -> Result<*mut shw_context, RawError> {
    let mut out = MaybeUninit::<*mut shw_context>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_context_create(options, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Waits for the jobs of the context; cancels what is left when half of `timeout_ns` passed and waits for the rest of it. Afterwards the context takes no new jobs. PENDING when jobs are still running.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn context_shutdown(context: *mut shw_context, timeout_ns: i64) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_context_shutdown(context, timeout_ns, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Loads a plugin: a file when `path` has a "/", else the name of one that is looked for in the directories of the options, of SHW_PLUGIN_PATH, and beside this library, as NAME.shw-plugin.json, then as libshardwright_NAME.so. Loading one twice does nothing.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn context_load_plugin(context: *mut shw_context, path: *const c_char) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_context_load_plugin(context, path, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Lists plugins, loaded or described by a manifest in the search path, as JSON text.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn context_plugins(context: *mut shw_context) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_context_plugins(context, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Asks a loaded plugin something that its documentation names; question and answer are text.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn context_ask_plugin(
    context: *mut shw_context,
    plugin: *const c_char,
    question: &[u8],
) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_context_ask_plugin(
            context,
            plugin,
            question.as_ptr().cast(),
            question.len() as u64,
            out.as_mut_ptr(),
            &mut err,
        )
    };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes a storage of a loaded plugin; `config` is text that the plugin understands.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn context_open_storage(
    context: *mut shw_context,
    plugin: *const c_char,
    config: &[u8],
) -> Result<*mut shw_storage, RawError> {
    let mut out = MaybeUninit::<*mut shw_storage>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_context_open_storage(
            context,
            plugin,
            config.as_ptr().cast(),
            config.len() as u64,
            out.as_mut_ptr(),
            &mut err,
        )
    };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes a collective of a loaded plugin; `config` is text that the plugin understands.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn context_open_collective(
    context: *mut shw_context,
    plugin: *const c_char,
    config: &[u8],
) -> Result<*mut shw_collective, RawError> {
    let mut out = MaybeUninit::<*mut shw_collective>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_context_open_collective(
            context,
            plugin,
            config.as_ptr().cast(),
            config.len() as u64,
            out.as_mut_ptr(),
            &mut err,
        )
    };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Sets a metadata pair of the options: adds it, or replaces the value of its key. `out` keeps the texts of all pairs, those that were there included, and is released after the last use of the options; what an earlier call for them gave may go at once.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn save_options_set_metadata(
    options: *mut shw_save_options,
    key: *const c_char,
    value: *const c_char,
) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_save_options_set_metadata(options, key, value, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Saves the states of all ranks as one checkpoint and returns when it is committed. All ranks return the same status.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn save(
    context: *mut shw_context,
    state: *const shw_state,
    storage: *mut shw_storage,
    path: *const c_char,
    collective: *mut shw_collective,
    options: *const shw_save_options,
) -> Result<*mut shw_report, RawError> {
    let mut out = MaybeUninit::<*mut shw_report>::zeroed();
    let mut err = core::ptr::null_mut();
    let status =
        unsafe { ffi::shw_save(context, state, storage, path, collective, options, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Starts the save as a job. The memory of the state's tensors must stay unchanged until the job is staged; the collective belongs to the job until it is terminal. The jobs of a context run one after another, so ranks of one process need a context each.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn save_async(
    context: *mut shw_context,
    state: *const shw_state,
    storage: *mut shw_storage,
    path: *const c_char,
    collective: *mut shw_collective,
    options: *const shw_save_options,
) -> Result<*mut shw_job, RawError> {
    let mut out = MaybeUninit::<*mut shw_job>::zeroed();
    let mut err = core::ptr::null_mut();
    let status =
        unsafe { ffi::shw_save_async(context, state, storage, path, collective, options, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes the memory into which jobs copy such a state, with all its pages, so that the first one is as fast as those after it. The context keeps it; while a job has it this makes more. RESOURCE_EXHAUSTED when there is not so much.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn prepare(context: *mut shw_context, state: *const shw_state) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_prepare(context, state, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Makes the planner of rank `rank` of `world_size`; it keeps context and state alive.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn save_planner_create(
    context: *mut shw_context,
    state: *const shw_state,
    rank: i32,
    world_size: i32,
    options: *const shw_save_options,
) -> Result<*mut shw_save_planner, RawError> {
    let mut out = MaybeUninit::<*mut shw_save_planner>::zeroed();
    let mut err = core::ptr::null_mut();
    let status =
        unsafe { ffi::shw_save_planner_create(context, state, rank, world_size, options, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Describes this rank's state: a plan buffer for the rank that calls global_plan.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn save_planner_local_plan(planner: *mut shw_save_planner) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_save_planner_local_plan(planner, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// On the rank that will commit: checks the target, draws the generation and merges the local plans of all ranks (a blob cut by world_size + 1 offsets, rank order). `out` has one part per rank: what that rank gives to finish.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn save_planner_global_plan(
    planner: *mut shw_save_planner,
    storage: *mut shw_storage,
    path: *const c_char,
    plans: *const c_void,
    plan_offsets: *const u64,
    plan_count: u64,
) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_save_planner_global_plan(
            planner,
            storage,
            path,
            plans,
            plan_offsets,
            plan_count,
            out.as_mut_ptr(),
            &mut err,
        )
    };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Takes this rank's part of the global plan and checks that it fits the state.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn save_planner_finish(planner: *mut shw_save_planner, plan: &[u8]) -> Result<*mut shw_plan, RawError> {
    let mut out = MaybeUninit::<*mut shw_plan>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_save_planner_finish(planner, plan.as_ptr().cast(), plan.len() as u64, out.as_mut_ptr(), &mut err)
    };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Writes this rank's file. `out` is the result buffer for the rank that commits. When writing fails the error is returned and nothing of this rank is left behind.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn save_execute(
    planner: *mut shw_save_planner,
    plan: *const shw_plan,
    storage: *mut shw_storage,
    path: *const c_char,
) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_save_execute(planner, plan, storage, path, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// On the rank that made the global plan: checks the results of all ranks (a blob cut by world_size + 1 offsets, rank order; an empty part = that rank failed) and commits at the path of the global plan, or removes what was written.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn save_commit(
    planner: *mut shw_save_planner,
    results: *const c_void,
    result_offsets: *const u64,
    result_count: u64,
) -> Result<*mut shw_report, RawError> {
    let mut out = MaybeUninit::<*mut shw_report>::zeroed();
    let mut err = core::ptr::null_mut();
    let status =
        unsafe { ffi::shw_save_commit(planner, results, result_offsets, result_count, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Opens a checkpoint and recognises its format. `storage` NULL = `path` is a path of the file system; else it is a key prefix inside the storage. `path` is not kept.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn checkpoint_open(
    context: *mut shw_context,
    storage: *mut shw_storage,
    path: *const c_char,
    options: *const shw_checkpoint_options,
) -> Result<*mut shw_checkpoint, RawError> {
    let mut out = MaybeUninit::<*mut shw_checkpoint>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_checkpoint_open(context, storage, path, options, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// The checkpoint as JSON text with "schema": 1: format, generation, counts, metadata, files, tensors, objects.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn checkpoint_info(checkpoint: *const shw_checkpoint) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_checkpoint_info(checkpoint, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Checks the manifest and each file's size, header and index, with SHW_VERIFY_DEEP every byte. All of it is read again, whatever this handle read before. The report says what was read; damage is DATA_LOSS with the place of the first in its details.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn checkpoint_verify(checkpoint: *const shw_checkpoint, flags: u64) -> Result<*mut shw_report, RawError> {
    let mut out = MaybeUninit::<*mut shw_report>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_checkpoint_verify(checkpoint, flags, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// As shw_checkpoint_verify, but lists all damage in the report instead of failing with the first.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn checkpoint_find_damage(
    checkpoint: *const shw_checkpoint,
    flags: u64,
) -> Result<*mut shw_report, RawError> {
    let mut out = MaybeUninit::<*mut shw_report>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_checkpoint_find_damage(checkpoint, flags, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Finds (with SHW_GC_APPLY removes) generations at a path that its manifest does not name and whose newest file is older than `grace_ns` (0 = 24 hours, -1 = any age). It has the path for itself: it removes nothing and notes it in the report while a save runs there, and saves that begin wait. Without a manifest that it can read it refuses: DATA_LOSS when it is damaged, FAILED_PRECONDITION when there are generations without one, or with less than 24 hours on a storage without locks.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn checkpoint_gc(
    context: *mut shw_context,
    storage: *mut shw_storage,
    path: *const c_char,
    grace_ns: i64,
    flags: u64,
) -> Result<*mut shw_report, RawError> {
    let mut out = MaybeUninit::<*mut shw_report>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_checkpoint_gc(context, storage, path, grace_ns, flags, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Finds (with SHW_REMOVE_APPLY removes) tensors and objects of a checkpoint of torch DCP or Megatron whose names begin with `prefix` (UTF-8, not empty) as its index has them, and files that hold nothing else. The index without them, which loses nothing else, is durable before a file goes; digests and integrity.json follow. The report lists the entries with their bytes as removed, and counts the files. It has the path for itself. One that was cut off is ended first.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn checkpoint_remove(
    context: *mut shw_context,
    storage: *mut shw_storage,
    path: *const c_char,
    prefix: *const c_char,
    flags: u64,
) -> Result<*mut shw_report, RawError> {
    let mut out = MaybeUninit::<*mut shw_report>::zeroed();
    let mut err = core::ptr::null_mut();
    let status =
        unsafe { ffi::shw_checkpoint_remove(context, storage, path, prefix, flags, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Lists the checkpoints step-NNNNNNNN, and iter_NNNNNNN of Megatron, below a run directory and names the newest whole one, as JSON text with "schema": 1. "tracker" is the text of Megatron's latest_checkpointed_iteration.txt and "tracked" the step that it names; "" for what is not there.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn checkpoint_list_steps(
    context: *mut shw_context,
    storage: *mut shw_storage,
    path: *const c_char,
) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_checkpoint_list_steps(context, storage, path, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Finds the newest whole step of a run directory: `out` is the path to open, `path` joined with step-NNNNNNNN or iter_NNNNNNN. Looks at the newest step first. One that is damaged, uncommitted or no checkpoint is passed over with a warning in the log; when a step cannot be looked at at all, that is the error, so that no older step stands in for it. NOT_FOUND: there is no step, or none is whole.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn checkpoint_latest(
    context: *mut shw_context,
    storage: *mut shw_storage,
    path: *const c_char,
) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_checkpoint_latest(context, storage, path, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Describes `count` tensors from number `first` on; each `struct_size` must be set and equal.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn checkpoint_tensor_infos(
    checkpoint: *const shw_checkpoint,
    first: u64,
    count: u64,
    infos: *mut shw_tensor_info,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_checkpoint_tensor_infos(checkpoint, first, count, infos, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Gives the names of all tensors, one per part; those of rank-local tensors repeat.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn checkpoint_tensor_names(checkpoint: *const shw_checkpoint) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_checkpoint_tensor_names(checkpoint, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Finds a tensor by name; `out` receives its number. Of rank-local tensors that of `rank` is taken. NOT_FOUND carries the three nearest names.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn checkpoint_find_tensor(
    checkpoint: *const shw_checkpoint,
    name: &[u8],
    rank: i32,
) -> Result<u64, RawError> {
    let mut out = MaybeUninit::<u64>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_checkpoint_find_tensor(
            checkpoint,
            name.as_ptr().cast(),
            name.len() as u64,
            rank,
            out.as_mut_ptr(),
            &mut err,
        )
    };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Describes `count` chunks from number `first` on; each `struct_size` must be set and equal. Reads the indexes of files that were not needed before.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn checkpoint_chunk_infos(
    checkpoint: *const shw_checkpoint,
    first: u64,
    count: u64,
    infos: *mut shw_chunk_info,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_checkpoint_chunk_infos(checkpoint, first, count, infos, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Writes the box of a chunk: as many offsets as its tensor has dimensions, then the sizes. `size` receives the number of values; BUFFER_TOO_SMALL when it is above `capacity`.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn checkpoint_chunk_box(
    checkpoint: *const shw_checkpoint,
    index: u64,
    r#box: *mut i64,
    capacity: u64,
    size: *mut u64,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_checkpoint_chunk_box(checkpoint, index, r#box, capacity, size, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Gives the names of all objects, one per part; those of rank-local objects repeat.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn checkpoint_object_names(checkpoint: *const shw_checkpoint) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_checkpoint_object_names(checkpoint, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Finds an object by name; as shw_checkpoint_find_tensor.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn checkpoint_find_object(
    checkpoint: *const shw_checkpoint,
    name: &[u8],
    rank: i32,
) -> Result<u64, RawError> {
    let mut out = MaybeUninit::<u64>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_checkpoint_find_object(
            checkpoint,
            name.as_ptr().cast(),
            name.len() as u64,
            rank,
            out.as_mut_ptr(),
            &mut err,
        )
    };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Reads `count` objects (NULL `indices` = 0, 1, ...), one per part of `out`.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn checkpoint_read_objects(
    checkpoint: *const shw_checkpoint,
    indices: *const u64,
    count: u64,
) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_checkpoint_read_objects(checkpoint, indices, count, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// What an object is, for people: one JSON object with `content_type`, `bytes` and `value`. JSON is itself; of a pickle, or an archive of torch.save, `value` says what would be made of it, in at most about 256 KiB, and nothing is; text is text, anything else null.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn checkpoint_describe_object(
    checkpoint: *const shw_checkpoint,
    index: u64,
) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_checkpoint_describe_object(checkpoint, index, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Reads `size` bytes of an object from `offset` on into one part, fewer only where the object ends: what other formats hold may be larger than memory.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn checkpoint_read_object_part(
    checkpoint: *const shw_checkpoint,
    index: u64,
    offset: u64,
    size: u64,
) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status =
        unsafe { ffi::shw_checkpoint_read_object_part(checkpoint, index, offset, size, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Reads boxes of tensors into memory of the caller. On failure the targets may hold part of the bytes.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn checkpoint_read_boxes(
    checkpoint: *const shw_checkpoint,
    batch: *const shw_box_batch,
) -> Result<*mut shw_report, RawError> {
    let mut out = MaybeUninit::<*mut shw_report>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_checkpoint_read_boxes(checkpoint, batch, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Reads one box (both NULL = the whole tensor) into a new tensor; `ndim` is that of the tensor.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn checkpoint_read_tensor(
    checkpoint: *const shw_checkpoint,
    index: u64,
    box_offsets: *const i64,
    box_sizes: *const i64,
    ndim: i32,
) -> Result<*mut shw_owned_tensor, RawError> {
    let mut out = MaybeUninit::<*mut shw_owned_tensor>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_checkpoint_read_tensor(checkpoint, index, box_offsets, box_sizes, ndim, out.as_mut_ptr(), &mut err)
    };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Computes the digests of `count` tensors (NULL `indices` = 0, 1, ...): one part of `out` per tensor, lower-case hexadecimal text that does not depend on layout and format.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn checkpoint_digests(
    checkpoint: *const shw_checkpoint,
    indices: *const u64,
    count: u64,
    algorithm: i32,
) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status =
        unsafe { ffi::shw_checkpoint_digests(checkpoint, indices, count, algorithm, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Opens the checkpoint at `path` and fills the state of every rank from it. All ranks return the same status. When it fails after reading began, tensors may hold part of the bytes.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn load(
    context: *mut shw_context,
    state: *mut shw_state,
    storage: *mut shw_storage,
    path: *const c_char,
    collective: *mut shw_collective,
    options: *const shw_load_options,
) -> Result<*mut shw_report, RawError> {
    let mut out = MaybeUninit::<*mut shw_report>::zeroed();
    let mut err = core::ptr::null_mut();
    let status =
        unsafe { ffi::shw_load(context, state, storage, path, collective, options, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Starts the load as a job. State, tensor memory and collective belong to the job until it is terminal.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn load_async(
    context: *mut shw_context,
    state: *mut shw_state,
    storage: *mut shw_storage,
    path: *const c_char,
    collective: *mut shw_collective,
    options: *const shw_load_options,
) -> Result<*mut shw_job, RawError> {
    let mut out = MaybeUninit::<*mut shw_job>::zeroed();
    let mut err = core::ptr::null_mut();
    let status =
        unsafe { ffi::shw_load_async(context, state, storage, path, collective, options, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes the planner of rank `rank` (which selects rank-local entries); it keeps checkpoint and state alive.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn load_planner_create(
    checkpoint: *const shw_checkpoint,
    state: *mut shw_state,
    rank: i32,
    options: *const shw_load_options,
) -> Result<*mut shw_load_planner, RawError> {
    let mut out = MaybeUninit::<*mut shw_load_planner>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_load_planner_create(checkpoint, state, rank, options, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Matches what the state wants with what is stored.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn load_planner_local_plan(planner: *mut shw_load_planner) -> Result<*mut shw_plan, RawError> {
    let mut out = MaybeUninit::<*mut shw_plan>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_load_planner_local_plan(planner, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Reads what the plan says into the state. A plan of another state or checkpoint is FAILED_PRECONDITION.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn load_execute(planner: *mut shw_load_planner, plan: *const shw_plan) -> Result<*mut shw_report, RawError> {
    let mut out = MaybeUninit::<*mut shw_report>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_load_execute(planner, plan, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Lists the stored blocks that the load plan of this planner's rank wants, as a plan of kind SHW_PLAN_WANT_LIST for the rank that plans the exchange. `world_size` is the number of ranks; a rank with less than 2 MiB to read wants nothing from others. A load plan of another state or checkpoint is FAILED_PRECONDITION.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn load_planner_want_list(
    planner: *mut shw_load_planner,
    load_plan: *const shw_plan,
    world_size: i32,
) -> Result<*mut shw_plan, RawError> {
    let mut out = MaybeUninit::<*mut shw_plan>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_load_planner_want_list(planner, load_plan, world_size, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Plans the exchange of all ranks from their want lists, `count` in rank order. `plans` has room for `count` plans of kind SHW_PLAN_EXCHANGE, that of rank r at place r: all are written, or none. Lists of other ranks, another number of ranks or different generations are INVALID_ARGUMENT naming the rank. Equal lists give equal plans.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn exchange_plans(
    want_lists: *const *const shw_plan,
    count: u64,
    plans: *mut *mut shw_plan,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_exchange_plans(want_lists, count, plans, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Begins a load of what `load_plan` says whose blocks come as `exchange_plan` says. It keeps what the planner has, its cancellation too, but not the handles; the planner's deadline counts from here. The memory of all rounds is taken here from the memory budget. An exchange plan of another rank or generation, or of other blocks than the load plan wants, and a load plan of another state or checkpoint, are FAILED_PRECONDITION; a budget without room is RESOURCE_EXHAUSTED.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn load_exchange_create(
    planner: *mut shw_load_planner,
    load_plan: *const shw_plan,
    exchange_plan: *const shw_plan,
) -> Result<*mut shw_load_exchange, RawError> {
    let mut out = MaybeUninit::<*mut shw_load_exchange>::zeroed();
    let mut err = core::ptr::null_mut();
    let status =
        unsafe { ffi::shw_load_exchange_create(planner, load_plan, exchange_plan, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Begins the next round: what the rank has to read for others in it has been read and checked. A round that has not ended, and one more than there are, are FAILED_PRECONDITION and change nothing; after any other failure, here and below, the load has failed and all calls say so.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn load_exchange_begin_round(exchange: *mut shw_load_exchange) -> Result<shw_exchange_round, RawError> {
    let mut out = MaybeUninit::<shw_exchange_round>::zeroed();
    unsafe { (*out.as_mut_ptr()).struct_size = size_of::<shw_exchange_round>() as u32 };
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_load_exchange_begin_round(exchange, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Ends the round when `incoming` is filled: what came is checked, unless the planner's `verify` is off, and goes to where it is wanted. The memory of the round may not be used any more. Without a round that has begun it is FAILED_PRECONDITION.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn load_exchange_end_round(exchange: *mut shw_load_exchange) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_load_exchange_end_round(exchange, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Reads what is not exchanged, when all rounds have ended, and hands objects to the state. Once; earlier or again it is FAILED_PRECONDITION.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn load_exchange_finish(exchange: *mut shw_load_exchange) -> Result<*mut shw_report, RawError> {
    let mut out = MaybeUninit::<*mut shw_report>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_load_exchange_finish(exchange, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Writes a state as items into a new file `name`, [TEXT]__R_K.GENERATION.distcp, of the directory `path`: each piece of each tensor, empty ones too, then each object. Of the options durability, digests, file_mode, threads, memory_budget, deadline and cancellation count. The first part of `out` has three 8-byte numbers in the machine's order for each item: the entry (of an object its number behind all tensors), then offset and length in the file; the second is for shw_torch_digests_write. After a failure nothing is left.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn torch_items_write(
    context: *mut shw_context,
    state: *const shw_state,
    storage: *mut shw_storage,
    path: *const c_char,
    name: *const c_char,
    options: *const shw_save_options,
) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status =
        unsafe { ffi::shw_torch_items_write(context, state, storage, path, name, options, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Writes the digests of an index into the directory `path`, as .shardwright.GENERATION.digests. `data` are the `size` bytes that .metadata has, or is going to have: digests count for these very bytes. `results` are second parts of shw_torch_items_write, a blob cut by result_count + 1 offsets; items of the index that are in none of them have no digests. Files of several generations are INVALID_ARGUMENT. Of the options durability counts.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn torch_digests_write(
    context: *mut shw_context,
    storage: *mut shw_storage,
    path: *const c_char,
    data: &[u8],
    results: *const c_void,
    result_offsets: *const u64,
    result_count: u64,
    options: *const shw_save_options,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_torch_digests_write(
            context,
            storage,
            path,
            data.as_ptr().cast(),
            data.len() as u64,
            results,
            result_offsets,
            result_count,
            options,
            &mut err,
        )
    };
    RawError::check(status, err)?;
    Ok(())
}

/// Saves the checkpoint at `source` (of a format that shw_checkpoint_open takes, or of the zarr backend of Megatron-core up to 0.14) to `target`, never inside of it, in another format; the source is only read. Memory is bounded by the budget, but for byte objects. What was written stays when the call fails, and the same call goes on with it; shw_checkpoint_gc removes it. A target that this call has made before is compared and left as it is.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn convert(
    context: *mut shw_context,
    source_storage: *mut shw_storage,
    source: *const c_char,
    target_storage: *mut shw_storage,
    target: *const c_char,
    options: *const shw_convert_options,
) -> Result<*mut shw_report, RawError> {
    let mut out = MaybeUninit::<*mut shw_report>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_convert(context, source_storage, source, target_storage, target, options, out.as_mut_ptr(), &mut err)
    };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Saves the checkpoint of Megatron at `source` to `target` for a job of another shape, optimizer included; the source is only read. What lies in a bucket is proved by its contents. Memory, a killed call and a target that was made before are as in shw_convert.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn reshard(
    context: *mut shw_context,
    source_storage: *mut shw_storage,
    source: *const c_char,
    target_storage: *mut shw_storage,
    target: *const c_char,
    options: *const shw_reshard_options,
) -> Result<*mut shw_report, RawError> {
    let mut out = MaybeUninit::<*mut shw_report>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_reshard(context, source_storage, source, target_storage, target, options, out.as_mut_ptr(), &mut err)
    };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// What the pickles at `path` (a file, or all files below a directory) would import and call if they were unpickled, whether a checkpoint can be opened there or not. `out` is one JSON object: `globals` (each with `module`, `name`, `known`, `calls`, `file`, `record`, `offset`, ...), `unknown` (how many are not known to make plain values), `failures` and `unread` (what could not be looked at to its end), `files`, `pickles`, `notes`.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn scan_pickles(
    context: *mut shw_context,
    storage: *mut shw_storage,
    path: *const c_char,
) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_scan_pickles(context, storage, path, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Writes files with pickles once more, with None in place of what is not known; the original is only read. Of a file `target` becomes a whole file. Of a directory, indexes of torch DCP and other files with pickles are written below `target`; an index leaves out entries whose items are not clean. `out` is one JSON object: `files`, each with `file`, `replaced` and `left_out`.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn clean_pickles(
    context: *mut shw_context,
    source_storage: *mut shw_storage,
    source: *const c_char,
    target_storage: *mut shw_storage,
    target: *const c_char,
) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_clean_pickles(context, source_storage, source, target_storage, target, out.as_mut_ptr(), &mut err)
    };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes a plan buffer, the one part of `out`, of what the entries describe. Equal entries give equal bytes.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn plan_describe(
    options: *const shw_describe_options,
    entries: *const shw_entry_batch,
) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_plan_describe(options, entries, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// The entries of a local or merged plan as they were described; `out->struct_size` must be set. Arrays that have one value per entry or box are never NULL, except `order`, `secondary`, `attributes` and `digests` where they say nothing. All are borrowed until the plan is released.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn plan_entries(plan: *const shw_plan) -> Result<shw_entry_batch, RawError> {
    let mut out = MaybeUninit::<shw_entry_batch>::zeroed();
    unsafe { (*out.as_mut_ptr()).struct_size = size_of::<shw_entry_batch>() as u32 };
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_plan_entries(plan, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Merges the local plans of all ranks (a blob cut by plan_count + 1 offsets, rank order). Part 0 of `out` is the merged plan. Part 1 + r says what rank r keeps: one uint32 for each box of its plan, as shw_plan_entries lists them, the number of its chunk in its tensor (0 for an object), or SHW_NOT_KEPT where another rank writes it. How presets and owners choose and number: docs/planning.md.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn plan_merge(
    options: *const shw_merge_options,
    plans: *const c_void,
    plan_offsets: *const u64,
    plan_count: u64,
) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_plan_merge(options, plans, plan_offsets, plan_count, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// shw_plan_merge of plans that lie apart, as a transport left them: plan r is the `plan_sizes[r]` bytes at `plans[r]`. Those at a multiple of 8 are read in place.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn plan_merge_buffers(
    options: *const shw_merge_options,
    plans: *const *const c_void,
    plan_sizes: *const u64,
    plan_count: u64,
) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status =
        unsafe { ffi::shw_plan_merge_buffers(options, plans, plan_sizes, plan_count, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Intersects wanted boxes with the chunks of a merged plan, by name. Parts of `out`: 0 numbers of wanted boxes (u64), 1 numbers of chunks in their tensor (u64), 2 offsets inside the wanted box, 3 offsets inside the chunk, 4 sizes (i64, ndim values per match, back to back in the order of the matches), 5 first match of each entry and the end (u64, count + 1). A stored object is one match without dimensions.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn plan_match(
    options: *const shw_match_options,
    stored: *const shw_plan,
    wanted: *const shw_entry_batch,
) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_plan_match(options, stored, wanted, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Digest of what a local or merged plan describes, 16 bytes: equal for equal entries in equal order on equal ranks, whatever the content digests of the entries are.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn plan_digest(plan: *const shw_plan) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_plan_digest(plan, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// XXH3-128 of `size` bytes in canonical byte order, 16 bytes, as `digests` of entries want it.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn content_digest(data: &[u8]) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status =
        unsafe { ffi::shw_content_digest(data.as_ptr().cast(), data.len() as u64, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Reads a JSON description. What is wrong is told with line and column, which are also the details `line` and `column`; keys that are not known are refused with the nearest known one.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn job_description_create(data: &[u8]) -> Result<*mut shw_job_description, RawError> {
    let mut out = MaybeUninit::<*mut shw_job_description>::zeroed();
    let mut err = core::ptr::null_mut();
    let status =
        unsafe { ffi::shw_job_description_create(data.as_ptr().cast(), data.len() as u64, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Takes what a checkpoint stores: each chunk is held by the rank that wrote it.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn job_description_from_checkpoint(
    checkpoint: *const shw_checkpoint,
) -> Result<*mut shw_job_description, RawError> {
    let mut out = MaybeUninit::<*mut shw_job_description>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_job_description_from_checkpoint(checkpoint, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// The tensors and objects of `source` as `target` lays them out: as it lists them, else by the first of its rules that matches.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn job_description_lay_out(
    source: *const shw_job_description,
    target: *const shw_job_description,
) -> Result<*mut shw_job_description, RawError> {
    let mut out = MaybeUninit::<*mut shw_job_description>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_job_description_lay_out(source, target, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// The JSON text that shw_job_description_create reads, repeats written out.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn job_description_json(description: *const shw_job_description) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_job_description_json(description, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Plans the save of all ranks and gives what it costs as JSON text with "schema": 1 (part 0 of `out`). With SHW_ESTIMATE_WITH_PLAN part 1 is the merged plan as a plan buffer.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn estimate_save(
    description: *const shw_job_description,
    options: *const shw_estimate_options,
) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_estimate_save(description, options, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Plans the load by the ranks of `wanted` (shw_job_description_lay_out made it from `stored`) of what the checkpoint of `stored` holds, or of what a save of `stored` would store; `wanted` NULL = `stored` itself. What it costs is JSON text with "schema": 1 (part 0 of `out`). With SHW_ESTIMATE_WITH_PLAN part 1 + r is the load plan of rank r as a plan buffer, up to 4 GiB in all; its entries are the tensors and objects that the rank holds, in the order of the description.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn estimate_load(
    stored: *const shw_job_description,
    wanted: *const shw_job_description,
    options: *const shw_estimate_options,
) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_estimate_load(stored, wanted, options, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Describes what `options->rank` of `options->world_size` holds. `layouts` has one layout per entry, NULL where the boxes of `entries` count; `layouts` NULL = no entry has one. An entry with a layout lists no boxes and is of kind SHARDED unless its kind says otherwise or no axis of the layout cuts. `numbers`, `order`, `secondary` and `attributes` are NULL. Parts of `out`: 0 the description (a plan buffer), 1 its digest, 2 this rank's part (a plan buffer), empty when there is none.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn global_plan_describe(
    options: *const shw_describe_options,
    entries: *const shw_entry_batch,
    layouts: *const *const shw_layout,
) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_global_plan_describe(options, entries, layouts, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Ranks that send their description: the lowest of each distinct digest, ascending by first use (int32, the one part of `out`). `digests` has 16 bytes per rank.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn global_plan_representatives(
    digests: *const c_void,
    rank_count: u64,
) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_global_plan_representatives(digests, rank_count, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes the plan of all ranks. `descriptions` are those of the representatives in their order (a blob cut by description_count + 1 offsets), `parts` those of the ranks that have one, in any order (a blob cut by part_count + 1 offsets; NULL with part_count 0). Of `options`, `owner` is any but ALL, and `cover` FULL.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn global_plan_create(
    options: *const shw_merge_options,
    digests: *const c_void,
    rank_count: u64,
    descriptions: *const c_void,
    description_offsets: *const u64,
    description_count: u64,
    parts: *const c_void,
    part_offsets: *const u64,
    part_count: u64,
) -> Result<*mut shw_global_plan, RawError> {
    let mut out = MaybeUninit::<*mut shw_global_plan>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_global_plan_create(
            options,
            digests,
            rank_count,
            descriptions,
            description_offsets,
            description_count,
            parts,
            part_offsets,
            part_count,
            out.as_mut_ptr(),
            &mut err,
        )
    };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// What rank `rank` writes, as a plan buffer of kind WRITE_LIST. An entry is counted among the tensors or among the objects of the rank's entries. `generation` is 32 hex digits; `plan_digest` has the 16 bytes that the list carries, NULL = those of shw_global_plan_digest.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn global_plan_write_list(
    plan: *const shw_global_plan,
    rank: i32,
    generation: *const c_char,
    plan_digest: *const c_void,
) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status =
        unsafe { ffi::shw_global_plan_write_list(plan, rank, generation, plan_digest, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Bytes that each rank writes, without padding (uint64, the one part of `out`).
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn global_plan_rank_bytes(plan: *const shw_global_plan) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_global_plan_rank_bytes(plan, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Rank that writes each chunk of a tensor that is not rank_local, in the order of the explicit catalog (int32, the one part of `out`).
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn global_plan_owners(plan: *const shw_global_plan, name: &[u8]) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_global_plan_owners(plan, name.as_ptr().cast(), name.len() as u64, out.as_mut_ptr(), &mut err)
    };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Counts of the plan as JSON text with "schema": 1: ranks, descriptions, tensors, items, chunks, objects, files, bytes, most_bytes (of the rank that writes most).
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn global_plan_json(plan: *const shw_global_plan) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_global_plan_json(plan, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Digest of what the plan is made of, 16 bytes: equal on all ranks that made the same plan.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn global_plan_digest(plan: *const shw_global_plan) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_global_plan_digest(plan, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// The explicit plan: part 0 of `out` is the merged plan, part 1 + r the write list of rank r, each with the digest of the explicit catalog. Costs what the explicit plan costs.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn global_plan_expand(
    plan: *const shw_global_plan,
    generation: *const c_char,
) -> Result<*mut shw_buffer, RawError> {
    let mut out = MaybeUninit::<*mut shw_buffer>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_global_plan_expand(plan, generation, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes a communicator of a host's table, which is copied. On success it owns `vtable->user` and calls the table's release once.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn communicator_create(vtable: *const shw_communicator_vtable) -> Result<*mut shw_communicator, RawError> {
    let mut out = MaybeUninit::<*mut shw_communicator>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_communicator_create(vtable, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes `size` ranks in this process, each to be used by a thread of its own.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn communicator_group_create(size: i32) -> Result<*mut shw_communicator_group, RawError> {
    let mut out = MaybeUninit::<*mut shw_communicator_group>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_communicator_group_create(size, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Gives the communicator of one rank of the group; each rank can be taken once. A rank whose communicator is released while others wait for it makes them return ABORTED naming it.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn communicator_group_member(
    group: *mut shw_communicator_group,
    rank: i32,
) -> Result<*mut shw_communicator, RawError> {
    let mut out = MaybeUninit::<*mut shw_communicator>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_communicator_group_member(group, rank, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes one rank of `size` that moves nothing and always succeeds, for estimates and for checks of what would be issued.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn communicator_create_fake(rank: i32, size: i32) -> Result<*mut shw_communicator, RawError> {
    let mut out = MaybeUninit::<*mut shw_communicator>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_communicator_create_fake(rank, size, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Puts a communicator behind an emulated link of this rank: each operation ends `latency_ns` after its bytes have come at `bytes_per_second` (0 = at once). No processor is used meanwhile. `out` keeps `communicator` alive, which is used through it alone.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn communicator_create_delay(
    communicator: *mut shw_communicator,
    latency_ns: i64,
    bytes_per_second: f64,
) -> Result<*mut shw_communicator, RawError> {
    let mut out = MaybeUninit::<*mut shw_communicator>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_communicator_create_delay(communicator, latency_ns, bytes_per_second, out.as_mut_ptr(), &mut err)
    };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes a communicator over a collective, which it keeps alive: works everywhere, waits for other ranks where an operation is issued.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn communicator_create_over(collective: *mut shw_collective) -> Result<*mut shw_communicator, RawError> {
    let mut out = MaybeUninit::<*mut shw_communicator>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_communicator_create_over(collective, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes a communicator of a loaded plugin; `config` is text that the plugin understands.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn context_open_communicator(
    context: *mut shw_context,
    plugin: *const c_char,
    config: &[u8],
) -> Result<*mut shw_communicator, RawError> {
    let mut out = MaybeUninit::<*mut shw_communicator>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_context_open_communicator(
            context,
            plugin,
            config.as_ptr().cast(),
            config.len() as u64,
            out.as_mut_ptr(),
            &mut err,
        )
    };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Issues all_gather: `in` has call->count elements, `out` those of all ranks in rank order. Sizes are in bytes, here and below, and those that count and dtype say.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn communicator_all_gather(
    communicator: *mut shw_communicator,
    call: *const shw_communicator_call,
    r#in: &[u8],
    out: *mut c_void,
    out_size: u64,
    out_work: *mut *mut shw_work,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_communicator_all_gather(
            communicator,
            call,
            r#in.as_ptr().cast(),
            r#in.len() as u64,
            out,
            out_size,
            out_work,
            &mut err,
        )
    };
    RawError::check(status, err)?;
    Ok(())
}

/// Issues all_to_all: `in` and `out` have call->count elements for and from each rank.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn communicator_all_to_all(
    communicator: *mut shw_communicator,
    call: *const shw_communicator_call,
    r#in: &[u8],
    out: *mut c_void,
    out_size: u64,
    out_work: *mut *mut shw_work,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_communicator_all_to_all(
            communicator,
            call,
            r#in.as_ptr().cast(),
            r#in.len() as u64,
            out,
            out_size,
            out_work,
            &mut err,
        )
    };
    RawError::check(status, err)?;
    Ok(())
}

/// Issues reduce_scatter: `in` has call->count elements for each rank, `out` call->count elements, reduced as call->op says.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn communicator_reduce_scatter(
    communicator: *mut shw_communicator,
    call: *const shw_communicator_call,
    r#in: &[u8],
    out: *mut c_void,
    out_size: u64,
    out_work: *mut *mut shw_work,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_communicator_reduce_scatter(
            communicator,
            call,
            r#in.as_ptr().cast(),
            r#in.len() as u64,
            out,
            out_size,
            out_work,
            &mut err,
        )
    };
    RawError::check(status, err)?;
    Ok(())
}

/// Issues all_reduce of call->count elements in place.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn communicator_all_reduce(
    communicator: *mut shw_communicator,
    call: *const shw_communicator_call,
    data: *mut c_void,
    size: u64,
    out_work: *mut *mut shw_work,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_communicator_all_reduce(communicator, call, data, size, out_work, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Issues broadcast of call->count elements of the root, in place.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn communicator_broadcast(
    communicator: *mut shw_communicator,
    call: *const shw_communicator_call,
    data: *mut c_void,
    size: u64,
    root: i32,
    out_work: *mut *mut shw_work,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_communicator_broadcast(communicator, call, data, size, root, out_work, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Issues a barrier, which ends when all ranks have issued it.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn communicator_barrier(
    communicator: *mut shw_communicator,
    call: *const shw_communicator_call,
    out_work: *mut *mut shw_work,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_communicator_barrier(communicator, call, out_work, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Wakes all ranks that wait in this communicator, and ends it; they return `code` with the message.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn communicator_abort(
    communicator: *mut shw_communicator,
    code: shw_status,
    message: &[u8],
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_communicator_abort(communicator, code, message.as_ptr().cast(), message.len() as u64, &mut err)
    };
    RawError::check(status, err)?;
    Ok(())
}

/// Waits until the operation has ended: OK; PENDING after `timeout_ns` (-1 = no limit but that of the operation). A failure is returned again at each further call.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn work_wait(work: *mut shw_work, timeout_ns: i64) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_work_wait(work, timeout_ns, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// The same without waiting: OK or PENDING.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn work_poll(work: *mut shw_work) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_work_poll(work, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// A stream of a device goes on after the operation, and the host does not wait; for memory of the host it waits.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn work_order(work: *mut shw_work, stream: u64) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_work_order(work, stream, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Makes a device of a host's table, which is copied. On success it owns `vtable->user` and calls the table's release once.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn device_create(vtable: *const shw_device_vtable) -> Result<*mut shw_device, RawError> {
    let mut out = MaybeUninit::<*mut shw_device>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_device_create(vtable, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes the host as a device. Lanes are threads; with `inline_lanes` 1 what is put on them runs where it is put, which makes an order of events that repeats.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn device_create_host(inline_lanes: shw_bool) -> Result<*mut shw_device, RawError> {
    let mut out = MaybeUninit::<*mut shw_device>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_device_create_host(inline_lanes, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes a device of a loaded plugin; `config` is text that the plugin understands.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn context_open_device(
    context: *mut shw_context,
    plugin: *const c_char,
    config: &[u8],
) -> Result<*mut shw_device, RawError> {
    let mut out = MaybeUninit::<*mut shw_device>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_context_open_device(
            context,
            plugin,
            config.as_ptr().cast(),
            config.len() as u64,
            out.as_mut_ptr(),
            &mut err,
        )
    };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Makes the mesh of `rank`, which is one of its ranks. Of `spec` the fields of the mesh count: shape, axis names, ranks; the others are NULL or zero.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_mesh_create(spec: *const shw_layout_spec, rank: i32) -> Result<*mut shw_hsdp_mesh, RawError> {
    let mut out = MaybeUninit::<*mut shw_hsdp_mesh>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_mesh_create(spec, rank, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Sets the communicator of an axis for a lane (SHW_HSDP_LANE_); it stays alive with the mesh. Its ranks are those along the axis in the order of their coordinates; for SHW_HSDP_LANE_SECONDARY the n neighbours [k n, k n + n) with this rank among them, for each n that units use. Before the context is created, and again between a failure and shw_hsdp_reset.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_mesh_set_communicator(
    mesh: *mut shw_hsdp_mesh,
    axis: i32,
    lane: i32,
    communicator: *mut shw_communicator,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_mesh_set_communicator(mesh, axis, lane, communicator, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Makes a context of units, which keeps `context`, mesh and device alive. FAILED_PRECONDITION: an axis of several ranks has no communicator, or one that does not sum in rank order.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_create(
    context: *mut shw_context,
    options: *const shw_hsdp_options,
) -> Result<*mut shw_hsdp, RawError> {
    let mut out = MaybeUninit::<*mut shw_hsdp>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_create(context, options, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// The backward is over: reduces what was not reduced yet. In the last backward of an iteration (see SHW_HSDP_IS_LAST_BACKWARD) also waits for all reductions, drops what was gathered in vain, and in the first iterations compares with the other ranks in which order units ran (ABORTED naming the first unit that differs and both ranks).
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_finalize_backward(hsdp: *mut shw_hsdp) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_finalize_backward(hsdp, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Parameters of the shards have changed (an optimizer step, a load): what was gathered before is of no use. Shards of a unit that is being gathered stay as they are: a host that may have asked for that calls this before the change, too. `event` of the device after which they are there, 0 = they are there, and what wrote them has ended. FAILED_PRECONDITION names a unit whose gradients still wait for the replicas.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_step_event(hsdp: *mut shw_hsdp, event: u64) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_step_event(hsdp, event, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Recovery, on all ranks: gives up what is under way and drops all gradients and all that was gathered. After a failure the mesh needs new communicators first (FAILED_PRECONDITION names one that has failed).
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_reset(hsdp: *mut shw_hsdp) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_reset(hsdp, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Norm of order `p` (positive; infinity: the largest) of the gradients of all shards, replicas counted once; equal on all ranks. Collective over the shard axis.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_global_norm(hsdp: *mut shw_hsdp, p: f64) -> Result<f64, RawError> {
    let mut out = MaybeUninit::<f64>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_global_norm(hsdp, p, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Multiplies all gradients of the shards by a finite factor.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_scale_grads(hsdp: *mut shw_hsdp, factor: f64) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_scale_grads(hsdp, factor, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Drops all gradients of the shards.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_zero_grads(hsdp: *mut shw_hsdp) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_zero_grads(hsdp, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Sets a value of the context (SHW_HSDP_MAX_INFLIGHT_REDUCE, SHW_HSDP_PREFETCH_DEPTH, SHW_HSDP_IS_LAST_BACKWARD), or one of shw_hsdp_unit_set_i64 in all units. Equal on all ranks.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_set_i64(hsdp: *mut shw_hsdp, key: i32, value: i64) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_set_i64(hsdp, key, value, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// The value of the context that shw_hsdp_set_i64 sets (SHW_HSDP_MAX_INFLIGHT_REDUCE, SHW_HSDP_PREFETCH_DEPTH, SHW_HSDP_IS_LAST_BACKWARD); those of units are read of each.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_get_i64(hsdp: *const shw_hsdp, key: i32) -> Result<i64, RawError> {
    let mut out = MaybeUninit::<i64>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_get_i64(hsdp, key, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Sets one of the values of shw_hsdp_unit_set_f64 in all units. Equal on all ranks.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_set_f64(hsdp: *mut shw_hsdp, key: i32, value: f64) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_set_f64(hsdp, key, value, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Adds what this rank holds of all sealed units to a state, under `prefix` (`prefix_size` bytes; "" = none) followed by the names of the parameters; aliases are one entry. Memory is borrowed: the state keeps the context alive. Where it lies on a device, saves and loads copy it by that device, and so tensors that are added later and lie there. Entries have the layout of their shards, those of ragged units boxes; padding is in none. After a load call shw_hsdp_step_event. `what`: SHW_HSDP_PARAMS, or SHW_HSDP_GRADS, for which FAILED_PRECONDITION names a unit whose gradients still travel or wait for the replicas.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_add_to_state(
    hsdp: *mut shw_hsdp,
    prefix: &[u8],
    what: i32,
    state: *mut shw_state,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status =
        unsafe { ffi::shw_hsdp_add_to_state(hsdp, prefix.as_ptr().cast(), prefix.len() as u64, what, state, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Makes a unit. Its name is for messages, and equal on all ranks.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_create(
    hsdp: *mut shw_hsdp,
    name: &[u8],
    options: *const shw_hsdp_unit_options,
) -> Result<*mut shw_hsdp_unit, RawError> {
    let mut out = MaybeUninit::<*mut shw_hsdp_unit>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe {
        ffi::shw_hsdp_unit_create(hsdp, name.as_ptr().cast(), name.len() as u64, options, out.as_mut_ptr(), &mut err)
    };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Adds all parameters of the batch or none; they are numbered from 0 in the order in which they are added. Full tensors are borrowed until the unit is sealed, names copied.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_add_params(
    unit: *mut shw_hsdp_unit,
    batch: *const shw_hsdp_param_batch,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_add_params(unit, batch, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// As shw_hsdp_unit_add_params with versioned DLPack tensors, `batch->count` of them, in place of `batch->tensors`. On success all are consumed: their deleters run once when the unit is sealed or ends.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_add_params_dlpack(
    unit: *mut shw_hsdp_unit,
    batch: *const shw_hsdp_param_batch,
    managed: *const *mut DLManagedTensorVersioned,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_add_params_dlpack(unit, batch, managed, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// As shw_hsdp_unit_add_params_dlpack with legacy DLPack tensors.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_add_params_dlpack_legacy(
    unit: *mut shw_hsdp_unit,
    batch: *const shw_hsdp_param_batch,
    managed: *const *mut DLManagedTensor,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_add_params_dlpack_legacy(unit, batch, managed, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Whole parameters lie in memory that the host gives from now on, which is memory of the context's device. The table is copied; on success the unit owns `allocator->user` and calls its release once. Called on the thread that calls the unit.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_set_allocator(
    unit: *mut shw_hsdp_unit,
    allocator: *const shw_hsdp_allocator,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_set_allocator(unit, allocator, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Lays the unit out, compares that on all ranks (INVALID_ARGUMENT on all of them, naming the unit and a rank that differs), makes the shards and fills them.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_seal(unit: *mut shw_hsdp_unit) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_seal(unit, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// What this rank holds of a parameter.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_box(unit: *mut shw_hsdp_unit, index: u64) -> Result<shw_hsdp_box, RawError> {
    let mut out = MaybeUninit::<shw_hsdp_box>::zeroed();
    unsafe { (*out.as_mut_ptr()).struct_size = size_of::<shw_hsdp_box>() as u32 };
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_box(unit, index, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Layout of a parameter over the mesh, for state of the host that is cut as the parameter is, such as that of an optimizer. UNIMPLEMENTED: the cut of a ragged unit is no rule of a mesh; use shw_hsdp_unit_box.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_layout(unit: *mut shw_hsdp_unit, index: u64) -> Result<*mut shw_layout, RawError> {
    let mut out = MaybeUninit::<*mut shw_layout>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_layout(unit, index, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Before forward of the unit: waits for its whole parameters, and gathers what probably comes next.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_pre_forward(
    unit: *mut shw_hsdp_unit,
    options: *const shw_hsdp_phase_options,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_pre_forward(unit, options, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// After forward of the unit: reshards as its policy says.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_post_forward(
    unit: *mut shw_hsdp_unit,
    options: *const shw_hsdp_phase_options,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_post_forward(unit, options, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Before backward of the unit: waits for its whole parameters, and gathers what ran before it.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_pre_backward(unit: *mut shw_hsdp_unit) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_pre_backward(unit, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// After backward of the unit, its gradients were handed in: reduces and reshards as the settings say. A second call within one backward does nothing.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_post_backward(unit: *mut shw_hsdp_unit) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_post_backward(unit, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Gathers. `out` NULL: returns when the unit is UNSHARDED; else the gather is under way, and waiting for the work makes the unit UNSHARDED. The shards of all ranks stay as they are until then.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_unshard(unit: *mut shw_hsdp_unit) -> Result<*mut shw_work, RawError> {
    let mut out = MaybeUninit::<*mut shw_work>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_unshard(unit, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Waits for a gather under way; nothing where there is none.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_wait(unit: *mut shw_hsdp_unit) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_wait(unit, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Reshards in a phase (SHW_HSDP_FORWARD, SHW_HSDP_BACKWARD). A gather under way is waited for and dropped; its work does nothing then.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_reshard(unit: *mut shw_hsdp_unit, phase: i32) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_reshard(unit, phase, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Hands in gradients of whole parameters, all or none: `grads[i]` (dense, row-major, of the global shape and any floating dtype) is that of parameter `params[i]`. It lies in memory of the host or of the context's device, where what wrote it has ended (`stream` 0). `mode`: SHW_HSDP_ADD or SHW_HSDP_TAKE, which copies what does not lie in the context's memory.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_add_grads(
    unit: *mut shw_hsdp_unit,
    params: *const u64,
    grads: *const shw_tensor,
    count: u64,
    mode: i32,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_add_grads(unit, params, grads, count, mode, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// As shw_hsdp_unit_add_grads with versioned DLPack tensors. On success all are consumed: their deleters run once when they are not read any more.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_add_grads_dlpack(
    unit: *mut shw_hsdp_unit,
    params: *const u64,
    managed: *const *mut DLManagedTensorVersioned,
    count: u64,
    mode: i32,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_add_grads_dlpack(unit, params, managed, count, mode, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// As shw_hsdp_unit_add_grads_dlpack with legacy DLPack tensors.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_add_grads_dlpack_legacy(
    unit: *mut shw_hsdp_unit,
    params: *const u64,
    managed: *const *mut DLManagedTensor,
    count: u64,
    mode: i32,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_add_grads_dlpack_legacy(unit, params, managed, count, mode, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Packs the gradients that were handed in, reshards, and reduces. `out` NULL: returns when they are in the gradient of the shard (or in the partial sum); else waiting for the work brings them there. So does polling it, until it is OK, as far as nothing waits for other ranks: sums over replicas by a transport that is not asynchronous (SHW_COMMUNICATOR_ASYNC) begin in a wait. Both change the unit, so they are calls of its context.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_reduce(unit: *mut shw_hsdp_unit) -> Result<*mut shw_work, RawError> {
    let mut out = MaybeUninit::<*mut shw_work>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_reduce(unit, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Describes `count` parameters from `first` on as SHW_HSDP_VIEW_ says: dense, row-major, padding excluded, on the context's device (`device_type`, `device_id`), where the library has written all of it. Memory is borrowed until the unit's state changes next, shapes until it is released. `data` is NULL where there is no gradient. Whole parameters are there only while UNSHARDED.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_views(
    unit: *mut shw_hsdp_unit,
    view: i32,
    first: u64,
    count: u64,
) -> Result<shw_tensor, RawError> {
    let mut out = MaybeUninit::<shw_tensor>::zeroed();
    unsafe { (*out.as_mut_ptr()).struct_size = size_of::<shw_tensor>() as u32 };
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_views(unit, view, first, count, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// One view as a versioned DLPack tensor, which keeps the context alive. A gradient stays as it is when shw_hsdp_zero_grads has dropped it, for as long as the tensor lives: a host takes gradients without a copy by exporting and dropping them. FAILED_PRECONDITION where there is no gradient.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_view_dlpack(
    unit: *mut shw_hsdp_unit,
    view: i32,
    index: u64,
) -> Result<*mut DLManagedTensorVersioned, RawError> {
    let mut out = MaybeUninit::<*mut DLManagedTensorVersioned>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_view_dlpack(unit, view, index, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// As shw_hsdp_unit_view_dlpack, a legacy DLPack tensor.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_view_dlpack_legacy(
    unit: *mut shw_hsdp_unit,
    view: i32,
    index: u64,
) -> Result<*mut DLManagedTensor, RawError> {
    let mut out = MaybeUninit::<*mut DLManagedTensor>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_view_dlpack_legacy(unit, view, index, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Gives memory of the context's device for the whole parameters from `first` on, `sizes[i]` bytes at `memory[i]`, to a unit made with SHW_HSDP_UNIT_HOST_MEMORY; it is used whenever the unit is gathered from now on. While the unit is not UNSHARDED the host may free or move it, and gives it anew before the next gather is waited for. For hosts to which a call of shw_hsdp_allocator is expensive.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_set_memory(
    unit: *mut shw_hsdp_unit,
    first: u64,
    count: u64,
    memory: *const *mut c_void,
    sizes: *const u64,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_set_memory(unit, first, count, memory, sizes, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Sets a value of the unit, SHW_HSDP_REQUIRES_GRADIENT_SYNC to SHW_HSDP_UNUSED_POLICY, from now on and equally on all ranks.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_set_i64(unit: *mut shw_hsdp_unit, key: i32, value: i64) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_set_i64(unit, key, value, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// The value that shw_hsdp_unit_set_i64 sets.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_get_i64(unit: *const shw_hsdp_unit, key: i32) -> Result<i64, RawError> {
    let mut out = MaybeUninit::<i64>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_get_i64(unit, key, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// The value that shw_hsdp_unit_set_f64 sets.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_get_f64(unit: *const shw_hsdp_unit, key: i32) -> Result<f64, RawError> {
    let mut out = MaybeUninit::<f64>::zeroed();
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_get_f64(unit, key, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Sets SHW_HSDP_DIVIDE_FACTOR of the unit.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_set_f64(unit: *mut shw_hsdp_unit, key: i32, value: f64) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_set_f64(unit, key, value, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Sets the units that are gathered ahead when this one runs (SHW_HSDP_FORWARD_PREFETCH, SHW_HSDP_BACKWARD_PREFETCH), in place of what the last iteration foretells; none restores that.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_set_units(
    unit: *mut shw_hsdp_unit,
    key: i32,
    units: *const *mut shw_hsdp_unit,
    count: u64,
) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_set_units(unit, key, units, count, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// A parameter gets no gradients, or gets them again, from the next pre_forward on.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_set_frozen(unit: *mut shw_hsdp_unit, index: u64, frozen: shw_bool) -> Result<(), RawError> {
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_set_frozen(unit, index, frozen, &mut err) };
    RawError::check(status, err)?;
    Ok(())
}

/// Foretells what one rank holds in iterations in which `count` units run forward in their order and backward in the reverse one, and gradients of the shards are dropped before the next: `out` is what shw_hsdp_stats would say of `kind` (SHW_HSDP_MEMORY_), padding aside; what a transport allocates is not in it. `mesh` and `device` of `options` are not looked at, its axes only as far as they are -1. `options` of a unit may be NULL.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_estimate(
    units: *const shw_hsdp_estimate_unit,
    count: u64,
    world: *const shw_hsdp_estimate_world,
    options: *const shw_hsdp_options,
    kind: i32,
) -> Result<shw_hsdp_memory, RawError> {
    let mut out = MaybeUninit::<shw_hsdp_memory>::zeroed();
    unsafe { (*out.as_mut_ptr()).struct_size = size_of::<shw_hsdp_memory>() as u32 };
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_estimate(units, count, world, options, kind, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Memory that is and was held for one kind (SHW_HSDP_MEMORY_) in all units of a context, of its device: what offloaded units have in memory of the host beside one is not counted. Padding and unsharded units are told for SHW_HSDP_MEMORY_ALL.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_stats(hsdp: *const shw_hsdp, kind: i32) -> Result<shw_hsdp_memory, RawError> {
    let mut out = MaybeUninit::<shw_hsdp_memory>::zeroed();
    unsafe { (*out.as_mut_ptr()).struct_size = size_of::<shw_hsdp_memory>() as u32 };
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_stats(hsdp, kind, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}

/// Memory that is and was held for one unit, padding included.
/// # Safety
/// As in C: pointers are valid for the call.
pub unsafe fn hsdp_unit_stats(unit: *const shw_hsdp_unit) -> Result<shw_hsdp_memory, RawError> {
    let mut out = MaybeUninit::<shw_hsdp_memory>::zeroed();
    unsafe { (*out.as_mut_ptr()).struct_size = size_of::<shw_hsdp_memory>() as u32 };
    let mut err = core::ptr::null_mut();
    let status = unsafe { ffi::shw_hsdp_unit_stats(unit, out.as_mut_ptr(), &mut err) };
    RawError::check(status, err)?;
    Ok(unsafe { out.assume_init() })
}
