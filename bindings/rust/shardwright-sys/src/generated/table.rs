// SPDX-License-Identifier: Apache-2.0
// Generated from the C headers by bindings/rust/generator; not edited.

use super::ffi::*;
use core::ffi::{c_char, c_void};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_api {
    pub struct_size: u32,
    pub abi_major: u32,
    pub abi_minor: u32,
    pub reserved0: u32,
    pub extensions: *const shw_extension,
    pub abi_version: Option<unsafe extern "C" fn(major: *mut u32, minor: *mut u32)>,
    pub version_string: Option<unsafe extern "C" fn() -> *const c_char>,
    pub build_info: Option<unsafe extern "C" fn() -> *const c_char>,
    pub status_name: Option<unsafe extern "C" fn(status: shw_status) -> *const c_char>,
    pub error_code: Option<unsafe extern "C" fn(error: *const shw_error) -> shw_status>,
    pub error_message: Option<unsafe extern "C" fn(error: *const shw_error, size: *mut u64) -> *const c_char>,
    pub error_detail_count: Option<unsafe extern "C" fn(error: *const shw_error) -> u64>,
    pub error_detail_at:
        Option<unsafe extern "C" fn(error: *const shw_error, index: u64, out: *mut shw_error_detail) -> shw_status>,
    pub error_is_retryable: Option<unsafe extern "C" fn(error: *const shw_error) -> shw_bool>,
    pub error_cause: Option<unsafe extern "C" fn(error: *const shw_error) -> *const shw_error>,
    pub error_backtrace: Option<unsafe extern "C" fn(error: *const shw_error, size: *mut u64) -> *const c_char>,
    pub error_create: Option<
        unsafe extern "C" fn(
            code: shw_status,
            message: *const c_char,
            message_size: u64,
            details: *const shw_error_detail,
            detail_count: u64,
            cause: *mut shw_error,
            out: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub error_release: Option<unsafe extern "C" fn(error: *mut shw_error)>,
    pub log_record_init: Option<unsafe extern "C" fn(record: *mut shw_log_record, struct_size: u32)>,
    pub buffer_create: Option<
        unsafe extern "C" fn(
            data: *const c_void,
            size: u64,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub buffer_create_parts: Option<
        unsafe extern "C" fn(
            data: *const c_void,
            offsets: *const u64,
            part_count: u64,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub buffer_data: Option<unsafe extern "C" fn(buffer: *const shw_buffer) -> *const c_void>,
    pub buffer_size: Option<unsafe extern "C" fn(buffer: *const shw_buffer) -> u64>,
    pub buffer_part_count: Option<unsafe extern "C" fn(buffer: *const shw_buffer) -> u64>,
    pub buffer_part_offsets: Option<unsafe extern "C" fn(buffer: *const shw_buffer) -> *const u64>,
    pub buffer_part_data: Option<unsafe extern "C" fn(buffer: *const shw_buffer, index: u64) -> *const c_void>,
    pub buffer_part_size: Option<unsafe extern "C" fn(buffer: *const shw_buffer, index: u64) -> u64>,
    pub buffer_release: Option<unsafe extern "C" fn(buffer: *mut shw_buffer)>,
    pub report_summary_init: Option<unsafe extern "C" fn(summary: *mut shw_report_summary, struct_size: u32)>,
    pub report_json: Option<unsafe extern "C" fn(report: *const shw_report, size: *mut u64) -> *const c_char>,
    pub report_summarize: Option<
        unsafe extern "C" fn(
            report: *const shw_report,
            out: *mut shw_report_summary,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub report_name_count: Option<unsafe extern "C" fn(report: *const shw_report, list: i32) -> u64>,
    pub report_name:
        Option<unsafe extern "C" fn(report: *const shw_report, list: i32, index: u64, size: *mut u64) -> *const c_char>,
    pub report_release: Option<unsafe extern "C" fn(report: *mut shw_report)>,
    pub tensor_init: Option<unsafe extern "C" fn(tensor: *mut shw_tensor, struct_size: u32)>,
    pub tensor_check: Option<unsafe extern "C" fn(tensor: *const shw_tensor, err: *mut *mut shw_error) -> shw_status>,
    pub tensor_from_dlpack: Option<
        unsafe extern "C" fn(
            managed: *const DLManagedTensorVersioned,
            out: *mut shw_tensor,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub tensor_from_dlpack_legacy: Option<
        unsafe extern "C" fn(
            managed: *const DLManagedTensor,
            out: *mut shw_tensor,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub dtype_name: Option<unsafe extern "C" fn(dtype: i32) -> *const c_char>,
    pub dtype_parse:
        Option<unsafe extern "C" fn(name: *const c_char, out: *mut i32, err: *mut *mut shw_error) -> shw_status>,
    pub dtype_byte_size: Option<unsafe extern "C" fn(dtype: i32, element_count: u64) -> u64>,
    pub owned_tensor_create: Option<
        unsafe extern "C" fn(
            dtype: i32,
            shape: *const i64,
            ndim: i32,
            out: *mut *mut shw_owned_tensor,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub owned_tensor_describe: Option<
        unsafe extern "C" fn(
            tensor: *const shw_owned_tensor,
            out: *mut shw_tensor,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub owned_tensor_dlpack: Option<
        unsafe extern "C" fn(
            tensor: *const shw_owned_tensor,
            out: *mut *mut DLManagedTensorVersioned,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub owned_tensor_dlpack_legacy: Option<
        unsafe extern "C" fn(
            tensor: *const shw_owned_tensor,
            out: *mut *mut DLManagedTensor,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub owned_tensor_release: Option<unsafe extern "C" fn(tensor: *mut shw_owned_tensor)>,
    pub layout_spec_init: Option<unsafe extern "C" fn(spec: *mut shw_layout_spec, struct_size: u32)>,
    pub layout_create: Option<
        unsafe extern "C" fn(
            spec: *const shw_layout_spec,
            out: *mut *mut shw_layout,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub layout_rank_count: Option<unsafe extern "C" fn(layout: *const shw_layout) -> u64>,
    pub layout_box_count: Option<
        unsafe extern "C" fn(
            layout: *const shw_layout,
            shape: *const i64,
            ndim: i32,
            rank: i32,
            out: *mut u64,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub layout_boxes: Option<
        unsafe extern "C" fn(
            layout: *const shw_layout,
            shape: *const i64,
            ndim: i32,
            rank: i32,
            boxes: *mut i64,
            capacity: u64,
            size: *mut u64,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub layout_release: Option<unsafe extern "C" fn(layout: *mut shw_layout)>,
    pub tensor_batch_init: Option<unsafe extern "C" fn(batch: *mut shw_tensor_batch, struct_size: u32)>,
    pub object_batch_init: Option<unsafe extern "C" fn(batch: *mut shw_object_batch, struct_size: u32)>,
    pub state_create: Option<unsafe extern "C" fn(out: *mut *mut shw_state, err: *mut *mut shw_error) -> shw_status>,
    pub state_add_tensors: Option<
        unsafe extern "C" fn(
            state: *mut shw_state,
            batch: *const shw_tensor_batch,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub state_add_dlpack: Option<
        unsafe extern "C" fn(
            state: *mut shw_state,
            batch: *const shw_tensor_batch,
            managed: *const *mut DLManagedTensorVersioned,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub state_add_dlpack_legacy: Option<
        unsafe extern "C" fn(
            state: *mut shw_state,
            batch: *const shw_tensor_batch,
            managed: *const *mut DLManagedTensor,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub state_add_objects: Option<
        unsafe extern "C" fn(
            state: *mut shw_state,
            batch: *const shw_object_batch,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub state_tensor_count: Option<unsafe extern "C" fn(state: *const shw_state) -> u64>,
    pub state_object_count: Option<unsafe extern "C" fn(state: *const shw_state) -> u64>,
    pub state_tensor_name:
        Option<unsafe extern "C" fn(state: *const shw_state, index: u64, size: *mut u64) -> *const c_char>,
    pub state_tensor_path:
        Option<unsafe extern "C" fn(state: *const shw_state, index: u64, size: *mut u64) -> *const c_char>,
    pub state_tensor: Option<
        unsafe extern "C" fn(
            state: *const shw_state,
            index: u64,
            out: *mut shw_tensor,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub state_object_name:
        Option<unsafe extern "C" fn(state: *const shw_state, index: u64, size: *mut u64) -> *const c_char>,
    pub state_object_path:
        Option<unsafe extern "C" fn(state: *const shw_state, index: u64, size: *mut u64) -> *const c_char>,
    pub state_object_content_type:
        Option<unsafe extern "C" fn(state: *const shw_state, index: u64, size: *mut u64) -> *const c_char>,
    pub state_object_data:
        Option<unsafe extern "C" fn(state: *const shw_state, index: u64, size: *mut u64) -> *const c_void>,
    pub state_find_tensor: Option<
        unsafe extern "C" fn(
            state: *const shw_state,
            name: *const c_char,
            name_size: u64,
            out: *mut u64,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub state_find_object: Option<
        unsafe extern "C" fn(
            state: *const shw_state,
            name: *const c_char,
            name_size: u64,
            out: *mut u64,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub state_release: Option<unsafe extern "C" fn(state: *mut shw_state)>,
    pub plan_item_init: Option<unsafe extern "C" fn(item: *mut shw_plan_item, struct_size: u32)>,
    pub plan_validate:
        Option<unsafe extern "C" fn(data: *const c_void, size: u64, err: *mut *mut shw_error) -> shw_status>,
    pub plan_findings: Option<
        unsafe extern "C" fn(
            data: *const c_void,
            size: u64,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub plan_create: Option<
        unsafe extern "C" fn(
            data: *const c_void,
            size: u64,
            out: *mut *mut shw_plan,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub plan_kind: Option<unsafe extern "C" fn(plan: *const shw_plan) -> i32>,
    pub plan_rank: Option<unsafe extern "C" fn(plan: *const shw_plan) -> i32>,
    pub plan_data: Option<unsafe extern "C" fn(plan: *const shw_plan) -> *const c_void>,
    pub plan_size: Option<unsafe extern "C" fn(plan: *const shw_plan) -> u64>,
    pub plan_item_count: Option<unsafe extern "C" fn(plan: *const shw_plan) -> u64>,
    pub plan_item_at: Option<
        unsafe extern "C" fn(
            plan: *const shw_plan,
            index: u64,
            out: *mut shw_plan_item,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub plan_json: Option<
        unsafe extern "C" fn(
            plan: *const shw_plan,
            item_limit: u64,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub plan_release: Option<unsafe extern "C" fn(plan: *mut shw_plan)>,
    pub storage_stat_init: Option<unsafe extern "C" fn(stat: *mut shw_storage_stat, struct_size: u32)>,
    pub storage_entry_init: Option<unsafe extern "C" fn(entry: *mut shw_storage_entry, struct_size: u32)>,
    pub storage_vtable_init: Option<unsafe extern "C" fn(vtable: *mut shw_storage_vtable, struct_size: u32)>,
    pub storage_create_posix: Option<
        unsafe extern "C" fn(root: *const c_char, out: *mut *mut shw_storage, err: *mut *mut shw_error) -> shw_status,
    >,
    pub storage_create_memory:
        Option<unsafe extern "C" fn(out: *mut *mut shw_storage, err: *mut *mut shw_error) -> shw_status>,
    pub storage_create: Option<
        unsafe extern "C" fn(
            vtable: *const shw_storage_vtable,
            out: *mut *mut shw_storage,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub storage_name: Option<unsafe extern "C" fn(storage: *const shw_storage, size: *mut u64) -> *const c_char>,
    pub storage_capabilities: Option<unsafe extern "C" fn(storage: *const shw_storage) -> u64>,
    pub storage_put: Option<
        unsafe extern "C" fn(
            storage: *mut shw_storage,
            key: *const c_char,
            key_size: u64,
            data: *const c_void,
            size: u64,
            condition: i32,
            expected_version: *const c_char,
            expected_version_size: u64,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub storage_read: Option<
        unsafe extern "C" fn(
            storage: *mut shw_storage,
            key: *const c_char,
            key_size: u64,
            offset: u64,
            data: *mut c_void,
            size: u64,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub storage_stat_key: Option<
        unsafe extern "C" fn(
            storage: *mut shw_storage,
            key: *const c_char,
            key_size: u64,
            out: *mut shw_storage_stat,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub storage_version: Option<
        unsafe extern "C" fn(
            storage: *mut shw_storage,
            key: *const c_char,
            key_size: u64,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub storage_list: Option<
        unsafe extern "C" fn(
            storage: *mut shw_storage,
            prefix: *const c_char,
            prefix_size: u64,
            delimiter: i32,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub storage_remove: Option<
        unsafe extern "C" fn(
            storage: *mut shw_storage,
            key: *const c_char,
            key_size: u64,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub storage_release: Option<unsafe extern "C" fn(storage: *mut shw_storage)>,
    pub collective_call_init: Option<unsafe extern "C" fn(call: *mut shw_collective_call, struct_size: u32)>,
    pub collective_vtable_init: Option<unsafe extern "C" fn(vtable: *mut shw_collective_vtable, struct_size: u32)>,
    pub collective_create_single:
        Option<unsafe extern "C" fn(out: *mut *mut shw_collective, err: *mut *mut shw_error) -> shw_status>,
    pub collective_group_create: Option<
        unsafe extern "C" fn(size: i32, out: *mut *mut shw_collective_group, err: *mut *mut shw_error) -> shw_status,
    >,
    pub collective_group_member: Option<
        unsafe extern "C" fn(
            group: *mut shw_collective_group,
            rank: i32,
            out: *mut *mut shw_collective,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub collective_group_release: Option<unsafe extern "C" fn(group: *mut shw_collective_group)>,
    pub collective_create: Option<
        unsafe extern "C" fn(
            vtable: *const shw_collective_vtable,
            out: *mut *mut shw_collective,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub collective_rank: Option<unsafe extern "C" fn(collective: *const shw_collective) -> i32>,
    pub collective_size: Option<unsafe extern "C" fn(collective: *const shw_collective) -> i32>,
    pub collective_name:
        Option<unsafe extern "C" fn(collective: *const shw_collective, size: *mut u64) -> *const c_char>,
    pub collective_barrier: Option<
        unsafe extern "C" fn(
            collective: *mut shw_collective,
            call: *const shw_collective_call,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub collective_broadcast: Option<
        unsafe extern "C" fn(
            collective: *mut shw_collective,
            call: *const shw_collective_call,
            data: *mut c_void,
            size: u64,
            root: i32,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub collective_all_gather: Option<
        unsafe extern "C" fn(
            collective: *mut shw_collective,
            call: *const shw_collective_call,
            data: *const c_void,
            size: u64,
            gathered: *mut c_void,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub collective_all_gather_v: Option<
        unsafe extern "C" fn(
            collective: *mut shw_collective,
            call: *const shw_collective_call,
            data: *const c_void,
            size: u64,
            gathered: *mut c_void,
            sizes: *const u64,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub collective_all_reduce_i64: Option<
        unsafe extern "C" fn(
            collective: *mut shw_collective,
            call: *const shw_collective_call,
            values: *mut i64,
            count: u64,
            operation: i32,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub collective_abort: Option<
        unsafe extern "C" fn(
            collective: *mut shw_collective,
            code: shw_status,
            message: *const c_char,
            message_size: u64,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub collective_release: Option<unsafe extern "C" fn(collective: *mut shw_collective)>,
    pub allocator_init: Option<unsafe extern "C" fn(allocator: *mut shw_allocator, struct_size: u32)>,
    pub context_options_init: Option<unsafe extern "C" fn(options: *mut shw_context_options, struct_size: u32)>,
    pub context_create: Option<
        unsafe extern "C" fn(
            options: *const shw_context_options,
            out: *mut *mut shw_context,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub context_shutdown: Option<
        unsafe extern "C" fn(context: *mut shw_context, timeout_ns: i64, err: *mut *mut shw_error) -> shw_status,
    >,
    pub context_load_plugin: Option<
        unsafe extern "C" fn(context: *mut shw_context, path: *const c_char, err: *mut *mut shw_error) -> shw_status,
    >,
    pub context_plugins: Option<
        unsafe extern "C" fn(
            context: *mut shw_context,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub context_open_storage: Option<
        unsafe extern "C" fn(
            context: *mut shw_context,
            plugin: *const c_char,
            config: *const c_char,
            config_size: u64,
            out: *mut *mut shw_storage,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub context_open_collective: Option<
        unsafe extern "C" fn(
            context: *mut shw_context,
            plugin: *const c_char,
            config: *const c_char,
            config_size: u64,
            out: *mut *mut shw_collective,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub context_release: Option<unsafe extern "C" fn(context: *mut shw_context)>,
    pub progress_init: Option<unsafe extern "C" fn(progress: *mut shw_progress, struct_size: u32)>,
    pub job_wait:
        Option<unsafe extern "C" fn(job: *mut shw_job, timeout_ns: i64, err: *mut *mut shw_error) -> shw_status>,
    pub job_wait_staged:
        Option<unsafe extern "C" fn(job: *mut shw_job, timeout_ns: i64, err: *mut *mut shw_error) -> shw_status>,
    pub job_poll: Option<unsafe extern "C" fn(job: *const shw_job) -> i32>,
    pub job_progress: Option<
        unsafe extern "C" fn(job: *const shw_job, out: *mut shw_progress, err: *mut *mut shw_error) -> shw_status,
    >,
    pub job_cancel: Option<unsafe extern "C" fn(job: *mut shw_job)>,
    pub job_error: Option<unsafe extern "C" fn(job: *const shw_job) -> *const shw_error>,
    pub job_report: Option<
        unsafe extern "C" fn(job: *const shw_job, out: *mut *mut shw_report, err: *mut *mut shw_error) -> shw_status,
    >,
    pub job_release: Option<unsafe extern "C" fn(job: *mut shw_job)>,
    pub checkpoint_options_init: Option<unsafe extern "C" fn(options: *mut shw_checkpoint_options, struct_size: u32)>,
    pub checkpoint_open: Option<
        unsafe extern "C" fn(
            context: *mut shw_context,
            storage: *mut shw_storage,
            path: *const c_char,
            options: *const shw_checkpoint_options,
            out: *mut *mut shw_checkpoint,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub checkpoint_format:
        Option<unsafe extern "C" fn(checkpoint: *const shw_checkpoint, size: *mut u64) -> *const c_char>,
    pub checkpoint_generation:
        Option<unsafe extern "C" fn(checkpoint: *const shw_checkpoint, size: *mut u64) -> *const c_char>,
    pub checkpoint_world_size: Option<unsafe extern "C" fn(checkpoint: *const shw_checkpoint) -> i32>,
    pub checkpoint_created_ns: Option<unsafe extern "C" fn(checkpoint: *const shw_checkpoint) -> i64>,
    pub checkpoint_metadata_count: Option<unsafe extern "C" fn(checkpoint: *const shw_checkpoint) -> u64>,
    pub checkpoint_metadata_key:
        Option<unsafe extern "C" fn(checkpoint: *const shw_checkpoint, index: u64, size: *mut u64) -> *const c_char>,
    pub checkpoint_metadata_value:
        Option<unsafe extern "C" fn(checkpoint: *const shw_checkpoint, index: u64, size: *mut u64) -> *const c_char>,
    pub checkpoint_info: Option<
        unsafe extern "C" fn(
            checkpoint: *const shw_checkpoint,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub checkpoint_verify: Option<
        unsafe extern "C" fn(
            checkpoint: *const shw_checkpoint,
            flags: u64,
            out: *mut *mut shw_report,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub checkpoint_gc: Option<
        unsafe extern "C" fn(
            context: *mut shw_context,
            storage: *mut shw_storage,
            path: *const c_char,
            grace_ns: i64,
            flags: u64,
            out: *mut *mut shw_report,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub checkpoint_list_steps: Option<
        unsafe extern "C" fn(
            context: *mut shw_context,
            storage: *mut shw_storage,
            path: *const c_char,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub checkpoint_release: Option<unsafe extern "C" fn(checkpoint: *mut shw_checkpoint)>,
    pub tensor_info_init: Option<unsafe extern "C" fn(info: *mut shw_tensor_info, struct_size: u32)>,
    pub chunk_info_init: Option<unsafe extern "C" fn(info: *mut shw_chunk_info, struct_size: u32)>,
    pub box_batch_init: Option<unsafe extern "C" fn(batch: *mut shw_box_batch, struct_size: u32)>,
    pub checkpoint_tensor_count: Option<unsafe extern "C" fn(checkpoint: *const shw_checkpoint) -> u64>,
    pub checkpoint_tensor_name:
        Option<unsafe extern "C" fn(checkpoint: *const shw_checkpoint, index: u64, size: *mut u64) -> *const c_char>,
    pub checkpoint_tensor_path:
        Option<unsafe extern "C" fn(checkpoint: *const shw_checkpoint, index: u64, size: *mut u64) -> *const c_char>,
    pub checkpoint_tensor_shape:
        Option<unsafe extern "C" fn(checkpoint: *const shw_checkpoint, index: u64) -> *const i64>,
    pub checkpoint_tensor_infos: Option<
        unsafe extern "C" fn(
            checkpoint: *const shw_checkpoint,
            first: u64,
            count: u64,
            infos: *mut shw_tensor_info,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub checkpoint_tensor_names: Option<
        unsafe extern "C" fn(
            checkpoint: *const shw_checkpoint,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub checkpoint_find_tensor: Option<
        unsafe extern "C" fn(
            checkpoint: *const shw_checkpoint,
            name: *const c_char,
            name_size: u64,
            rank: i32,
            out: *mut u64,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub checkpoint_chunk_count: Option<unsafe extern "C" fn(checkpoint: *const shw_checkpoint) -> u64>,
    pub checkpoint_chunk_infos: Option<
        unsafe extern "C" fn(
            checkpoint: *const shw_checkpoint,
            first: u64,
            count: u64,
            infos: *mut shw_chunk_info,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub checkpoint_chunk_box: Option<
        unsafe extern "C" fn(
            checkpoint: *const shw_checkpoint,
            index: u64,
            r#box: *mut i64,
            capacity: u64,
            size: *mut u64,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub checkpoint_object_count: Option<unsafe extern "C" fn(checkpoint: *const shw_checkpoint) -> u64>,
    pub checkpoint_object_name:
        Option<unsafe extern "C" fn(checkpoint: *const shw_checkpoint, index: u64, size: *mut u64) -> *const c_char>,
    pub checkpoint_object_path:
        Option<unsafe extern "C" fn(checkpoint: *const shw_checkpoint, index: u64, size: *mut u64) -> *const c_char>,
    pub checkpoint_object_content_type:
        Option<unsafe extern "C" fn(checkpoint: *const shw_checkpoint, index: u64, size: *mut u64) -> *const c_char>,
    pub checkpoint_object_size: Option<unsafe extern "C" fn(checkpoint: *const shw_checkpoint, index: u64) -> u64>,
    pub checkpoint_object_rank: Option<unsafe extern "C" fn(checkpoint: *const shw_checkpoint, index: u64) -> i32>,
    pub checkpoint_object_names: Option<
        unsafe extern "C" fn(
            checkpoint: *const shw_checkpoint,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub checkpoint_find_object: Option<
        unsafe extern "C" fn(
            checkpoint: *const shw_checkpoint,
            name: *const c_char,
            name_size: u64,
            rank: i32,
            out: *mut u64,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub checkpoint_read_objects: Option<
        unsafe extern "C" fn(
            checkpoint: *const shw_checkpoint,
            indices: *const u64,
            count: u64,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub checkpoint_file_count: Option<unsafe extern "C" fn(checkpoint: *const shw_checkpoint) -> u64>,
    pub checkpoint_file_name:
        Option<unsafe extern "C" fn(checkpoint: *const shw_checkpoint, index: u64, size: *mut u64) -> *const c_char>,
    pub checkpoint_file_size: Option<unsafe extern "C" fn(checkpoint: *const shw_checkpoint, index: u64) -> u64>,
    pub checkpoint_read_boxes: Option<
        unsafe extern "C" fn(
            checkpoint: *const shw_checkpoint,
            batch: *const shw_box_batch,
            out: *mut *mut shw_report,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub checkpoint_read_tensor: Option<
        unsafe extern "C" fn(
            checkpoint: *const shw_checkpoint,
            index: u64,
            box_offsets: *const i64,
            box_sizes: *const i64,
            ndim: i32,
            out: *mut *mut shw_owned_tensor,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub checkpoint_digests: Option<
        unsafe extern "C" fn(
            checkpoint: *const shw_checkpoint,
            indices: *const u64,
            count: u64,
            algorithm: i32,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub save_options_init: Option<unsafe extern "C" fn(options: *mut shw_save_options, struct_size: u32)>,
    pub save: Option<
        unsafe extern "C" fn(
            context: *mut shw_context,
            state: *const shw_state,
            storage: *mut shw_storage,
            path: *const c_char,
            collective: *mut shw_collective,
            options: *const shw_save_options,
            out: *mut *mut shw_report,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub save_async: Option<
        unsafe extern "C" fn(
            context: *mut shw_context,
            state: *const shw_state,
            storage: *mut shw_storage,
            path: *const c_char,
            collective: *mut shw_collective,
            options: *const shw_save_options,
            out: *mut *mut shw_job,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub save_planner_create: Option<
        unsafe extern "C" fn(
            context: *mut shw_context,
            state: *const shw_state,
            rank: i32,
            world_size: i32,
            options: *const shw_save_options,
            out: *mut *mut shw_save_planner,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub save_planner_local_plan: Option<
        unsafe extern "C" fn(
            planner: *mut shw_save_planner,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub save_planner_global_plan: Option<
        unsafe extern "C" fn(
            planner: *mut shw_save_planner,
            storage: *mut shw_storage,
            path: *const c_char,
            plans: *const c_void,
            plan_offsets: *const u64,
            plan_count: u64,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub save_planner_finish: Option<
        unsafe extern "C" fn(
            planner: *mut shw_save_planner,
            plan: *const c_void,
            plan_size: u64,
            out: *mut *mut shw_plan,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub save_execute: Option<
        unsafe extern "C" fn(
            planner: *mut shw_save_planner,
            plan: *const shw_plan,
            storage: *mut shw_storage,
            path: *const c_char,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub save_commit: Option<
        unsafe extern "C" fn(
            planner: *mut shw_save_planner,
            results: *const c_void,
            result_offsets: *const u64,
            result_count: u64,
            out: *mut *mut shw_report,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub save_planner_release: Option<unsafe extern "C" fn(planner: *mut shw_save_planner)>,
    pub load_options_init: Option<unsafe extern "C" fn(options: *mut shw_load_options, struct_size: u32)>,
    pub load: Option<
        unsafe extern "C" fn(
            context: *mut shw_context,
            state: *mut shw_state,
            storage: *mut shw_storage,
            path: *const c_char,
            collective: *mut shw_collective,
            options: *const shw_load_options,
            out: *mut *mut shw_report,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub load_async: Option<
        unsafe extern "C" fn(
            context: *mut shw_context,
            state: *mut shw_state,
            storage: *mut shw_storage,
            path: *const c_char,
            collective: *mut shw_collective,
            options: *const shw_load_options,
            out: *mut *mut shw_job,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub load_planner_create: Option<
        unsafe extern "C" fn(
            checkpoint: *const shw_checkpoint,
            state: *mut shw_state,
            rank: i32,
            options: *const shw_load_options,
            out: *mut *mut shw_load_planner,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub load_planner_local_plan: Option<
        unsafe extern "C" fn(
            planner: *mut shw_load_planner,
            out: *mut *mut shw_plan,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub load_execute: Option<
        unsafe extern "C" fn(
            planner: *mut shw_load_planner,
            plan: *const shw_plan,
            out: *mut *mut shw_report,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub load_planner_release: Option<unsafe extern "C" fn(planner: *mut shw_load_planner)>,
    pub plugin_init: Option<unsafe extern "C" fn(plugin: *mut shw_plugin, struct_size: u32)>,
    pub cancellation_create:
        Option<unsafe extern "C" fn(out: *mut *mut shw_cancellation, err: *mut *mut shw_error) -> shw_status>,
    pub cancellation_cancel: Option<unsafe extern "C" fn(cancellation: *mut shw_cancellation)>,
    pub cancellation_release: Option<unsafe extern "C" fn(cancellation: *mut shw_cancellation)>,
    pub entry_batch_init: Option<unsafe extern "C" fn(batch: *mut shw_entry_batch, struct_size: u32)>,
    pub describe_options_init: Option<unsafe extern "C" fn(options: *mut shw_describe_options, struct_size: u32)>,
    pub merge_options_init: Option<unsafe extern "C" fn(options: *mut shw_merge_options, struct_size: u32)>,
    pub match_options_init: Option<unsafe extern "C" fn(options: *mut shw_match_options, struct_size: u32)>,
    pub plan_describe: Option<
        unsafe extern "C" fn(
            options: *const shw_describe_options,
            entries: *const shw_entry_batch,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub plan_entries: Option<
        unsafe extern "C" fn(plan: *const shw_plan, out: *mut shw_entry_batch, err: *mut *mut shw_error) -> shw_status,
    >,
    pub plan_merge: Option<
        unsafe extern "C" fn(
            options: *const shw_merge_options,
            plans: *const c_void,
            plan_offsets: *const u64,
            plan_count: u64,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub plan_match: Option<
        unsafe extern "C" fn(
            options: *const shw_match_options,
            stored: *const shw_plan,
            wanted: *const shw_entry_batch,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub plan_digest: Option<
        unsafe extern "C" fn(plan: *const shw_plan, out: *mut *mut shw_buffer, err: *mut *mut shw_error) -> shw_status,
    >,
    pub content_digest: Option<
        unsafe extern "C" fn(
            data: *const c_void,
            size: u64,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub layout_contains: Option<unsafe extern "C" fn(layout: *const shw_layout, rank: i32) -> shw_bool>,
    pub layout_local_offsets: Option<
        unsafe extern "C" fn(
            layout: *const shw_layout,
            shape: *const i64,
            ndim: i32,
            rank: i32,
            offsets: *mut i64,
            capacity: u64,
            size: *mut u64,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub layout_local_shape: Option<
        unsafe extern "C" fn(
            layout: *const shw_layout,
            shape: *const i64,
            ndim: i32,
            rank: i32,
            extents: *mut i64,
            capacity: u64,
            size: *mut u64,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub estimate_options_init: Option<unsafe extern "C" fn(options: *mut shw_estimate_options, struct_size: u32)>,
    pub job_description_create: Option<
        unsafe extern "C" fn(
            data: *const c_void,
            size: u64,
            out: *mut *mut shw_job_description,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub job_description_from_checkpoint: Option<
        unsafe extern "C" fn(
            checkpoint: *const shw_checkpoint,
            out: *mut *mut shw_job_description,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub job_description_lay_out: Option<
        unsafe extern "C" fn(
            source: *const shw_job_description,
            target: *const shw_job_description,
            out: *mut *mut shw_job_description,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub job_description_rank_count: Option<unsafe extern "C" fn(description: *const shw_job_description) -> i32>,
    pub job_description_json: Option<
        unsafe extern "C" fn(
            description: *const shw_job_description,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub estimate_save: Option<
        unsafe extern "C" fn(
            description: *const shw_job_description,
            options: *const shw_estimate_options,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub estimate_load: Option<
        unsafe extern "C" fn(
            stored: *const shw_job_description,
            wanted: *const shw_job_description,
            options: *const shw_estimate_options,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub job_description_release: Option<unsafe extern "C" fn(description: *mut shw_job_description)>,
    pub global_plan_describe: Option<
        unsafe extern "C" fn(
            options: *const shw_describe_options,
            entries: *const shw_entry_batch,
            layouts: *const *const shw_layout,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub global_plan_representatives: Option<
        unsafe extern "C" fn(
            digests: *const c_void,
            rank_count: u64,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub global_plan_create: Option<
        unsafe extern "C" fn(
            options: *const shw_merge_options,
            digests: *const c_void,
            rank_count: u64,
            descriptions: *const c_void,
            description_offsets: *const u64,
            description_count: u64,
            parts: *const c_void,
            part_offsets: *const u64,
            part_count: u64,
            out: *mut *mut shw_global_plan,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub global_plan_write_list: Option<
        unsafe extern "C" fn(
            plan: *const shw_global_plan,
            rank: i32,
            generation: *const c_char,
            plan_digest: *const c_void,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub global_plan_rank_bytes: Option<
        unsafe extern "C" fn(
            plan: *const shw_global_plan,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub global_plan_owners: Option<
        unsafe extern "C" fn(
            plan: *const shw_global_plan,
            name: *const c_char,
            name_size: u64,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub global_plan_json: Option<
        unsafe extern "C" fn(
            plan: *const shw_global_plan,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub global_plan_digest: Option<
        unsafe extern "C" fn(
            plan: *const shw_global_plan,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub global_plan_expand: Option<
        unsafe extern "C" fn(
            plan: *const shw_global_plan,
            generation: *const c_char,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub global_plan_release: Option<unsafe extern "C" fn(plan: *mut shw_global_plan)>,
    pub plan_merge_buffers: Option<
        unsafe extern "C" fn(
            options: *const shw_merge_options,
            plans: *const *const c_void,
            plan_sizes: *const u64,
            plan_count: u64,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub state_reserve: Option<
        unsafe extern "C" fn(
            state: *mut shw_state,
            tensors: u64,
            name_bytes: u64,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub checkpoint_find_damage: Option<
        unsafe extern "C" fn(
            checkpoint: *const shw_checkpoint,
            flags: u64,
            out: *mut *mut shw_report,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub collective_decline: Option<
        unsafe extern "C" fn(
            collective: *mut shw_collective,
            call: i32,
            code: shw_status,
            message: *const c_char,
            message_size: u64,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub collective_decline_async: Option<
        unsafe extern "C" fn(
            context: *mut shw_context,
            collective: *mut shw_collective,
            call: i32,
            code: shw_status,
            message: *const c_char,
            message_size: u64,
            out: *mut *mut shw_job,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub job_on_done: Option<
        unsafe extern "C" fn(
            job: *mut shw_job,
            on_done: shw_job_done_fn,
            user: *mut c_void,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub collective_gather_v: Option<
        unsafe extern "C" fn(
            collective: *mut shw_collective,
            call: *const shw_collective_call,
            data: *const c_void,
            size: u64,
            gathered: *mut c_void,
            sizes: *const u64,
            root: i32,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub collective_scatter_v: Option<
        unsafe extern "C" fn(
            collective: *mut shw_collective,
            call: *const shw_collective_call,
            parts: *const c_void,
            sizes: *const u64,
            data: *mut c_void,
            size: u64,
            root: i32,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub checkpoint_latest: Option<
        unsafe extern "C" fn(
            context: *mut shw_context,
            storage: *mut shw_storage,
            path: *const c_char,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub state_add_tensor: Option<
        unsafe extern "C" fn(
            state: *mut shw_state,
            name: *const c_char,
            name_size: u64,
            tensor: *const shw_tensor,
            global_shape: *const i64,
            offsets: *const i64,
            kind: i32,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub state_add_object: Option<
        unsafe extern "C" fn(
            state: *mut shw_state,
            name: *const c_char,
            name_size: u64,
            content_type: *const c_char,
            data: *const c_void,
            size: u64,
            kind: i32,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub save_options_set_metadata: Option<
        unsafe extern "C" fn(
            options: *mut shw_save_options,
            key: *const c_char,
            value: *const c_char,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub convert_options_init: Option<unsafe extern "C" fn(options: *mut shw_convert_options, struct_size: u32)>,
    pub convert: Option<
        unsafe extern "C" fn(
            context: *mut shw_context,
            source_storage: *mut shw_storage,
            source: *const c_char,
            target_storage: *mut shw_storage,
            target: *const c_char,
            options: *const shw_convert_options,
            out: *mut *mut shw_report,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub reshard_options_init: Option<unsafe extern "C" fn(options: *mut shw_reshard_options, struct_size: u32)>,
    pub reshard: Option<
        unsafe extern "C" fn(
            context: *mut shw_context,
            source_storage: *mut shw_storage,
            source: *const c_char,
            target_storage: *mut shw_storage,
            target: *const c_char,
            options: *const shw_reshard_options,
            out: *mut *mut shw_report,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub dtype_bits: Option<unsafe extern "C" fn(dtype: i32) -> u32>,
    pub dtype_from_dlpack: Option<unsafe extern "C" fn(r#type: u32) -> i32>,
    pub dtype_to_dlpack: Option<unsafe extern "C" fn(dtype: i32) -> u32>,
    pub get_extension: Option<
        unsafe extern "C" fn(
            name: *const c_char,
            version: u32,
            out: *mut *const c_void,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub checkpoint_read_object_part: Option<
        unsafe extern "C" fn(
            checkpoint: *const shw_checkpoint,
            index: u64,
            offset: u64,
            size: u64,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub prepare: Option<
        unsafe extern "C" fn(
            context: *mut shw_context,
            state: *const shw_state,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub collective_all_to_all_v: Option<
        unsafe extern "C" fn(
            collective: *mut shw_collective,
            call: *const shw_collective_call,
            sent: *const c_void,
            sent_sizes: *const u64,
            received: *mut c_void,
            received_sizes: *const u64,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub exchange_round_init: Option<unsafe extern "C" fn(round: *mut shw_exchange_round, struct_size: u32)>,
    pub load_planner_want_list: Option<
        unsafe extern "C" fn(
            planner: *mut shw_load_planner,
            load_plan: *const shw_plan,
            world_size: i32,
            out: *mut *mut shw_plan,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub exchange_plans: Option<
        unsafe extern "C" fn(
            want_lists: *const *const shw_plan,
            count: u64,
            plans: *mut *mut shw_plan,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub load_exchange_create: Option<
        unsafe extern "C" fn(
            planner: *mut shw_load_planner,
            load_plan: *const shw_plan,
            exchange_plan: *const shw_plan,
            out: *mut *mut shw_load_exchange,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub load_exchange_round_count: Option<unsafe extern "C" fn(exchange: *const shw_load_exchange) -> u64>,
    pub load_exchange_begin_round: Option<
        unsafe extern "C" fn(
            exchange: *mut shw_load_exchange,
            out: *mut shw_exchange_round,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub load_exchange_end_round:
        Option<unsafe extern "C" fn(exchange: *mut shw_load_exchange, err: *mut *mut shw_error) -> shw_status>,
    pub load_exchange_finish: Option<
        unsafe extern "C" fn(
            exchange: *mut shw_load_exchange,
            out: *mut *mut shw_report,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub load_exchange_release: Option<unsafe extern "C" fn(exchange: *mut shw_load_exchange)>,
    pub collective_create_node: Option<
        unsafe extern "C" fn(
            collective: *mut shw_collective,
            call: *const shw_collective_call,
            out: *mut *mut shw_collective,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub checkpoint_describe_object: Option<
        unsafe extern "C" fn(
            checkpoint: *const shw_checkpoint,
            index: u64,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub scan_pickles: Option<
        unsafe extern "C" fn(
            context: *mut shw_context,
            storage: *mut shw_storage,
            path: *const c_char,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub clean_pickles: Option<
        unsafe extern "C" fn(
            context: *mut shw_context,
            source_storage: *mut shw_storage,
            source: *const c_char,
            target_storage: *mut shw_storage,
            target: *const c_char,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub torch_items_write: Option<
        unsafe extern "C" fn(
            context: *mut shw_context,
            state: *const shw_state,
            storage: *mut shw_storage,
            path: *const c_char,
            name: *const c_char,
            options: *const shw_save_options,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub torch_digests_write: Option<
        unsafe extern "C" fn(
            context: *mut shw_context,
            storage: *mut shw_storage,
            path: *const c_char,
            data: *const c_void,
            size: u64,
            results: *const c_void,
            result_offsets: *const u64,
            result_count: u64,
            options: *const shw_save_options,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub communicator_call_init: Option<unsafe extern "C" fn(call: *mut shw_communicator_call, struct_size: u32)>,
    pub communicator_vtable_init: Option<unsafe extern "C" fn(vtable: *mut shw_communicator_vtable, struct_size: u32)>,
    pub communicator_create: Option<
        unsafe extern "C" fn(
            vtable: *const shw_communicator_vtable,
            out: *mut *mut shw_communicator,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub communicator_group_create: Option<
        unsafe extern "C" fn(size: i32, out: *mut *mut shw_communicator_group, err: *mut *mut shw_error) -> shw_status,
    >,
    pub communicator_group_member: Option<
        unsafe extern "C" fn(
            group: *mut shw_communicator_group,
            rank: i32,
            out: *mut *mut shw_communicator,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub communicator_group_release: Option<unsafe extern "C" fn(group: *mut shw_communicator_group)>,
    pub communicator_create_fake: Option<
        unsafe extern "C" fn(
            rank: i32,
            size: i32,
            out: *mut *mut shw_communicator,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub communicator_create_delay: Option<
        unsafe extern "C" fn(
            communicator: *mut shw_communicator,
            latency_ns: i64,
            bytes_per_second: f64,
            out: *mut *mut shw_communicator,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub communicator_create_over: Option<
        unsafe extern "C" fn(
            collective: *mut shw_collective,
            out: *mut *mut shw_communicator,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub context_open_communicator: Option<
        unsafe extern "C" fn(
            context: *mut shw_context,
            plugin: *const c_char,
            config: *const c_char,
            config_size: u64,
            out: *mut *mut shw_communicator,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub communicator_rank: Option<unsafe extern "C" fn(communicator: *const shw_communicator) -> i32>,
    pub communicator_size: Option<unsafe extern "C" fn(communicator: *const shw_communicator) -> i32>,
    pub communicator_capabilities: Option<unsafe extern "C" fn(communicator: *const shw_communicator) -> u64>,
    pub communicator_name:
        Option<unsafe extern "C" fn(communicator: *const shw_communicator, size: *mut u64) -> *const c_char>,
    pub communicator_all_gather: Option<
        unsafe extern "C" fn(
            communicator: *mut shw_communicator,
            call: *const shw_communicator_call,
            r#in: *const c_void,
            in_size: u64,
            out: *mut c_void,
            out_size: u64,
            out_work: *mut *mut shw_work,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub communicator_all_to_all: Option<
        unsafe extern "C" fn(
            communicator: *mut shw_communicator,
            call: *const shw_communicator_call,
            r#in: *const c_void,
            in_size: u64,
            out: *mut c_void,
            out_size: u64,
            out_work: *mut *mut shw_work,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub communicator_reduce_scatter: Option<
        unsafe extern "C" fn(
            communicator: *mut shw_communicator,
            call: *const shw_communicator_call,
            r#in: *const c_void,
            in_size: u64,
            out: *mut c_void,
            out_size: u64,
            out_work: *mut *mut shw_work,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub communicator_all_reduce: Option<
        unsafe extern "C" fn(
            communicator: *mut shw_communicator,
            call: *const shw_communicator_call,
            data: *mut c_void,
            size: u64,
            out_work: *mut *mut shw_work,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub communicator_broadcast: Option<
        unsafe extern "C" fn(
            communicator: *mut shw_communicator,
            call: *const shw_communicator_call,
            data: *mut c_void,
            size: u64,
            root: i32,
            out_work: *mut *mut shw_work,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub communicator_barrier: Option<
        unsafe extern "C" fn(
            communicator: *mut shw_communicator,
            call: *const shw_communicator_call,
            out_work: *mut *mut shw_work,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub communicator_abort: Option<
        unsafe extern "C" fn(
            communicator: *mut shw_communicator,
            code: shw_status,
            message: *const c_char,
            message_size: u64,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub communicator_release: Option<unsafe extern "C" fn(communicator: *mut shw_communicator)>,
    pub work_wait:
        Option<unsafe extern "C" fn(work: *mut shw_work, timeout_ns: i64, err: *mut *mut shw_error) -> shw_status>,
    pub work_poll: Option<unsafe extern "C" fn(work: *mut shw_work, err: *mut *mut shw_error) -> shw_status>,
    pub work_order:
        Option<unsafe extern "C" fn(work: *mut shw_work, stream: u64, err: *mut *mut shw_error) -> shw_status>,
    pub work_release: Option<unsafe extern "C" fn(work: *mut shw_work)>,
    pub device_vtable_init: Option<unsafe extern "C" fn(vtable: *mut shw_device_vtable, struct_size: u32)>,
    pub device_create: Option<
        unsafe extern "C" fn(
            vtable: *const shw_device_vtable,
            out: *mut *mut shw_device,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub device_create_host: Option<
        unsafe extern "C" fn(inline_lanes: shw_bool, out: *mut *mut shw_device, err: *mut *mut shw_error) -> shw_status,
    >,
    pub context_open_device: Option<
        unsafe extern "C" fn(
            context: *mut shw_context,
            plugin: *const c_char,
            config: *const c_char,
            config_size: u64,
            out: *mut *mut shw_device,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub device_name: Option<unsafe extern "C" fn(device: *const shw_device, size: *mut u64) -> *const c_char>,
    pub device_release: Option<unsafe extern "C" fn(device: *mut shw_device)>,
    pub hsdp_options_init: Option<unsafe extern "C" fn(options: *mut shw_hsdp_options, struct_size: u32)>,
    pub hsdp_mesh_create: Option<
        unsafe extern "C" fn(
            spec: *const shw_layout_spec,
            rank: i32,
            out: *mut *mut shw_hsdp_mesh,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub hsdp_mesh_set_communicator: Option<
        unsafe extern "C" fn(
            mesh: *mut shw_hsdp_mesh,
            axis: i32,
            lane: i32,
            communicator: *mut shw_communicator,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub hsdp_mesh_release: Option<unsafe extern "C" fn(mesh: *mut shw_hsdp_mesh)>,
    pub hsdp_create: Option<
        unsafe extern "C" fn(
            context: *mut shw_context,
            options: *const shw_hsdp_options,
            out: *mut *mut shw_hsdp,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub hsdp_finalize_backward:
        Option<unsafe extern "C" fn(hsdp: *mut shw_hsdp, err: *mut *mut shw_error) -> shw_status>,
    pub hsdp_step_event:
        Option<unsafe extern "C" fn(hsdp: *mut shw_hsdp, event: u64, err: *mut *mut shw_error) -> shw_status>,
    pub hsdp_reset: Option<unsafe extern "C" fn(hsdp: *mut shw_hsdp, err: *mut *mut shw_error) -> shw_status>,
    pub hsdp_global_norm: Option<
        unsafe extern "C" fn(hsdp: *mut shw_hsdp, p: f64, out: *mut f64, err: *mut *mut shw_error) -> shw_status,
    >,
    pub hsdp_scale_grads:
        Option<unsafe extern "C" fn(hsdp: *mut shw_hsdp, factor: f64, err: *mut *mut shw_error) -> shw_status>,
    pub hsdp_zero_grads: Option<unsafe extern "C" fn(hsdp: *mut shw_hsdp, err: *mut *mut shw_error) -> shw_status>,
    pub hsdp_set_i64:
        Option<unsafe extern "C" fn(hsdp: *mut shw_hsdp, key: i32, value: i64, err: *mut *mut shw_error) -> shw_status>,
    pub hsdp_set_f64:
        Option<unsafe extern "C" fn(hsdp: *mut shw_hsdp, key: i32, value: f64, err: *mut *mut shw_error) -> shw_status>,
    pub hsdp_add_to_state: Option<
        unsafe extern "C" fn(
            hsdp: *mut shw_hsdp,
            prefix: *const c_char,
            prefix_size: u64,
            what: i32,
            state: *mut shw_state,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub hsdp_release: Option<unsafe extern "C" fn(hsdp: *mut shw_hsdp)>,
    pub hsdp_unit_options_init: Option<unsafe extern "C" fn(options: *mut shw_hsdp_unit_options, struct_size: u32)>,
    pub hsdp_param_batch_init: Option<unsafe extern "C" fn(batch: *mut shw_hsdp_param_batch, struct_size: u32)>,
    pub hsdp_box_init: Option<unsafe extern "C" fn(r#box: *mut shw_hsdp_box, struct_size: u32)>,
    pub hsdp_allocator_init: Option<unsafe extern "C" fn(allocator: *mut shw_hsdp_allocator, struct_size: u32)>,
    pub hsdp_unit_create: Option<
        unsafe extern "C" fn(
            hsdp: *mut shw_hsdp,
            name: *const c_char,
            name_size: u64,
            options: *const shw_hsdp_unit_options,
            out: *mut *mut shw_hsdp_unit,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub hsdp_unit_add_params: Option<
        unsafe extern "C" fn(
            unit: *mut shw_hsdp_unit,
            batch: *const shw_hsdp_param_batch,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub hsdp_unit_add_params_dlpack: Option<
        unsafe extern "C" fn(
            unit: *mut shw_hsdp_unit,
            batch: *const shw_hsdp_param_batch,
            managed: *const *mut DLManagedTensorVersioned,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub hsdp_unit_add_params_dlpack_legacy: Option<
        unsafe extern "C" fn(
            unit: *mut shw_hsdp_unit,
            batch: *const shw_hsdp_param_batch,
            managed: *const *mut DLManagedTensor,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub hsdp_unit_set_allocator: Option<
        unsafe extern "C" fn(
            unit: *mut shw_hsdp_unit,
            allocator: *const shw_hsdp_allocator,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub hsdp_unit_seal: Option<unsafe extern "C" fn(unit: *mut shw_hsdp_unit, err: *mut *mut shw_error) -> shw_status>,
    pub hsdp_unit_param_count: Option<unsafe extern "C" fn(unit: *const shw_hsdp_unit) -> u64>,
    pub hsdp_unit_param_name:
        Option<unsafe extern "C" fn(unit: *const shw_hsdp_unit, index: u64, size: *mut u64) -> *const c_char>,
    pub hsdp_unit_box: Option<
        unsafe extern "C" fn(
            unit: *mut shw_hsdp_unit,
            index: u64,
            out: *mut shw_hsdp_box,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub hsdp_unit_layout: Option<
        unsafe extern "C" fn(
            unit: *mut shw_hsdp_unit,
            index: u64,
            out: *mut *mut shw_layout,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub hsdp_unit_release: Option<unsafe extern "C" fn(unit: *mut shw_hsdp_unit)>,
    pub hsdp_phase_options_init: Option<unsafe extern "C" fn(options: *mut shw_hsdp_phase_options, struct_size: u32)>,
    pub hsdp_unit_pre_forward: Option<
        unsafe extern "C" fn(
            unit: *mut shw_hsdp_unit,
            options: *const shw_hsdp_phase_options,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub hsdp_unit_post_forward: Option<
        unsafe extern "C" fn(
            unit: *mut shw_hsdp_unit,
            options: *const shw_hsdp_phase_options,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub hsdp_unit_pre_backward:
        Option<unsafe extern "C" fn(unit: *mut shw_hsdp_unit, err: *mut *mut shw_error) -> shw_status>,
    pub hsdp_unit_post_backward:
        Option<unsafe extern "C" fn(unit: *mut shw_hsdp_unit, err: *mut *mut shw_error) -> shw_status>,
    pub hsdp_unit_unshard: Option<
        unsafe extern "C" fn(unit: *mut shw_hsdp_unit, out: *mut *mut shw_work, err: *mut *mut shw_error) -> shw_status,
    >,
    pub hsdp_unit_wait: Option<unsafe extern "C" fn(unit: *mut shw_hsdp_unit, err: *mut *mut shw_error) -> shw_status>,
    pub hsdp_unit_reshard:
        Option<unsafe extern "C" fn(unit: *mut shw_hsdp_unit, phase: i32, err: *mut *mut shw_error) -> shw_status>,
    pub hsdp_unit_add_grads: Option<
        unsafe extern "C" fn(
            unit: *mut shw_hsdp_unit,
            params: *const u64,
            grads: *const shw_tensor,
            count: u64,
            mode: i32,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub hsdp_unit_add_grads_dlpack: Option<
        unsafe extern "C" fn(
            unit: *mut shw_hsdp_unit,
            params: *const u64,
            managed: *const *mut DLManagedTensorVersioned,
            count: u64,
            mode: i32,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub hsdp_unit_add_grads_dlpack_legacy: Option<
        unsafe extern "C" fn(
            unit: *mut shw_hsdp_unit,
            params: *const u64,
            managed: *const *mut DLManagedTensor,
            count: u64,
            mode: i32,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub hsdp_unit_reduce: Option<
        unsafe extern "C" fn(unit: *mut shw_hsdp_unit, out: *mut *mut shw_work, err: *mut *mut shw_error) -> shw_status,
    >,
    pub hsdp_unit_state: Option<unsafe extern "C" fn(unit: *const shw_hsdp_unit) -> i32>,
    pub hsdp_unit_grad_state: Option<unsafe extern "C" fn(unit: *const shw_hsdp_unit) -> i32>,
    pub hsdp_unit_views: Option<
        unsafe extern "C" fn(
            unit: *mut shw_hsdp_unit,
            view: i32,
            first: u64,
            count: u64,
            out: *mut shw_tensor,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub hsdp_unit_view_dlpack: Option<
        unsafe extern "C" fn(
            unit: *mut shw_hsdp_unit,
            view: i32,
            index: u64,
            out: *mut *mut DLManagedTensorVersioned,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub hsdp_unit_view_dlpack_legacy: Option<
        unsafe extern "C" fn(
            unit: *mut shw_hsdp_unit,
            view: i32,
            index: u64,
            out: *mut *mut DLManagedTensor,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub hsdp_unit_set_memory: Option<
        unsafe extern "C" fn(
            unit: *mut shw_hsdp_unit,
            first: u64,
            count: u64,
            memory: *const *mut c_void,
            sizes: *const u64,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub hsdp_unit_set_i64: Option<
        unsafe extern "C" fn(unit: *mut shw_hsdp_unit, key: i32, value: i64, err: *mut *mut shw_error) -> shw_status,
    >,
    pub hsdp_unit_get_i64: Option<
        unsafe extern "C" fn(
            unit: *const shw_hsdp_unit,
            key: i32,
            out: *mut i64,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub hsdp_unit_set_f64: Option<
        unsafe extern "C" fn(unit: *mut shw_hsdp_unit, key: i32, value: f64, err: *mut *mut shw_error) -> shw_status,
    >,
    pub hsdp_unit_set_units: Option<
        unsafe extern "C" fn(
            unit: *mut shw_hsdp_unit,
            key: i32,
            units: *const *mut shw_hsdp_unit,
            count: u64,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub hsdp_unit_set_frozen: Option<
        unsafe extern "C" fn(
            unit: *mut shw_hsdp_unit,
            index: u64,
            frozen: shw_bool,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub hsdp_memory_init: Option<unsafe extern "C" fn(memory: *mut shw_hsdp_memory, struct_size: u32)>,
    pub hsdp_estimate_unit_init: Option<unsafe extern "C" fn(unit: *mut shw_hsdp_estimate_unit, struct_size: u32)>,
    pub hsdp_estimate_world_init: Option<unsafe extern "C" fn(world: *mut shw_hsdp_estimate_world, struct_size: u32)>,
    pub hsdp_estimate: Option<
        unsafe extern "C" fn(
            units: *const shw_hsdp_estimate_unit,
            count: u64,
            world: *const shw_hsdp_estimate_world,
            options: *const shw_hsdp_options,
            kind: i32,
            out: *mut shw_hsdp_memory,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub hsdp_stats: Option<
        unsafe extern "C" fn(
            hsdp: *const shw_hsdp,
            kind: i32,
            out: *mut shw_hsdp_memory,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub hsdp_unit_stats: Option<
        unsafe extern "C" fn(
            unit: *const shw_hsdp_unit,
            out: *mut shw_hsdp_memory,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub hsdp_get_i64: Option<
        unsafe extern "C" fn(hsdp: *const shw_hsdp, key: i32, out: *mut i64, err: *mut *mut shw_error) -> shw_status,
    >,
    pub hsdp_unit_get_f64: Option<
        unsafe extern "C" fn(
            unit: *const shw_hsdp_unit,
            key: i32,
            out: *mut f64,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub object_key: Option<
        unsafe extern "C" fn(
            key: *const c_char,
            key_size: u64,
            cell: *const i64,
            shape: *const i64,
            ndim: i32,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub object_key_parse: Option<
        unsafe extern "C" fn(
            name: *const c_char,
            name_size: u64,
            values: *mut i64,
            capacity: u64,
            size: *mut u64,
            key_size: *mut u64,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub state_global_shape: Option<
        unsafe extern "C" fn(
            state: *const shw_state,
            index: u64,
            extents: *mut i64,
            capacity: u64,
            size: *mut u64,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub state_boxes: Option<
        unsafe extern "C" fn(
            state: *const shw_state,
            index: u64,
            boxes: *mut i64,
            capacity: u64,
            size: *mut u64,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub mapping_spec_init: Option<unsafe extern "C" fn(spec: *mut shw_mapping_spec, struct_size: u32)>,
    pub mapping_create: Option<
        unsafe extern "C" fn(
            spec: *const shw_mapping_spec,
            out: *mut *mut shw_mapping,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub state_map: Option<
        unsafe extern "C" fn(
            state: *const shw_state,
            mapping: *const shw_mapping,
            out: *mut *mut shw_state,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub mapping_release: Option<unsafe extern "C" fn(mapping: *mut shw_mapping)>,
    pub context_ask_plugin: Option<
        unsafe extern "C" fn(
            context: *mut shw_context,
            plugin: *const c_char,
            question: *const c_char,
            question_size: u64,
            out: *mut *mut shw_buffer,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
    pub device_type: Option<unsafe extern "C" fn(device: *const shw_device) -> i32>,
    pub device_id: Option<unsafe extern "C" fn(device: *const shw_device) -> i32>,
    pub checkpoint_remove: Option<
        unsafe extern "C" fn(
            context: *mut shw_context,
            storage: *mut shw_storage,
            path: *const c_char,
            prefix: *const c_char,
            flags: u64,
            out: *mut *mut shw_report,
            err: *mut *mut shw_error,
        ) -> shw_status,
    >,
}
