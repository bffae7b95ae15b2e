// SPDX-License-Identifier: Apache-2.0
// Generated from the C headers by bindings/rust/generator; not edited.

use super::table::shw_api;
use core::ffi::{c_char, c_void};
use core::marker::{PhantomData, PhantomPinned};

#[repr(C)]
pub struct shw_error {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct shw_buffer {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct shw_owned_tensor {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct shw_context {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct shw_layout {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct shw_storage {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct shw_collective {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct shw_collective_group {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct shw_report {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct shw_job {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct shw_plan {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct shw_state {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct shw_save_planner {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct shw_checkpoint {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct shw_load_planner {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

/// Defined by DLPack.
#[repr(C)]
pub struct DLManagedTensor {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

/// Defined by DLPack.
#[repr(C)]
pub struct DLManagedTensorVersioned {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

pub type shw_bool = u8;
pub type shw_status = i32;

pub const SHW_ABI_MAJOR: u32 = 0;
pub const SHW_ABI_MINOR: u32 = 1;
pub const SHW_OK: i32 = 0;
pub const SHW_CANCELLED: i32 = 1;
pub const SHW_UNKNOWN: i32 = 2;
pub const SHW_INVALID_ARGUMENT: i32 = 3;
pub const SHW_DEADLINE_EXCEEDED: i32 = 4;
pub const SHW_NOT_FOUND: i32 = 5;
pub const SHW_ALREADY_EXISTS: i32 = 6;
pub const SHW_PERMISSION_DENIED: i32 = 7;
pub const SHW_RESOURCE_EXHAUSTED: i32 = 8;
pub const SHW_FAILED_PRECONDITION: i32 = 9;
pub const SHW_ABORTED: i32 = 10;
pub const SHW_OUT_OF_RANGE: i32 = 11;
pub const SHW_UNIMPLEMENTED: i32 = 12;
pub const SHW_INTERNAL: i32 = 13;
pub const SHW_UNAVAILABLE: i32 = 14;
pub const SHW_DATA_LOSS: i32 = 15;
pub const SHW_UNAUTHENTICATED: i32 = 16;
pub const SHW_PENDING: i32 = 32;
pub const SHW_BUFFER_TOO_SMALL: i32 = 33;
pub const SHW_HOST_EXCEPTION: i32 = 34;
pub const SHW_DECLINED: i32 = 35;
pub const SHW_LOG_TRACE: i32 = 0;
pub const SHW_LOG_DEBUG: i32 = 1;
pub const SHW_LOG_INFO: i32 = 2;
pub const SHW_LOG_WARNING: i32 = 3;
pub const SHW_LOG_ERROR: i32 = 4;
pub const SHW_LOG_OFF: i32 = 5;
pub const SHW_LOG_RECORD_SIZE_V1: u32 = 88;
pub const SHW_TENSOR_READ_ONLY: u64 = 1;
pub const SHW_TENSOR_PINNED: u64 = 2;
pub const SHW_TENSOR_SUBBYTE_PADDED: u64 = 4;
pub const SHW_DEVICE_CPU: i32 = 1;
pub const SHW_DEVICE_CUDA: i32 = 2;
pub const SHW_DEVICE_CUDA_HOST: i32 = 3;
pub const SHW_DEVICE_OPENCL: i32 = 4;
pub const SHW_DEVICE_VULKAN: i32 = 7;
pub const SHW_DEVICE_METAL: i32 = 8;
pub const SHW_DEVICE_VPI: i32 = 9;
pub const SHW_DEVICE_ROCM: i32 = 10;
pub const SHW_DEVICE_ROCM_HOST: i32 = 11;
pub const SHW_DEVICE_EXTENSION: i32 = 12;
pub const SHW_DEVICE_CUDA_MANAGED: i32 = 13;
pub const SHW_DEVICE_ONEAPI: i32 = 14;
pub const SHW_DEVICE_WEBGPU: i32 = 15;
pub const SHW_DEVICE_HEXAGON: i32 = 16;
pub const SHW_DEVICE_MAIA: i32 = 17;
pub const SHW_DEVICE_TRAINIUM: i32 = 18;
pub const SHW_DTYPE_INT: i32 = 0;
pub const SHW_DTYPE_UINT: i32 = 1;
pub const SHW_DTYPE_FLOAT: i32 = 2;
pub const SHW_DTYPE_OPAQUE: i32 = 3;
pub const SHW_DTYPE_BFLOAT: i32 = 4;
pub const SHW_DTYPE_COMPLEX: i32 = 5;
pub const SHW_DTYPE_BOOL: i32 = 6;
pub const SHW_DTYPE_FLOAT8_E3M4: i32 = 7;
pub const SHW_DTYPE_FLOAT8_E4M3: i32 = 8;
pub const SHW_DTYPE_FLOAT8_E4M3B11FNUZ: i32 = 9;
pub const SHW_DTYPE_FLOAT8_E4M3FN: i32 = 10;
pub const SHW_DTYPE_FLOAT8_E4M3FNUZ: i32 = 11;
pub const SHW_DTYPE_FLOAT8_E5M2: i32 = 12;
pub const SHW_DTYPE_FLOAT8_E5M2FNUZ: i32 = 13;
pub const SHW_DTYPE_FLOAT8_E8M0FNU: i32 = 14;
pub const SHW_DTYPE_FLOAT6_E2M3FN: i32 = 15;
pub const SHW_DTYPE_FLOAT6_E3M2FN: i32 = 16;
pub const SHW_DTYPE_FLOAT4_E2M1FN: i32 = 17;
pub const SHW_TENSOR_SIZE_V1: u32 = 96;
pub const SHW_ALLOCATOR_SIZE_V1: u32 = 32;
pub const SHW_CONTEXT_OPTIONS_SIZE_V1: u32 = 56;
pub const SHW_PLACEMENT_REPLICATE: i32 = 0;
pub const SHW_PLACEMENT_SHARD: i32 = 1;
pub const SHW_PLACEMENT_STRIDED_SHARD: i32 = 2;
pub const SHW_PLACEMENT_PARTIAL: i32 = 3;
pub const SHW_LAYOUT_SPEC_SIZE_V1: u32 = 80;
pub const SHW_STORAGE_READ: i32 = 0;
pub const SHW_STORAGE_CREATE: i32 = 1;
pub const SHW_STORAGE_CREATE_VISIBLE: i32 = 2;
pub const SHW_COMMIT_NONE: i32 = 0;
pub const SHW_COMMIT_IF_ABSENT: i32 = 1;
pub const SHW_COMMIT_IF_VERSION: i32 = 2;
pub const SHW_STORAGE_POSITIONAL_WRITE: u64 = 1;
pub const SHW_STORAGE_ATOMIC_COMMIT: u64 = 2;
pub const SHW_STORAGE_CONDITIONAL_COMMIT: u64 = 4;
pub const SHW_STORAGE_ASYNC: u64 = 8;
pub const SHW_STORAGE_DIRECT_IO: u64 = 16;
pub const SHW_STORAGE_MULTIPART: u64 = 32;
pub const SHW_STORAGE_CHECKSUM: u64 = 64;
pub const SHW_STORAGE_STAT_SIZE_V1: u32 = 32;
pub const SHW_STORAGE_ENTRY_SIZE_V1: u32 = 48;
pub const SHW_STORAGE_VTABLE_SIZE_V1: u32 = 176;
pub const SHW_REDUCE_MIN: i32 = 0;
pub const SHW_REDUCE_MAX: i32 = 1;
pub const SHW_REDUCE_SUM: i32 = 2;
pub const SHW_COLLECTIVE_CALL_SIZE_V1: u32 = 40;
pub const SHW_COLLECTIVE_VTABLE_SIZE_V1: u32 = 160;
pub const SHW_REPORT_LOADED: i32 = 0;
pub const SHW_REPORT_MISSING: i32 = 1;
pub const SHW_REPORT_UNEXPECTED: i32 = 2;
pub const SHW_REPORT_CAST: i32 = 3;
pub const SHW_REPORT_FINDING: i32 = 4;
pub const SHW_REPORT_REMOVED: i32 = 5;
pub const SHW_REPORT_NOT_DURABLE: u64 = 1;
pub const SHW_REPORT_WITHOUT_DIGESTS: u64 = 2;
pub const SHW_REPORT_UNVERIFIED: u64 = 4;
pub const SHW_REPORT_SUMMARY_SIZE_V1: u32 = 128;
pub const SHW_JOB_QUEUED: i32 = 0;
pub const SHW_JOB_RUNNING: i32 = 1;
pub const SHW_JOB_STAGED: i32 = 2;
pub const SHW_JOB_SUCCEEDED: i32 = 3;
pub const SHW_JOB_FAILED: i32 = 4;
pub const SHW_JOB_CANCELLED: i32 = 5;
pub const SHW_PROGRESS_SIZE_V1: u32 = 64;
pub const SHW_PLAN_LOCAL_SAVE: i32 = 1;
pub const SHW_PLAN_WRITE_LIST: i32 = 2;
pub const SHW_PLAN_LOAD: i32 = 3;
pub const SHW_PLAN_WRITE_RESULT: i32 = 4;
pub const SHW_PLAN_MERGED_SAVE: i32 = 5;
pub const SHW_PLAN_ITEM_OBJECT: u64 = 1;
pub const SHW_PLAN_ITEM_SIZE_V1: u32 = 40;
pub const SHW_KIND_AUTO: i32 = 0;
pub const SHW_KIND_REPLICATED: i32 = 1;
pub const SHW_KIND_SHARDED: i32 = 2;
pub const SHW_KIND_RANK_LOCAL: i32 = 3;
pub const SHW_TENSOR_BATCH_SIZE_V1: u32 = 144;
pub const SHW_OBJECT_BATCH_SIZE_V1: u32 = 88;
pub const SHW_OVERWRITE_REPLACE: i32 = 0;
pub const SHW_OVERWRITE_REFUSE: i32 = 1;
pub const SHW_DURABILITY_FULL: i32 = 0;
pub const SHW_DURABILITY_NONE: i32 = 1;
pub const SHW_DIGESTS_ON: i32 = 0;
pub const SHW_DIGESTS_OFF: i32 = 1;
pub const SHW_OWNER_BALANCED: i32 = 0;
pub const SHW_OWNER_LOWEST_RANK: i32 = 1;
pub const SHW_VERIFY_REPLICAS_AUTO: i32 = 0;
pub const SHW_VERIFY_REPLICAS_ALL: i32 = 1;
pub const SHW_VERIFY_REPLICAS_OFF: i32 = 2;
pub const SHW_FORMAT_AUTO: i32 = 0;
pub const SHW_FORMAT_NATIVE: i32 = 1;
pub const SHW_FORMAT_TORCH_DCP: i32 = 2;
pub const SHW_PRESET_STANDARD: i32 = 0;
pub const SHW_PRESET_DEFAULT: i32 = 1;
pub const SHW_PRESET_MEGATRON: i32 = 2;
pub const SHW_SAVE_OPTIONS_SIZE_V1: u32 = 128;
pub const SHW_VERIFY_ON_READ: i32 = 0;
pub const SHW_VERIFY_OFF: i32 = 1;
pub const SHW_VERIFY_DEEP: u64 = 1;
pub const SHW_VERIFY_LIST: u64 = 2;
pub const SHW_GC_APPLY: u64 = 1;
pub const SHW_CHECKPOINT_OPTIONS_SIZE_V1: u32 = 40;
pub const SHW_DIGEST_XXH3: i32 = 0;
pub const SHW_DIGEST_SHA256: i32 = 1;
pub const SHW_TENSOR_INFO_SIZE_V1: u32 = 56;
pub const SHW_CHUNK_INFO_SIZE_V1: u32 = 48;
pub const SHW_BOX_BATCH_SIZE_V1: u32 = 48;
pub const SHW_MISSING_ERROR: i32 = 0;
pub const SHW_MISSING_REPORT: i32 = 1;
pub const SHW_UNEXPECTED_REPORT: i32 = 0;
pub const SHW_UNEXPECTED_ERROR: i32 = 1;
pub const SHW_CAST_ERROR: i32 = 0;
pub const SHW_CAST_ALLOW: i32 = 1;
pub const SHW_LOAD_OPTIONS_SIZE_V1: u32 = 96;
pub const SHW_PLUGIN_ENTRY: &core::ffi::CStr = c"shw_plugin_v1";
pub const SHW_HOST_API_SIZE_V1: u32 = 72;
pub const SHW_PLUGIN_SIZE_V1: u32 = 96;

pub type shw_log_fn = Option<unsafe extern "C" fn(user: *mut c_void, level: i32, record: *const shw_log_record)>;
pub type shw_allocate_fn = Option<unsafe extern "C" fn(user: *mut c_void, size: u64, alignment: u64) -> *mut c_void>;
pub type shw_deallocate_fn =
    Option<unsafe extern "C" fn(user: *mut c_void, pointer: *mut c_void, size: u64, alignment: u64)>;
pub type shw_storage_list_fn =
    Option<unsafe extern "C" fn(sink_user: *mut c_void, entry: *const shw_storage_entry) -> shw_status>;
pub type shw_storage_open_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        key: *const c_char,
        key_size: u64,
        mode: i32,
        object: *mut *mut c_void,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_storage_object_fn = Option<unsafe extern "C" fn(user: *mut c_void, object: *mut c_void)>;
pub type shw_storage_stat_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        key: *const c_char,
        key_size: u64,
        out: *mut shw_storage_stat,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_storage_walk_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        prefix: *const c_char,
        prefix_size: u64,
        sink: shw_storage_list_fn,
        sink_user: *mut c_void,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_storage_read_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        object: *mut c_void,
        offset: u64,
        data: *mut c_void,
        size: u64,
        done: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_storage_write_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        object: *mut c_void,
        offset: u64,
        data: *const c_void,
        size: u64,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_storage_sync_fn =
    Option<unsafe extern "C" fn(user: *mut c_void, object: *mut c_void, err: *mut *mut shw_error) -> shw_status>;
pub type shw_storage_commit_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        object: *mut c_void,
        condition: i32,
        expected_version: u64,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_storage_remove_fn = Option<
    unsafe extern "C" fn(user: *mut c_void, key: *const c_char, key_size: u64, err: *mut *mut shw_error) -> shw_status,
>;
pub type shw_storage_space_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        key: *const c_char,
        key_size: u64,
        free_bytes: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_storage_lock_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        key: *const c_char,
        key_size: u64,
        timeout_ns: i64,
        lock: *mut *mut c_void,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_storage_release_fn = Option<unsafe extern "C" fn(user: *mut c_void)>;
pub type shw_collective_barrier_fn = Option<
    unsafe extern "C" fn(user: *mut c_void, call: *const shw_collective_call, err: *mut *mut shw_error) -> shw_status,
>;
pub type shw_collective_broadcast_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        call: *const shw_collective_call,
        data: *mut c_void,
        size: u64,
        root: i32,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_collective_all_gather_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        call: *const shw_collective_call,
        r#in: *const c_void,
        size: u64,
        out: *mut c_void,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_collective_all_gather_v_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        call: *const shw_collective_call,
        r#in: *const c_void,
        size: u64,
        out: *mut c_void,
        sizes: *const u64,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_collective_all_reduce_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        call: *const shw_collective_call,
        values: *mut i64,
        count: u64,
        operation: i32,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_collective_abort_fn =
    Option<unsafe extern "C" fn(user: *mut c_void, code: shw_status, message: *const c_char, message_size: u64)>;
pub type shw_collective_release_fn = Option<unsafe extern "C" fn(user: *mut c_void)>;
pub type shw_error_create_fn = Option<
    unsafe extern "C" fn(
        code: shw_status,
        message: *const c_char,
        message_size: u64,
        details: *const shw_error_detail,
        detail_count: u64,
        cause: *mut shw_error,
        out: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_error_release_fn = Option<unsafe extern "C" fn(error: *mut shw_error)>;
pub type shw_log_write_fn =
    Option<unsafe extern "C" fn(level: i32, component: *const c_char, message: *const c_char, message_size: u64)>;
pub type shw_plugin_storage_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        config: *const c_char,
        config_size: u64,
        vtable: *mut shw_storage_vtable,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_plugin_collective_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        config: *const c_char,
        config_size: u64,
        vtable: *mut shw_collective_vtable,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_plugin_release_fn = Option<unsafe extern "C" fn(user: *mut c_void)>;
pub type shw_plugin_entry_fn = Option<
    unsafe extern "C" fn(host: *const shw_host_api, out: *mut shw_plugin, err: *mut *mut shw_error) -> shw_status,
>;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_error_detail {
    pub key: *const c_char,
    pub value: *const c_char,
    pub value_size: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_log_field {
    pub key: *const c_char,
    pub value: *const c_char,
    pub value_size: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_log_record {
    pub struct_size: u32,
    pub flags: u32,
    pub time_ns: i64,
    pub thread_id: u64,
    pub dropped: u64,
    pub line: i32,
    pub reserved0: i32,
    pub component: *const c_char,
    pub file: *const c_char,
    pub message: *const c_char,
    pub message_size: u64,
    pub fields: *const shw_log_field,
    pub field_count: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_tensor {
    pub struct_size: u32,
    pub flags: u32,
    pub data: *mut c_void,
    pub byte_offset: u64,
    pub byte_size: u64,
    pub device_type: i32,
    pub device_id: i32,
    pub dtype_code: u8,
    pub dtype_bits: u8,
    pub dtype_lanes: u16,
    pub ndim: i32,
    pub shape: *const i64,
    pub strides: *const i64,
    pub stream: u64,
    pub name_index: u64,
    pub reserved0: u64,
    pub reserved1: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_allocator {
    pub struct_size: u32,
    pub flags: u32,
    pub user: *mut c_void,
    pub allocate: shw_allocate_fn,
    pub release: shw_deallocate_fn,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_context_options {
    pub struct_size: u32,
    pub flags: u32,
    pub threads: u32,
    pub log_level: i32,
    pub memory_budget: u64,
    pub log: shw_log_fn,
    pub log_user: *mut c_void,
    pub allocator: *const shw_allocator,
    pub plugin_path: *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_layout_spec {
    pub struct_size: u32,
    pub flags: u32,
    pub mesh_ndim: i32,
    pub reserved0: i32,
    pub mesh_shape: *const i64,
    pub axis_names: *const c_char,
    pub axis_name_offsets: *const u64,
    pub ranks: *const i32,
    pub rank_count: u64,
    pub placement_kinds: *const i32,
    pub placement_dims: *const i32,
    pub placement_factors: *const i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_storage_stat {
    pub struct_size: u32,
    pub flags: u32,
    pub size: u64,
    pub modified_ns: i64,
    pub version: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_storage_entry {
    pub struct_size: u32,
    pub flags: u32,
    pub key: *const c_char,
    pub key_size: u64,
    pub size: u64,
    pub modified_ns: i64,
    pub version: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_storage_vtable {
    pub struct_size: u32,
    pub flags: u32,
    pub abi_major: u32,
    pub abi_minor: u32,
    pub capabilities: u64,
    pub alignment: u64,
    pub name: *const c_char,
    pub user: *mut c_void,
    pub open: shw_storage_open_fn,
    pub close: shw_storage_object_fn,
    pub stat: shw_storage_stat_fn,
    pub list: shw_storage_walk_fn,
    pub read_at: shw_storage_read_fn,
    pub write_at: shw_storage_write_fn,
    pub sync: shw_storage_sync_fn,
    pub commit: shw_storage_commit_fn,
    pub abort: shw_storage_object_fn,
    pub remove: shw_storage_remove_fn,
    pub space: shw_storage_space_fn,
    pub lock: shw_storage_lock_fn,
    pub unlock: shw_storage_object_fn,
    pub reserved1: *mut c_void,
    pub reserved2: *mut c_void,
    pub release: shw_storage_release_fn,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_collective_call {
    pub struct_size: u32,
    pub flags: u32,
    pub sequence: u64,
    pub tag: u32,
    pub reserved0: u32,
    pub timeout_ns: i64,
    pub group: *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_collective_vtable {
    pub struct_size: u32,
    pub flags: u32,
    pub abi_major: u32,
    pub abi_minor: u32,
    pub capabilities: u64,
    pub rank: i32,
    pub size: i32,
    pub name: *const c_char,
    pub user: *mut c_void,
    pub barrier: shw_collective_barrier_fn,
    pub broadcast: shw_collective_broadcast_fn,
    pub all_gather: shw_collective_all_gather_fn,
    pub all_gather_v: shw_collective_all_gather_v_fn,
    pub reserved1: *mut c_void,
    pub reserved2: *mut c_void,
    pub reserved3: *mut c_void,
    pub all_reduce_i64: shw_collective_all_reduce_fn,
    pub reserved4: *mut c_void,
    pub reserved5: *mut c_void,
    pub reserved6: *mut c_void,
    pub reserved7: *mut c_void,
    pub abort: shw_collective_abort_fn,
    pub release: shw_collective_release_fn,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_report_summary {
    pub struct_size: u32,
    pub flags: u32,
    pub tensor_count: u64,
    pub object_count: u64,
    pub chunk_count: u64,
    pub file_count: u64,
    pub bytes: u64,
    pub bytes_total: u64,
    pub bytes_over_read: u64,
    pub bytes_staged_peak: u64,
    pub plan_ns: i64,
    pub stage_ns: i64,
    pub transfer_ns: i64,
    pub sync_ns: i64,
    pub commit_ns: i64,
    pub elapsed_ns: i64,
    pub reserved0: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_progress {
    pub struct_size: u32,
    pub flags: u32,
    pub state: i32,
    pub reserved0: i32,
    pub stage: *const c_char,
    pub bytes_done: u64,
    pub bytes_total: u64,
    pub items_done: u64,
    pub items_total: u64,
    pub elapsed_ns: i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_plan_item {
    pub struct_size: u32,
    pub flags: u32,
    pub entry: u32,
    pub piece: u32,
    pub chunk: u64,
    pub position: u64,
    pub byte_size: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_tensor_batch {
    pub struct_size: u32,
    pub flags: u32,
    pub count: u64,
    pub names: *const c_char,
    pub name_offsets: *const u64,
    pub tensors: *const shw_tensor,
    pub global_shapes: *const i64,
    pub global_shape_offsets: *const u64,
    pub box_ranges: *const u64,
    pub box_offsets: *const i64,
    pub box_sizes: *const i64,
    pub local_offsets: *const i64,
    pub layouts: *const *const shw_layout,
    pub layout_indices: *const u32,
    pub layout_count: u64,
    pub paths: *const c_char,
    pub path_offsets: *const u64,
    pub kinds: *const i32,
    pub rank: i32,
    pub reserved0: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_object_batch {
    pub struct_size: u32,
    pub flags: u32,
    pub count: u64,
    pub names: *const c_char,
    pub name_offsets: *const u64,
    pub data: *const c_void,
    pub data_offsets: *const u64,
    pub content_types: *const c_char,
    pub content_type_offsets: *const u64,
    pub paths: *const c_char,
    pub path_offsets: *const u64,
    pub kinds: *const i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_save_options {
    pub struct_size: u32,
    pub flags: u32,
    pub overwrite: i32,
    pub durability: i32,
    pub digests: i32,
    pub owner: i32,
    pub verify_replicas: i32,
    pub format: i32,
    pub preset: i32,
    pub threads: u32,
    pub file_mode: u32,
    pub keep_generations: u32,
    pub memory_budget: u64,
    pub deadline_ns: i64,
    pub trace_path: *const c_char,
    pub kind_globs: *const c_char,
    pub kind_offsets: *const u64,
    pub kind_values: *const i32,
    pub kind_count: u64,
    pub metadata: *const c_char,
    pub metadata_offsets: *const u64,
    pub metadata_count: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_checkpoint_options {
    pub struct_size: u32,
    pub flags: u32,
    pub verify: i32,
    pub format: i32,
    pub threads: u32,
    pub reserved0: u32,
    pub memory_budget: u64,
    pub deadline_ns: i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_tensor_info {
    pub struct_size: u32,
    pub flags: u32,
    pub dtype_code: u8,
    pub dtype_bits: u8,
    pub dtype_lanes: u16,
    pub ndim: i32,
    pub kind: i32,
    pub rank: i32,
    pub element_count: u64,
    pub byte_size: u64,
    pub first_chunk: u64,
    pub chunk_count: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_chunk_info {
    pub struct_size: u32,
    pub flags: u32,
    pub tensor: u64,
    pub file: u64,
    pub offset: u64,
    pub byte_size: u64,
    pub rank: i32,
    pub reserved0: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_box_batch {
    pub struct_size: u32,
    pub flags: u32,
    pub count: u64,
    pub tensors: *const u64,
    pub targets: *const shw_tensor,
    pub box_offsets: *const i64,
    pub box_sizes: *const i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_load_options {
    pub struct_size: u32,
    pub flags: u32,
    pub missing: i32,
    pub unexpected: i32,
    pub cast: i32,
    pub verify: i32,
    pub format: i32,
    pub preset: i32,
    pub threads: u32,
    pub reserved0: u32,
    pub memory_budget: u64,
    pub deadline_ns: i64,
    pub trace_path: *const c_char,
    pub strict_globs: *const c_char,
    pub strict_offsets: *const u64,
    pub strict_rules: *const i32,
    pub strict_count: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_host_api {
    pub struct_size: u32,
    pub flags: u32,
    pub abi_major: u32,
    pub abi_minor: u32,
    pub error_create: shw_error_create_fn,
    pub error_release: shw_error_release_fn,
    pub log_write: shw_log_write_fn,
    pub allocate: shw_allocate_fn,
    pub release: shw_deallocate_fn,
    pub reserved0: *mut c_void,
    pub api: *const shw_api,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_plugin {
    pub struct_size: u32,
    pub flags: u32,
    pub abi_major: u32,
    pub abi_minor: u32,
    pub name: *const c_char,
    pub version: *const c_char,
    pub user: *mut c_void,
    pub storage: *const shw_storage_vtable,
    pub storage_open: shw_plugin_storage_fn,
    pub collective: *const shw_collective_vtable,
    pub collective_open: shw_plugin_collective_fn,
    pub reserved0: *mut c_void,
    pub reserved1: *mut c_void,
    pub release: shw_plugin_release_fn,
}

#[cfg(not(feature = "load-dynamic"))]
unsafe extern "C" {
    pub fn shw_abi_version(major: *mut u32, minor: *mut u32);
    pub fn shw_version_string() -> *const c_char;
    pub fn shw_build_info() -> *const c_char;
    pub fn shw_status_name(status: shw_status) -> *const c_char;
    pub fn shw_error_code(error: *const shw_error) -> shw_status;
    pub fn shw_error_message(error: *const shw_error, size: *mut u64) -> *const c_char;
    pub fn shw_error_detail_count(error: *const shw_error) -> u64;
    pub fn shw_error_detail_at(error: *const shw_error, index: u64, out: *mut shw_error_detail) -> shw_status;
    pub fn shw_error_is_retryable(error: *const shw_error) -> shw_bool;
    pub fn shw_error_cause(error: *const shw_error) -> *const shw_error;
    pub fn shw_error_backtrace(error: *const shw_error, size: *mut u64) -> *const c_char;
    pub fn shw_error_create(
        code: shw_status,
        message: *const c_char,
        message_size: u64,
        details: *const shw_error_detail,
        detail_count: u64,
        cause: *mut shw_error,
        out: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_error_release(error: *mut shw_error);
    pub fn shw_get_api(major: u32, min_minor: u32, out: *mut *const shw_api, err: *mut *mut shw_error) -> shw_status;
    pub fn shw_log_record_init(record: *mut shw_log_record, struct_size: u32);
    pub fn shw_buffer_create(
        data: *const c_void,
        size: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_buffer_create_parts(
        data: *const c_void,
        offsets: *const u64,
        part_count: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_buffer_data(buffer: *const shw_buffer) -> *const c_void;
    pub fn shw_buffer_size(buffer: *const shw_buffer) -> u64;
    pub fn shw_buffer_part_count(buffer: *const shw_buffer) -> u64;
    pub fn shw_buffer_part_offsets(buffer: *const shw_buffer) -> *const u64;
    pub fn shw_buffer_part_data(buffer: *const shw_buffer, index: u64) -> *const c_void;
    pub fn shw_buffer_part_size(buffer: *const shw_buffer, index: u64) -> u64;
    pub fn shw_buffer_release(buffer: *mut shw_buffer);
    pub fn shw_tensor_init(tensor: *mut shw_tensor, struct_size: u32);
    pub fn shw_tensor_check(tensor: *const shw_tensor, err: *mut *mut shw_error) -> shw_status;
    pub fn shw_tensor_from_dlpack(
        managed: *const DLManagedTensorVersioned,
        out: *mut shw_tensor,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_tensor_from_dlpack_legacy(
        managed: *const DLManagedTensor,
        out: *mut shw_tensor,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_dtype_name(code: u8, bits: u8) -> *const c_char;
    pub fn shw_dtype_parse(name: *const c_char, out: *mut u32, err: *mut *mut shw_error) -> shw_status;
    pub fn shw_dtype_byte_size(code: u8, bits: u8, element_count: u64) -> u64;
    pub fn shw_owned_tensor_create(
        dtype_code: u8,
        dtype_bits: u8,
        shape: *const i64,
        ndim: i32,
        out: *mut *mut shw_owned_tensor,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_owned_tensor_describe(
        tensor: *const shw_owned_tensor,
        out: *mut shw_tensor,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_owned_tensor_dlpack(
        tensor: *const shw_owned_tensor,
        out: *mut *mut DLManagedTensorVersioned,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_owned_tensor_dlpack_legacy(
        tensor: *const shw_owned_tensor,
        out: *mut *mut DLManagedTensor,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_owned_tensor_release(tensor: *mut shw_owned_tensor);
    pub fn shw_allocator_init(allocator: *mut shw_allocator, struct_size: u32);
    pub fn shw_context_options_init(options: *mut shw_context_options, struct_size: u32);
    pub fn shw_context_create(
        options: *const shw_context_options,
        out: *mut *mut shw_context,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_context_shutdown(context: *mut shw_context, timeout_ns: i64, err: *mut *mut shw_error) -> shw_status;
    pub fn shw_context_load_plugin(
        context: *mut shw_context,
        path: *const c_char,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_context_plugins(
        context: *mut shw_context,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_context_open_storage(
        context: *mut shw_context,
        plugin: *const c_char,
        config: *const c_char,
        config_size: u64,
        out: *mut *mut shw_storage,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_context_open_collective(
        context: *mut shw_context,
        plugin: *const c_char,
        config: *const c_char,
        config_size: u64,
        out: *mut *mut shw_collective,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_context_release(context: *mut shw_context);
    pub fn shw_layout_spec_init(spec: *mut shw_layout_spec, struct_size: u32);
    pub fn shw_layout_create(
        spec: *const shw_layout_spec,
        out: *mut *mut shw_layout,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_layout_rank_count(layout: *const shw_layout) -> u64;
    pub fn shw_layout_box_count(
        layout: *const shw_layout,
        shape: *const i64,
        ndim: i32,
        rank: i32,
        out: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_layout_boxes(
        layout: *const shw_layout,
        shape: *const i64,
        ndim: i32,
        rank: i32,
        boxes: *mut i64,
        capacity: u64,
        size: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_layout_release(layout: *mut shw_layout);
    pub fn shw_storage_stat_init(stat: *mut shw_storage_stat, struct_size: u32);
    pub fn shw_storage_entry_init(entry: *mut shw_storage_entry, struct_size: u32);
    pub fn shw_storage_vtable_init(vtable: *mut shw_storage_vtable, struct_size: u32);
    pub fn shw_storage_create_posix(
        root: *const c_char,
        out: *mut *mut shw_storage,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_storage_create_memory(out: *mut *mut shw_storage, err: *mut *mut shw_error) -> shw_status;
    pub fn shw_storage_create(
        vtable: *const shw_storage_vtable,
        out: *mut *mut shw_storage,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_storage_name(storage: *const shw_storage, size: *mut u64) -> *const c_char;
    pub fn shw_storage_capabilities(storage: *const shw_storage) -> u64;
    pub fn shw_storage_put(
        storage: *mut shw_storage,
        key: *const c_char,
        key_size: u64,
        data: *const c_void,
        size: u64,
        condition: i32,
        expected_version: u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_storage_read(
        storage: *mut shw_storage,
        key: *const c_char,
        key_size: u64,
        offset: u64,
        data: *mut c_void,
        size: u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_storage_stat_key(
        storage: *mut shw_storage,
        key: *const c_char,
        key_size: u64,
        out: *mut shw_storage_stat,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_storage_list(
        storage: *mut shw_storage,
        prefix: *const c_char,
        prefix_size: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_storage_remove(
        storage: *mut shw_storage,
        key: *const c_char,
        key_size: u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_storage_release(storage: *mut shw_storage);
    pub fn shw_collective_call_init(call: *mut shw_collective_call, struct_size: u32);
    pub fn shw_collective_vtable_init(vtable: *mut shw_collective_vtable, struct_size: u32);
    pub fn shw_collective_create_single(out: *mut *mut shw_collective, err: *mut *mut shw_error) -> shw_status;
    pub fn shw_collective_group_create(
        size: i32,
        out: *mut *mut shw_collective_group,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_collective_group_member(
        group: *mut shw_collective_group,
        rank: i32,
        out: *mut *mut shw_collective,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_collective_group_release(group: *mut shw_collective_group);
    pub fn shw_collective_create(
        vtable: *const shw_collective_vtable,
        out: *mut *mut shw_collective,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_collective_rank(collective: *const shw_collective) -> i32;
    pub fn shw_collective_size(collective: *const shw_collective) -> i32;
    pub fn shw_collective_name(collective: *const shw_collective, size: *mut u64) -> *const c_char;
    pub fn shw_collective_barrier(
        collective: *mut shw_collective,
        call: *const shw_collective_call,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_collective_broadcast(
        collective: *mut shw_collective,
        call: *const shw_collective_call,
        data: *mut c_void,
        size: u64,
        root: i32,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_collective_all_gather(
        collective: *mut shw_collective,
        call: *const shw_collective_call,
        data: *const c_void,
        size: u64,
        gathered: *mut c_void,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_collective_all_gather_v(
        collective: *mut shw_collective,
        call: *const shw_collective_call,
        data: *const c_void,
        size: u64,
        gathered: *mut c_void,
        sizes: *const u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_collective_all_reduce_i64(
        collective: *mut shw_collective,
        call: *const shw_collective_call,
        values: *mut i64,
        count: u64,
        operation: i32,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_collective_abort(
        collective: *mut shw_collective,
        code: shw_status,
        message: *const c_char,
        message_size: u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_collective_release(collective: *mut shw_collective);
    pub fn shw_report_summary_init(summary: *mut shw_report_summary, struct_size: u32);
    pub fn shw_report_json(report: *const shw_report, size: *mut u64) -> *const c_char;
    pub fn shw_report_summarize(
        report: *const shw_report,
        out: *mut shw_report_summary,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_report_name_count(report: *const shw_report, list: i32) -> u64;
    pub fn shw_report_name(report: *const shw_report, list: i32, index: u64, size: *mut u64) -> *const c_char;
    pub fn shw_report_release(report: *mut shw_report);
    pub fn shw_progress_init(progress: *mut shw_progress, struct_size: u32);
    pub fn shw_job_wait(job: *mut shw_job, timeout_ns: i64, err: *mut *mut shw_error) -> shw_status;
    pub fn shw_job_wait_staged(job: *mut shw_job, timeout_ns: i64, err: *mut *mut shw_error) -> shw_status;
    pub fn shw_job_poll(job: *const shw_job) -> i32;
    pub fn shw_job_progress(job: *const shw_job, out: *mut shw_progress, err: *mut *mut shw_error) -> shw_status;
    pub fn shw_job_cancel(job: *mut shw_job);
    pub fn shw_job_error(job: *const shw_job) -> *const shw_error;
    pub fn shw_job_report(job: *const shw_job, out: *mut *mut shw_report, err: *mut *mut shw_error) -> shw_status;
    pub fn shw_job_release(job: *mut shw_job);
    pub fn shw_plan_item_init(item: *mut shw_plan_item, struct_size: u32);
    pub fn shw_plan_validate(data: *const c_void, size: u64, err: *mut *mut shw_error) -> shw_status;
    pub fn shw_plan_findings(
        data: *const c_void,
        size: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_plan_create(
        data: *const c_void,
        size: u64,
        out: *mut *mut shw_plan,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_plan_kind(plan: *const shw_plan) -> i32;
    pub fn shw_plan_rank(plan: *const shw_plan) -> i32;
    pub fn shw_plan_data(plan: *const shw_plan) -> *const c_void;
    pub fn shw_plan_size(plan: *const shw_plan) -> u64;
    pub fn shw_plan_item_count(plan: *const shw_plan) -> u64;
    pub fn shw_plan_item_at(
        plan: *const shw_plan,
        index: u64,
        out: *mut shw_plan_item,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_plan_json(
        plan: *const shw_plan,
        item_limit: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_plan_release(plan: *mut shw_plan);
    pub fn shw_tensor_batch_init(batch: *mut shw_tensor_batch, struct_size: u32);
    pub fn shw_object_batch_init(batch: *mut shw_object_batch, struct_size: u32);
    pub fn shw_state_create(out: *mut *mut shw_state, err: *mut *mut shw_error) -> shw_status;
    pub fn shw_state_add_tensors(
        state: *mut shw_state,
        batch: *const shw_tensor_batch,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_state_add_dlpack(
        state: *mut shw_state,
        batch: *const shw_tensor_batch,
        managed: *const *mut DLManagedTensorVersioned,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_state_add_dlpack_legacy(
        state: *mut shw_state,
        batch: *const shw_tensor_batch,
        managed: *const *mut DLManagedTensor,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_state_add_objects(
        state: *mut shw_state,
        batch: *const shw_object_batch,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_state_tensor_count(state: *const shw_state) -> u64;
    pub fn shw_state_object_count(state: *const shw_state) -> u64;
    pub fn shw_state_tensor_name(state: *const shw_state, index: u64, size: *mut u64) -> *const c_char;
    pub fn shw_state_tensor_path(state: *const shw_state, index: u64, size: *mut u64) -> *const c_char;
    pub fn shw_state_tensor(
        state: *const shw_state,
        index: u64,
        out: *mut shw_tensor,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_state_object_name(state: *const shw_state, index: u64, size: *mut u64) -> *const c_char;
    pub fn shw_state_object_path(state: *const shw_state, index: u64, size: *mut u64) -> *const c_char;
    pub fn shw_state_object_content_type(state: *const shw_state, index: u64, size: *mut u64) -> *const c_char;
    pub fn shw_state_object_data(state: *const shw_state, index: u64, size: *mut u64) -> *const c_void;
    pub fn shw_state_find_tensor(
        state: *const shw_state,
        name: *const c_char,
        name_size: u64,
        out: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_state_find_object(
        state: *const shw_state,
        name: *const c_char,
        name_size: u64,
        out: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_state_release(state: *mut shw_state);
    pub fn shw_save_options_init(options: *mut shw_save_options, struct_size: u32);
    pub fn shw_save(
        context: *mut shw_context,
        state: *const shw_state,
        storage: *mut shw_storage,
        path: *const c_char,
        collective: *mut shw_collective,
        options: *const shw_save_options,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_save_async(
        context: *mut shw_context,
        state: *const shw_state,
        storage: *mut shw_storage,
        path: *const c_char,
        collective: *mut shw_collective,
        options: *const shw_save_options,
        out: *mut *mut shw_job,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_save_planner_create(
        context: *mut shw_context,
        state: *const shw_state,
        rank: i32,
        world_size: i32,
        options: *const shw_save_options,
        out: *mut *mut shw_save_planner,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_save_planner_local_plan(
        planner: *mut shw_save_planner,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_save_planner_global_plan(
        planner: *mut shw_save_planner,
        storage: *mut shw_storage,
        path: *const c_char,
        plans: *const c_void,
        plan_offsets: *const u64,
        plan_count: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_save_planner_finish(
        planner: *mut shw_save_planner,
        plan: *const c_void,
        plan_size: u64,
        out: *mut *mut shw_plan,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_save_execute(
        planner: *mut shw_save_planner,
        plan: *const shw_plan,
        storage: *mut shw_storage,
        path: *const c_char,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_save_commit(
        planner: *mut shw_save_planner,
        results: *const c_void,
        result_offsets: *const u64,
        result_count: u64,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_save_planner_release(planner: *mut shw_save_planner);
    pub fn shw_checkpoint_options_init(options: *mut shw_checkpoint_options, struct_size: u32);
    pub fn shw_checkpoint_open(
        context: *mut shw_context,
        storage: *mut shw_storage,
        path: *const c_char,
        options: *const shw_checkpoint_options,
        out: *mut *mut shw_checkpoint,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_checkpoint_format(checkpoint: *const shw_checkpoint, size: *mut u64) -> *const c_char;
    pub fn shw_checkpoint_generation(checkpoint: *const shw_checkpoint, size: *mut u64) -> *const c_char;
    pub fn shw_checkpoint_world_size(checkpoint: *const shw_checkpoint) -> i32;
    pub fn shw_checkpoint_created_ns(checkpoint: *const shw_checkpoint) -> i64;
    pub fn shw_checkpoint_metadata_count(checkpoint: *const shw_checkpoint) -> u64;
    pub fn shw_checkpoint_metadata_key(checkpoint: *const shw_checkpoint, index: u64, size: *mut u64) -> *const c_char;
    pub fn shw_checkpoint_metadata_value(
        checkpoint: *const shw_checkpoint,
        index: u64,
        size: *mut u64,
    ) -> *const c_char;
    pub fn shw_checkpoint_info(
        checkpoint: *const shw_checkpoint,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_checkpoint_verify(
        checkpoint: *const shw_checkpoint,
        flags: u64,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_checkpoint_gc(
        context: *mut shw_context,
        storage: *mut shw_storage,
        path: *const c_char,
        grace_ns: i64,
        flags: u64,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_checkpoint_list_steps(
        context: *mut shw_context,
        storage: *mut shw_storage,
        path: *const c_char,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_checkpoint_release(checkpoint: *mut shw_checkpoint);
    pub fn shw_tensor_info_init(info: *mut shw_tensor_info, struct_size: u32);
    pub fn shw_chunk_info_init(info: *mut shw_chunk_info, struct_size: u32);
    pub fn shw_box_batch_init(batch: *mut shw_box_batch, struct_size: u32);
    pub fn shw_checkpoint_tensor_count(checkpoint: *const shw_checkpoint) -> u64;
    pub fn shw_checkpoint_tensor_name(checkpoint: *const shw_checkpoint, index: u64, size: *mut u64) -> *const c_char;
    pub fn shw_checkpoint_tensor_path(checkpoint: *const shw_checkpoint, index: u64, size: *mut u64) -> *const c_char;
    pub fn shw_checkpoint_tensor_shape(checkpoint: *const shw_checkpoint, index: u64) -> *const i64;
    pub fn shw_checkpoint_tensor_infos(
        checkpoint: *const shw_checkpoint,
        first: u64,
        count: u64,
        infos: *mut shw_tensor_info,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_checkpoint_tensor_names(
        checkpoint: *const shw_checkpoint,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_checkpoint_find_tensor(
        checkpoint: *const shw_checkpoint,
        name: *const c_char,
        name_size: u64,
        rank: i32,
        out: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_checkpoint_chunk_count(checkpoint: *const shw_checkpoint) -> u64;
    pub fn shw_checkpoint_chunk_infos(
        checkpoint: *const shw_checkpoint,
        first: u64,
        count: u64,
        infos: *mut shw_chunk_info,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_checkpoint_chunk_box(
        checkpoint: *const shw_checkpoint,
        index: u64,
        r#box: *mut i64,
        capacity: u64,
        size: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_checkpoint_object_count(checkpoint: *const shw_checkpoint) -> u64;
    pub fn shw_checkpoint_object_name(checkpoint: *const shw_checkpoint, index: u64, size: *mut u64) -> *const c_char;
    pub fn shw_checkpoint_object_path(checkpoint: *const shw_checkpoint, index: u64, size: *mut u64) -> *const c_char;
    pub fn shw_checkpoint_object_content_type(
        checkpoint: *const shw_checkpoint,
        index: u64,
        size: *mut u64,
    ) -> *const c_char;
    pub fn shw_checkpoint_object_size(checkpoint: *const shw_checkpoint, index: u64) -> u64;
    pub fn shw_checkpoint_object_rank(checkpoint: *const shw_checkpoint, index: u64) -> i32;
    pub fn shw_checkpoint_object_names(
        checkpoint: *const shw_checkpoint,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_checkpoint_find_object(
        checkpoint: *const shw_checkpoint,
        name: *const c_char,
        name_size: u64,
        rank: i32,
        out: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_checkpoint_read_objects(
        checkpoint: *const shw_checkpoint,
        indices: *const u64,
        count: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_checkpoint_file_count(checkpoint: *const shw_checkpoint) -> u64;
    pub fn shw_checkpoint_file_name(checkpoint: *const shw_checkpoint, index: u64, size: *mut u64) -> *const c_char;
    pub fn shw_checkpoint_file_size(checkpoint: *const shw_checkpoint, index: u64) -> u64;
    pub fn shw_checkpoint_read_boxes(
        checkpoint: *const shw_checkpoint,
        batch: *const shw_box_batch,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_checkpoint_read_tensor(
        checkpoint: *const shw_checkpoint,
        index: u64,
        box_offsets: *const i64,
        box_sizes: *const i64,
        ndim: i32,
        out: *mut *mut shw_owned_tensor,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_checkpoint_digests(
        checkpoint: *const shw_checkpoint,
        indices: *const u64,
        count: u64,
        algorithm: i32,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_load_options_init(options: *mut shw_load_options, struct_size: u32);
    pub fn shw_load(
        context: *mut shw_context,
        state: *mut shw_state,
        storage: *mut shw_storage,
        path: *const c_char,
        collective: *mut shw_collective,
        options: *const shw_load_options,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_load_async(
        context: *mut shw_context,
        state: *mut shw_state,
        storage: *mut shw_storage,
        path: *const c_char,
        collective: *mut shw_collective,
        options: *const shw_load_options,
        out: *mut *mut shw_job,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_load_planner_create(
        checkpoint: *const shw_checkpoint,
        state: *mut shw_state,
        rank: i32,
        options: *const shw_load_options,
        out: *mut *mut shw_load_planner,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_load_planner_local_plan(
        planner: *mut shw_load_planner,
        out: *mut *mut shw_plan,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_load_execute(
        planner: *mut shw_load_planner,
        plan: *const shw_plan,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status;
    pub fn shw_load_planner_release(planner: *mut shw_load_planner);
    pub fn shw_plugin_init(plugin: *mut shw_plugin, struct_size: u32);
}

#[cfg(feature = "load-dynamic")]
pub use dispatch::*;

/// The same functions through the table, once a library was loaded.
#[cfg(feature = "load-dynamic")]
mod dispatch {
    use super::*;
    use crate::loader::table;

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_abi_version(major: *mut u32, minor: *mut u32) {
        unsafe { (table().abi_version.unwrap_unchecked())(major, minor) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_version_string() -> *const c_char {
        unsafe { (table().version_string.unwrap_unchecked())() }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_build_info() -> *const c_char {
        unsafe { (table().build_info.unwrap_unchecked())() }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_status_name(status: shw_status) -> *const c_char {
        unsafe { (table().status_name.unwrap_unchecked())(status) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_error_code(error: *const shw_error) -> shw_status {
        unsafe { (table().error_code.unwrap_unchecked())(error) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_error_message(error: *const shw_error, size: *mut u64) -> *const c_char {
        unsafe { (table().error_message.unwrap_unchecked())(error, size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_error_detail_count(error: *const shw_error) -> u64 {
        unsafe { (table().error_detail_count.unwrap_unchecked())(error) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_error_detail_at(error: *const shw_error, index: u64, out: *mut shw_error_detail) -> shw_status {
        unsafe { (table().error_detail_at.unwrap_unchecked())(error, index, out) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_error_is_retryable(error: *const shw_error) -> shw_bool {
        unsafe { (table().error_is_retryable.unwrap_unchecked())(error) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_error_cause(error: *const shw_error) -> *const shw_error {
        unsafe { (table().error_cause.unwrap_unchecked())(error) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_error_backtrace(error: *const shw_error, size: *mut u64) -> *const c_char {
        unsafe { (table().error_backtrace.unwrap_unchecked())(error, size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_error_create(
        code: shw_status,
        message: *const c_char,
        message_size: u64,
        details: *const shw_error_detail,
        detail_count: u64,
        cause: *mut shw_error,
        out: *mut *mut shw_error,
    ) -> shw_status {
        unsafe {
            (table().error_create.unwrap_unchecked())(code, message, message_size, details, detail_count, cause, out)
        }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_error_release(error: *mut shw_error) {
        unsafe { (table().error_release.unwrap_unchecked())(error) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_log_record_init(record: *mut shw_log_record, struct_size: u32) {
        unsafe { (table().log_record_init.unwrap_unchecked())(record, struct_size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_buffer_create(
        data: *const c_void,
        size: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().buffer_create.unwrap_unchecked())(data, size, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_buffer_create_parts(
        data: *const c_void,
        offsets: *const u64,
        part_count: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().buffer_create_parts.unwrap_unchecked())(data, offsets, part_count, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_buffer_data(buffer: *const shw_buffer) -> *const c_void {
        unsafe { (table().buffer_data.unwrap_unchecked())(buffer) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_buffer_size(buffer: *const shw_buffer) -> u64 {
        unsafe { (table().buffer_size.unwrap_unchecked())(buffer) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_buffer_part_count(buffer: *const shw_buffer) -> u64 {
        unsafe { (table().buffer_part_count.unwrap_unchecked())(buffer) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_buffer_part_offsets(buffer: *const shw_buffer) -> *const u64 {
        unsafe { (table().buffer_part_offsets.unwrap_unchecked())(buffer) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_buffer_part_data(buffer: *const shw_buffer, index: u64) -> *const c_void {
        unsafe { (table().buffer_part_data.unwrap_unchecked())(buffer, index) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_buffer_part_size(buffer: *const shw_buffer, index: u64) -> u64 {
        unsafe { (table().buffer_part_size.unwrap_unchecked())(buffer, index) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_buffer_release(buffer: *mut shw_buffer) {
        unsafe { (table().buffer_release.unwrap_unchecked())(buffer) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_tensor_init(tensor: *mut shw_tensor, struct_size: u32) {
        unsafe { (table().tensor_init.unwrap_unchecked())(tensor, struct_size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_tensor_check(tensor: *const shw_tensor, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().tensor_check.unwrap_unchecked())(tensor, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_tensor_from_dlpack(
        managed: *const DLManagedTensorVersioned,
        out: *mut shw_tensor,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().tensor_from_dlpack.unwrap_unchecked())(managed, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_tensor_from_dlpack_legacy(
        managed: *const DLManagedTensor,
        out: *mut shw_tensor,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().tensor_from_dlpack_legacy.unwrap_unchecked())(managed, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_dtype_name(code: u8, bits: u8) -> *const c_char {
        unsafe { (table().dtype_name.unwrap_unchecked())(code, bits) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_dtype_parse(name: *const c_char, out: *mut u32, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().dtype_parse.unwrap_unchecked())(name, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_dtype_byte_size(code: u8, bits: u8, element_count: u64) -> u64 {
        unsafe { (table().dtype_byte_size.unwrap_unchecked())(code, bits, element_count) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_owned_tensor_create(
        dtype_code: u8,
        dtype_bits: u8,
        shape: *const i64,
        ndim: i32,
        out: *mut *mut shw_owned_tensor,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().owned_tensor_create.unwrap_unchecked())(dtype_code, dtype_bits, shape, ndim, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_owned_tensor_describe(
        tensor: *const shw_owned_tensor,
        out: *mut shw_tensor,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().owned_tensor_describe.unwrap_unchecked())(tensor, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_owned_tensor_dlpack(
        tensor: *const shw_owned_tensor,
        out: *mut *mut DLManagedTensorVersioned,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().owned_tensor_dlpack.unwrap_unchecked())(tensor, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_owned_tensor_dlpack_legacy(
        tensor: *const shw_owned_tensor,
        out: *mut *mut DLManagedTensor,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().owned_tensor_dlpack_legacy.unwrap_unchecked())(tensor, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_owned_tensor_release(tensor: *mut shw_owned_tensor) {
        unsafe { (table().owned_tensor_release.unwrap_unchecked())(tensor) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_allocator_init(allocator: *mut shw_allocator, struct_size: u32) {
        unsafe { (table().allocator_init.unwrap_unchecked())(allocator, struct_size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_context_options_init(options: *mut shw_context_options, struct_size: u32) {
        unsafe { (table().context_options_init.unwrap_unchecked())(options, struct_size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_context_create(
        options: *const shw_context_options,
        out: *mut *mut shw_context,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().context_create.unwrap_unchecked())(options, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_context_shutdown(
        context: *mut shw_context,
        timeout_ns: i64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().context_shutdown.unwrap_unchecked())(context, timeout_ns, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_context_load_plugin(
        context: *mut shw_context,
        path: *const c_char,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().context_load_plugin.unwrap_unchecked())(context, path, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_context_plugins(
        context: *mut shw_context,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().context_plugins.unwrap_unchecked())(context, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_context_open_storage(
        context: *mut shw_context,
        plugin: *const c_char,
        config: *const c_char,
        config_size: u64,
        out: *mut *mut shw_storage,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().context_open_storage.unwrap_unchecked())(context, plugin, config, config_size, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_context_open_collective(
        context: *mut shw_context,
        plugin: *const c_char,
        config: *const c_char,
        config_size: u64,
        out: *mut *mut shw_collective,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().context_open_collective.unwrap_unchecked())(context, plugin, config, config_size, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_context_release(context: *mut shw_context) {
        unsafe { (table().context_release.unwrap_unchecked())(context) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_layout_spec_init(spec: *mut shw_layout_spec, struct_size: u32) {
        unsafe { (table().layout_spec_init.unwrap_unchecked())(spec, struct_size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_layout_create(
        spec: *const shw_layout_spec,
        out: *mut *mut shw_layout,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().layout_create.unwrap_unchecked())(spec, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_layout_rank_count(layout: *const shw_layout) -> u64 {
        unsafe { (table().layout_rank_count.unwrap_unchecked())(layout) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_layout_box_count(
        layout: *const shw_layout,
        shape: *const i64,
        ndim: i32,
        rank: i32,
        out: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().layout_box_count.unwrap_unchecked())(layout, shape, ndim, rank, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_layout_boxes(
        layout: *const shw_layout,
        shape: *const i64,
        ndim: i32,
        rank: i32,
        boxes: *mut i64,
        capacity: u64,
        size: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().layout_boxes.unwrap_unchecked())(layout, shape, ndim, rank, boxes, capacity, size, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_layout_release(layout: *mut shw_layout) {
        unsafe { (table().layout_release.unwrap_unchecked())(layout) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_storage_stat_init(stat: *mut shw_storage_stat, struct_size: u32) {
        unsafe { (table().storage_stat_init.unwrap_unchecked())(stat, struct_size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_storage_entry_init(entry: *mut shw_storage_entry, struct_size: u32) {
        unsafe { (table().storage_entry_init.unwrap_unchecked())(entry, struct_size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_storage_vtable_init(vtable: *mut shw_storage_vtable, struct_size: u32) {
        unsafe { (table().storage_vtable_init.unwrap_unchecked())(vtable, struct_size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_storage_create_posix(
        root: *const c_char,
        out: *mut *mut shw_storage,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().storage_create_posix.unwrap_unchecked())(root, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_storage_create_memory(out: *mut *mut shw_storage, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().storage_create_memory.unwrap_unchecked())(out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_storage_create(
        vtable: *const shw_storage_vtable,
        out: *mut *mut shw_storage,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().storage_create.unwrap_unchecked())(vtable, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_storage_name(storage: *const shw_storage, size: *mut u64) -> *const c_char {
        unsafe { (table().storage_name.unwrap_unchecked())(storage, size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_storage_capabilities(storage: *const shw_storage) -> u64 {
        unsafe { (table().storage_capabilities.unwrap_unchecked())(storage) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_storage_put(
        storage: *mut shw_storage,
        key: *const c_char,
        key_size: u64,
        data: *const c_void,
        size: u64,
        condition: i32,
        expected_version: u64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe {
            (table().storage_put.unwrap_unchecked())(
                storage,
                key,
                key_size,
                data,
                size,
                condition,
                expected_version,
                err,
            )
        }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_storage_read(
        storage: *mut shw_storage,
        key: *const c_char,
        key_size: u64,
        offset: u64,
        data: *mut c_void,
        size: u64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().storage_read.unwrap_unchecked())(storage, key, key_size, offset, data, size, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_storage_stat_key(
        storage: *mut shw_storage,
        key: *const c_char,
        key_size: u64,
        out: *mut shw_storage_stat,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().storage_stat_key.unwrap_unchecked())(storage, key, key_size, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_storage_list(
        storage: *mut shw_storage,
        prefix: *const c_char,
        prefix_size: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().storage_list.unwrap_unchecked())(storage, prefix, prefix_size, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_storage_remove(
        storage: *mut shw_storage,
        key: *const c_char,
        key_size: u64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().storage_remove.unwrap_unchecked())(storage, key, key_size, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_storage_release(storage: *mut shw_storage) {
        unsafe { (table().storage_release.unwrap_unchecked())(storage) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_call_init(call: *mut shw_collective_call, struct_size: u32) {
        unsafe { (table().collective_call_init.unwrap_unchecked())(call, struct_size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_vtable_init(vtable: *mut shw_collective_vtable, struct_size: u32) {
        unsafe { (table().collective_vtable_init.unwrap_unchecked())(vtable, struct_size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_create_single(out: *mut *mut shw_collective, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().collective_create_single.unwrap_unchecked())(out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_group_create(
        size: i32,
        out: *mut *mut shw_collective_group,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().collective_group_create.unwrap_unchecked())(size, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_group_member(
        group: *mut shw_collective_group,
        rank: i32,
        out: *mut *mut shw_collective,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().collective_group_member.unwrap_unchecked())(group, rank, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_group_release(group: *mut shw_collective_group) {
        unsafe { (table().collective_group_release.unwrap_unchecked())(group) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_create(
        vtable: *const shw_collective_vtable,
        out: *mut *mut shw_collective,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().collective_create.unwrap_unchecked())(vtable, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_rank(collective: *const shw_collective) -> i32 {
        unsafe { (table().collective_rank.unwrap_unchecked())(collective) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_size(collective: *const shw_collective) -> i32 {
        unsafe { (table().collective_size.unwrap_unchecked())(collective) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_name(collective: *const shw_collective, size: *mut u64) -> *const c_char {
        unsafe { (table().collective_name.unwrap_unchecked())(collective, size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_barrier(
        collective: *mut shw_collective,
        call: *const shw_collective_call,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().collective_barrier.unwrap_unchecked())(collective, call, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_broadcast(
        collective: *mut shw_collective,
        call: *const shw_collective_call,
        data: *mut c_void,
        size: u64,
        root: i32,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().collective_broadcast.unwrap_unchecked())(collective, call, data, size, root, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_all_gather(
        collective: *mut shw_collective,
        call: *const shw_collective_call,
        data: *const c_void,
        size: u64,
        gathered: *mut c_void,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().collective_all_gather.unwrap_unchecked())(collective, call, data, size, gathered, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_all_gather_v(
        collective: *mut shw_collective,
        call: *const shw_collective_call,
        data: *const c_void,
        size: u64,
        gathered: *mut c_void,
        sizes: *const u64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe {
            (table().collective_all_gather_v.unwrap_unchecked())(collective, call, data, size, gathered, sizes, err)
        }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_all_reduce_i64(
        collective: *mut shw_collective,
        call: *const shw_collective_call,
        values: *mut i64,
        count: u64,
        operation: i32,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe {
            (table().collective_all_reduce_i64.unwrap_unchecked())(collective, call, values, count, operation, err)
        }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_abort(
        collective: *mut shw_collective,
        code: shw_status,
        message: *const c_char,
        message_size: u64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().collective_abort.unwrap_unchecked())(collective, code, message, message_size, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_release(collective: *mut shw_collective) {
        unsafe { (table().collective_release.unwrap_unchecked())(collective) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_report_summary_init(summary: *mut shw_report_summary, struct_size: u32) {
        unsafe { (table().report_summary_init.unwrap_unchecked())(summary, struct_size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_report_json(report: *const shw_report, size: *mut u64) -> *const c_char {
        unsafe { (table().report_json.unwrap_unchecked())(report, size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_report_summarize(
        report: *const shw_report,
        out: *mut shw_report_summary,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().report_summarize.unwrap_unchecked())(report, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_report_name_count(report: *const shw_report, list: i32) -> u64 {
        unsafe { (table().report_name_count.unwrap_unchecked())(report, list) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_report_name(report: *const shw_report, list: i32, index: u64, size: *mut u64) -> *const c_char {
        unsafe { (table().report_name.unwrap_unchecked())(report, list, index, size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_report_release(report: *mut shw_report) {
        unsafe { (table().report_release.unwrap_unchecked())(report) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_progress_init(progress: *mut shw_progress, struct_size: u32) {
        unsafe { (table().progress_init.unwrap_unchecked())(progress, struct_size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_job_wait(job: *mut shw_job, timeout_ns: i64, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().job_wait.unwrap_unchecked())(job, timeout_ns, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_job_wait_staged(job: *mut shw_job, timeout_ns: i64, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().job_wait_staged.unwrap_unchecked())(job, timeout_ns, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_job_poll(job: *const shw_job) -> i32 {
        unsafe { (table().job_poll.unwrap_unchecked())(job) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_job_progress(
        job: *const shw_job,
        out: *mut shw_progress,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().job_progress.unwrap_unchecked())(job, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_job_cancel(job: *mut shw_job) {
        unsafe { (table().job_cancel.unwrap_unchecked())(job) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_job_error(job: *const shw_job) -> *const shw_error {
        unsafe { (table().job_error.unwrap_unchecked())(job) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_job_report(
        job: *const shw_job,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().job_report.unwrap_unchecked())(job, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_job_release(job: *mut shw_job) {
        unsafe { (table().job_release.unwrap_unchecked())(job) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plan_item_init(item: *mut shw_plan_item, struct_size: u32) {
        unsafe { (table().plan_item_init.unwrap_unchecked())(item, struct_size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plan_validate(data: *const c_void, size: u64, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().plan_validate.unwrap_unchecked())(data, size, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plan_findings(
        data: *const c_void,
        size: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().plan_findings.unwrap_unchecked())(data, size, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plan_create(
        data: *const c_void,
        size: u64,
        out: *mut *mut shw_plan,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().plan_create.unwrap_unchecked())(data, size, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plan_kind(plan: *const shw_plan) -> i32 {
        unsafe { (table().plan_kind.unwrap_unchecked())(plan) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plan_rank(plan: *const shw_plan) -> i32 {
        unsafe { (table().plan_rank.unwrap_unchecked())(plan) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plan_data(plan: *const shw_plan) -> *const c_void {
        unsafe { (table().plan_data.unwrap_unchecked())(plan) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plan_size(plan: *const shw_plan) -> u64 {
        unsafe { (table().plan_size.unwrap_unchecked())(plan) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plan_item_count(plan: *const shw_plan) -> u64 {
        unsafe { (table().plan_item_count.unwrap_unchecked())(plan) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plan_item_at(
        plan: *const shw_plan,
        index: u64,
        out: *mut shw_plan_item,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().plan_item_at.unwrap_unchecked())(plan, index, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plan_json(
        plan: *const shw_plan,
        item_limit: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().plan_json.unwrap_unchecked())(plan, item_limit, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plan_release(plan: *mut shw_plan) {
        unsafe { (table().plan_release.unwrap_unchecked())(plan) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_tensor_batch_init(batch: *mut shw_tensor_batch, struct_size: u32) {
        unsafe { (table().tensor_batch_init.unwrap_unchecked())(batch, struct_size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_object_batch_init(batch: *mut shw_object_batch, struct_size: u32) {
        unsafe { (table().object_batch_init.unwrap_unchecked())(batch, struct_size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_create(out: *mut *mut shw_state, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().state_create.unwrap_unchecked())(out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_add_tensors(
        state: *mut shw_state,
        batch: *const shw_tensor_batch,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().state_add_tensors.unwrap_unchecked())(state, batch, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_add_dlpack(
        state: *mut shw_state,
        batch: *const shw_tensor_batch,
        managed: *const *mut DLManagedTensorVersioned,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().state_add_dlpack.unwrap_unchecked())(state, batch, managed, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_add_dlpack_legacy(
        state: *mut shw_state,
        batch: *const shw_tensor_batch,
        managed: *const *mut DLManagedTensor,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().state_add_dlpack_legacy.unwrap_unchecked())(state, batch, managed, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_add_objects(
        state: *mut shw_state,
        batch: *const shw_object_batch,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().state_add_objects.unwrap_unchecked())(state, batch, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_tensor_count(state: *const shw_state) -> u64 {
        unsafe { (table().state_tensor_count.unwrap_unchecked())(state) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_object_count(state: *const shw_state) -> u64 {
        unsafe { (table().state_object_count.unwrap_unchecked())(state) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_tensor_name(state: *const shw_state, index: u64, size: *mut u64) -> *const c_char {
        unsafe { (table().state_tensor_name.unwrap_unchecked())(state, index, size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_tensor_path(state: *const shw_state, index: u64, size: *mut u64) -> *const c_char {
        unsafe { (table().state_tensor_path.unwrap_unchecked())(state, index, size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_tensor(
        state: *const shw_state,
        index: u64,
        out: *mut shw_tensor,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().state_tensor.unwrap_unchecked())(state, index, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_object_name(state: *const shw_state, index: u64, size: *mut u64) -> *const c_char {
        unsafe { (table().state_object_name.unwrap_unchecked())(state, index, size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_object_path(state: *const shw_state, index: u64, size: *mut u64) -> *const c_char {
        unsafe { (table().state_object_path.unwrap_unchecked())(state, index, size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_object_content_type(state: *const shw_state, index: u64, size: *mut u64) -> *const c_char {
        unsafe { (table().state_object_content_type.unwrap_unchecked())(state, index, size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_object_data(state: *const shw_state, index: u64, size: *mut u64) -> *const c_void {
        unsafe { (table().state_object_data.unwrap_unchecked())(state, index, size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_find_tensor(
        state: *const shw_state,
        name: *const c_char,
        name_size: u64,
        out: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().state_find_tensor.unwrap_unchecked())(state, name, name_size, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_find_object(
        state: *const shw_state,
        name: *const c_char,
        name_size: u64,
        out: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().state_find_object.unwrap_unchecked())(state, name, name_size, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_release(state: *mut shw_state) {
        unsafe { (table().state_release.unwrap_unchecked())(state) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_save_options_init(options: *mut shw_save_options, struct_size: u32) {
        unsafe { (table().save_options_init.unwrap_unchecked())(options, struct_size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_save(
        context: *mut shw_context,
        state: *const shw_state,
        storage: *mut shw_storage,
        path: *const c_char,
        collective: *mut shw_collective,
        options: *const shw_save_options,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().save.unwrap_unchecked())(context, state, storage, path, collective, options, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_save_async(
        context: *mut shw_context,
        state: *const shw_state,
        storage: *mut shw_storage,
        path: *const c_char,
        collective: *mut shw_collective,
        options: *const shw_save_options,
        out: *mut *mut shw_job,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().save_async.unwrap_unchecked())(context, state, storage, path, collective, options, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_save_planner_create(
        context: *mut shw_context,
        state: *const shw_state,
        rank: i32,
        world_size: i32,
        options: *const shw_save_options,
        out: *mut *mut shw_save_planner,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().save_planner_create.unwrap_unchecked())(context, state, rank, world_size, options, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_save_planner_local_plan(
        planner: *mut shw_save_planner,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().save_planner_local_plan.unwrap_unchecked())(planner, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_save_planner_global_plan(
        planner: *mut shw_save_planner,
        storage: *mut shw_storage,
        path: *const c_char,
        plans: *const c_void,
        plan_offsets: *const u64,
        plan_count: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe {
            (table().save_planner_global_plan.unwrap_unchecked())(
                planner,
                storage,
                path,
                plans,
                plan_offsets,
                plan_count,
                out,
                err,
            )
        }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_save_planner_finish(
        planner: *mut shw_save_planner,
        plan: *const c_void,
        plan_size: u64,
        out: *mut *mut shw_plan,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().save_planner_finish.unwrap_unchecked())(planner, plan, plan_size, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_save_execute(
        planner: *mut shw_save_planner,
        plan: *const shw_plan,
        storage: *mut shw_storage,
        path: *const c_char,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().save_execute.unwrap_unchecked())(planner, plan, storage, path, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_save_commit(
        planner: *mut shw_save_planner,
        results: *const c_void,
        result_offsets: *const u64,
        result_count: u64,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().save_commit.unwrap_unchecked())(planner, results, result_offsets, result_count, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_save_planner_release(planner: *mut shw_save_planner) {
        unsafe { (table().save_planner_release.unwrap_unchecked())(planner) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_options_init(options: *mut shw_checkpoint_options, struct_size: u32) {
        unsafe { (table().checkpoint_options_init.unwrap_unchecked())(options, struct_size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_open(
        context: *mut shw_context,
        storage: *mut shw_storage,
        path: *const c_char,
        options: *const shw_checkpoint_options,
        out: *mut *mut shw_checkpoint,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().checkpoint_open.unwrap_unchecked())(context, storage, path, options, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_format(checkpoint: *const shw_checkpoint, size: *mut u64) -> *const c_char {
        unsafe { (table().checkpoint_format.unwrap_unchecked())(checkpoint, size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_generation(checkpoint: *const shw_checkpoint, size: *mut u64) -> *const c_char {
        unsafe { (table().checkpoint_generation.unwrap_unchecked())(checkpoint, size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_world_size(checkpoint: *const shw_checkpoint) -> i32 {
        unsafe { (table().checkpoint_world_size.unwrap_unchecked())(checkpoint) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_created_ns(checkpoint: *const shw_checkpoint) -> i64 {
        unsafe { (table().checkpoint_created_ns.unwrap_unchecked())(checkpoint) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_metadata_count(checkpoint: *const shw_checkpoint) -> u64 {
        unsafe { (table().checkpoint_metadata_count.unwrap_unchecked())(checkpoint) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_metadata_key(
        checkpoint: *const shw_checkpoint,
        index: u64,
        size: *mut u64,
    ) -> *const c_char {
        unsafe { (table().checkpoint_metadata_key.unwrap_unchecked())(checkpoint, index, size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_metadata_value(
        checkpoint: *const shw_checkpoint,
        index: u64,
        size: *mut u64,
    ) -> *const c_char {
        unsafe { (table().checkpoint_metadata_value.unwrap_unchecked())(checkpoint, index, size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_info(
        checkpoint: *const shw_checkpoint,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().checkpoint_info.unwrap_unchecked())(checkpoint, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_verify(
        checkpoint: *const shw_checkpoint,
        flags: u64,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().checkpoint_verify.unwrap_unchecked())(checkpoint, flags, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_gc(
        context: *mut shw_context,
        storage: *mut shw_storage,
        path: *const c_char,
        grace_ns: i64,
        flags: u64,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().checkpoint_gc.unwrap_unchecked())(context, storage, path, grace_ns, flags, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_list_steps(
        context: *mut shw_context,
        storage: *mut shw_storage,
        path: *const c_char,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().checkpoint_list_steps.unwrap_unchecked())(context, storage, path, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_release(checkpoint: *mut shw_checkpoint) {
        unsafe { (table().checkpoint_release.unwrap_unchecked())(checkpoint) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_tensor_info_init(info: *mut shw_tensor_info, struct_size: u32) {
        unsafe { (table().tensor_info_init.unwrap_unchecked())(info, struct_size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_chunk_info_init(info: *mut shw_chunk_info, struct_size: u32) {
        unsafe { (table().chunk_info_init.unwrap_unchecked())(info, struct_size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_box_batch_init(batch: *mut shw_box_batch, struct_size: u32) {
        unsafe { (table().box_batch_init.unwrap_unchecked())(batch, struct_size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_tensor_count(checkpoint: *const shw_checkpoint) -> u64 {
        unsafe { (table().checkpoint_tensor_count.unwrap_unchecked())(checkpoint) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_tensor_name(
        checkpoint: *const shw_checkpoint,
        index: u64,
        size: *mut u64,
    ) -> *const c_char {
        unsafe { (table().checkpoint_tensor_name.unwrap_unchecked())(checkpoint, index, size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_tensor_path(
        checkpoint: *const shw_checkpoint,
        index: u64,
        size: *mut u64,
    ) -> *const c_char {
        unsafe { (table().checkpoint_tensor_path.unwrap_unchecked())(checkpoint, index, size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_tensor_shape(checkpoint: *const shw_checkpoint, index: u64) -> *const i64 {
        unsafe { (table().checkpoint_tensor_shape.unwrap_unchecked())(checkpoint, index) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_tensor_infos(
        checkpoint: *const shw_checkpoint,
        first: u64,
        count: u64,
        infos: *mut shw_tensor_info,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().checkpoint_tensor_infos.unwrap_unchecked())(checkpoint, first, count, infos, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_tensor_names(
        checkpoint: *const shw_checkpoint,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().checkpoint_tensor_names.unwrap_unchecked())(checkpoint, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_find_tensor(
        checkpoint: *const shw_checkpoint,
        name: *const c_char,
        name_size: u64,
        rank: i32,
        out: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().checkpoint_find_tensor.unwrap_unchecked())(checkpoint, name, name_size, rank, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_chunk_count(checkpoint: *const shw_checkpoint) -> u64 {
        unsafe { (table().checkpoint_chunk_count.unwrap_unchecked())(checkpoint) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_chunk_infos(
        checkpoint: *const shw_checkpoint,
        first: u64,
        count: u64,
        infos: *mut shw_chunk_info,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().checkpoint_chunk_infos.unwrap_unchecked())(checkpoint, first, count, infos, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_chunk_box(
        checkpoint: *const shw_checkpoint,
        index: u64,
        r#box: *mut i64,
        capacity: u64,
        size: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().checkpoint_chunk_box.unwrap_unchecked())(checkpoint, index, r#box, capacity, size, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_object_count(checkpoint: *const shw_checkpoint) -> u64 {
        unsafe { (table().checkpoint_object_count.unwrap_unchecked())(checkpoint) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_object_name(
        checkpoint: *const shw_checkpoint,
        index: u64,
        size: *mut u64,
    ) -> *const c_char {
        unsafe { (table().checkpoint_object_name.unwrap_unchecked())(checkpoint, index, size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_object_path(
        checkpoint: *const shw_checkpoint,
        index: u64,
        size: *mut u64,
    ) -> *const c_char {
        unsafe { (table().checkpoint_object_path.unwrap_unchecked())(checkpoint, index, size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_object_content_type(
        checkpoint: *const shw_checkpoint,
        index: u64,
        size: *mut u64,
    ) -> *const c_char {
        unsafe { (table().checkpoint_object_content_type.unwrap_unchecked())(checkpoint, index, size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_object_size(checkpoint: *const shw_checkpoint, index: u64) -> u64 {
        unsafe { (table().checkpoint_object_size.unwrap_unchecked())(checkpoint, index) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_object_rank(checkpoint: *const shw_checkpoint, index: u64) -> i32 {
        unsafe { (table().checkpoint_object_rank.unwrap_unchecked())(checkpoint, index) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_object_names(
        checkpoint: *const shw_checkpoint,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().checkpoint_object_names.unwrap_unchecked())(checkpoint, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_find_object(
        checkpoint: *const shw_checkpoint,
        name: *const c_char,
        name_size: u64,
        rank: i32,
        out: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().checkpoint_find_object.unwrap_unchecked())(checkpoint, name, name_size, rank, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_read_objects(
        checkpoint: *const shw_checkpoint,
        indices: *const u64,
        count: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().checkpoint_read_objects.unwrap_unchecked())(checkpoint, indices, count, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_file_count(checkpoint: *const shw_checkpoint) -> u64 {
        unsafe { (table().checkpoint_file_count.unwrap_unchecked())(checkpoint) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_file_name(
        checkpoint: *const shw_checkpoint,
        index: u64,
        size: *mut u64,
    ) -> *const c_char {
        unsafe { (table().checkpoint_file_name.unwrap_unchecked())(checkpoint, index, size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_file_size(checkpoint: *const shw_checkpoint, index: u64) -> u64 {
        unsafe { (table().checkpoint_file_size.unwrap_unchecked())(checkpoint, index) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_read_boxes(
        checkpoint: *const shw_checkpoint,
        batch: *const shw_box_batch,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().checkpoint_read_boxes.unwrap_unchecked())(checkpoint, batch, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_read_tensor(
        checkpoint: *const shw_checkpoint,
        index: u64,
        box_offsets: *const i64,
        box_sizes: *const i64,
        ndim: i32,
        out: *mut *mut shw_owned_tensor,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe {
            (table().checkpoint_read_tensor.unwrap_unchecked())(
                checkpoint,
                index,
                box_offsets,
                box_sizes,
                ndim,
                out,
                err,
            )
        }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_digests(
        checkpoint: *const shw_checkpoint,
        indices: *const u64,
        count: u64,
        algorithm: i32,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().checkpoint_digests.unwrap_unchecked())(checkpoint, indices, count, algorithm, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_load_options_init(options: *mut shw_load_options, struct_size: u32) {
        unsafe { (table().load_options_init.unwrap_unchecked())(options, struct_size) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_load(
        context: *mut shw_context,
        state: *mut shw_state,
        storage: *mut shw_storage,
        path: *const c_char,
        collective: *mut shw_collective,
        options: *const shw_load_options,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().load.unwrap_unchecked())(context, state, storage, path, collective, options, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_load_async(
        context: *mut shw_context,
        state: *mut shw_state,
        storage: *mut shw_storage,
        path: *const c_char,
        collective: *mut shw_collective,
        options: *const shw_load_options,
        out: *mut *mut shw_job,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().load_async.unwrap_unchecked())(context, state, storage, path, collective, options, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_load_planner_create(
        checkpoint: *const shw_checkpoint,
        state: *mut shw_state,
        rank: i32,
        options: *const shw_load_options,
        out: *mut *mut shw_load_planner,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().load_planner_create.unwrap_unchecked())(checkpoint, state, rank, options, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_load_planner_local_plan(
        planner: *mut shw_load_planner,
        out: *mut *mut shw_plan,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().load_planner_local_plan.unwrap_unchecked())(planner, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_load_execute(
        planner: *mut shw_load_planner,
        plan: *const shw_plan,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().load_execute.unwrap_unchecked())(planner, plan, out, err) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_load_planner_release(planner: *mut shw_load_planner) {
        unsafe { (table().load_planner_release.unwrap_unchecked())(planner) }
    }

    /// See the C header.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plugin_init(plugin: *mut shw_plugin, struct_size: u32) {
        unsafe { (table().plugin_init.unwrap_unchecked())(plugin, struct_size) }
    }
}
