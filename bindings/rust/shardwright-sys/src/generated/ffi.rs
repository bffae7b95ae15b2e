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
pub struct shw_layout {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct shw_state {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct shw_mapping {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct shw_plan {
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
pub struct shw_cancellation {
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
pub struct shw_context {
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

#[repr(C)]
pub struct shw_load_exchange {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct shw_job_description {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct shw_global_plan {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct shw_communicator {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct shw_communicator_group {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct shw_work {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct shw_device {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct shw_hsdp_mesh {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct shw_hsdp {
    _data: [u8; 0],
    _marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[repr(C)]
pub struct shw_hsdp_unit {
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
pub const SHW_BOOL: i32 = 1;
pub const SHW_INT8: i32 = 2;
pub const SHW_INT16: i32 = 3;
pub const SHW_INT32: i32 = 4;
pub const SHW_INT64: i32 = 5;
pub const SHW_UINT8: i32 = 6;
pub const SHW_UINT16: i32 = 7;
pub const SHW_UINT32: i32 = 8;
pub const SHW_UINT64: i32 = 9;
pub const SHW_FLOAT16: i32 = 10;
pub const SHW_BFLOAT16: i32 = 11;
pub const SHW_FLOAT32: i32 = 12;
pub const SHW_FLOAT64: i32 = 13;
pub const SHW_COMPLEX32: i32 = 14;
pub const SHW_COMPLEX64: i32 = 15;
pub const SHW_COMPLEX128: i32 = 16;
pub const SHW_FLOAT8_E3M4: i32 = 17;
pub const SHW_FLOAT8_E4M3: i32 = 18;
pub const SHW_FLOAT8_E4M3B11FNUZ: i32 = 19;
pub const SHW_FLOAT8_E4M3FN: i32 = 20;
pub const SHW_FLOAT8_E4M3FNUZ: i32 = 21;
pub const SHW_FLOAT8_E5M2: i32 = 22;
pub const SHW_FLOAT8_E5M2FNUZ: i32 = 23;
pub const SHW_FLOAT8_E8M0FNU: i32 = 24;
pub const SHW_FLOAT6_E2M3FN: i32 = 25;
pub const SHW_FLOAT6_E3M2FN: i32 = 26;
pub const SHW_FLOAT4_E2M1FN: i32 = 27;
pub const SHW_INT4: i32 = 28;
pub const SHW_UINT4: i32 = 29;
pub const SHW_TENSOR_SIZE_V1: u32 = 96;
pub const SHW_PLACEMENT_REPLICATE: i32 = 0;
pub const SHW_PLACEMENT_SHARD: i32 = 1;
pub const SHW_PLACEMENT_STRIDED_SHARD: i32 = 2;
pub const SHW_PLACEMENT_PARTIAL: i32 = 3;
pub const SHW_PLACEMENT_FLAT: i32 = 4;
pub const SHW_LAYOUT_SPEC_SIZE_V1: u32 = 80;
pub const SHW_MEGATRON_NAME: &core::ffi::CStr = c"megatron";
pub const SHW_MEGATRON_VERSION: u64 = 1;
pub const SHW_GRID_FLAT: u64 = 1;
pub const SHW_GRID_SHAPE_MAY_DIFFER: u64 = 2;
pub const SHW_GRID_SHARD_SIZE_V1: u32 = 64;
pub const SHW_KIND_AUTO: i32 = 0;
pub const SHW_KIND_REPLICATED: i32 = 1;
pub const SHW_KIND_SHARDED: i32 = 2;
pub const SHW_KIND_RANK_LOCAL: i32 = 3;
pub const SHW_TENSOR_BATCH_SIZE_V1: u32 = 144;
pub const SHW_OBJECT_BATCH_SIZE_V1: u32 = 88;
pub const SHW_MAPPING_SPEC_SIZE_V1: u32 = 64;
pub const SHW_PLAN_LOCAL_SAVE: i32 = 1;
pub const SHW_PLAN_WRITE_LIST: i32 = 2;
pub const SHW_PLAN_LOAD: i32 = 3;
pub const SHW_PLAN_WRITE_RESULT: i32 = 4;
pub const SHW_PLAN_MERGED_SAVE: i32 = 5;
pub const SHW_PLAN_DESCRIPTION: i32 = 6;
pub const SHW_PLAN_LOCAL_PART: i32 = 7;
pub const SHW_PLAN_WANT_LIST: i32 = 8;
pub const SHW_PLAN_EXCHANGE: i32 = 9;
pub const SHW_PLAN_ITEM_OBJECT: u64 = 1;
pub const SHW_PLAN_ITEM_SIZE_V1: u32 = 32;
pub const SHW_REPORT_LOADED: i32 = 0;
pub const SHW_REPORT_MISSING: i32 = 1;
pub const SHW_REPORT_UNEXPECTED: i32 = 2;
pub const SHW_REPORT_CAST: i32 = 3;
pub const SHW_REPORT_FINDING: i32 = 4;
pub const SHW_REPORT_REMOVED: i32 = 5;
pub const SHW_REPORT_SHAPE: i32 = 6;
pub const SHW_REPORT_NOT_DURABLE: u64 = 1;
pub const SHW_REPORT_WITHOUT_DIGESTS: u64 = 2;
pub const SHW_REPORT_UNVERIFIED: u64 = 4;
pub const SHW_REPORT_SUMMARY_SIZE_V1: u32 = 136;
pub const SHW_JOB_QUEUED: i32 = 0;
pub const SHW_JOB_RUNNING: i32 = 1;
pub const SHW_JOB_STAGED: i32 = 2;
pub const SHW_JOB_SUCCEEDED: i32 = 3;
pub const SHW_JOB_FAILED: i32 = 4;
pub const SHW_JOB_CANCELLED: i32 = 5;
pub const SHW_PROGRESS_SIZE_V1: u32 = 64;
pub const SHW_STORAGE_READ: i32 = 0;
pub const SHW_STORAGE_CREATE: i32 = 1;
pub const SHW_STORAGE_CREATE_VISIBLE: i32 = 2;
pub const SHW_STORAGE_UPDATE: i32 = 3;
pub const SHW_COMMIT_NONE: i32 = 0;
pub const SHW_COMMIT_IF_ABSENT: i32 = 1;
pub const SHW_COMMIT_IF_VERSION: i32 = 2;
pub const SHW_LOCK_SHARED: i32 = 0;
pub const SHW_LOCK_EXCLUSIVE: i32 = 1;
pub const SHW_STORAGE_POSITIONAL_WRITE: u64 = 1;
pub const SHW_STORAGE_ATOMIC_COMMIT: u64 = 2;
pub const SHW_STORAGE_CONDITIONAL_COMMIT: u64 = 4;
pub const SHW_STORAGE_CONCURRENT_READ: u64 = 8;
pub const SHW_STORAGE_DIRECT_IO: u64 = 16;
pub const SHW_STORAGE_MULTIPART: u64 = 32;
pub const SHW_STORAGE_DURABLE: u64 = 64;
pub const SHW_STORAGE_NO_DELIMITER: i32 = 0;
pub const SHW_STORAGE_DELIMITER: i32 = 47;
pub const SHW_STORAGE_ENTRY_SIZE_V1: u32 = 56;
pub const SHW_STORAGE_VTABLE_SIZE_V1: u32 = 192;
pub const SHW_STORAGE_STAT_SIZE_V1: u32 = 24;
pub const SHW_REDUCE_MIN: i32 = 0;
pub const SHW_REDUCE_MAX: i32 = 1;
pub const SHW_REDUCE_SUM: i32 = 2;
pub const SHW_COLLECTIVE_CALL_SIZE_V1: u32 = 40;
pub const SHW_COLLECTIVE_VTABLE_SIZE_V1: u32 = 160;
pub const SHW_CALL_SAVE: i32 = 0;
pub const SHW_CALL_LOAD: i32 = 1;
pub const SHW_ALLOCATOR_SIZE_V1: u32 = 32;
pub const SHW_CONTEXT_OPTIONS_SIZE_V1: u32 = 56;
pub const SHW_OVERWRITE_REPLACE: i32 = 0;
pub const SHW_OVERWRITE_REFUSE: i32 = 1;
pub const SHW_DURABILITY_FULL: i32 = 0;
pub const SHW_DURABILITY_NONE: i32 = 1;
pub const SHW_DIGESTS_ON: i32 = 0;
pub const SHW_DIGESTS_OFF: i32 = 1;
pub const SHW_HOLD_OFF: i32 = 0;
pub const SHW_HOLD_ON: i32 = 1;
pub const SHW_PRIORITY_NORMAL: i32 = 0;
pub const SHW_PRIORITY_BACKGROUND: i32 = 1;
pub const SHW_OWNER_BALANCED: i32 = 0;
pub const SHW_OWNER_LOWEST_RANK: i32 = 1;
pub const SHW_OWNER_EXACT: i32 = 2;
pub const SHW_OWNER_ALL: i32 = 3;
pub const SHW_VERIFY_REPLICAS_AUTO: i32 = 0;
pub const SHW_VERIFY_REPLICAS_ALL: i32 = 1;
pub const SHW_VERIFY_REPLICAS_OFF: i32 = 2;
pub const SHW_COMMON_FILE: i32 = 0;
pub const SHW_COMMON_OBJECT: i32 = 1;
pub const SHW_INTEGRITY_OFF: i32 = 0;
pub const SHW_INTEGRITY_SHA256: i32 = 1;
pub const SHW_FORMAT_AUTO: i32 = 0;
pub const SHW_FORMAT_NATIVE: i32 = 1;
pub const SHW_FORMAT_TORCH_DCP: i32 = 2;
pub const SHW_FORMAT_SAFETENSORS: i32 = 3;
pub const SHW_FORMAT_MEGATRON: i32 = 4;
pub const SHW_PRESET_NATIVE: i32 = 0;
pub const SHW_PRESET_HYPERPARALLEL: i32 = 1;
pub const SHW_PRESET_TORCH: i32 = 2;
pub const SHW_PRESET_MEGATRON: i32 = 3;
pub const SHW_SAVE_OPTIONS_SIZE_V1: u32 = 128;
pub const SHW_VERIFY_ON_READ: i32 = 0;
pub const SHW_VERIFY_OFF: i32 = 1;
pub const SHW_READ_PATH_AUTO: i32 = 0;
pub const SHW_READ_PATH_DIRECT: i32 = 1;
pub const SHW_READ_PATH_BUFFERED: i32 = 2;
pub const SHW_VERIFY_DEEP: u64 = 1;
pub const SHW_GC_APPLY: u64 = 1;
pub const SHW_REMOVE_APPLY: u64 = 1;
pub const SHW_REMOVE_WHOLE_PARTS: u64 = 2;
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
pub const SHW_SHAPE_ERROR: i32 = 0;
pub const SHW_SHAPE_CROP_AND_PAD: i32 = 1;
pub const SHW_EXCHANGE_AUTO: i32 = 0;
pub const SHW_EXCHANGE_OFF: i32 = 1;
pub const SHW_EXCHANGE_ALWAYS: i32 = 2;
pub const SHW_LOAD_OPTIONS_SIZE_V1: u32 = 96;
pub const SHW_EXCHANGE_ROUND_SIZE_V1: u32 = 64;
pub const SHW_CONVERT_WITHOUT_COMPARISON: u64 = 1;
pub const SHW_CONVERT_OPTIONS_SIZE_V1: u32 = 64;
pub const SHW_RESHARD_WITHOUT_COMPARISON: u64 = 1;
pub const SHW_RESHARD_DRY_RUN: u64 = 2;
pub const SHW_OPTIMIZER_FULLY_RESHARDABLE: i32 = 0;
pub const SHW_OPTIMIZER_DP_RESHARDABLE: i32 = 1;
pub const SHW_RESHARD_OPTIONS_SIZE_V1: u32 = 88;
pub const SHW_COVER_FULL: i32 = 0;
pub const SHW_COVER_DISJOINT: i32 = 1;
pub const SHW_COVER_OFF: i32 = 2;
pub const SHW_MATCH_BY_WANTED: i32 = 0;
pub const SHW_MATCH_BY_SWEEP: i32 = 1;
pub const SHW_MATCH_FIRST_REPLICA: u64 = 1;
pub const SHW_MATCH_RANK: u64 = 2;
pub const SHW_NOT_KEPT: u64 = 4294967295;
pub const SHW_ENTRY_BATCH_SIZE_V1: u32 = 160;
pub const SHW_DESCRIBE_OPTIONS_SIZE_V1: u32 = 72;
pub const SHW_MERGE_OPTIONS_SIZE_V1: u32 = 32;
pub const SHW_MATCH_OPTIONS_SIZE_V1: u32 = 32;
pub const SHW_ESTIMATE_EXCHANGE_OFF: i32 = 0;
pub const SHW_ESTIMATE_EXCHANGE_ALWAYS: i32 = 1;
pub const SHW_ESTIMATE_WITH_PLAN: u64 = 1;
pub const SHW_ESTIMATE_WITH_CHUNKS: u64 = 2;
pub const SHW_ESTIMATE_OPTIONS_SIZE_V1: u32 = 48;
pub const SHW_REDUCTION_SUM: i32 = 0;
pub const SHW_REDUCTION_AVERAGE: i32 = 1;
pub const SHW_REDUCTION_SCALED_SUM: i32 = 2;
pub const SHW_REDUCTION_MAX: i32 = 3;
pub const SHW_REDUCTION_MIN: i32 = 4;
pub const SHW_COMMUNICATOR_AVERAGE: i32 = 1;
pub const SHW_COMMUNICATOR_SCALED_SUM: i32 = 2;
pub const SHW_COMMUNICATOR_IN_PLACE_ALL_GATHER: i32 = 4;
pub const SHW_COMMUNICATOR_ORDERED_SUM: i32 = 8;
pub const SHW_COMMUNICATOR_UNEVEN: i32 = 16;
pub const SHW_COMMUNICATOR_HOST_MEMORY: i32 = 32;
pub const SHW_COMMUNICATOR_DEVICE_MEMORY: i32 = 64;
pub const SHW_COMMUNICATOR_REGISTERED_MEMORY: i32 = 128;
pub const SHW_COMMUNICATOR_ASYNC: i32 = 256;
pub const SHW_COMMUNICATOR_CALL_SIZE_V1: u32 = 72;
pub const SHW_COMMUNICATOR_VTABLE_SIZE_V1: u32 = 160;
pub const SHW_COPY_HOST_TO_DEVICE: i32 = 0;
pub const SHW_COPY_DEVICE_TO_HOST: i32 = 1;
pub const SHW_COPY_DEVICE_TO_DEVICE: i32 = 2;
pub const SHW_ELEMENT_COPY_ADD: u64 = 1;
pub const SHW_DEVICE_IS_HOST: u64 = 1;
pub const SHW_ELEMENT_COPY_SIZE_V1: u32 = 72;
pub const SHW_DEVICE_VTABLE_SIZE_V1: u32 = 176;
pub const SHW_HSDP_LANE_GATHER: i32 = 0;
pub const SHW_HSDP_LANE_REDUCE: i32 = 1;
pub const SHW_HSDP_LANE_SECONDARY: i32 = 2;
pub const SHW_HSDP_UNORDERED: u64 = 1;
pub const SHW_HSDP_REQUIRES_GRADIENT_SYNC: i32 = 0;
pub const SHW_HSDP_REQUIRES_ALL_REDUCE: i32 = 1;
pub const SHW_HSDP_RESHARD_AFTER_FORWARD: i32 = 2;
pub const SHW_HSDP_SECONDARY_SIZE: i32 = 3;
pub const SHW_HSDP_RESHARD_AFTER_BACKWARD: i32 = 4;
pub const SHW_HSDP_REDUCE_OP: i32 = 5;
pub const SHW_HSDP_UNSHARD_IN_BACKWARD: i32 = 6;
pub const SHW_HSDP_KEEP_UNSHARDED: i32 = 7;
pub const SHW_HSDP_UNUSED_POLICY: i32 = 8;
pub const SHW_HSDP_DIVIDE_FACTOR: i32 = 9;
pub const SHW_HSDP_FORWARD_PREFETCH: i32 = 10;
pub const SHW_HSDP_BACKWARD_PREFETCH: i32 = 11;
pub const SHW_HSDP_MAX_INFLIGHT_REDUCE: i32 = 12;
pub const SHW_HSDP_PREFETCH_DEPTH: i32 = 13;
pub const SHW_HSDP_IS_LAST_BACKWARD: i32 = 14;
pub const SHW_HSDP_REDUCE_AVERAGE: i32 = 0;
pub const SHW_HSDP_REDUCE_SUM: i32 = 1;
pub const SHW_HSDP_PARAMS: i32 = 0;
pub const SHW_HSDP_GRADS: i32 = 1;
pub const SHW_HSDP_OPTIONS_SIZE_V1: u32 = 64;
pub const SHW_HSDP_RESHARD_AUTO: i32 = 0;
pub const SHW_HSDP_RESHARD: i32 = 1;
pub const SHW_HSDP_KEEP: i32 = 2;
pub const SHW_HSDP_RESHARD_SECONDARY: i32 = 3;
pub const SHW_HSDP_LAYOUT_ROW: i32 = 0;
pub const SHW_HSDP_LAYOUT_RAGGED: i32 = 1;
pub const SHW_HSDP_UNUSED_ZERO: i32 = 0;
pub const SHW_HSDP_UNUSED_SKIP: i32 = 1;
pub const SHW_HSDP_UNIT_OFFLOAD: u64 = 1;
pub const SHW_HSDP_UNIT_HOST_MEMORY: u64 = 2;
pub const SHW_HSDP_PARAM_FROZEN: u64 = 1;
pub const SHW_HSDP_PARAM_REPLICATE: u64 = 2;
pub const SHW_HSDP_PARAM_IGNORE: u64 = 4;
pub const SHW_HSDP_UNIT_OPTIONS_SIZE_V1: u32 = 48;
pub const SHW_HSDP_PARAM_BATCH_SIZE_V1: u32 = 80;
pub const SHW_HSDP_BOX_SIZE_V1: u32 = 40;
pub const SHW_HSDP_ALLOCATOR_SIZE_V1: u32 = 40;
pub const SHW_HSDP_RECOMPUTE: u64 = 1;
pub const SHW_HSDP_PHASE_OPTIONS_SIZE_V1: u32 = 16;
pub const SHW_HSDP_FORWARD: i32 = 0;
pub const SHW_HSDP_BACKWARD: i32 = 1;
pub const SHW_HSDP_ADD: i32 = 0;
pub const SHW_HSDP_TAKE: i32 = 1;
pub const SHW_HSDP_SHARDED: i32 = 0;
pub const SHW_HSDP_GATHERING: i32 = 1;
pub const SHW_HSDP_UNSHARDED: i32 = 2;
pub const SHW_HSDP_SECONDARY: i32 = 3;
pub const SHW_HSDP_GRAD_NONE: i32 = 0;
pub const SHW_HSDP_GRAD_LOCAL: i32 = 1;
pub const SHW_HSDP_GRAD_PACKED: i32 = 2;
pub const SHW_HSDP_GRAD_SCATTERING: i32 = 3;
pub const SHW_HSDP_GRAD_PARTIAL: i32 = 4;
pub const SHW_HSDP_GRAD_REPLICATING: i32 = 5;
pub const SHW_HSDP_GRAD_READY: i32 = 6;
pub const SHW_HSDP_VIEW_LOCAL: i32 = 0;
pub const SHW_HSDP_VIEW_FULL: i32 = 1;
pub const SHW_HSDP_VIEW_GRAD: i32 = 2;
pub const SHW_HSDP_MEMORY_SHARD: i32 = 0;
pub const SHW_HSDP_MEMORY_CAST: i32 = 1;
pub const SHW_HSDP_MEMORY_GATHERED: i32 = 2;
pub const SHW_HSDP_MEMORY_PARAMS: i32 = 3;
pub const SHW_HSDP_MEMORY_LOCAL_GRADS: i32 = 4;
pub const SHW_HSDP_MEMORY_PACKED: i32 = 5;
pub const SHW_HSDP_MEMORY_LANDING: i32 = 6;
pub const SHW_HSDP_MEMORY_SCATTERED: i32 = 7;
pub const SHW_HSDP_MEMORY_PARTIAL: i32 = 8;
pub const SHW_HSDP_MEMORY_SECONDARY: i32 = 9;
pub const SHW_HSDP_MEMORY_SHARD_GRADS: i32 = 10;
pub const SHW_HSDP_MEMORY_ALL: i32 = -1;
pub const SHW_HSDP_ESTIMATE_ROOT: u64 = 1;
pub const SHW_HSDP_ESTIMATE_ADDS_GRADS: u64 = 2;
pub const SHW_HSDP_ESTIMATE_HOST_MEMORY: u64 = 4;
pub const SHW_HSDP_ESTIMATE_ORDERED_SUMS: u64 = 1;
pub const SHW_HSDP_MEMORY_SIZE_V1: u32 = 56;
pub const SHW_HSDP_ESTIMATE_UNIT_SIZE_V1: u32 = 24;
pub const SHW_HSDP_ESTIMATE_WORLD_SIZE_V1: u32 = 24;
pub const SHW_PLUGIN_ENTRY: &core::ffi::CStr = c"shw_plugin_v1";
pub const SHW_HOST_API_SIZE_V1: u32 = 72;
pub const SHW_PLUGIN_SIZE_V1: u32 = 120;

pub type shw_log_fn = Option<unsafe extern "C" fn(user: *mut c_void, level: i32, record: *const shw_log_record)>;
pub type shw_grid_shard_init_fn = Option<unsafe extern "C" fn(shard: *mut shw_grid_shard, struct_size: u32)>;
pub type shw_grid_place_fn = Option<
    unsafe extern "C" fn(
        shard: *const shw_grid_shard,
        places: *const i64,
        count: u64,
        global_shape: *mut i64,
        offsets: *mut i64,
        fragments: *mut i64,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_grid_boxes_fn = Option<
    unsafe extern "C" fn(
        shard: *const shw_grid_shard,
        boxes: *mut i64,
        capacity: u64,
        size: *mut u64,
        local_offsets: *mut i64,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_grid_flat_entry_fn = Option<
    unsafe extern "C" fn(
        shard: *const shw_grid_shard,
        shape: *mut i64,
        offsets: *mut i64,
        sizes: *mut i64,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_grid_flat_boxes_fn = Option<
    unsafe extern "C" fn(
        shape: *const i64,
        ndim: i32,
        entry: *const i64,
        chunk: *const i64,
        boxes: *mut i64,
        capacity: u64,
        size: *mut u64,
        local_offsets: *mut i64,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_grid_overlap_fn = Option<
    unsafe extern "C" fn(
        stored: i64,
        wanted: i64,
        index: i64,
        begin: *mut i64,
        count: *mut i64,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_plan_owners_fn = Option<
    unsafe extern "C" fn(
        count: u64,
        weights: *const u64,
        sets: *const u32,
        secondary: *const shw_bool,
        set_count: u64,
        set_offsets: *const u64,
        holders: *const i32,
        rank_count: i32,
        owners: *mut i32,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_progress_fn = Option<unsafe extern "C" fn(user: *mut c_void, progress: *const shw_progress)>;
pub type shw_job_done_fn = Option<unsafe extern "C" fn(user: *mut c_void)>;
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
        sink: shw_storage_list_fn,
        sink_user: *mut c_void,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_storage_walk_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        prefix: *const c_char,
        prefix_size: u64,
        delimiter: i32,
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
pub type shw_storage_truncate_fn = Option<
    unsafe extern "C" fn(user: *mut c_void, object: *mut c_void, size: u64, err: *mut *mut shw_error) -> shw_status,
>;
pub type shw_storage_sync_fn =
    Option<unsafe extern "C" fn(user: *mut c_void, object: *mut c_void, err: *mut *mut shw_error) -> shw_status>;
pub type shw_storage_commit_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        object: *mut c_void,
        condition: i32,
        expected_version: *const c_char,
        expected_version_size: u64,
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
        mode: i32,
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
pub type shw_collective_gather_v_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        call: *const shw_collective_call,
        r#in: *const c_void,
        size: u64,
        out: *mut c_void,
        sizes: *const u64,
        root: i32,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_collective_scatter_v_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        call: *const shw_collective_call,
        r#in: *const c_void,
        sizes: *const u64,
        out: *mut c_void,
        size: u64,
        root: i32,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_collective_all_to_all_v_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        call: *const shw_collective_call,
        r#in: *const c_void,
        in_sizes: *const u64,
        out: *mut c_void,
        out_sizes: *const u64,
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
pub type shw_allocate_fn = Option<unsafe extern "C" fn(user: *mut c_void, size: u64, alignment: u64) -> *mut c_void>;
pub type shw_deallocate_fn =
    Option<unsafe extern "C" fn(user: *mut c_void, pointer: *mut c_void, size: u64, alignment: u64)>;
pub type shw_communicator_move_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        call: *const shw_communicator_call,
        r#in: *const c_void,
        out: *mut c_void,
        work: *mut *mut c_void,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_communicator_all_reduce_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        call: *const shw_communicator_call,
        data: *mut c_void,
        work: *mut *mut c_void,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_communicator_broadcast_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        call: *const shw_communicator_call,
        data: *mut c_void,
        root: i32,
        work: *mut *mut c_void,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_communicator_barrier_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        call: *const shw_communicator_call,
        work: *mut *mut c_void,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_communicator_work_wait_fn = Option<
    unsafe extern "C" fn(user: *mut c_void, work: *mut c_void, timeout_ns: i64, err: *mut *mut shw_error) -> shw_status,
>;
pub type shw_communicator_work_test_fn =
    Option<unsafe extern "C" fn(user: *mut c_void, work: *mut c_void, err: *mut *mut shw_error) -> shw_status>;
pub type shw_communicator_work_order_fn = Option<
    unsafe extern "C" fn(user: *mut c_void, work: *mut c_void, stream: u64, err: *mut *mut shw_error) -> shw_status,
>;
pub type shw_communicator_work_release_fn = Option<unsafe extern "C" fn(user: *mut c_void, work: *mut c_void)>;
pub type shw_communicator_abort_fn =
    Option<unsafe extern "C" fn(user: *mut c_void, code: shw_status, message: *const c_char, message_size: u64)>;
pub type shw_communicator_release_fn = Option<unsafe extern "C" fn(user: *mut c_void)>;
pub type shw_device_task_fn = Option<unsafe extern "C" fn(data: *mut c_void, err: *mut *mut shw_error) -> shw_status>;
pub type shw_device_lane_create_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        priority: i32,
        out: *mut *mut c_void,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_device_allocate_fn = Option<
    unsafe extern "C" fn(user: *mut c_void, bytes: u64, out: *mut *mut c_void, err: *mut *mut shw_error) -> shw_status,
>;
pub type shw_device_release_fn = Option<unsafe extern "C" fn(user: *mut c_void, thing: *mut c_void)>;
pub type shw_device_lane_submit_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        lane: *mut c_void,
        task: shw_device_task_fn,
        data: *mut c_void,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_device_lane_synchronize_fn =
    Option<unsafe extern "C" fn(user: *mut c_void, lane: *mut c_void, err: *mut *mut shw_error) -> shw_status>;
pub type shw_device_lane_event_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        lane: *mut c_void,
        event: *mut c_void,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_device_event_create_fn =
    Option<unsafe extern "C" fn(user: *mut c_void, out: *mut *mut c_void, err: *mut *mut shw_error) -> shw_status>;
pub type shw_device_event_wait_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        event: *mut c_void,
        timeout_ns: i64,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_device_free_fn = Option<unsafe extern "C" fn(user: *mut c_void, memory: *mut c_void, bytes: u64)>;
pub type shw_device_copy_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        lane: *mut c_void,
        kind: i32,
        source: *const c_void,
        target: *mut c_void,
        bytes: u64,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_device_copy_elements_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        lane: *mut c_void,
        copy: *const shw_element_copy,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_device_fill_zero_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        lane: *mut c_void,
        target: *mut c_void,
        bytes: u64,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_device_stream_fn = Option<unsafe extern "C" fn(user: *mut c_void) -> u64>;
pub type shw_device_end_fn = Option<unsafe extern "C" fn(user: *mut c_void)>;
pub type shw_hsdp_allocate_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        param: u64,
        bytes: u64,
        out: *mut *mut c_void,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_hsdp_deallocate_fn =
    Option<unsafe extern "C" fn(user: *mut c_void, param: u64, memory: *mut c_void, bytes: u64)>;
pub type shw_hsdp_allocator_release_fn = Option<unsafe extern "C" fn(user: *mut c_void)>;
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
pub type shw_plugin_communicator_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        config: *const c_char,
        config_size: u64,
        vtable: *mut shw_communicator_vtable,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_plugin_device_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        config: *const c_char,
        config_size: u64,
        vtable: *mut shw_device_vtable,
        err: *mut *mut shw_error,
    ) -> shw_status,
>;
pub type shw_plugin_answer_fn = Option<
    unsafe extern "C" fn(
        user: *mut c_void,
        question: *const c_char,
        question_size: u64,
        out: *mut *mut c_char,
        out_size: *mut u64,
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
pub struct shw_extension {
    pub struct_size: u32,
    pub version: u32,
    pub name: *const c_char,
    pub functions: *const c_void,
    pub next: *const shw_extension,
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
    pub dtype: i32,
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
    pub tensor_map: *const i32,
    pub tensor_map_offsets: *const u64,
    pub tensor_ndim: i32,
    pub reserved1: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_grid_shard {
    pub struct_size: u32,
    pub flags: u32,
    pub local_ndim: i32,
    pub prepended: i32,
    pub local_shape: *const i64,
    pub global_shape: *const i64,
    pub offsets: *const i64,
    pub fragments: *const i64,
    pub flat_begin: i64,
    pub flat_size: i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_megatron_api {
    pub struct_size: u32,
    pub version: u32,
    pub grid_shard_init: shw_grid_shard_init_fn,
    pub grid_place: shw_grid_place_fn,
    pub grid_boxes: shw_grid_boxes_fn,
    pub grid_flat_entry: shw_grid_flat_entry_fn,
    pub grid_flat_boxes: shw_grid_flat_boxes_fn,
    pub grid_overlap: shw_grid_overlap_fn,
    pub plan_owners: shw_plan_owners_fn,
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
    pub grid_fragments: *const i64,
    pub grid_indices: *const i64,
    pub grid_offsets: *const u64,
    pub replica_ids: *const i32,
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
    pub grid_shapes: *const i64,
    pub grid_indices: *const i64,
    pub grid_offsets: *const u64,
    pub replica_ids: *const i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_mapping_spec {
    pub struct_size: u32,
    pub flags: u32,
    pub json: *const c_char,
    pub json_size: u64,
    pub shipped: *const c_char,
    pub parameter_names: *const c_char,
    pub parameter_name_offsets: *const u64,
    pub parameter_values: *const i64,
    pub parameter_count: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_plan_item {
    pub struct_size: u32,
    pub flags: u32,
    pub entry: u32,
    pub piece: u32,
    pub chunk: u64,
    pub byte_size: u64,
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
    pub bytes_received: u64,
    pub bytes_cached: u64,
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
pub struct shw_storage_entry {
    pub struct_size: u32,
    pub flags: u32,
    pub key: *const c_char,
    pub key_size: u64,
    pub size: u64,
    pub modified_ns: i64,
    pub version: *const c_char,
    pub version_size: u64,
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
    pub part_bytes: u64,
    pub name: *const c_char,
    pub user: *mut c_void,
    pub open: shw_storage_open_fn,
    pub close: shw_storage_object_fn,
    pub stat: shw_storage_stat_fn,
    pub list: shw_storage_walk_fn,
    pub read_at: shw_storage_read_fn,
    pub write_at: shw_storage_write_fn,
    pub truncate: shw_storage_truncate_fn,
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
pub struct shw_storage_stat {
    pub struct_size: u32,
    pub flags: u32,
    pub size: u64,
    pub modified_ns: i64,
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
    pub gather_v: shw_collective_gather_v_fn,
    pub scatter_v: shw_collective_scatter_v_fn,
    pub reserved3: *mut c_void,
    pub all_reduce_i64: shw_collective_all_reduce_fn,
    pub all_to_all_v: shw_collective_all_to_all_v_fn,
    pub reserved5: *mut c_void,
    pub reserved6: *mut c_void,
    pub reserved7: *mut c_void,
    pub abort: shw_collective_abort_fn,
    pub release: shw_collective_release_fn,
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
    pub machine: *const c_char,
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
    pub cancellation: *mut shw_cancellation,
    pub progress: shw_progress_fn,
    pub progress_user: *mut c_void,
    pub max_shard_size: u64,
    pub hold: i32,
    pub priority: i32,
    pub common: i32,
    pub integrity: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_checkpoint_options {
    pub struct_size: u32,
    pub flags: u32,
    pub verify: i32,
    pub format: i32,
    pub threads: u32,
    pub read_path: i32,
    pub memory_budget: u64,
    pub deadline_ns: i64,
    pub cancellation: *mut shw_cancellation,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_tensor_info {
    pub struct_size: u32,
    pub flags: u32,
    pub dtype: i32,
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
    pub cancellation: *mut shw_cancellation,
    pub strict_shapes: *const i32,
    pub shape: i32,
    pub read_path: i32,
    pub progress: shw_progress_fn,
    pub progress_user: *mut c_void,
    pub exchange: i32,
    pub reserved1: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_exchange_round {
    pub struct_size: u32,
    pub flags: u32,
    pub rank_count: u64,
    pub outgoing: *const c_void,
    pub outgoing_size: u64,
    pub outgoing_sizes: *const u64,
    pub incoming: *mut c_void,
    pub incoming_size: u64,
    pub incoming_sizes: *const u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_convert_options {
    pub struct_size: u32,
    pub flags: u32,
    pub format: i32,
    pub overwrite: i32,
    pub durability: i32,
    pub threads: u32,
    pub file_mode: u32,
    pub common: i32,
    pub memory_budget: u64,
    pub max_shard_size: u64,
    pub deadline_ns: i64,
    pub cancellation: *mut shw_cancellation,
    pub integrity: i32,
    pub reserved0: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_reshard_options {
    pub struct_size: u32,
    pub flags: u32,
    pub tensor_parallel: u32,
    pub pipeline_parallel: u32,
    pub expert_parallel: u32,
    pub data_parallel: u32,
    pub optimizer: i32,
    pub overwrite: i32,
    pub durability: i32,
    pub threads: u32,
    pub file_mode: u32,
    pub expert_tensor_parallel: u32,
    pub job: *const c_char,
    pub map: *const c_char,
    pub memory_budget: u64,
    pub deadline_ns: i64,
    pub cancellation: *mut shw_cancellation,
    pub pipeline_layers: *const u32,
    pub pipeline_layer_count: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_entry_batch {
    pub struct_size: u32,
    pub flags: u32,
    pub count: u64,
    pub names: *const c_char,
    pub name_offsets: *const u64,
    pub dtypes: *const i32,
    pub kinds: *const i32,
    pub shapes: *const i64,
    pub shape_offsets: *const u64,
    pub box_ranges: *const u64,
    pub box_offsets: *const i64,
    pub box_sizes: *const i64,
    pub numbers: *const u64,
    pub order: *const u64,
    pub secondary: *const shw_bool,
    pub object_sizes: *const u64,
    pub paths: *const c_char,
    pub path_offsets: *const u64,
    pub attributes: *const c_char,
    pub attribute_offsets: *const u64,
    pub digests: *const u8,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_describe_options {
    pub struct_size: u32,
    pub flags: u32,
    pub kind: i32,
    pub rank: i32,
    pub world_size: i32,
    pub reserved0: i32,
    pub kind_globs: *const c_char,
    pub kind_offsets: *const u64,
    pub kind_values: *const i32,
    pub kind_count: u64,
    pub agreement: *const c_char,
    pub agreement_size: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_merge_options {
    pub struct_size: u32,
    pub flags: u32,
    pub owner: i32,
    pub preset: i32,
    pub cover: i32,
    pub verify_replicas: i32,
    pub reserved0: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_match_options {
    pub struct_size: u32,
    pub flags: u32,
    pub order: i32,
    pub cover: i32,
    pub missing: i32,
    pub rank: i32,
    pub reserved1: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_estimate_options {
    pub struct_size: u32,
    pub flags: u32,
    pub owner: i32,
    pub preset: i32,
    pub memory_budget: u64,
    pub rank_bytes_per_second: u64,
    pub total_bytes_per_second: u64,
    pub ranks_per_node: u32,
    pub exchange: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_communicator_call {
    pub struct_size: u32,
    pub flags: u32,
    pub sequence: u64,
    pub unit_id: u64,
    pub count: u64,
    pub dtype: i32,
    pub op: i32,
    pub scale: f64,
    pub stream: u64,
    pub timeout_ns: i64,
    pub tag: u32,
    pub reserved0: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_communicator_vtable {
    pub struct_size: u32,
    pub flags: u32,
    pub abi_major: u32,
    pub abi_minor: u32,
    pub capabilities: u64,
    pub rank: i32,
    pub size: i32,
    pub name: *const c_char,
    pub user: *mut c_void,
    pub all_gather: shw_communicator_move_fn,
    pub all_to_all: shw_communicator_move_fn,
    pub reduce_scatter: shw_communicator_move_fn,
    pub all_reduce: shw_communicator_all_reduce_fn,
    pub broadcast: shw_communicator_broadcast_fn,
    pub barrier: shw_communicator_barrier_fn,
    pub work_wait: shw_communicator_work_wait_fn,
    pub work_test: shw_communicator_work_test_fn,
    pub work_order: shw_communicator_work_order_fn,
    pub work_release: shw_communicator_work_release_fn,
    pub reserved0: *mut c_void,
    pub reserved1: *mut c_void,
    pub abort: shw_communicator_abort_fn,
    pub release: shw_communicator_release_fn,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_element_copy {
    pub struct_size: u32,
    pub flags: u32,
    pub source: *const c_void,
    pub target: *mut c_void,
    pub rows: u64,
    pub columns: u64,
    pub source_pitch: u64,
    pub target_pitch: u64,
    pub source_dtype: i32,
    pub target_dtype: i32,
    pub scale: f64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_device_vtable {
    pub struct_size: u32,
    pub flags: u32,
    pub abi_major: u32,
    pub abi_minor: u32,
    pub name: *const c_char,
    pub user: *mut c_void,
    pub lane_create: shw_device_lane_create_fn,
    pub lane_release: shw_device_release_fn,
    pub lane_submit: shw_device_lane_submit_fn,
    pub lane_synchronize: shw_device_lane_synchronize_fn,
    pub lane_record: shw_device_lane_event_fn,
    pub lane_wait: shw_device_lane_event_fn,
    pub event_create: shw_device_event_create_fn,
    pub event_release: shw_device_release_fn,
    pub event_wait: shw_device_event_wait_fn,
    pub memory_allocate: shw_device_allocate_fn,
    pub memory_release: shw_device_free_fn,
    pub pinned_allocate: shw_device_allocate_fn,
    pub pinned_release: shw_device_free_fn,
    pub copy: shw_device_copy_fn,
    pub copy_elements: shw_device_copy_elements_fn,
    pub fill_zero: shw_device_fill_zero_fn,
    pub current_stream: shw_device_stream_fn,
    pub release: shw_device_end_fn,
    pub device_type: i32,
    pub device_id: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_hsdp_options {
    pub struct_size: u32,
    pub flags: u32,
    pub mesh: *mut shw_hsdp_mesh,
    pub device: *const shw_device,
    pub shard_axis: i32,
    pub replicate_axis: i32,
    pub lanes: i32,
    pub max_inflight_reduce: i32,
    pub prefetch_depth: i32,
    pub order_guard_steps: i32,
    pub prefetch_bytes_max: u64,
    pub timeout_ns: i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_hsdp_unit_options {
    pub struct_size: u32,
    pub flags: u32,
    pub param_dtype: i32,
    pub reduce_dtype: i32,
    pub output_dtype: i32,
    pub grad_dtype: i32,
    pub layout: i32,
    pub reshard_after_forward: i32,
    pub secondary_size: i64,
    pub unused: i32,
    pub reserved0: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_hsdp_param_batch {
    pub struct_size: u32,
    pub flags: u32,
    pub count: u64,
    pub names: *const c_char,
    pub name_offsets: *const u64,
    pub tensors: *const shw_tensor,
    pub shard_dims: *const i32,
    pub param_flags: *const u32,
    pub aliases: *const c_char,
    pub alias_offsets: *const u64,
    pub alias_ranges: *const u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_hsdp_box {
    pub struct_size: u32,
    pub flags: u32,
    pub ndim: i32,
    pub reserved0: i32,
    pub offsets: *const i64,
    pub sizes: *const i64,
    pub global_shape: *const i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_hsdp_allocator {
    pub struct_size: u32,
    pub flags: u32,
    pub user: *mut c_void,
    pub allocate: shw_hsdp_allocate_fn,
    pub deallocate: shw_hsdp_deallocate_fn,
    pub release: shw_hsdp_allocator_release_fn,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_hsdp_phase_options {
    pub struct_size: u32,
    pub flags: u32,
    pub reserved0: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_hsdp_memory {
    pub struct_size: u32,
    pub flags: u32,
    pub current_bytes: u64,
    pub peak_bytes: u64,
    pub current_buffers: u64,
    pub total_buffers: u64,
    pub padding_bytes: u64,
    pub unsharded_units: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_hsdp_estimate_unit {
    pub struct_size: u32,
    pub flags: u32,
    pub params: *const shw_hsdp_param_batch,
    pub options: *const shw_hsdp_unit_options,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct shw_hsdp_estimate_world {
    pub struct_size: u32,
    pub flags: u32,
    pub shard_size: i64,
    pub replicate_size: i64,
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
    pub communicator: *const shw_communicator_vtable,
    pub communicator_open: shw_plugin_communicator_fn,
    pub device: *const shw_device_vtable,
    pub device_open: shw_plugin_device_fn,
    pub answer: shw_plugin_answer_fn,
    pub release: shw_plugin_release_fn,
}

#[cfg(not(feature = "load-dynamic"))]
unsafe extern "C" {
    /// Writes the interface version of the loaded library. NULL pointers are skipped.
    pub fn shw_abi_version(major: *mut u32, minor: *mut u32);
    /// Release of the loaded library as static text, such as "0.1.0".
    pub fn shw_version_string() -> *const c_char;
    /// Static JSON text that says how the library was built: commit, compiler, engines of I/O, plugins.
    pub fn shw_build_info() -> *const c_char;
    /// Static name of a status without prefix, such as "NOT_FOUND"; "UNRECOGNISED" for other numbers.
    pub fn shw_status_name(status: shw_status) -> *const c_char;
    /// Code of the error; 0 for NULL.
    pub fn shw_error_code(error: *const shw_error) -> shw_status;
    /// Message of the error, outermost sentence first; borrowed until the error is released.
    pub fn shw_error_message(error: *const shw_error, size: *mut u64) -> *const c_char;
    /// Number of details of the error.
    pub fn shw_error_detail_count(error: *const shw_error) -> u64;
    /// Writes detail `index` (from 0) to `out`, borrowed until the error is released. Answers OUT_OF_RANGE, `out` untouched, when there is no such detail.
    pub fn shw_error_detail_at(error: *const shw_error, index: u64, out: *mut shw_error_detail) -> shw_status;
    /// 1 when the same call may succeed if it is repeated from its start.
    pub fn shw_error_is_retryable(error: *const shw_error) -> shw_bool;
    /// Error that caused this one, borrowed until this one is released; NULL when there is none.
    pub fn shw_error_cause(error: *const shw_error) -> *const shw_error;
    /// Call stack of the place that made the error; empty in release builds.
    pub fn shw_error_backtrace(error: *const shw_error, size: *mut u64) -> *const c_char;
    /// Makes an error in the library's allocator and returns `code`, so that a callback can end with this call. Texts are copied; `cause` moves in. Never fails for lack of memory: the static out-of-memory error is given then. Code OK or NULL `out` is INVALID_ARGUMENT, nothing is made.
    pub fn shw_error_create(
        code: shw_status,
        message: *const c_char,
        message_size: u64,
        details: *const shw_error_detail,
        detail_count: u64,
        cause: *mut shw_error,
        out: *mut *mut shw_error,
    ) -> shw_status;
    /// Releases an error and its causes. NULL is allowed.
    pub fn shw_error_release(error: *mut shw_error);
    /// Gives the function table of the library, which lives for the process. UNIMPLEMENTED names both versions when the library has another major, an older minor or, while major is 0, a newer one.
    pub fn shw_get_api(major: u32, min_minor: u32, out: *mut *const shw_api, err: *mut *mut shw_error) -> shw_status;
    /// Gives the functions of an extension, such as shw_megatron_api for "megatron"; they live for the process. NOT_FOUND names the extensions that there are. Versions are whole: another one than the library's is UNIMPLEMENTED with both.
    pub fn shw_get_extension(
        name: *const c_char,
        version: u32,
        out: *mut *const c_void,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Makes a buffer of one part by copying `size` bytes.
    pub fn shw_buffer_create(
        data: *const c_void,
        size: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Makes a buffer by copying a blob that `offsets` (part_count + 1 ascending values, the first 0) cuts into parts.
    pub fn shw_buffer_create_parts(
        data: *const c_void,
        offsets: *const u64,
        part_count: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// First byte of the buffer, aligned to 64 bytes and followed by a NUL; borrowed until release.
    pub fn shw_buffer_data(buffer: *const shw_buffer) -> *const c_void;
    /// Number of bytes of all parts together.
    pub fn shw_buffer_size(buffer: *const shw_buffer) -> u64;
    /// Number of parts.
    pub fn shw_buffer_part_count(buffer: *const shw_buffer) -> u64;
    /// Offsets of the parts, part_count + 1 ascending values; borrowed until release.
    pub fn shw_buffer_part_offsets(buffer: *const shw_buffer) -> *const u64;
    /// First byte of part `index`; NULL when there is no such part. Borrowed until release.
    pub fn shw_buffer_part_data(buffer: *const shw_buffer, index: u64) -> *const c_void;
    /// Number of bytes of part `index`; 0 when there is no such part.
    pub fn shw_buffer_part_size(buffer: *const shw_buffer, index: u64) -> u64;
    /// Releases the buffer. NULL is allowed.
    pub fn shw_buffer_release(buffer: *mut shw_buffer);
    /// Fills a record with zeros and its size, as SHW_LOG_RECORD_INIT does. NULL is skipped.
    pub fn shw_log_record_init(record: *mut shw_log_record, struct_size: u32);
    /// Fills a descriptor with zeros and its size, as SHW_TENSOR_INIT does. NULL is skipped.
    pub fn shw_tensor_init(tensor: *mut shw_tensor, struct_size: u32);
    /// Checks a descriptor: size, flags, dtype, device, shape, strides, extents, addresses.
    pub fn shw_tensor_check(tensor: *const shw_tensor, err: *mut *mut shw_error) -> shw_status;
    /// Describes a versioned DLPack tensor; nothing is consumed, `out` borrows from `managed`.
    pub fn shw_tensor_from_dlpack(
        managed: *const DLManagedTensorVersioned,
        out: *mut shw_tensor,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Describes a legacy DLPack tensor; nothing is consumed, `out` borrows from `managed`.
    pub fn shw_tensor_from_dlpack_legacy(
        managed: *const DLManagedTensor,
        out: *mut shw_tensor,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Static name of a dtype, such as "bfloat16"; "" when there is no such dtype.
    pub fn shw_dtype_name(dtype: i32) -> *const c_char;
    /// Finds the dtype of a name.
    pub fn shw_dtype_parse(name: *const c_char, out: *mut i32, err: *mut *mut shw_error) -> shw_status;
    /// Bits of one element, 4 to 128; 0 when there is no such dtype.
    pub fn shw_dtype_bits(dtype: i32) -> u32;
    /// Bytes that `element_count` packed elements take, rounded up; 0 for an unknown dtype or overflow.
    pub fn shw_dtype_byte_size(dtype: i32, element_count: u64) -> u64;
    /// Dtype of a DLDataType of DLPack, given as code + 256 * bits + 65536 * lanes, which are its bytes in memory; 0 when there is none: opaque elements, lanes other than 1, unknown codes.
    pub fn shw_dtype_from_dlpack(r#type: u32) -> i32;
    /// DLDataType of a dtype, as shw_dtype_from_dlpack takes it; 0 when there is no such dtype.
    pub fn shw_dtype_to_dlpack(dtype: i32) -> u32;
    /// Makes a host tensor filled with zeros; its first byte is aligned to 4096 bytes.
    pub fn shw_owned_tensor_create(
        dtype: i32,
        shape: *const i64,
        ndim: i32,
        out: *mut *mut shw_owned_tensor,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Describes the tensor; `out` borrows data and shape until the tensor is released.
    pub fn shw_owned_tensor_describe(
        tensor: *const shw_owned_tensor,
        out: *mut shw_tensor,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Exports the tensor as versioned DLPack; it keeps the bytes alive until its deleter is called, which may happen on any thread and after the release of this handle.
    pub fn shw_owned_tensor_dlpack(
        tensor: *const shw_owned_tensor,
        out: *mut *mut DLManagedTensorVersioned,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Exports the tensor as legacy DLPack, otherwise as shw_owned_tensor_dlpack.
    pub fn shw_owned_tensor_dlpack_legacy(
        tensor: *const shw_owned_tensor,
        out: *mut *mut DLManagedTensor,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Releases the handle. NULL is allowed.
    pub fn shw_owned_tensor_release(tensor: *mut shw_owned_tensor);
    /// Fills a spec with zeros and its size, as SHW_LAYOUT_SPEC_INIT does. NULL is skipped.
    pub fn shw_layout_spec_init(spec: *mut shw_layout_spec, struct_size: u32);
    /// Makes a layout; everything in `spec` is copied. UNIMPLEMENTED names an axis that is called "interleaved_parallel" under a tensor map.
    pub fn shw_layout_create(
        spec: *const shw_layout_spec,
        out: *mut *mut shw_layout,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Number of ranks in the mesh.
    pub fn shw_layout_rank_count(layout: *const shw_layout) -> u64;
    /// 1 when `rank` is in the mesh.
    pub fn shw_layout_contains(layout: *const shw_layout, rank: i32) -> shw_bool;
    /// Number of boxes that `rank` holds of a tensor of this global shape: 0 when it is not in the mesh.
    pub fn shw_layout_box_count(
        layout: *const shw_layout,
        shape: *const i64,
        ndim: i32,
        rank: i32,
        out: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Writes the boxes that `rank` holds: for each box `ndim` offsets, then `ndim` sizes. A box may be empty; it then begins at the end of each dimension of which the rank holds nothing. `size` receives the number of values; BUFFER_TOO_SMALL, nothing else written, when it is above `capacity` (also counted in values).
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
    /// Writes for each of these boxes the element of the local tensor at which it begins; `size` and `capacity` as in shw_layout_boxes.
    pub fn shw_layout_local_offsets(
        layout: *const shw_layout,
        shape: *const i64,
        ndim: i32,
        rank: i32,
        offsets: *mut i64,
        capacity: u64,
        size: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Writes the shape of the local tensor of `rank`: `ndim` extents, or the number of elements where an axis is flat, or 0 outside the mesh; `size` and `capacity` as in shw_layout_boxes.
    pub fn shw_layout_local_shape(
        layout: *const shw_layout,
        shape: *const i64,
        ndim: i32,
        rank: i32,
        extents: *mut i64,
        capacity: u64,
        size: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Releases the layout; states that use it keep it alive. NULL is allowed.
    pub fn shw_layout_release(layout: *mut shw_layout);
    /// Fills a batch with zeros and its size, as SHW_TENSOR_BATCH_INIT does. NULL is skipped.
    pub fn shw_tensor_batch_init(batch: *mut shw_tensor_batch, struct_size: u32);
    /// Fills a batch with zeros and its size, as SHW_OBJECT_BATCH_INIT does. NULL is skipped.
    pub fn shw_object_batch_init(batch: *mut shw_object_batch, struct_size: u32);
    /// Makes an empty state.
    pub fn shw_state_create(out: *mut *mut shw_state, err: *mut *mut shw_error) -> shw_status;
    /// Sets memory aside for that many more tensors whose names have `name_bytes` bytes in all, so that a host that adds them in pieces pays about as much as for one batch. Both are hints: fewer or more may follow.
    pub fn shw_state_reserve(
        state: *mut shw_state,
        tensors: u64,
        name_bytes: u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Adds all tensors of the batch or none. ALREADY_EXISTS names both paths of a doubled name.
    pub fn shw_state_add_tensors(
        state: *mut shw_state,
        batch: *const shw_tensor_batch,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Adds one tensor of `name_size` bytes of name. `global_shape` and `offsets` NULL = it is whole; else it is the box of its own shape that begins at `offsets` of a tensor of `global_shape`, and both have `tensor->ndim` values. `kind` SHW_KIND_. Many tensors are added faster in one batch.
    pub fn shw_state_add_tensor(
        state: *mut shw_state,
        name: *const c_char,
        name_size: u64,
        tensor: *const shw_tensor,
        global_shape: *const i64,
        offsets: *const i64,
        kind: i32,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// As shw_state_add_tensors with versioned DLPack tensors, `batch->count` of them, in place of `batch->tensors`. On success all are consumed: their deleters run once when the state ends.
    pub fn shw_state_add_dlpack(
        state: *mut shw_state,
        batch: *const shw_tensor_batch,
        managed: *const *mut DLManagedTensorVersioned,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// As shw_state_add_dlpack with legacy DLPack tensors.
    pub fn shw_state_add_dlpack_legacy(
        state: *mut shw_state,
        batch: *const shw_tensor_batch,
        managed: *const *mut DLManagedTensor,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Adds all objects of the batch or none. A load stores the bytes that it found in the entry.
    pub fn shw_state_add_objects(
        state: *mut shw_state,
        batch: *const shw_object_batch,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Adds one byte object: a copy of `size` bytes. `content_type` NULL = "application/octet-stream", `kind` SHW_KIND_.
    pub fn shw_state_add_object(
        state: *mut shw_state,
        name: *const c_char,
        name_size: u64,
        content_type: *const c_char,
        data: *const c_void,
        size: u64,
        kind: i32,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Makes the name of an object that is the cell `cell` of a grid of `shape`, both of `ndim` (1 to 64) values: the key, "/shard_", the cell joined by ".", "_", the shape joined by ".", as in "key/shard_0.3_1.8". `out`: the text as a buffer of one part.
    pub fn shw_object_key(
        key: *const c_char,
        key_size: u64,
        cell: *const i64,
        shape: *const i64,
        ndim: i32,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Takes such a name apart: the key is its first `key_size` bytes (the last "/shard_" counts, so any key comes back), and `values` receives the cell, then the shape, half of `size` values each; BUFFER_TOO_SMALL, nothing else written, when `size` is above `capacity`. The last extent is -1 where older names leave it out.
    pub fn shw_object_key_parse(
        name: *const c_char,
        name_size: u64,
        values: *mut i64,
        capacity: u64,
        size: *mut u64,
        key_size: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Number of tensors; they are numbered from 0 in the order in which they were added.
    pub fn shw_state_tensor_count(state: *const shw_state) -> u64;
    /// Number of objects, numbered from 0 like tensors.
    pub fn shw_state_object_count(state: *const shw_state) -> u64;
    /// Name of a tensor; "" when there is none. Borrowed until the state changes or is released.
    pub fn shw_state_tensor_name(state: *const shw_state, index: u64, size: *mut u64) -> *const c_char;
    /// Nested path of a tensor; "" when it is flat. Borrowed until the state changes or is released.
    pub fn shw_state_tensor_path(state: *const shw_state, index: u64, size: *mut u64) -> *const c_char;
    /// Describes the local memory of a tensor; `out` borrows until the state changes or is released.
    pub fn shw_state_tensor(
        state: *const shw_state,
        index: u64,
        out: *mut shw_tensor,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Writes the shape of the whole tensor; `size` receives the number of extents. BUFFER_TOO_SMALL, nothing else written, when it is above `capacity`.
    pub fn shw_state_global_shape(
        state: *const shw_state,
        index: u64,
        extents: *mut i64,
        capacity: u64,
        size: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Writes the boxes of a tensor that the state holds: for each box its offsets, then its sizes, as many values as the whole tensor has extents each. `size` and `capacity` count values, as in shw_state_global_shape.
    pub fn shw_state_boxes(
        state: *const shw_state,
        index: u64,
        boxes: *mut i64,
        capacity: u64,
        size: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Name of an object; "" when there is none. Borrowed until the state changes or is released.
    pub fn shw_state_object_name(state: *const shw_state, index: u64, size: *mut u64) -> *const c_char;
    /// Nested path of an object; "" when it is flat. Borrowed until the state changes or is released.
    pub fn shw_state_object_path(state: *const shw_state, index: u64, size: *mut u64) -> *const c_char;
    /// Content type of an object. Borrowed until the state changes or is released.
    pub fn shw_state_object_content_type(state: *const shw_state, index: u64, size: *mut u64) -> *const c_char;
    /// Bytes of an object, NULL when there is none. Borrowed until the state changes, a load into it ends, or it is released.
    pub fn shw_state_object_data(state: *const shw_state, index: u64, size: *mut u64) -> *const c_void;
    /// Finds a tensor by name; `out` receives its number.
    pub fn shw_state_find_tensor(
        state: *const shw_state,
        name: *const c_char,
        name_size: u64,
        out: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Finds an object by name; `out` receives its number.
    pub fn shw_state_find_object(
        state: *const shw_state,
        name: *const c_char,
        name_size: u64,
        out: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Releases the state; planners and jobs that use it keep it alive. DLPack deleters run here, or in the release of the last user. NULL is allowed.
    pub fn shw_state_release(state: *mut shw_state);
    /// Fills a spec with zeros and its size, as SHW_MAPPING_SPEC_INIT does. NULL is skipped.
    pub fn shw_mapping_spec_init(spec: *mut shw_mapping_spec, struct_size: u32);
    /// Makes a mapping; everything in `spec` is copied. INVALID_ARGUMENT names line, rule and member of what is wrong, and parameters that are missing or not known.
    pub fn shw_mapping_create(
        spec: *const shw_mapping_spec,
        out: *mut *mut shw_mapping,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Makes a state of what the mapping says of the entries of another one, which `out` keeps alive and which must not change before `out` is released. Tensors share their memory; objects are copied, number i of one being number i of the other, so that what a load found is read from `out`. Boxes that one stored tensor gets from several entries are one entry. Loads set to zero what a "pad" leaves out. INVALID_ARGUMENT names rule and entry (details `rule`, from 1, and `tensor`): two for one entry, none for a rule, axes not divided, padding that would cut what is none, entries of one tensor that do not fit; OUT_OF_RANGE: a number above its count; UNIMPLEMENTED: sub-byte elements.
    pub fn shw_state_map(
        state: *const shw_state,
        mapping: *const shw_mapping,
        out: *mut *mut shw_state,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Releases the mapping; states that it made do not need it. NULL is allowed.
    pub fn shw_mapping_release(mapping: *mut shw_mapping);
    /// Fills an item with zeros and its size, as SHW_PLAN_ITEM_INIT does. NULL is skipped.
    pub fn shw_plan_item_init(item: *mut shw_plan_item, struct_size: u32);
    /// Checks a plan buffer of any kind in all respects; the first finding is the error.
    pub fn shw_plan_validate(data: *const c_void, size: u64, err: *mut *mut shw_error) -> shw_status;
    /// Lists all findings about a plan buffer, one sentence per part of `out`; no part = valid.
    pub fn shw_plan_findings(
        data: *const c_void,
        size: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Makes a plan from bytes that another rank or run has made; they are checked and copied.
    pub fn shw_plan_create(
        data: *const c_void,
        size: u64,
        out: *mut *mut shw_plan,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Kind of the plan: one of the SHW_PLAN_ numbers; 0 for NULL.
    pub fn shw_plan_kind(plan: *const shw_plan) -> i32;
    /// Rank that the plan belongs to; 0 for a merged plan.
    pub fn shw_plan_rank(plan: *const shw_plan) -> i32;
    /// First byte of the plan buffer; borrowed until the plan is released.
    pub fn shw_plan_data(plan: *const shw_plan) -> *const c_void;
    /// Number of bytes of the plan buffer.
    pub fn shw_plan_size(plan: *const shw_plan) -> u64;
    /// Number of items of a write list or load plan (tensor reads, then objects); 0 for other kinds.
    pub fn shw_plan_item_count(plan: *const shw_plan) -> u64;
    /// Writes item `index`; `out->struct_size` must be set.
    pub fn shw_plan_item_at(
        plan: *const shw_plan,
        index: u64,
        out: *mut shw_plan_item,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// The plan as JSON text with "schema": 1, with at most `item_limit` items of each list.
    pub fn shw_plan_json(
        plan: *const shw_plan,
        item_limit: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Releases the plan. NULL is allowed.
    pub fn shw_plan_release(plan: *mut shw_plan);
    /// Fills a summary with zeros and its size, as SHW_REPORT_SUMMARY_INIT does. NULL is skipped.
    pub fn shw_report_summary_init(summary: *mut shw_report_summary, struct_size: u32);
    /// Whole report as JSON text with "schema": 1; borrowed until the report is released.
    pub fn shw_report_json(report: *const shw_report, size: *mut u64) -> *const c_char;
    /// Writes the figures of the report; `out->struct_size` must be set.
    pub fn shw_report_summarize(
        report: *const shw_report,
        out: *mut shw_report_summary,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Number of names in one of the SHW_REPORT_ lists; 0 for an unknown list.
    pub fn shw_report_name_count(report: *const shw_report, list: i32) -> u64;
    /// Name `index` of a list; "" when there is none. Borrowed until the report is released. A cast reads "name: stored dtype -> wanted dtype", a shape likewise, a finding is one sentence.
    pub fn shw_report_name(report: *const shw_report, list: i32, index: u64, size: *mut u64) -> *const c_char;
    /// Releases the report. NULL is allowed.
    pub fn shw_report_release(report: *mut shw_report);
    /// Fills a progress struct with zeros and its size, as SHW_PROGRESS_INIT does. NULL is skipped.
    pub fn shw_progress_init(progress: *mut shw_progress, struct_size: u32);
    /// Waits until the job is terminal and returns its status, or PENDING (`err` untouched) when `timeout_ns` passed: 0 = do not wait, negative = no limit. A failure gives a copy of the error.
    pub fn shw_job_wait(job: *mut shw_job, timeout_ns: i64, err: *mut *mut shw_error) -> shw_status;
    /// Waits until the job no longer reads the tensors of the host: OK when it is staged, succeeded or was a load that ended; else PENDING or the failure. Time-outs as in shw_job_wait.
    pub fn shw_job_wait_staged(job: *mut shw_job, timeout_ns: i64, err: *mut *mut shw_error) -> shw_status;
    /// State of the job: one of the SHW_JOB_ numbers.
    pub fn shw_job_poll(job: *const shw_job) -> i32;
    /// Writes how far the job is; `out->struct_size` must be set.
    pub fn shw_job_progress(job: *const shw_job, out: *mut shw_progress, err: *mut *mut shw_error) -> shw_status;
    /// Asks the job to stop and returns at once. The job still ends in a terminal state; after its commit point it ends SUCCEEDED. May be called any number of times. NULL is skipped.
    pub fn shw_job_cancel(job: *mut shw_job);
    /// Has `on_done(user)` called once, when the job has ended, in whatever way, and uses nothing that it was lent any more. It runs on the context's background thread, calls nothing of the library and returns soon; shw_context_shutdown answers OK after it. The handle may be released before; kept for a thread that this wakes, it takes DLPack memory along. FAILED_PRECONDITION, and no call, when the job has ended already or has a function.
    pub fn shw_job_on_done(
        job: *mut shw_job,
        on_done: shw_job_done_fn,
        user: *mut c_void,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Error of a job that failed or was cancelled, borrowed until the job is released; NULL otherwise.
    pub fn shw_job_error(job: *const shw_job) -> *const shw_error;
    /// Report of a job that succeeded; FAILED_PRECONDITION before that.
    pub fn shw_job_report(job: *const shw_job, out: *mut *mut shw_report, err: *mut *mut shw_error) -> shw_status;
    /// As shw_collective_decline, as a job: in its turn behind the jobs that the context has, as shw_save_async and shw_load_async would be. The job ends FAILED with what the others were told.
    pub fn shw_collective_decline_async(
        context: *mut shw_context,
        collective: *mut shw_collective,
        call: i32,
        code: shw_status,
        message: *const c_char,
        message_size: u64,
        out: *mut *mut shw_job,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Releases the handle; the job goes on. NULL is allowed.
    pub fn shw_job_release(job: *mut shw_job);
    /// Makes a cancellation for the options of saves, loads and planners. Jobs have shw_job_cancel.
    pub fn shw_cancellation_create(out: *mut *mut shw_cancellation, err: *mut *mut shw_error) -> shw_status;
    /// Asks the calls that were given it to stop and returns at once, also before they begin. Each ends with CANCELLED at its next step; a save that has reached its commit point ends OK. A call into the host's storage or transport is not broken off. May be called any number of times. NULL is skipped.
    pub fn shw_cancellation_cancel(cancellation: *mut shw_cancellation);
    /// Releases the handle; calls that were given it keep what they need. NULL is allowed.
    pub fn shw_cancellation_release(cancellation: *mut shw_cancellation);
    /// Fills a stat with zeros and its size, as SHW_STORAGE_STAT_INIT does. NULL is skipped.
    pub fn shw_storage_stat_init(stat: *mut shw_storage_stat, struct_size: u32);
    /// Fills an entry with zeros and its size, as SHW_STORAGE_ENTRY_INIT does. NULL is skipped.
    pub fn shw_storage_entry_init(entry: *mut shw_storage_entry, struct_size: u32);
    /// Fills a table with zeros, its size and the interface version. NULL is skipped.
    pub fn shw_storage_vtable_init(vtable: *mut shw_storage_vtable, struct_size: u32);
    /// Makes a storage of the files below a directory, which need not exist yet. Keys never leave it.
    pub fn shw_storage_create_posix(
        root: *const c_char,
        out: *mut *mut shw_storage,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Makes an empty storage in memory.
    pub fn shw_storage_create_memory(out: *mut *mut shw_storage, err: *mut *mut shw_error) -> shw_status;
    /// Makes a storage of a host's table, which is copied. On success the storage owns `vtable->user` and calls the table's release once.
    pub fn shw_storage_create(
        vtable: *const shw_storage_vtable,
        out: *mut *mut shw_storage,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Name of the storage, such as "posix". Borrowed until it is released.
    pub fn shw_storage_name(storage: *const shw_storage, size: *mut u64) -> *const c_char;
    /// Capabilities of the storage.
    pub fn shw_storage_capabilities(storage: *const shw_storage) -> u64;
    /// Writes a whole object, durable where the storage is, under one of the SHW_COMMIT_ conditions. `expected_version`, of SHW_COMMIT_IF_VERSION, is what shw_storage_version told. A storage without ATOMIC_COMMIT, or without CONDITIONAL_COMMIT where there is a condition, is FAILED_PRECONDITION.
    pub fn shw_storage_put(
        storage: *mut shw_storage,
        key: *const c_char,
        key_size: u64,
        data: *const c_void,
        size: u64,
        condition: i32,
        expected_version: *const c_char,
        expected_version_size: u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Reads exactly `size` bytes at `offset`; OUT_OF_RANGE when the object ends before.
    pub fn shw_storage_read(
        storage: *mut shw_storage,
        key: *const c_char,
        key_size: u64,
        offset: u64,
        data: *mut c_void,
        size: u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Writes size and time of an object; `out->struct_size` must be set.
    pub fn shw_storage_stat_key(
        storage: *mut shw_storage,
        key: *const c_char,
        key_size: u64,
        out: *mut shw_storage_stat,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Gives the version of an object: opaque UTF-8 text that changes whenever the content does; empty when the storage has no versions.
    pub fn shw_storage_version(
        storage: *mut shw_storage,
        key: *const c_char,
        key_size: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Lists the keys that begin with a prefix, ascending, one per part of `out`. `delimiter` SHW_STORAGE_DELIMITER: one level; what lies deeper is given once, up to and with its next "/".
    pub fn shw_storage_list(
        storage: *mut shw_storage,
        prefix: *const c_char,
        prefix_size: u64,
        delimiter: i32,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Removes an object; a missing key is OK.
    pub fn shw_storage_remove(
        storage: *mut shw_storage,
        key: *const c_char,
        key_size: u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Releases the storage; checkpoints and jobs that use it keep it alive. NULL is allowed.
    pub fn shw_storage_release(storage: *mut shw_storage);
    /// Fills a call with zeros and its size, as SHW_COLLECTIVE_CALL_INIT does. NULL is skipped.
    pub fn shw_collective_call_init(call: *mut shw_collective_call, struct_size: u32);
    /// Fills a table with zeros, its size and the interface version. NULL is skipped.
    pub fn shw_collective_vtable_init(vtable: *mut shw_collective_vtable, struct_size: u32);
    /// Makes the collective of a single rank.
    pub fn shw_collective_create_single(out: *mut *mut shw_collective, err: *mut *mut shw_error) -> shw_status;
    /// Makes `size` ranks in this process, each to be used by a thread of its own.
    pub fn shw_collective_group_create(
        size: i32,
        out: *mut *mut shw_collective_group,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Gives the collective of one rank of the group; each rank can be taken once. A rank whose collective is released while others wait makes them return ABORTED naming it.
    pub fn shw_collective_group_member(
        group: *mut shw_collective_group,
        rank: i32,
        out: *mut *mut shw_collective,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Releases the group; its members live on. NULL is allowed.
    pub fn shw_collective_group_release(group: *mut shw_collective_group);
    /// Makes a collective of a host's table, which is copied. On success the collective owns `vtable->user` and calls the table's release once.
    pub fn shw_collective_create(
        vtable: *const shw_collective_vtable,
        out: *mut *mut shw_collective,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Makes a collective of the ranks of another one through the memory of their machine, where all of them run on one (2 to 64 ranks of one user that reach each other's memory). An operation that takes a network a fraction of a millisecond takes some microseconds there. Where they do not, `out` is another end of the same transport. Collective over `collective`: one all_gather, with `call`. `out` keeps that transport alive and aborts it when it is aborted or fails; until `out` is released the transport is used through it alone. A rank whose process ends is named (UNAVAILABLE) to all that wait for it.
    pub fn shw_collective_create_node(
        collective: *mut shw_collective,
        call: *const shw_collective_call,
        out: *mut *mut shw_collective,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Rank of this end, from 0.
    pub fn shw_collective_rank(collective: *const shw_collective) -> i32;
    /// Number of ranks; 0 for NULL.
    pub fn shw_collective_size(collective: *const shw_collective) -> i32;
    /// Name of the transport, such as "threads". Borrowed until the collective is released.
    pub fn shw_collective_name(collective: *const shw_collective, size: *mut u64) -> *const c_char;
    /// Waits until all ranks are here. `call` NULL = all zero, here and below.
    pub fn shw_collective_barrier(
        collective: *mut shw_collective,
        call: *const shw_collective_call,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Sends the root's bytes to all ranks; `size` is equal on all.
    pub fn shw_collective_broadcast(
        collective: *mut shw_collective,
        call: *const shw_collective_call,
        data: *mut c_void,
        size: u64,
        root: i32,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Gathers `size` bytes of each rank in rank order into `gathered` (size x ranks bytes).
    pub fn shw_collective_all_gather(
        collective: *mut shw_collective,
        call: *const shw_collective_call,
        data: *const c_void,
        size: u64,
        gathered: *mut c_void,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Gathers sizes[rank] bytes of each rank back to back; `sizes` has one value per rank.
    pub fn shw_collective_all_gather_v(
        collective: *mut shw_collective,
        call: *const shw_collective_call,
        data: *const c_void,
        size: u64,
        gathered: *mut c_void,
        sizes: *const u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// The root gets sizes[rank] bytes of each rank back to back in `gathered`. Both are the root's only (one size per rank) and not looked at elsewhere. Sizes that are not those of the ranks are INVALID_ARGUMENT on all of them.
    pub fn shw_collective_gather_v(
        collective: *mut shw_collective,
        call: *const shw_collective_call,
        data: *const c_void,
        size: u64,
        gathered: *mut c_void,
        sizes: *const u64,
        root: i32,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Gives each rank sizes[rank] bytes, which lie back to back in the root's `parts`; the rank gets them in `data`, whose size it knows. `parts` and `sizes` are the root's only (one size per rank) and not looked at elsewhere. Sizes as with gather_v.
    pub fn shw_collective_scatter_v(
        collective: *mut shw_collective,
        call: *const shw_collective_call,
        parts: *const c_void,
        sizes: *const u64,
        data: *mut c_void,
        size: u64,
        root: i32,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Sends sent_sizes[rank] bytes to each rank and receives received_sizes[rank] bytes from it, this rank itself included. The parts lie back to back in rank order in `sent` and in `received`, which have no byte in common; both rows have one size per rank. What a rank expects of another one must be what that one sends it: else all fail with INVALID_ARGUMENT, and no byte moves.
    pub fn shw_collective_all_to_all_v(
        collective: *mut shw_collective,
        call: *const shw_collective_call,
        sent: *const c_void,
        sent_sizes: *const u64,
        received: *mut c_void,
        received_sizes: *const u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Reduces `count` values in place on all ranks with one of the SHW_REDUCE_ operations.
    pub fn shw_collective_all_reduce_i64(
        collective: *mut shw_collective,
        call: *const shw_collective_call,
        values: *mut i64,
        count: u64,
        operation: i32,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Wakes all ranks that wait in this collective; they return `code` with the message.
    pub fn shw_collective_abort(
        collective: *mut shw_collective,
        code: shw_status,
        message: *const c_char,
        message_size: u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Takes part in the save or load (SHW_CALL_) that the other ranks make now, in place of this rank's own call, and tells them that it failed: they return `code` with `message` at once. For a host that finds out, on its way to shw_save or shw_load, that it cannot make the call; those tell the others of their own arguments themselves. Returns when all ranks have heard; nothing happens on a collective of one rank. shw_collective_decline_async goes with jobs. Refused in a callback, as the calls themselves, the collective is aborted, unless a call or job has it.
    pub fn shw_collective_decline(
        collective: *mut shw_collective,
        call: i32,
        code: shw_status,
        message: *const c_char,
        message_size: u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Releases the collective; jobs that use it keep it alive. NULL is allowed.
    pub fn shw_collective_release(collective: *mut shw_collective);
    /// Fills an allocator with zeros and its size, as SHW_ALLOCATOR_INIT does. NULL is skipped.
    pub fn shw_allocator_init(allocator: *mut shw_allocator, struct_size: u32);
    /// Fills options with zeros and their size, as SHW_CONTEXT_OPTIONS_INIT does. NULL is skipped.
    pub fn shw_context_options_init(options: *mut shw_context_options, struct_size: u32);
    /// Makes a context and starts its threads. SHW_PLUGIN_PATH and SHW_LOG (a level name; raises or lowers `log_level`) of the environment are read here only, and never in set-uid processes.
    pub fn shw_context_create(
        options: *const shw_context_options,
        out: *mut *mut shw_context,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Waits for the jobs of the context; cancels what is left when half of `timeout_ns` passed and waits for the rest of it. Afterwards the context takes no new jobs. PENDING when jobs are still running.
    pub fn shw_context_shutdown(context: *mut shw_context, timeout_ns: i64, err: *mut *mut shw_error) -> shw_status;
    /// Loads a plugin: a file when `path` has a "/", else the name of one that is looked for in the directories of the options, of SHW_PLUGIN_PATH, and beside this library, as NAME.shw-plugin.json, then as libshardwright_NAME.so. Loading one twice does nothing.
    pub fn shw_context_load_plugin(
        context: *mut shw_context,
        path: *const c_char,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Lists plugins, loaded or described by a manifest in the search path, as JSON text.
    pub fn shw_context_plugins(
        context: *mut shw_context,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Asks a loaded plugin something that its documentation names; question and answer are text.
    pub fn shw_context_ask_plugin(
        context: *mut shw_context,
        plugin: *const c_char,
        question: *const c_char,
        question_size: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Makes a storage of a loaded plugin; `config` is text that the plugin understands.
    pub fn shw_context_open_storage(
        context: *mut shw_context,
        plugin: *const c_char,
        config: *const c_char,
        config_size: u64,
        out: *mut *mut shw_storage,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Makes a collective of a loaded plugin; `config` is text that the plugin understands.
    pub fn shw_context_open_collective(
        context: *mut shw_context,
        plugin: *const c_char,
        config: *const c_char,
        config_size: u64,
        out: *mut *mut shw_collective,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Releases the context; jobs and checkpoints that use it keep it alive. NULL is allowed.
    pub fn shw_context_release(context: *mut shw_context);
    /// Fills options with zeros and their size, as SHW_SAVE_OPTIONS_INIT does. NULL is skipped.
    pub fn shw_save_options_init(options: *mut shw_save_options, struct_size: u32);
    /// Sets a metadata pair of the options: adds it, or replaces the value of its key. `out` keeps the texts of all pairs, those that were there included, and is released after the last use of the options; what an earlier call for them gave may go at once.
    pub fn shw_save_options_set_metadata(
        options: *mut shw_save_options,
        key: *const c_char,
        value: *const c_char,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Saves the states of all ranks as one checkpoint and returns when it is committed. All ranks return the same status.
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
    /// Starts the save as a job. The memory of the state's tensors must stay unchanged until the job is staged; the collective belongs to the job until it is terminal. The jobs of a context run one after another, so ranks of one process need a context each.
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
    /// Makes the memory into which jobs copy such a state, with all its pages, so that the first one is as fast as those after it. The context keeps it; while a job has it this makes more. RESOURCE_EXHAUSTED when there is not so much.
    pub fn shw_prepare(context: *mut shw_context, state: *const shw_state, err: *mut *mut shw_error) -> shw_status;
    /// Makes the planner of rank `rank` of `world_size`; it keeps context and state alive.
    pub fn shw_save_planner_create(
        context: *mut shw_context,
        state: *const shw_state,
        rank: i32,
        world_size: i32,
        options: *const shw_save_options,
        out: *mut *mut shw_save_planner,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Describes this rank's state: a plan buffer for the rank that calls global_plan.
    pub fn shw_save_planner_local_plan(
        planner: *mut shw_save_planner,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// On the rank that will commit: checks the target, draws the generation and merges the local plans of all ranks (a blob cut by world_size + 1 offsets, rank order). `out` has one part per rank: what that rank gives to finish.
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
    /// Takes this rank's part of the global plan and checks that it fits the state.
    pub fn shw_save_planner_finish(
        planner: *mut shw_save_planner,
        plan: *const c_void,
        plan_size: u64,
        out: *mut *mut shw_plan,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Writes this rank's file. `out` is the result buffer for the rank that commits. When writing fails the error is returned and nothing of this rank is left behind.
    pub fn shw_save_execute(
        planner: *mut shw_save_planner,
        plan: *const shw_plan,
        storage: *mut shw_storage,
        path: *const c_char,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// On the rank that made the global plan: checks the results of all ranks (a blob cut by world_size + 1 offsets, rank order; an empty part = that rank failed) and commits at the path of the global plan, or removes what was written.
    pub fn shw_save_commit(
        planner: *mut shw_save_planner,
        results: *const c_void,
        result_offsets: *const u64,
        result_count: u64,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Releases the planner. NULL is allowed.
    pub fn shw_save_planner_release(planner: *mut shw_save_planner);
    /// Fills options with zeros and their size, as SHW_CHECKPOINT_OPTIONS_INIT does. NULL is skipped.
    pub fn shw_checkpoint_options_init(options: *mut shw_checkpoint_options, struct_size: u32);
    /// Opens a checkpoint and recognises its format. `storage` NULL = `path` is a path of the file system; else it is a key prefix inside the storage. `path` is not kept.
    pub fn shw_checkpoint_open(
        context: *mut shw_context,
        storage: *mut shw_storage,
        path: *const c_char,
        options: *const shw_checkpoint_options,
        out: *mut *mut shw_checkpoint,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Name of the format, such as "native".
    pub fn shw_checkpoint_format(checkpoint: *const shw_checkpoint, size: *mut u64) -> *const c_char;
    /// Generation that is read; "" when the format has none.
    pub fn shw_checkpoint_generation(checkpoint: *const shw_checkpoint, size: *mut u64) -> *const c_char;
    /// Number of ranks that saved it.
    pub fn shw_checkpoint_world_size(checkpoint: *const shw_checkpoint) -> i32;
    /// Time of the save in nanoseconds since 1970 UTC; 0 when unknown.
    pub fn shw_checkpoint_created_ns(checkpoint: *const shw_checkpoint) -> i64;
    /// Number of metadata pairs; they are ordered by key.
    pub fn shw_checkpoint_metadata_count(checkpoint: *const shw_checkpoint) -> u64;
    /// Key of a metadata pair.
    pub fn shw_checkpoint_metadata_key(checkpoint: *const shw_checkpoint, index: u64, size: *mut u64) -> *const c_char;
    /// Value of a metadata pair.
    pub fn shw_checkpoint_metadata_value(
        checkpoint: *const shw_checkpoint,
        index: u64,
        size: *mut u64,
    ) -> *const c_char;
    /// The checkpoint as JSON text with "schema": 1: format, generation, counts, metadata, files, tensors, objects.
    pub fn shw_checkpoint_info(
        checkpoint: *const shw_checkpoint,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Checks the manifest and each file's size, header and index, with SHW_VERIFY_DEEP every byte. All of it is read again, whatever this handle read before. The report says what was read; damage is DATA_LOSS with the place of the first in its details.
    pub fn shw_checkpoint_verify(
        checkpoint: *const shw_checkpoint,
        flags: u64,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// As shw_checkpoint_verify, but lists all damage in the report instead of failing with the first.
    pub fn shw_checkpoint_find_damage(
        checkpoint: *const shw_checkpoint,
        flags: u64,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Finds (with SHW_GC_APPLY removes) generations at a path that its manifest does not name and whose newest file is older than `grace_ns` (0 = 24 hours, -1 = any age). It has the path for itself: it removes nothing and notes it in the report while a save runs there, and saves that begin wait. Without a manifest that it can read it refuses: DATA_LOSS when it is damaged, FAILED_PRECONDITION when there are generations without one, or with less than 24 hours on a storage without locks.
    pub fn shw_checkpoint_gc(
        context: *mut shw_context,
        storage: *mut shw_storage,
        path: *const c_char,
        grace_ns: i64,
        flags: u64,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Finds (with SHW_REMOVE_APPLY removes) tensors and objects of a checkpoint of torch DCP or Megatron whose names begin with `prefix` (UTF-8, not empty) as its index has them, and files that hold nothing else. The index without them, which loses nothing else, is durable before a file goes; digests and integrity.json follow. The report lists the entries with their bytes as removed, and counts the files. It has the path for itself. One that was cut off is ended first.
    pub fn shw_checkpoint_remove(
        context: *mut shw_context,
        storage: *mut shw_storage,
        path: *const c_char,
        prefix: *const c_char,
        flags: u64,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Lists the checkpoints step-NNNNNNNN, and iter_NNNNNNN of Megatron, below a run directory and names the newest whole one, as JSON text with "schema": 1. "tracker" is the text of Megatron's latest_checkpointed_iteration.txt and "tracked" the step that it names; "" for what is not there.
    pub fn shw_checkpoint_list_steps(
        context: *mut shw_context,
        storage: *mut shw_storage,
        path: *const c_char,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Finds the newest whole step of a run directory: `out` is the path to open, `path` joined with step-NNNNNNNN or iter_NNNNNNN. Looks at the newest step first. One that is damaged, uncommitted or no checkpoint is passed over with a warning in the log; when a step cannot be looked at at all, that is the error, so that no older step stands in for it. NOT_FOUND: there is no step, or none is whole.
    pub fn shw_checkpoint_latest(
        context: *mut shw_context,
        storage: *mut shw_storage,
        path: *const c_char,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Releases the checkpoint. NULL is allowed.
    pub fn shw_checkpoint_release(checkpoint: *mut shw_checkpoint);
    /// Fills a struct with zeros and its size, as SHW_TENSOR_INFO_INIT does. NULL is skipped.
    pub fn shw_tensor_info_init(info: *mut shw_tensor_info, struct_size: u32);
    /// Fills a struct with zeros and its size, as SHW_CHUNK_INFO_INIT does. NULL is skipped.
    pub fn shw_chunk_info_init(info: *mut shw_chunk_info, struct_size: u32);
    /// Fills a batch with zeros and its size, as SHW_BOX_BATCH_INIT does. NULL is skipped.
    pub fn shw_box_batch_init(batch: *mut shw_box_batch, struct_size: u32);
    /// Number of tensors.
    pub fn shw_checkpoint_tensor_count(checkpoint: *const shw_checkpoint) -> u64;
    /// Name of a tensor.
    pub fn shw_checkpoint_tensor_name(checkpoint: *const shw_checkpoint, index: u64, size: *mut u64) -> *const c_char;
    /// Nested path of a tensor; "" when it is flat.
    pub fn shw_checkpoint_tensor_path(checkpoint: *const shw_checkpoint, index: u64, size: *mut u64) -> *const c_char;
    /// Extents of a tensor, as many as its info says; NULL when there is no such tensor.
    pub fn shw_checkpoint_tensor_shape(checkpoint: *const shw_checkpoint, index: u64) -> *const i64;
    /// Describes `count` tensors from number `first` on; each `struct_size` must be set and equal.
    pub fn shw_checkpoint_tensor_infos(
        checkpoint: *const shw_checkpoint,
        first: u64,
        count: u64,
        infos: *mut shw_tensor_info,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Gives the names of all tensors, one per part; those of rank-local tensors repeat.
    pub fn shw_checkpoint_tensor_names(
        checkpoint: *const shw_checkpoint,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Finds a tensor by name; `out` receives its number. Of rank-local tensors that of `rank` is taken. NOT_FOUND carries the three nearest names.
    pub fn shw_checkpoint_find_tensor(
        checkpoint: *const shw_checkpoint,
        name: *const c_char,
        name_size: u64,
        rank: i32,
        out: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Number of chunks of all tensors.
    pub fn shw_checkpoint_chunk_count(checkpoint: *const shw_checkpoint) -> u64;
    /// Describes `count` chunks from number `first` on; each `struct_size` must be set and equal. Reads the indexes of files that were not needed before.
    pub fn shw_checkpoint_chunk_infos(
        checkpoint: *const shw_checkpoint,
        first: u64,
        count: u64,
        infos: *mut shw_chunk_info,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Writes the box of a chunk: as many offsets as its tensor has dimensions, then the sizes. `size` receives the number of values; BUFFER_TOO_SMALL when it is above `capacity`.
    pub fn shw_checkpoint_chunk_box(
        checkpoint: *const shw_checkpoint,
        index: u64,
        r#box: *mut i64,
        capacity: u64,
        size: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Number of byte objects.
    pub fn shw_checkpoint_object_count(checkpoint: *const shw_checkpoint) -> u64;
    /// Name of an object.
    pub fn shw_checkpoint_object_name(checkpoint: *const shw_checkpoint, index: u64, size: *mut u64) -> *const c_char;
    /// Nested path of an object; "" when it is flat.
    pub fn shw_checkpoint_object_path(checkpoint: *const shw_checkpoint, index: u64, size: *mut u64) -> *const c_char;
    /// Content type of an object, such as "application/json".
    pub fn shw_checkpoint_object_content_type(
        checkpoint: *const shw_checkpoint,
        index: u64,
        size: *mut u64,
    ) -> *const c_char;
    /// Number of bytes of an object.
    pub fn shw_checkpoint_object_size(checkpoint: *const shw_checkpoint, index: u64) -> u64;
    /// Owner of a rank-local object, else -1.
    pub fn shw_checkpoint_object_rank(checkpoint: *const shw_checkpoint, index: u64) -> i32;
    /// Gives the names of all objects, one per part; those of rank-local objects repeat.
    pub fn shw_checkpoint_object_names(
        checkpoint: *const shw_checkpoint,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Finds an object by name; as shw_checkpoint_find_tensor.
    pub fn shw_checkpoint_find_object(
        checkpoint: *const shw_checkpoint,
        name: *const c_char,
        name_size: u64,
        rank: i32,
        out: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Reads `count` objects (NULL `indices` = 0, 1, ...), one per part of `out`.
    pub fn shw_checkpoint_read_objects(
        checkpoint: *const shw_checkpoint,
        indices: *const u64,
        count: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// What an object is, for people: one JSON object with `content_type`, `bytes` and `value`. JSON is itself; of a pickle, or an archive of torch.save, `value` says what would be made of it, in at most about 256 KiB, and nothing is; text is text, anything else null.
    pub fn shw_checkpoint_describe_object(
        checkpoint: *const shw_checkpoint,
        index: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Reads `size` bytes of an object from `offset` on into one part, fewer only where the object ends: what other formats hold may be larger than memory.
    pub fn shw_checkpoint_read_object_part(
        checkpoint: *const shw_checkpoint,
        index: u64,
        offset: u64,
        size: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Number of data files.
    pub fn shw_checkpoint_file_count(checkpoint: *const shw_checkpoint) -> u64;
    /// Key of a data file, relative to the checkpoint.
    pub fn shw_checkpoint_file_name(checkpoint: *const shw_checkpoint, index: u64, size: *mut u64) -> *const c_char;
    /// Number of bytes of a data file.
    pub fn shw_checkpoint_file_size(checkpoint: *const shw_checkpoint, index: u64) -> u64;
    /// Reads boxes of tensors into memory of the caller. On failure the targets may hold part of the bytes.
    pub fn shw_checkpoint_read_boxes(
        checkpoint: *const shw_checkpoint,
        batch: *const shw_box_batch,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Reads one box (both NULL = the whole tensor) into a new tensor; `ndim` is that of the tensor.
    pub fn shw_checkpoint_read_tensor(
        checkpoint: *const shw_checkpoint,
        index: u64,
        box_offsets: *const i64,
        box_sizes: *const i64,
        ndim: i32,
        out: *mut *mut shw_owned_tensor,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Computes the digests of `count` tensors (NULL `indices` = 0, 1, ...): one part of `out` per tensor, lower-case hexadecimal text that does not depend on layout and format.
    pub fn shw_checkpoint_digests(
        checkpoint: *const shw_checkpoint,
        indices: *const u64,
        count: u64,
        algorithm: i32,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Fills options with zeros and their size, as SHW_LOAD_OPTIONS_INIT does. NULL is skipped.
    pub fn shw_load_options_init(options: *mut shw_load_options, struct_size: u32);
    /// Opens the checkpoint at `path` and fills the state of every rank from it. All ranks return the same status. When it fails after reading began, tensors may hold part of the bytes.
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
    /// Starts the load as a job. State, tensor memory and collective belong to the job until it is terminal.
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
    /// Makes the planner of rank `rank` (which selects rank-local entries); it keeps checkpoint and state alive.
    pub fn shw_load_planner_create(
        checkpoint: *const shw_checkpoint,
        state: *mut shw_state,
        rank: i32,
        options: *const shw_load_options,
        out: *mut *mut shw_load_planner,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Matches what the state wants with what is stored.
    pub fn shw_load_planner_local_plan(
        planner: *mut shw_load_planner,
        out: *mut *mut shw_plan,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Reads what the plan says into the state. A plan of another state or checkpoint is FAILED_PRECONDITION.
    pub fn shw_load_execute(
        planner: *mut shw_load_planner,
        plan: *const shw_plan,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Releases the planner. NULL is allowed.
    pub fn shw_load_planner_release(planner: *mut shw_load_planner);
    /// Fills a round with zeros and its size, as SHW_EXCHANGE_ROUND_INIT does. NULL is skipped.
    pub fn shw_exchange_round_init(round: *mut shw_exchange_round, struct_size: u32);
    /// Lists the stored blocks that the load plan of this planner's rank wants, as a plan of kind SHW_PLAN_WANT_LIST for the rank that plans the exchange. `world_size` is the number of ranks; a rank with less than 2 MiB to read wants nothing from others. A load plan of another state or checkpoint is FAILED_PRECONDITION.
    pub fn shw_load_planner_want_list(
        planner: *mut shw_load_planner,
        load_plan: *const shw_plan,
        world_size: i32,
        out: *mut *mut shw_plan,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Plans the exchange of all ranks from their want lists, `count` in rank order. `plans` has room for `count` plans of kind SHW_PLAN_EXCHANGE, that of rank r at place r: all are written, or none. Lists of other ranks, another number of ranks or different generations are INVALID_ARGUMENT naming the rank. Equal lists give equal plans.
    pub fn shw_exchange_plans(
        want_lists: *const *const shw_plan,
        count: u64,
        plans: *mut *mut shw_plan,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Begins a load of what `load_plan` says whose blocks come as `exchange_plan` says. It keeps what the planner has, its cancellation too, but not the handles; the planner's deadline counts from here. The memory of all rounds is taken here from the memory budget. An exchange plan of another rank or generation, or of other blocks than the load plan wants, and a load plan of another state or checkpoint, are FAILED_PRECONDITION; a budget without room is RESOURCE_EXHAUSTED.
    pub fn shw_load_exchange_create(
        planner: *mut shw_load_planner,
        load_plan: *const shw_plan,
        exchange_plan: *const shw_plan,
        out: *mut *mut shw_load_exchange,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Gives how many rounds there are, the same number on all ranks; 0 where nothing is exchanged.
    pub fn shw_load_exchange_round_count(exchange: *const shw_load_exchange) -> u64;
    /// Begins the next round: what the rank has to read for others in it has been read and checked. A round that has not ended, and one more than there are, are FAILED_PRECONDITION and change nothing; after any other failure, here and below, the load has failed and all calls say so.
    pub fn shw_load_exchange_begin_round(
        exchange: *mut shw_load_exchange,
        out: *mut shw_exchange_round,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Ends the round when `incoming` is filled: what came is checked, unless the planner's `verify` is off, and goes to where it is wanted. The memory of the round may not be used any more. Without a round that has begun it is FAILED_PRECONDITION.
    pub fn shw_load_exchange_end_round(exchange: *mut shw_load_exchange, err: *mut *mut shw_error) -> shw_status;
    /// Reads what is not exchanged, when all rounds have ended, and hands objects to the state. Once; earlier or again it is FAILED_PRECONDITION.
    pub fn shw_load_exchange_finish(
        exchange: *mut shw_load_exchange,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Releases the exchange and the memory of its round; waits for reads that are under way. Tensors hold a part of the bytes where it was not finished. NULL is allowed.
    pub fn shw_load_exchange_release(exchange: *mut shw_load_exchange);
    /// Writes a state as items into a new file `name`, [TEXT]__R_K.GENERATION.distcp, of the directory `path`: each piece of each tensor, empty ones too, then each object. Of the options durability, digests, file_mode, threads, memory_budget, deadline and cancellation count. The first part of `out` has three 8-byte numbers in the machine's order for each item: the entry (of an object its number behind all tensors), then offset and length in the file; the second is for shw_torch_digests_write. After a failure nothing is left.
    pub fn shw_torch_items_write(
        context: *mut shw_context,
        state: *const shw_state,
        storage: *mut shw_storage,
        path: *const c_char,
        name: *const c_char,
        options: *const shw_save_options,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Writes the digests of an index into the directory `path`, as .shardwright.GENERATION.digests. `data` are the `size` bytes that .metadata has, or is going to have: digests count for these very bytes. `results` are second parts of shw_torch_items_write, a blob cut by result_count + 1 offsets; items of the index that are in none of them have no digests. Files of several generations are INVALID_ARGUMENT. Of the options durability counts.
    pub fn shw_torch_digests_write(
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
    ) -> shw_status;
    /// Fills options with zeros and their size, as SHW_CONVERT_OPTIONS_INIT does. NULL is skipped.
    pub fn shw_convert_options_init(options: *mut shw_convert_options, struct_size: u32);
    /// Saves the checkpoint at `source` (of a format that shw_checkpoint_open takes, or of the zarr backend of Megatron-core up to 0.14) to `target`, never inside of it, in another format; the source is only read. Memory is bounded by the budget, but for byte objects. What was written stays when the call fails, and the same call goes on with it; shw_checkpoint_gc removes it. A target that this call has made before is compared and left as it is.
    pub fn shw_convert(
        context: *mut shw_context,
        source_storage: *mut shw_storage,
        source: *const c_char,
        target_storage: *mut shw_storage,
        target: *const c_char,
        options: *const shw_convert_options,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Fills options with zeros and their size, as SHW_RESHARD_OPTIONS_INIT does. NULL is skipped.
    pub fn shw_reshard_options_init(options: *mut shw_reshard_options, struct_size: u32);
    /// Saves the checkpoint of Megatron at `source` to `target` for a job of another shape, optimizer included; the source is only read. What lies in a bucket is proved by its contents. Memory, a killed call and a target that was made before are as in shw_convert.
    pub fn shw_reshard(
        context: *mut shw_context,
        source_storage: *mut shw_storage,
        source: *const c_char,
        target_storage: *mut shw_storage,
        target: *const c_char,
        options: *const shw_reshard_options,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// What the pickles at `path` (a file, or all files below a directory) would import and call if they were unpickled, whether a checkpoint can be opened there or not. `out` is one JSON object: `globals` (each with `module`, `name`, `known`, `calls`, `file`, `record`, `offset`, ...), `unknown` (how many are not known to make plain values), `failures` and `unread` (what could not be looked at to its end), `files`, `pickles`, `notes`.
    pub fn shw_scan_pickles(
        context: *mut shw_context,
        storage: *mut shw_storage,
        path: *const c_char,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Writes files with pickles once more, with None in place of what is not known; the original is only read. Of a file `target` becomes a whole file. Of a directory, indexes of torch DCP and other files with pickles are written below `target`; an index leaves out entries whose items are not clean. `out` is one JSON object: `files`, each with `file`, `replaced` and `left_out`.
    pub fn shw_clean_pickles(
        context: *mut shw_context,
        source_storage: *mut shw_storage,
        source: *const c_char,
        target_storage: *mut shw_storage,
        target: *const c_char,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Fills a batch with zeros and its size, as SHW_ENTRY_BATCH_INIT does. NULL is skipped.
    pub fn shw_entry_batch_init(batch: *mut shw_entry_batch, struct_size: u32);
    /// Fills options with zeros and their size, as SHW_DESCRIBE_OPTIONS_INIT does. NULL is skipped.
    pub fn shw_describe_options_init(options: *mut shw_describe_options, struct_size: u32);
    /// Fills options with zeros and their size, as SHW_MERGE_OPTIONS_INIT does. NULL is skipped.
    pub fn shw_merge_options_init(options: *mut shw_merge_options, struct_size: u32);
    /// Fills options with zeros and their size, as SHW_MATCH_OPTIONS_INIT does. NULL is skipped.
    pub fn shw_match_options_init(options: *mut shw_match_options, struct_size: u32);
    /// Makes a plan buffer, the one part of `out`, of what the entries describe. Equal entries give equal bytes.
    pub fn shw_plan_describe(
        options: *const shw_describe_options,
        entries: *const shw_entry_batch,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// The entries of a local or merged plan as they were described; `out->struct_size` must be set. Arrays that have one value per entry or box are never NULL, except `order`, `secondary`, `attributes` and `digests` where they say nothing. All are borrowed until the plan is released.
    pub fn shw_plan_entries(plan: *const shw_plan, out: *mut shw_entry_batch, err: *mut *mut shw_error) -> shw_status;
    /// Merges the local plans of all ranks (a blob cut by plan_count + 1 offsets, rank order). Part 0 of `out` is the merged plan. Part 1 + r says what rank r keeps: one uint32 for each box of its plan, as shw_plan_entries lists them, the number of its chunk in its tensor (0 for an object), or SHW_NOT_KEPT where another rank writes it. How presets and owners choose and number: docs/planning.md.
    pub fn shw_plan_merge(
        options: *const shw_merge_options,
        plans: *const c_void,
        plan_offsets: *const u64,
        plan_count: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// shw_plan_merge of plans that lie apart, as a transport left them: plan r is the `plan_sizes[r]` bytes at `plans[r]`. Those at a multiple of 8 are read in place.
    pub fn shw_plan_merge_buffers(
        options: *const shw_merge_options,
        plans: *const *const c_void,
        plan_sizes: *const u64,
        plan_count: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Intersects wanted boxes with the chunks of a merged plan, by name. Parts of `out`: 0 numbers of wanted boxes (u64), 1 numbers of chunks in their tensor (u64), 2 offsets inside the wanted box, 3 offsets inside the chunk, 4 sizes (i64, ndim values per match, back to back in the order of the matches), 5 first match of each entry and the end (u64, count + 1). A stored object is one match without dimensions.
    pub fn shw_plan_match(
        options: *const shw_match_options,
        stored: *const shw_plan,
        wanted: *const shw_entry_batch,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Digest of what a local or merged plan describes, 16 bytes: equal for equal entries in equal order on equal ranks, whatever the content digests of the entries are.
    pub fn shw_plan_digest(plan: *const shw_plan, out: *mut *mut shw_buffer, err: *mut *mut shw_error) -> shw_status;
    /// XXH3-128 of `size` bytes in canonical byte order, 16 bytes, as `digests` of entries want it.
    pub fn shw_content_digest(
        data: *const c_void,
        size: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Fills options with zeros and their size, as SHW_ESTIMATE_OPTIONS_INIT does. NULL is skipped.
    pub fn shw_estimate_options_init(options: *mut shw_estimate_options, struct_size: u32);
    /// Reads a JSON description. What is wrong is told with line and column, which are also the details `line` and `column`; keys that are not known are refused with the nearest known one.
    pub fn shw_job_description_create(
        data: *const c_void,
        size: u64,
        out: *mut *mut shw_job_description,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Takes what a checkpoint stores: each chunk is held by the rank that wrote it.
    pub fn shw_job_description_from_checkpoint(
        checkpoint: *const shw_checkpoint,
        out: *mut *mut shw_job_description,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// The tensors and objects of `source` as `target` lays them out: as it lists them, else by the first of its rules that matches.
    pub fn shw_job_description_lay_out(
        source: *const shw_job_description,
        target: *const shw_job_description,
        out: *mut *mut shw_job_description,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Number of ranks; 0 for NULL.
    pub fn shw_job_description_rank_count(description: *const shw_job_description) -> i32;
    /// The JSON text that shw_job_description_create reads, repeats written out.
    pub fn shw_job_description_json(
        description: *const shw_job_description,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Plans the save of all ranks and gives what it costs as JSON text with "schema": 1 (part 0 of `out`). With SHW_ESTIMATE_WITH_PLAN part 1 is the merged plan as a plan buffer.
    pub fn shw_estimate_save(
        description: *const shw_job_description,
        options: *const shw_estimate_options,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Plans the load by the ranks of `wanted` (shw_job_description_lay_out made it from `stored`) of what the checkpoint of `stored` holds, or of what a save of `stored` would store; `wanted` NULL = `stored` itself. What it costs is JSON text with "schema": 1 (part 0 of `out`). With SHW_ESTIMATE_WITH_PLAN part 1 + r is the load plan of rank r as a plan buffer, up to 4 GiB in all; its entries are the tensors and objects that the rank holds, in the order of the description.
    pub fn shw_estimate_load(
        stored: *const shw_job_description,
        wanted: *const shw_job_description,
        options: *const shw_estimate_options,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Releases the description. NULL is allowed.
    pub fn shw_job_description_release(description: *mut shw_job_description);
    /// Describes what `options->rank` of `options->world_size` holds. `layouts` has one layout per entry, NULL where the boxes of `entries` count; `layouts` NULL = no entry has one. An entry with a layout lists no boxes and is of kind SHARDED unless its kind says otherwise or no axis of the layout cuts. `numbers`, `order`, `secondary` and `attributes` are NULL. Parts of `out`: 0 the description (a plan buffer), 1 its digest, 2 this rank's part (a plan buffer), empty when there is none.
    pub fn shw_global_plan_describe(
        options: *const shw_describe_options,
        entries: *const shw_entry_batch,
        layouts: *const *const shw_layout,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Ranks that send their description: the lowest of each distinct digest, ascending by first use (int32, the one part of `out`). `digests` has 16 bytes per rank.
    pub fn shw_global_plan_representatives(
        digests: *const c_void,
        rank_count: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Makes the plan of all ranks. `descriptions` are those of the representatives in their order (a blob cut by description_count + 1 offsets), `parts` those of the ranks that have one, in any order (a blob cut by part_count + 1 offsets; NULL with part_count 0). Of `options`, `owner` is any but ALL, and `cover` FULL.
    pub fn shw_global_plan_create(
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
    ) -> shw_status;
    /// What rank `rank` writes, as a plan buffer of kind WRITE_LIST. An entry is counted among the tensors or among the objects of the rank's entries. `generation` is 32 hex digits; `plan_digest` has the 16 bytes that the list carries, NULL = those of shw_global_plan_digest.
    pub fn shw_global_plan_write_list(
        plan: *const shw_global_plan,
        rank: i32,
        generation: *const c_char,
        plan_digest: *const c_void,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Bytes that each rank writes, without padding (uint64, the one part of `out`).
    pub fn shw_global_plan_rank_bytes(
        plan: *const shw_global_plan,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Rank that writes each chunk of a tensor that is not rank_local, in the order of the explicit catalog (int32, the one part of `out`).
    pub fn shw_global_plan_owners(
        plan: *const shw_global_plan,
        name: *const c_char,
        name_size: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Counts of the plan as JSON text with "schema": 1: ranks, descriptions, tensors, items, chunks, objects, files, bytes, most_bytes (of the rank that writes most).
    pub fn shw_global_plan_json(
        plan: *const shw_global_plan,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Digest of what the plan is made of, 16 bytes: equal on all ranks that made the same plan.
    pub fn shw_global_plan_digest(
        plan: *const shw_global_plan,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// The explicit plan: part 0 of `out` is the merged plan, part 1 + r the write list of rank r, each with the digest of the explicit catalog. Costs what the explicit plan costs.
    pub fn shw_global_plan_expand(
        plan: *const shw_global_plan,
        generation: *const c_char,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Releases the plan. NULL is allowed.
    pub fn shw_global_plan_release(plan: *mut shw_global_plan);
    /// Fills a call with zeros and its size, as SHW_COMMUNICATOR_CALL_INIT does. NULL is skipped.
    pub fn shw_communicator_call_init(call: *mut shw_communicator_call, struct_size: u32);
    /// Fills a table with zeros, its size and the interface version. NULL is skipped.
    pub fn shw_communicator_vtable_init(vtable: *mut shw_communicator_vtable, struct_size: u32);
    /// Makes a communicator of a host's table, which is copied. On success it owns `vtable->user` and calls the table's release once.
    pub fn shw_communicator_create(
        vtable: *const shw_communicator_vtable,
        out: *mut *mut shw_communicator,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Makes `size` ranks in this process, each to be used by a thread of its own.
    pub fn shw_communicator_group_create(
        size: i32,
        out: *mut *mut shw_communicator_group,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Gives the communicator of one rank of the group; each rank can be taken once. A rank whose communicator is released while others wait for it makes them return ABORTED naming it.
    pub fn shw_communicator_group_member(
        group: *mut shw_communicator_group,
        rank: i32,
        out: *mut *mut shw_communicator,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Releases the group; its members live on. NULL is allowed.
    pub fn shw_communicator_group_release(group: *mut shw_communicator_group);
    /// Makes one rank of `size` that moves nothing and always succeeds, for estimates and for checks of what would be issued.
    pub fn shw_communicator_create_fake(
        rank: i32,
        size: i32,
        out: *mut *mut shw_communicator,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Puts a communicator behind an emulated link of this rank: each operation ends `latency_ns` after its bytes have come at `bytes_per_second` (0 = at once). No processor is used meanwhile. `out` keeps `communicator` alive, which is used through it alone.
    pub fn shw_communicator_create_delay(
        communicator: *mut shw_communicator,
        latency_ns: i64,
        bytes_per_second: f64,
        out: *mut *mut shw_communicator,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Makes a communicator over a collective, which it keeps alive: works everywhere, waits for other ranks where an operation is issued.
    pub fn shw_communicator_create_over(
        collective: *mut shw_collective,
        out: *mut *mut shw_communicator,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Makes a communicator of a loaded plugin; `config` is text that the plugin understands.
    pub fn shw_context_open_communicator(
        context: *mut shw_context,
        plugin: *const c_char,
        config: *const c_char,
        config_size: u64,
        out: *mut *mut shw_communicator,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Rank of this end, from 0.
    pub fn shw_communicator_rank(communicator: *const shw_communicator) -> i32;
    /// Number of ranks; 0 for NULL.
    pub fn shw_communicator_size(communicator: *const shw_communicator) -> i32;
    /// SHW_COMMUNICATOR_ bits.
    pub fn shw_communicator_capabilities(communicator: *const shw_communicator) -> u64;
    /// Name of the transport, such as "threads". Borrowed until the communicator is released.
    pub fn shw_communicator_name(communicator: *const shw_communicator, size: *mut u64) -> *const c_char;
    /// Issues all_gather: `in` has call->count elements, `out` those of all ranks in rank order. Sizes are in bytes, here and below, and those that count and dtype say.
    pub fn shw_communicator_all_gather(
        communicator: *mut shw_communicator,
        call: *const shw_communicator_call,
        r#in: *const c_void,
        in_size: u64,
        out: *mut c_void,
        out_size: u64,
        out_work: *mut *mut shw_work,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Issues all_to_all: `in` and `out` have call->count elements for and from each rank.
    pub fn shw_communicator_all_to_all(
        communicator: *mut shw_communicator,
        call: *const shw_communicator_call,
        r#in: *const c_void,
        in_size: u64,
        out: *mut c_void,
        out_size: u64,
        out_work: *mut *mut shw_work,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Issues reduce_scatter: `in` has call->count elements for each rank, `out` call->count elements, reduced as call->op says.
    pub fn shw_communicator_reduce_scatter(
        communicator: *mut shw_communicator,
        call: *const shw_communicator_call,
        r#in: *const c_void,
        in_size: u64,
        out: *mut c_void,
        out_size: u64,
        out_work: *mut *mut shw_work,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Issues all_reduce of call->count elements in place.
    pub fn shw_communicator_all_reduce(
        communicator: *mut shw_communicator,
        call: *const shw_communicator_call,
        data: *mut c_void,
        size: u64,
        out_work: *mut *mut shw_work,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Issues broadcast of call->count elements of the root, in place.
    pub fn shw_communicator_broadcast(
        communicator: *mut shw_communicator,
        call: *const shw_communicator_call,
        data: *mut c_void,
        size: u64,
        root: i32,
        out_work: *mut *mut shw_work,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Issues a barrier, which ends when all ranks have issued it.
    pub fn shw_communicator_barrier(
        communicator: *mut shw_communicator,
        call: *const shw_communicator_call,
        out_work: *mut *mut shw_work,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Wakes all ranks that wait in this communicator, and ends it; they return `code` with the message.
    pub fn shw_communicator_abort(
        communicator: *mut shw_communicator,
        code: shw_status,
        message: *const c_char,
        message_size: u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Releases the communicator; works, meshes and other communicators that use it keep it alive. NULL is allowed.
    pub fn shw_communicator_release(communicator: *mut shw_communicator);
    /// Waits until the operation has ended: OK; PENDING after `timeout_ns` (-1 = no limit but that of the operation). A failure is returned again at each further call.
    pub fn shw_work_wait(work: *mut shw_work, timeout_ns: i64, err: *mut *mut shw_error) -> shw_status;
    /// The same without waiting: OK or PENDING.
    pub fn shw_work_poll(work: *mut shw_work, err: *mut *mut shw_error) -> shw_status;
    /// A stream of a device goes on after the operation, and the host does not wait; for memory of the host it waits.
    pub fn shw_work_order(work: *mut shw_work, stream: u64, err: *mut *mut shw_error) -> shw_status;
    /// Releases the work; one that has not ended is given up, and where other ranks still need this one the communicator has failed. NULL is allowed.
    pub fn shw_work_release(work: *mut shw_work);
    /// Fills a table with zeros, its size and the interface version. NULL is skipped.
    pub fn shw_device_vtable_init(vtable: *mut shw_device_vtable, struct_size: u32);
    /// Makes a device of a host's table, which is copied. On success it owns `vtable->user` and calls the table's release once.
    pub fn shw_device_create(
        vtable: *const shw_device_vtable,
        out: *mut *mut shw_device,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Makes the host as a device. Lanes are threads; with `inline_lanes` 1 what is put on them runs where it is put, which makes an order of events that repeats.
    pub fn shw_device_create_host(
        inline_lanes: shw_bool,
        out: *mut *mut shw_device,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Makes a device of a loaded plugin; `config` is text that the plugin understands.
    pub fn shw_context_open_device(
        context: *mut shw_context,
        plugin: *const c_char,
        config: *const c_char,
        config_size: u64,
        out: *mut *mut shw_device,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Name of the device, such as "host". Borrowed until the device is released.
    pub fn shw_device_name(device: *const shw_device, size: *mut u64) -> *const c_char;
    /// Where memory of the device lies: one of SHW_DEVICE_CPU and its like, and which device of that kind. What lies there enters and leaves with these numbers (shw_tensor, DLPack). 0 for NULL.
    pub fn shw_device_type(device: *const shw_device) -> i32;
    /// As shw_device_type, the number among devices of its type, from 0 on.
    pub fn shw_device_id(device: *const shw_device) -> i32;
    /// Releases the device; contexts of HSDP that use it keep it alive. NULL is allowed.
    pub fn shw_device_release(device: *mut shw_device);
    /// Fills options with zeros and their size, as SHW_HSDP_OPTIONS_INIT does. NULL is skipped.
    pub fn shw_hsdp_options_init(options: *mut shw_hsdp_options, struct_size: u32);
    /// Makes the mesh of `rank`, which is one of its ranks. Of `spec` the fields of the mesh count: shape, axis names, ranks; the others are NULL or zero.
    pub fn shw_hsdp_mesh_create(
        spec: *const shw_layout_spec,
        rank: i32,
        out: *mut *mut shw_hsdp_mesh,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Sets the communicator of an axis for a lane (SHW_HSDP_LANE_); it stays alive with the mesh. Its ranks are those along the axis in the order of their coordinates; for SHW_HSDP_LANE_SECONDARY the n neighbours [k n, k n + n) with this rank among them, for each n that units use. Before the context is created, and again between a failure and shw_hsdp_reset.
    pub fn shw_hsdp_mesh_set_communicator(
        mesh: *mut shw_hsdp_mesh,
        axis: i32,
        lane: i32,
        communicator: *mut shw_communicator,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Releases the mesh; contexts keep it alive. NULL is allowed.
    pub fn shw_hsdp_mesh_release(mesh: *mut shw_hsdp_mesh);
    /// Makes a context of units, which keeps `context`, mesh and device alive. FAILED_PRECONDITION: an axis of several ranks has no communicator, or one that does not sum in rank order.
    pub fn shw_hsdp_create(
        context: *mut shw_context,
        options: *const shw_hsdp_options,
        out: *mut *mut shw_hsdp,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// The backward is over: reduces what was not reduced yet. In the last backward of an iteration (see SHW_HSDP_IS_LAST_BACKWARD) also waits for all reductions, drops what was gathered in vain, and in the first iterations compares with the other ranks in which order units ran (ABORTED naming the first unit that differs and both ranks).
    pub fn shw_hsdp_finalize_backward(hsdp: *mut shw_hsdp, err: *mut *mut shw_error) -> shw_status;
    /// Parameters of the shards have changed (an optimizer step, a load): what was gathered before is of no use. Shards of a unit that is being gathered stay as they are: a host that may have asked for that calls this before the change, too. `event` of the device after which they are there, 0 = they are there, and what wrote them has ended. FAILED_PRECONDITION names a unit whose gradients still wait for the replicas.
    pub fn shw_hsdp_step_event(hsdp: *mut shw_hsdp, event: u64, err: *mut *mut shw_error) -> shw_status;
    /// Recovery, on all ranks: gives up what is under way and drops all gradients and all that was gathered. After a failure the mesh needs new communicators first (FAILED_PRECONDITION names one that has failed).
    pub fn shw_hsdp_reset(hsdp: *mut shw_hsdp, err: *mut *mut shw_error) -> shw_status;
    /// Norm of order `p` (positive; infinity: the largest) of the gradients of all shards, replicas counted once; equal on all ranks. Collective over the shard axis.
    pub fn shw_hsdp_global_norm(hsdp: *mut shw_hsdp, p: f64, out: *mut f64, err: *mut *mut shw_error) -> shw_status;
    /// Multiplies all gradients of the shards by a finite factor.
    pub fn shw_hsdp_scale_grads(hsdp: *mut shw_hsdp, factor: f64, err: *mut *mut shw_error) -> shw_status;
    /// Drops all gradients of the shards.
    pub fn shw_hsdp_zero_grads(hsdp: *mut shw_hsdp, err: *mut *mut shw_error) -> shw_status;
    /// Sets a value of the context (SHW_HSDP_MAX_INFLIGHT_REDUCE, SHW_HSDP_PREFETCH_DEPTH, SHW_HSDP_IS_LAST_BACKWARD), or one of shw_hsdp_unit_set_i64 in all units. Equal on all ranks.
    pub fn shw_hsdp_set_i64(hsdp: *mut shw_hsdp, key: i32, value: i64, err: *mut *mut shw_error) -> shw_status;
    /// The value of the context that shw_hsdp_set_i64 sets (SHW_HSDP_MAX_INFLIGHT_REDUCE, SHW_HSDP_PREFETCH_DEPTH, SHW_HSDP_IS_LAST_BACKWARD); those of units are read of each.
    pub fn shw_hsdp_get_i64(hsdp: *const shw_hsdp, key: i32, out: *mut i64, err: *mut *mut shw_error) -> shw_status;
    /// Sets one of the values of shw_hsdp_unit_set_f64 in all units. Equal on all ranks.
    pub fn shw_hsdp_set_f64(hsdp: *mut shw_hsdp, key: i32, value: f64, err: *mut *mut shw_error) -> shw_status;
    /// Adds what this rank holds of all sealed units to a state, under `prefix` (`prefix_size` bytes; "" = none) followed by the names of the parameters; aliases are one entry. Memory is borrowed: the state keeps the context alive. Where it lies on a device, saves and loads copy it by that device, and so tensors that are added later and lie there. Entries have the layout of their shards, those of ragged units boxes; padding is in none. After a load call shw_hsdp_step_event. `what`: SHW_HSDP_PARAMS, or SHW_HSDP_GRADS, for which FAILED_PRECONDITION names a unit whose gradients still travel or wait for the replicas.
    pub fn shw_hsdp_add_to_state(
        hsdp: *mut shw_hsdp,
        prefix: *const c_char,
        prefix_size: u64,
        what: i32,
        state: *mut shw_state,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Releases the context: what is under way is given up, and other ranks that wait for it are told. Its units, works and states keep it alive. NULL is allowed.
    pub fn shw_hsdp_release(hsdp: *mut shw_hsdp);
    /// Fills a struct with zeros and its size, as its INIT macro does. NULL is skipped.
    pub fn shw_hsdp_unit_options_init(options: *mut shw_hsdp_unit_options, struct_size: u32);
    /// As shw_hsdp_unit_options_init.
    pub fn shw_hsdp_param_batch_init(batch: *mut shw_hsdp_param_batch, struct_size: u32);
    /// As shw_hsdp_unit_options_init.
    pub fn shw_hsdp_box_init(r#box: *mut shw_hsdp_box, struct_size: u32);
    /// As shw_hsdp_unit_options_init.
    pub fn shw_hsdp_allocator_init(allocator: *mut shw_hsdp_allocator, struct_size: u32);
    /// Makes a unit. Its name is for messages, and equal on all ranks.
    pub fn shw_hsdp_unit_create(
        hsdp: *mut shw_hsdp,
        name: *const c_char,
        name_size: u64,
        options: *const shw_hsdp_unit_options,
        out: *mut *mut shw_hsdp_unit,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Adds all parameters of the batch or none; they are numbered from 0 in the order in which they are added. Full tensors are borrowed until the unit is sealed, names copied.
    pub fn shw_hsdp_unit_add_params(
        unit: *mut shw_hsdp_unit,
        batch: *const shw_hsdp_param_batch,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// As shw_hsdp_unit_add_params with versioned DLPack tensors, `batch->count` of them, in place of `batch->tensors`. On success all are consumed: their deleters run once when the unit is sealed or ends.
    pub fn shw_hsdp_unit_add_params_dlpack(
        unit: *mut shw_hsdp_unit,
        batch: *const shw_hsdp_param_batch,
        managed: *const *mut DLManagedTensorVersioned,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// As shw_hsdp_unit_add_params_dlpack with legacy DLPack tensors.
    pub fn shw_hsdp_unit_add_params_dlpack_legacy(
        unit: *mut shw_hsdp_unit,
        batch: *const shw_hsdp_param_batch,
        managed: *const *mut DLManagedTensor,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Whole parameters lie in memory that the host gives from now on, which is memory of the context's device. The table is copied; on success the unit owns `allocator->user` and calls its release once. Called on the thread that calls the unit.
    pub fn shw_hsdp_unit_set_allocator(
        unit: *mut shw_hsdp_unit,
        allocator: *const shw_hsdp_allocator,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Lays the unit out, compares that on all ranks (INVALID_ARGUMENT on all of them, naming the unit and a rank that differs), makes the shards and fills them.
    pub fn shw_hsdp_unit_seal(unit: *mut shw_hsdp_unit, err: *mut *mut shw_error) -> shw_status;
    /// Number of parameters.
    pub fn shw_hsdp_unit_param_count(unit: *const shw_hsdp_unit) -> u64;
    /// Name of a parameter of a sealed unit; "" when there is none. Borrowed until the unit is released.
    pub fn shw_hsdp_unit_param_name(unit: *const shw_hsdp_unit, index: u64, size: *mut u64) -> *const c_char;
    /// What this rank holds of a parameter.
    pub fn shw_hsdp_unit_box(
        unit: *mut shw_hsdp_unit,
        index: u64,
        out: *mut shw_hsdp_box,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Layout of a parameter over the mesh, for state of the host that is cut as the parameter is, such as that of an optimizer. UNIMPLEMENTED: the cut of a ragged unit is no rule of a mesh; use shw_hsdp_unit_box.
    pub fn shw_hsdp_unit_layout(
        unit: *mut shw_hsdp_unit,
        index: u64,
        out: *mut *mut shw_layout,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Releases the unit; it goes on in its context, which keeps its parameters and runs it no more. NULL is allowed.
    pub fn shw_hsdp_unit_release(unit: *mut shw_hsdp_unit);
    /// Fills options with zeros and their size, as SHW_HSDP_PHASE_OPTIONS_INIT does. NULL is skipped.
    pub fn shw_hsdp_phase_options_init(options: *mut shw_hsdp_phase_options, struct_size: u32);
    /// Before forward of the unit: waits for its whole parameters, and gathers what probably comes next.
    pub fn shw_hsdp_unit_pre_forward(
        unit: *mut shw_hsdp_unit,
        options: *const shw_hsdp_phase_options,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// After forward of the unit: reshards as its policy says.
    pub fn shw_hsdp_unit_post_forward(
        unit: *mut shw_hsdp_unit,
        options: *const shw_hsdp_phase_options,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Before backward of the unit: waits for its whole parameters, and gathers what ran before it.
    pub fn shw_hsdp_unit_pre_backward(unit: *mut shw_hsdp_unit, err: *mut *mut shw_error) -> shw_status;
    /// After backward of the unit, its gradients were handed in: reduces and reshards as the settings say. A second call within one backward does nothing.
    pub fn shw_hsdp_unit_post_backward(unit: *mut shw_hsdp_unit, err: *mut *mut shw_error) -> shw_status;
    /// Gathers. `out` NULL: returns when the unit is UNSHARDED; else the gather is under way, and waiting for the work makes the unit UNSHARDED. The shards of all ranks stay as they are until then.
    pub fn shw_hsdp_unit_unshard(
        unit: *mut shw_hsdp_unit,
        out: *mut *mut shw_work,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Waits for a gather under way; nothing where there is none.
    pub fn shw_hsdp_unit_wait(unit: *mut shw_hsdp_unit, err: *mut *mut shw_error) -> shw_status;
    /// Reshards in a phase (SHW_HSDP_FORWARD, SHW_HSDP_BACKWARD). A gather under way is waited for and dropped; its work does nothing then.
    pub fn shw_hsdp_unit_reshard(unit: *mut shw_hsdp_unit, phase: i32, err: *mut *mut shw_error) -> shw_status;
    /// Hands in gradients of whole parameters, all or none: `grads[i]` (dense, row-major, of the global shape and any floating dtype) is that of parameter `params[i]`. It lies in memory of the host or of the context's device, where what wrote it has ended (`stream` 0). `mode`: SHW_HSDP_ADD or SHW_HSDP_TAKE, which copies what does not lie in the context's memory.
    pub fn shw_hsdp_unit_add_grads(
        unit: *mut shw_hsdp_unit,
        params: *const u64,
        grads: *const shw_tensor,
        count: u64,
        mode: i32,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// As shw_hsdp_unit_add_grads with versioned DLPack tensors. On success all are consumed: their deleters run once when they are not read any more.
    pub fn shw_hsdp_unit_add_grads_dlpack(
        unit: *mut shw_hsdp_unit,
        params: *const u64,
        managed: *const *mut DLManagedTensorVersioned,
        count: u64,
        mode: i32,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// As shw_hsdp_unit_add_grads_dlpack with legacy DLPack tensors.
    pub fn shw_hsdp_unit_add_grads_dlpack_legacy(
        unit: *mut shw_hsdp_unit,
        params: *const u64,
        managed: *const *mut DLManagedTensor,
        count: u64,
        mode: i32,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Packs the gradients that were handed in, reshards, and reduces. `out` NULL: returns when they are in the gradient of the shard (or in the partial sum); else waiting for the work brings them there. So does polling it, until it is OK, as far as nothing waits for other ranks: sums over replicas by a transport that is not asynchronous (SHW_COMMUNICATOR_ASYNC) begin in a wait. Both change the unit, so they are calls of its context.
    pub fn shw_hsdp_unit_reduce(
        unit: *mut shw_hsdp_unit,
        out: *mut *mut shw_work,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// State of the unit, SHW_HSDP_SHARDED to SHW_HSDP_SECONDARY.
    pub fn shw_hsdp_unit_state(unit: *const shw_hsdp_unit) -> i32;
    /// How far its gradients are, SHW_HSDP_GRAD_; where several are under way, the furthest.
    pub fn shw_hsdp_unit_grad_state(unit: *const shw_hsdp_unit) -> i32;
    /// Describes `count` parameters from `first` on as SHW_HSDP_VIEW_ says: dense, row-major, padding excluded, on the context's device (`device_type`, `device_id`), where the library has written all of it. Memory is borrowed until the unit's state changes next, shapes until it is released. `data` is NULL where there is no gradient. Whole parameters are there only while UNSHARDED.
    pub fn shw_hsdp_unit_views(
        unit: *mut shw_hsdp_unit,
        view: i32,
        first: u64,
        count: u64,
        out: *mut shw_tensor,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// One view as a versioned DLPack tensor, which keeps the context alive. A gradient stays as it is when shw_hsdp_zero_grads has dropped it, for as long as the tensor lives: a host takes gradients without a copy by exporting and dropping them. FAILED_PRECONDITION where there is no gradient.
    pub fn shw_hsdp_unit_view_dlpack(
        unit: *mut shw_hsdp_unit,
        view: i32,
        index: u64,
        out: *mut *mut DLManagedTensorVersioned,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// As shw_hsdp_unit_view_dlpack, a legacy DLPack tensor.
    pub fn shw_hsdp_unit_view_dlpack_legacy(
        unit: *mut shw_hsdp_unit,
        view: i32,
        index: u64,
        out: *mut *mut DLManagedTensor,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Gives memory of the context's device for the whole parameters from `first` on, `sizes[i]` bytes at `memory[i]`, to a unit made with SHW_HSDP_UNIT_HOST_MEMORY; it is used whenever the unit is gathered from now on. While the unit is not UNSHARDED the host may free or move it, and gives it anew before the next gather is waited for. For hosts to which a call of shw_hsdp_allocator is expensive.
    pub fn shw_hsdp_unit_set_memory(
        unit: *mut shw_hsdp_unit,
        first: u64,
        count: u64,
        memory: *const *mut c_void,
        sizes: *const u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Sets a value of the unit, SHW_HSDP_REQUIRES_GRADIENT_SYNC to SHW_HSDP_UNUSED_POLICY, from now on and equally on all ranks.
    pub fn shw_hsdp_unit_set_i64(
        unit: *mut shw_hsdp_unit,
        key: i32,
        value: i64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// The value that shw_hsdp_unit_set_i64 sets.
    pub fn shw_hsdp_unit_get_i64(
        unit: *const shw_hsdp_unit,
        key: i32,
        out: *mut i64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// The value that shw_hsdp_unit_set_f64 sets.
    pub fn shw_hsdp_unit_get_f64(
        unit: *const shw_hsdp_unit,
        key: i32,
        out: *mut f64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Sets SHW_HSDP_DIVIDE_FACTOR of the unit.
    pub fn shw_hsdp_unit_set_f64(
        unit: *mut shw_hsdp_unit,
        key: i32,
        value: f64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Sets the units that are gathered ahead when this one runs (SHW_HSDP_FORWARD_PREFETCH, SHW_HSDP_BACKWARD_PREFETCH), in place of what the last iteration foretells; none restores that.
    pub fn shw_hsdp_unit_set_units(
        unit: *mut shw_hsdp_unit,
        key: i32,
        units: *const *mut shw_hsdp_unit,
        count: u64,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// A parameter gets no gradients, or gets them again, from the next pre_forward on.
    pub fn shw_hsdp_unit_set_frozen(
        unit: *mut shw_hsdp_unit,
        index: u64,
        frozen: shw_bool,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Fills a struct with zeros and its size, as its INIT macro does. NULL is skipped.
    pub fn shw_hsdp_memory_init(memory: *mut shw_hsdp_memory, struct_size: u32);
    /// As shw_hsdp_memory_init.
    pub fn shw_hsdp_estimate_unit_init(unit: *mut shw_hsdp_estimate_unit, struct_size: u32);
    /// As shw_hsdp_memory_init.
    pub fn shw_hsdp_estimate_world_init(world: *mut shw_hsdp_estimate_world, struct_size: u32);
    /// Foretells what one rank holds in iterations in which `count` units run forward in their order and backward in the reverse one, and gradients of the shards are dropped before the next: `out` is what shw_hsdp_stats would say of `kind` (SHW_HSDP_MEMORY_), padding aside; what a transport allocates is not in it. `mesh` and `device` of `options` are not looked at, its axes only as far as they are -1. `options` of a unit may be NULL.
    pub fn shw_hsdp_estimate(
        units: *const shw_hsdp_estimate_unit,
        count: u64,
        world: *const shw_hsdp_estimate_world,
        options: *const shw_hsdp_options,
        kind: i32,
        out: *mut shw_hsdp_memory,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Memory that is and was held for one kind (SHW_HSDP_MEMORY_) in all units of a context, of its device: what offloaded units have in memory of the host beside one is not counted. Padding and unsharded units are told for SHW_HSDP_MEMORY_ALL.
    pub fn shw_hsdp_stats(
        hsdp: *const shw_hsdp,
        kind: i32,
        out: *mut shw_hsdp_memory,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Memory that is and was held for one unit, padding included.
    pub fn shw_hsdp_unit_stats(
        unit: *const shw_hsdp_unit,
        out: *mut shw_hsdp_memory,
        err: *mut *mut shw_error,
    ) -> shw_status;
    /// Fills a struct with zeros, its size and the interface version. NULL is skipped.
    pub fn shw_plugin_init(plugin: *mut shw_plugin, struct_size: u32);
}

#[cfg(feature = "load-dynamic")]
pub use dispatch::*;

/// The same functions through the table, once a library was loaded.
#[cfg(feature = "load-dynamic")]
mod dispatch {
    use super::*;
    use crate::loader::table;

    /// Writes the interface version of the loaded library. NULL pointers are skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_abi_version(major: *mut u32, minor: *mut u32) {
        unsafe { (table().abi_version.unwrap_unchecked())(major, minor) }
    }

    /// Release of the loaded library as static text, such as "0.1.0".
    /// # Safety
    /// As in C.
    pub unsafe fn shw_version_string() -> *const c_char {
        unsafe { (table().version_string.unwrap_unchecked())() }
    }

    /// Static JSON text that says how the library was built: commit, compiler, engines of I/O, plugins.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_build_info() -> *const c_char {
        unsafe { (table().build_info.unwrap_unchecked())() }
    }

    /// Static name of a status without prefix, such as "NOT_FOUND"; "UNRECOGNISED" for other numbers.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_status_name(status: shw_status) -> *const c_char {
        unsafe { (table().status_name.unwrap_unchecked())(status) }
    }

    /// Code of the error; 0 for NULL.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_error_code(error: *const shw_error) -> shw_status {
        unsafe { (table().error_code.unwrap_unchecked())(error) }
    }

    /// Message of the error, outermost sentence first; borrowed until the error is released.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_error_message(error: *const shw_error, size: *mut u64) -> *const c_char {
        unsafe { (table().error_message.unwrap_unchecked())(error, size) }
    }

    /// Number of details of the error.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_error_detail_count(error: *const shw_error) -> u64 {
        unsafe { (table().error_detail_count.unwrap_unchecked())(error) }
    }

    /// Writes detail `index` (from 0) to `out`, borrowed until the error is released. Answers OUT_OF_RANGE, `out` untouched, when there is no such detail.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_error_detail_at(error: *const shw_error, index: u64, out: *mut shw_error_detail) -> shw_status {
        unsafe { (table().error_detail_at.unwrap_unchecked())(error, index, out) }
    }

    /// 1 when the same call may succeed if it is repeated from its start.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_error_is_retryable(error: *const shw_error) -> shw_bool {
        unsafe { (table().error_is_retryable.unwrap_unchecked())(error) }
    }

    /// Error that caused this one, borrowed until this one is released; NULL when there is none.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_error_cause(error: *const shw_error) -> *const shw_error {
        unsafe { (table().error_cause.unwrap_unchecked())(error) }
    }

    /// Call stack of the place that made the error; empty in release builds.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_error_backtrace(error: *const shw_error, size: *mut u64) -> *const c_char {
        unsafe { (table().error_backtrace.unwrap_unchecked())(error, size) }
    }

    /// Makes an error in the library's allocator and returns `code`, so that a callback can end with this call. Texts are copied; `cause` moves in. Never fails for lack of memory: the static out-of-memory error is given then. Code OK or NULL `out` is INVALID_ARGUMENT, nothing is made.
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

    /// Releases an error and its causes. NULL is allowed.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_error_release(error: *mut shw_error) {
        unsafe { (table().error_release.unwrap_unchecked())(error) }
    }

    /// Gives the functions of an extension, such as shw_megatron_api for "megatron"; they live for the process. NOT_FOUND names the extensions that there are. Versions are whole: another one than the library's is UNIMPLEMENTED with both.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_get_extension(
        name: *const c_char,
        version: u32,
        out: *mut *const c_void,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().get_extension.unwrap_unchecked())(name, version, out, err) }
    }

    /// Makes a buffer of one part by copying `size` bytes.
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

    /// Makes a buffer by copying a blob that `offsets` (part_count + 1 ascending values, the first 0) cuts into parts.
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

    /// First byte of the buffer, aligned to 64 bytes and followed by a NUL; borrowed until release.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_buffer_data(buffer: *const shw_buffer) -> *const c_void {
        unsafe { (table().buffer_data.unwrap_unchecked())(buffer) }
    }

    /// Number of bytes of all parts together.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_buffer_size(buffer: *const shw_buffer) -> u64 {
        unsafe { (table().buffer_size.unwrap_unchecked())(buffer) }
    }

    /// Number of parts.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_buffer_part_count(buffer: *const shw_buffer) -> u64 {
        unsafe { (table().buffer_part_count.unwrap_unchecked())(buffer) }
    }

    /// Offsets of the parts, part_count + 1 ascending values; borrowed until release.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_buffer_part_offsets(buffer: *const shw_buffer) -> *const u64 {
        unsafe { (table().buffer_part_offsets.unwrap_unchecked())(buffer) }
    }

    /// First byte of part `index`; NULL when there is no such part. Borrowed until release.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_buffer_part_data(buffer: *const shw_buffer, index: u64) -> *const c_void {
        unsafe { (table().buffer_part_data.unwrap_unchecked())(buffer, index) }
    }

    /// Number of bytes of part `index`; 0 when there is no such part.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_buffer_part_size(buffer: *const shw_buffer, index: u64) -> u64 {
        unsafe { (table().buffer_part_size.unwrap_unchecked())(buffer, index) }
    }

    /// Releases the buffer. NULL is allowed.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_buffer_release(buffer: *mut shw_buffer) {
        unsafe { (table().buffer_release.unwrap_unchecked())(buffer) }
    }

    /// Fills a record with zeros and its size, as SHW_LOG_RECORD_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_log_record_init(record: *mut shw_log_record, struct_size: u32) {
        unsafe { (table().log_record_init.unwrap_unchecked())(record, struct_size) }
    }

    /// Fills a descriptor with zeros and its size, as SHW_TENSOR_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_tensor_init(tensor: *mut shw_tensor, struct_size: u32) {
        unsafe { (table().tensor_init.unwrap_unchecked())(tensor, struct_size) }
    }

    /// Checks a descriptor: size, flags, dtype, device, shape, strides, extents, addresses.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_tensor_check(tensor: *const shw_tensor, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().tensor_check.unwrap_unchecked())(tensor, err) }
    }

    /// Describes a versioned DLPack tensor; nothing is consumed, `out` borrows from `managed`.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_tensor_from_dlpack(
        managed: *const DLManagedTensorVersioned,
        out: *mut shw_tensor,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().tensor_from_dlpack.unwrap_unchecked())(managed, out, err) }
    }

    /// Describes a legacy DLPack tensor; nothing is consumed, `out` borrows from `managed`.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_tensor_from_dlpack_legacy(
        managed: *const DLManagedTensor,
        out: *mut shw_tensor,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().tensor_from_dlpack_legacy.unwrap_unchecked())(managed, out, err) }
    }

    /// Static name of a dtype, such as "bfloat16"; "" when there is no such dtype.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_dtype_name(dtype: i32) -> *const c_char {
        unsafe { (table().dtype_name.unwrap_unchecked())(dtype) }
    }

    /// Finds the dtype of a name.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_dtype_parse(name: *const c_char, out: *mut i32, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().dtype_parse.unwrap_unchecked())(name, out, err) }
    }

    /// Bits of one element, 4 to 128; 0 when there is no such dtype.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_dtype_bits(dtype: i32) -> u32 {
        unsafe { (table().dtype_bits.unwrap_unchecked())(dtype) }
    }

    /// Bytes that `element_count` packed elements take, rounded up; 0 for an unknown dtype or overflow.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_dtype_byte_size(dtype: i32, element_count: u64) -> u64 {
        unsafe { (table().dtype_byte_size.unwrap_unchecked())(dtype, element_count) }
    }

    /// Dtype of a DLDataType of DLPack, given as code + 256 * bits + 65536 * lanes, which are its bytes in memory; 0 when there is none: opaque elements, lanes other than 1, unknown codes.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_dtype_from_dlpack(r#type: u32) -> i32 {
        unsafe { (table().dtype_from_dlpack.unwrap_unchecked())(r#type) }
    }

    /// DLDataType of a dtype, as shw_dtype_from_dlpack takes it; 0 when there is no such dtype.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_dtype_to_dlpack(dtype: i32) -> u32 {
        unsafe { (table().dtype_to_dlpack.unwrap_unchecked())(dtype) }
    }

    /// Makes a host tensor filled with zeros; its first byte is aligned to 4096 bytes.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_owned_tensor_create(
        dtype: i32,
        shape: *const i64,
        ndim: i32,
        out: *mut *mut shw_owned_tensor,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().owned_tensor_create.unwrap_unchecked())(dtype, shape, ndim, out, err) }
    }

    /// Describes the tensor; `out` borrows data and shape until the tensor is released.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_owned_tensor_describe(
        tensor: *const shw_owned_tensor,
        out: *mut shw_tensor,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().owned_tensor_describe.unwrap_unchecked())(tensor, out, err) }
    }

    /// Exports the tensor as versioned DLPack; it keeps the bytes alive until its deleter is called, which may happen on any thread and after the release of this handle.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_owned_tensor_dlpack(
        tensor: *const shw_owned_tensor,
        out: *mut *mut DLManagedTensorVersioned,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().owned_tensor_dlpack.unwrap_unchecked())(tensor, out, err) }
    }

    /// Exports the tensor as legacy DLPack, otherwise as shw_owned_tensor_dlpack.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_owned_tensor_dlpack_legacy(
        tensor: *const shw_owned_tensor,
        out: *mut *mut DLManagedTensor,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().owned_tensor_dlpack_legacy.unwrap_unchecked())(tensor, out, err) }
    }

    /// Releases the handle. NULL is allowed.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_owned_tensor_release(tensor: *mut shw_owned_tensor) {
        unsafe { (table().owned_tensor_release.unwrap_unchecked())(tensor) }
    }

    /// Fills a spec with zeros and its size, as SHW_LAYOUT_SPEC_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_layout_spec_init(spec: *mut shw_layout_spec, struct_size: u32) {
        unsafe { (table().layout_spec_init.unwrap_unchecked())(spec, struct_size) }
    }

    /// Makes a layout; everything in `spec` is copied. UNIMPLEMENTED names an axis that is called "interleaved_parallel" under a tensor map.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_layout_create(
        spec: *const shw_layout_spec,
        out: *mut *mut shw_layout,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().layout_create.unwrap_unchecked())(spec, out, err) }
    }

    /// Number of ranks in the mesh.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_layout_rank_count(layout: *const shw_layout) -> u64 {
        unsafe { (table().layout_rank_count.unwrap_unchecked())(layout) }
    }

    /// 1 when `rank` is in the mesh.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_layout_contains(layout: *const shw_layout, rank: i32) -> shw_bool {
        unsafe { (table().layout_contains.unwrap_unchecked())(layout, rank) }
    }

    /// Number of boxes that `rank` holds of a tensor of this global shape: 0 when it is not in the mesh.
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

    /// Writes the boxes that `rank` holds: for each box `ndim` offsets, then `ndim` sizes. A box may be empty; it then begins at the end of each dimension of which the rank holds nothing. `size` receives the number of values; BUFFER_TOO_SMALL, nothing else written, when it is above `capacity` (also counted in values).
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

    /// Writes for each of these boxes the element of the local tensor at which it begins; `size` and `capacity` as in shw_layout_boxes.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_layout_local_offsets(
        layout: *const shw_layout,
        shape: *const i64,
        ndim: i32,
        rank: i32,
        offsets: *mut i64,
        capacity: u64,
        size: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe {
            (table().layout_local_offsets.unwrap_unchecked())(layout, shape, ndim, rank, offsets, capacity, size, err)
        }
    }

    /// Writes the shape of the local tensor of `rank`: `ndim` extents, or the number of elements where an axis is flat, or 0 outside the mesh; `size` and `capacity` as in shw_layout_boxes.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_layout_local_shape(
        layout: *const shw_layout,
        shape: *const i64,
        ndim: i32,
        rank: i32,
        extents: *mut i64,
        capacity: u64,
        size: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe {
            (table().layout_local_shape.unwrap_unchecked())(layout, shape, ndim, rank, extents, capacity, size, err)
        }
    }

    /// Releases the layout; states that use it keep it alive. NULL is allowed.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_layout_release(layout: *mut shw_layout) {
        unsafe { (table().layout_release.unwrap_unchecked())(layout) }
    }

    /// Fills a batch with zeros and its size, as SHW_TENSOR_BATCH_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_tensor_batch_init(batch: *mut shw_tensor_batch, struct_size: u32) {
        unsafe { (table().tensor_batch_init.unwrap_unchecked())(batch, struct_size) }
    }

    /// Fills a batch with zeros and its size, as SHW_OBJECT_BATCH_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_object_batch_init(batch: *mut shw_object_batch, struct_size: u32) {
        unsafe { (table().object_batch_init.unwrap_unchecked())(batch, struct_size) }
    }

    /// Makes an empty state.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_create(out: *mut *mut shw_state, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().state_create.unwrap_unchecked())(out, err) }
    }

    /// Sets memory aside for that many more tensors whose names have `name_bytes` bytes in all, so that a host that adds them in pieces pays about as much as for one batch. Both are hints: fewer or more may follow.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_reserve(
        state: *mut shw_state,
        tensors: u64,
        name_bytes: u64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().state_reserve.unwrap_unchecked())(state, tensors, name_bytes, err) }
    }

    /// Adds all tensors of the batch or none. ALREADY_EXISTS names both paths of a doubled name.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_add_tensors(
        state: *mut shw_state,
        batch: *const shw_tensor_batch,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().state_add_tensors.unwrap_unchecked())(state, batch, err) }
    }

    /// Adds one tensor of `name_size` bytes of name. `global_shape` and `offsets` NULL = it is whole; else it is the box of its own shape that begins at `offsets` of a tensor of `global_shape`, and both have `tensor->ndim` values. `kind` SHW_KIND_. Many tensors are added faster in one batch.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_add_tensor(
        state: *mut shw_state,
        name: *const c_char,
        name_size: u64,
        tensor: *const shw_tensor,
        global_shape: *const i64,
        offsets: *const i64,
        kind: i32,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe {
            (table().state_add_tensor.unwrap_unchecked())(
                state,
                name,
                name_size,
                tensor,
                global_shape,
                offsets,
                kind,
                err,
            )
        }
    }

    /// As shw_state_add_tensors with versioned DLPack tensors, `batch->count` of them, in place of `batch->tensors`. On success all are consumed: their deleters run once when the state ends.
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

    /// As shw_state_add_dlpack with legacy DLPack tensors.
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

    /// Adds all objects of the batch or none. A load stores the bytes that it found in the entry.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_add_objects(
        state: *mut shw_state,
        batch: *const shw_object_batch,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().state_add_objects.unwrap_unchecked())(state, batch, err) }
    }

    /// Adds one byte object: a copy of `size` bytes. `content_type` NULL = "application/octet-stream", `kind` SHW_KIND_.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_add_object(
        state: *mut shw_state,
        name: *const c_char,
        name_size: u64,
        content_type: *const c_char,
        data: *const c_void,
        size: u64,
        kind: i32,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe {
            (table().state_add_object.unwrap_unchecked())(state, name, name_size, content_type, data, size, kind, err)
        }
    }

    /// Makes the name of an object that is the cell `cell` of a grid of `shape`, both of `ndim` (1 to 64) values: the key, "/shard_", the cell joined by ".", "_", the shape joined by ".", as in "key/shard_0.3_1.8". `out`: the text as a buffer of one part.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_object_key(
        key: *const c_char,
        key_size: u64,
        cell: *const i64,
        shape: *const i64,
        ndim: i32,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().object_key.unwrap_unchecked())(key, key_size, cell, shape, ndim, out, err) }
    }

    /// Takes such a name apart: the key is its first `key_size` bytes (the last "/shard_" counts, so any key comes back), and `values` receives the cell, then the shape, half of `size` values each; BUFFER_TOO_SMALL, nothing else written, when `size` is above `capacity`. The last extent is -1 where older names leave it out.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_object_key_parse(
        name: *const c_char,
        name_size: u64,
        values: *mut i64,
        capacity: u64,
        size: *mut u64,
        key_size: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().object_key_parse.unwrap_unchecked())(name, name_size, values, capacity, size, key_size, err) }
    }

    /// Number of tensors; they are numbered from 0 in the order in which they were added.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_tensor_count(state: *const shw_state) -> u64 {
        unsafe { (table().state_tensor_count.unwrap_unchecked())(state) }
    }

    /// Number of objects, numbered from 0 like tensors.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_object_count(state: *const shw_state) -> u64 {
        unsafe { (table().state_object_count.unwrap_unchecked())(state) }
    }

    /// Name of a tensor; "" when there is none. Borrowed until the state changes or is released.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_tensor_name(state: *const shw_state, index: u64, size: *mut u64) -> *const c_char {
        unsafe { (table().state_tensor_name.unwrap_unchecked())(state, index, size) }
    }

    /// Nested path of a tensor; "" when it is flat. Borrowed until the state changes or is released.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_tensor_path(state: *const shw_state, index: u64, size: *mut u64) -> *const c_char {
        unsafe { (table().state_tensor_path.unwrap_unchecked())(state, index, size) }
    }

    /// Describes the local memory of a tensor; `out` borrows until the state changes or is released.
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

    /// Writes the shape of the whole tensor; `size` receives the number of extents. BUFFER_TOO_SMALL, nothing else written, when it is above `capacity`.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_global_shape(
        state: *const shw_state,
        index: u64,
        extents: *mut i64,
        capacity: u64,
        size: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().state_global_shape.unwrap_unchecked())(state, index, extents, capacity, size, err) }
    }

    /// Writes the boxes of a tensor that the state holds: for each box its offsets, then its sizes, as many values as the whole tensor has extents each. `size` and `capacity` count values, as in shw_state_global_shape.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_boxes(
        state: *const shw_state,
        index: u64,
        boxes: *mut i64,
        capacity: u64,
        size: *mut u64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().state_boxes.unwrap_unchecked())(state, index, boxes, capacity, size, err) }
    }

    /// Name of an object; "" when there is none. Borrowed until the state changes or is released.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_object_name(state: *const shw_state, index: u64, size: *mut u64) -> *const c_char {
        unsafe { (table().state_object_name.unwrap_unchecked())(state, index, size) }
    }

    /// Nested path of an object; "" when it is flat. Borrowed until the state changes or is released.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_object_path(state: *const shw_state, index: u64, size: *mut u64) -> *const c_char {
        unsafe { (table().state_object_path.unwrap_unchecked())(state, index, size) }
    }

    /// Content type of an object. Borrowed until the state changes or is released.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_object_content_type(state: *const shw_state, index: u64, size: *mut u64) -> *const c_char {
        unsafe { (table().state_object_content_type.unwrap_unchecked())(state, index, size) }
    }

    /// Bytes of an object, NULL when there is none. Borrowed until the state changes, a load into it ends, or it is released.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_object_data(state: *const shw_state, index: u64, size: *mut u64) -> *const c_void {
        unsafe { (table().state_object_data.unwrap_unchecked())(state, index, size) }
    }

    /// Finds a tensor by name; `out` receives its number.
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

    /// Finds an object by name; `out` receives its number.
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

    /// Releases the state; planners and jobs that use it keep it alive. DLPack deleters run here, or in the release of the last user. NULL is allowed.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_release(state: *mut shw_state) {
        unsafe { (table().state_release.unwrap_unchecked())(state) }
    }

    /// Fills a spec with zeros and its size, as SHW_MAPPING_SPEC_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_mapping_spec_init(spec: *mut shw_mapping_spec, struct_size: u32) {
        unsafe { (table().mapping_spec_init.unwrap_unchecked())(spec, struct_size) }
    }

    /// Makes a mapping; everything in `spec` is copied. INVALID_ARGUMENT names line, rule and member of what is wrong, and parameters that are missing or not known.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_mapping_create(
        spec: *const shw_mapping_spec,
        out: *mut *mut shw_mapping,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().mapping_create.unwrap_unchecked())(spec, out, err) }
    }

    /// Makes a state of what the mapping says of the entries of another one, which `out` keeps alive and which must not change before `out` is released. Tensors share their memory; objects are copied, number i of one being number i of the other, so that what a load found is read from `out`. Boxes that one stored tensor gets from several entries are one entry. Loads set to zero what a "pad" leaves out. INVALID_ARGUMENT names rule and entry (details `rule`, from 1, and `tensor`): two for one entry, none for a rule, axes not divided, padding that would cut what is none, entries of one tensor that do not fit; OUT_OF_RANGE: a number above its count; UNIMPLEMENTED: sub-byte elements.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_state_map(
        state: *const shw_state,
        mapping: *const shw_mapping,
        out: *mut *mut shw_state,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().state_map.unwrap_unchecked())(state, mapping, out, err) }
    }

    /// Releases the mapping; states that it made do not need it. NULL is allowed.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_mapping_release(mapping: *mut shw_mapping) {
        unsafe { (table().mapping_release.unwrap_unchecked())(mapping) }
    }

    /// Fills an item with zeros and its size, as SHW_PLAN_ITEM_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plan_item_init(item: *mut shw_plan_item, struct_size: u32) {
        unsafe { (table().plan_item_init.unwrap_unchecked())(item, struct_size) }
    }

    /// Checks a plan buffer of any kind in all respects; the first finding is the error.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plan_validate(data: *const c_void, size: u64, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().plan_validate.unwrap_unchecked())(data, size, err) }
    }

    /// Lists all findings about a plan buffer, one sentence per part of `out`; no part = valid.
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

    /// Makes a plan from bytes that another rank or run has made; they are checked and copied.
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

    /// Kind of the plan: one of the SHW_PLAN_ numbers; 0 for NULL.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plan_kind(plan: *const shw_plan) -> i32 {
        unsafe { (table().plan_kind.unwrap_unchecked())(plan) }
    }

    /// Rank that the plan belongs to; 0 for a merged plan.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plan_rank(plan: *const shw_plan) -> i32 {
        unsafe { (table().plan_rank.unwrap_unchecked())(plan) }
    }

    /// First byte of the plan buffer; borrowed until the plan is released.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plan_data(plan: *const shw_plan) -> *const c_void {
        unsafe { (table().plan_data.unwrap_unchecked())(plan) }
    }

    /// Number of bytes of the plan buffer.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plan_size(plan: *const shw_plan) -> u64 {
        unsafe { (table().plan_size.unwrap_unchecked())(plan) }
    }

    /// Number of items of a write list or load plan (tensor reads, then objects); 0 for other kinds.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plan_item_count(plan: *const shw_plan) -> u64 {
        unsafe { (table().plan_item_count.unwrap_unchecked())(plan) }
    }

    /// Writes item `index`; `out->struct_size` must be set.
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

    /// The plan as JSON text with "schema": 1, with at most `item_limit` items of each list.
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

    /// Releases the plan. NULL is allowed.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plan_release(plan: *mut shw_plan) {
        unsafe { (table().plan_release.unwrap_unchecked())(plan) }
    }

    /// Fills a summary with zeros and its size, as SHW_REPORT_SUMMARY_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_report_summary_init(summary: *mut shw_report_summary, struct_size: u32) {
        unsafe { (table().report_summary_init.unwrap_unchecked())(summary, struct_size) }
    }

    /// Whole report as JSON text with "schema": 1; borrowed until the report is released.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_report_json(report: *const shw_report, size: *mut u64) -> *const c_char {
        unsafe { (table().report_json.unwrap_unchecked())(report, size) }
    }

    /// Writes the figures of the report; `out->struct_size` must be set.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_report_summarize(
        report: *const shw_report,
        out: *mut shw_report_summary,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().report_summarize.unwrap_unchecked())(report, out, err) }
    }

    /// Number of names in one of the SHW_REPORT_ lists; 0 for an unknown list.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_report_name_count(report: *const shw_report, list: i32) -> u64 {
        unsafe { (table().report_name_count.unwrap_unchecked())(report, list) }
    }

    /// Name `index` of a list; "" when there is none. Borrowed until the report is released. A cast reads "name: stored dtype -> wanted dtype", a shape likewise, a finding is one sentence.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_report_name(report: *const shw_report, list: i32, index: u64, size: *mut u64) -> *const c_char {
        unsafe { (table().report_name.unwrap_unchecked())(report, list, index, size) }
    }

    /// Releases the report. NULL is allowed.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_report_release(report: *mut shw_report) {
        unsafe { (table().report_release.unwrap_unchecked())(report) }
    }

    /// Fills a progress struct with zeros and its size, as SHW_PROGRESS_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_progress_init(progress: *mut shw_progress, struct_size: u32) {
        unsafe { (table().progress_init.unwrap_unchecked())(progress, struct_size) }
    }

    /// Waits until the job is terminal and returns its status, or PENDING (`err` untouched) when `timeout_ns` passed: 0 = do not wait, negative = no limit. A failure gives a copy of the error.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_job_wait(job: *mut shw_job, timeout_ns: i64, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().job_wait.unwrap_unchecked())(job, timeout_ns, err) }
    }

    /// Waits until the job no longer reads the tensors of the host: OK when it is staged, succeeded or was a load that ended; else PENDING or the failure. Time-outs as in shw_job_wait.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_job_wait_staged(job: *mut shw_job, timeout_ns: i64, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().job_wait_staged.unwrap_unchecked())(job, timeout_ns, err) }
    }

    /// State of the job: one of the SHW_JOB_ numbers.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_job_poll(job: *const shw_job) -> i32 {
        unsafe { (table().job_poll.unwrap_unchecked())(job) }
    }

    /// Writes how far the job is; `out->struct_size` must be set.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_job_progress(
        job: *const shw_job,
        out: *mut shw_progress,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().job_progress.unwrap_unchecked())(job, out, err) }
    }

    /// Asks the job to stop and returns at once. The job still ends in a terminal state; after its commit point it ends SUCCEEDED. May be called any number of times. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_job_cancel(job: *mut shw_job) {
        unsafe { (table().job_cancel.unwrap_unchecked())(job) }
    }

    /// Has `on_done(user)` called once, when the job has ended, in whatever way, and uses nothing that it was lent any more. It runs on the context's background thread, calls nothing of the library and returns soon; shw_context_shutdown answers OK after it. The handle may be released before; kept for a thread that this wakes, it takes DLPack memory along. FAILED_PRECONDITION, and no call, when the job has ended already or has a function.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_job_on_done(
        job: *mut shw_job,
        on_done: shw_job_done_fn,
        user: *mut c_void,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().job_on_done.unwrap_unchecked())(job, on_done, user, err) }
    }

    /// Error of a job that failed or was cancelled, borrowed until the job is released; NULL otherwise.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_job_error(job: *const shw_job) -> *const shw_error {
        unsafe { (table().job_error.unwrap_unchecked())(job) }
    }

    /// Report of a job that succeeded; FAILED_PRECONDITION before that.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_job_report(
        job: *const shw_job,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().job_report.unwrap_unchecked())(job, out, err) }
    }

    /// As shw_collective_decline, as a job: in its turn behind the jobs that the context has, as shw_save_async and shw_load_async would be. The job ends FAILED with what the others were told.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_decline_async(
        context: *mut shw_context,
        collective: *mut shw_collective,
        call: i32,
        code: shw_status,
        message: *const c_char,
        message_size: u64,
        out: *mut *mut shw_job,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe {
            (table().collective_decline_async.unwrap_unchecked())(
                context,
                collective,
                call,
                code,
                message,
                message_size,
                out,
                err,
            )
        }
    }

    /// Releases the handle; the job goes on. NULL is allowed.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_job_release(job: *mut shw_job) {
        unsafe { (table().job_release.unwrap_unchecked())(job) }
    }

    /// Makes a cancellation for the options of saves, loads and planners. Jobs have shw_job_cancel.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_cancellation_create(out: *mut *mut shw_cancellation, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().cancellation_create.unwrap_unchecked())(out, err) }
    }

    /// Asks the calls that were given it to stop and returns at once, also before they begin. Each ends with CANCELLED at its next step; a save that has reached its commit point ends OK. A call into the host's storage or transport is not broken off. May be called any number of times. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_cancellation_cancel(cancellation: *mut shw_cancellation) {
        unsafe { (table().cancellation_cancel.unwrap_unchecked())(cancellation) }
    }

    /// Releases the handle; calls that were given it keep what they need. NULL is allowed.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_cancellation_release(cancellation: *mut shw_cancellation) {
        unsafe { (table().cancellation_release.unwrap_unchecked())(cancellation) }
    }

    /// Fills a stat with zeros and its size, as SHW_STORAGE_STAT_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_storage_stat_init(stat: *mut shw_storage_stat, struct_size: u32) {
        unsafe { (table().storage_stat_init.unwrap_unchecked())(stat, struct_size) }
    }

    /// Fills an entry with zeros and its size, as SHW_STORAGE_ENTRY_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_storage_entry_init(entry: *mut shw_storage_entry, struct_size: u32) {
        unsafe { (table().storage_entry_init.unwrap_unchecked())(entry, struct_size) }
    }

    /// Fills a table with zeros, its size and the interface version. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_storage_vtable_init(vtable: *mut shw_storage_vtable, struct_size: u32) {
        unsafe { (table().storage_vtable_init.unwrap_unchecked())(vtable, struct_size) }
    }

    /// Makes a storage of the files below a directory, which need not exist yet. Keys never leave it.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_storage_create_posix(
        root: *const c_char,
        out: *mut *mut shw_storage,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().storage_create_posix.unwrap_unchecked())(root, out, err) }
    }

    /// Makes an empty storage in memory.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_storage_create_memory(out: *mut *mut shw_storage, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().storage_create_memory.unwrap_unchecked())(out, err) }
    }

    /// Makes a storage of a host's table, which is copied. On success the storage owns `vtable->user` and calls the table's release once.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_storage_create(
        vtable: *const shw_storage_vtable,
        out: *mut *mut shw_storage,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().storage_create.unwrap_unchecked())(vtable, out, err) }
    }

    /// Name of the storage, such as "posix". Borrowed until it is released.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_storage_name(storage: *const shw_storage, size: *mut u64) -> *const c_char {
        unsafe { (table().storage_name.unwrap_unchecked())(storage, size) }
    }

    /// Capabilities of the storage.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_storage_capabilities(storage: *const shw_storage) -> u64 {
        unsafe { (table().storage_capabilities.unwrap_unchecked())(storage) }
    }

    /// Writes a whole object, durable where the storage is, under one of the SHW_COMMIT_ conditions. `expected_version`, of SHW_COMMIT_IF_VERSION, is what shw_storage_version told. A storage without ATOMIC_COMMIT, or without CONDITIONAL_COMMIT where there is a condition, is FAILED_PRECONDITION.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_storage_put(
        storage: *mut shw_storage,
        key: *const c_char,
        key_size: u64,
        data: *const c_void,
        size: u64,
        condition: i32,
        expected_version: *const c_char,
        expected_version_size: u64,
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
                expected_version_size,
                err,
            )
        }
    }

    /// Reads exactly `size` bytes at `offset`; OUT_OF_RANGE when the object ends before.
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

    /// Writes size and time of an object; `out->struct_size` must be set.
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

    /// Gives the version of an object: opaque UTF-8 text that changes whenever the content does; empty when the storage has no versions.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_storage_version(
        storage: *mut shw_storage,
        key: *const c_char,
        key_size: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().storage_version.unwrap_unchecked())(storage, key, key_size, out, err) }
    }

    /// Lists the keys that begin with a prefix, ascending, one per part of `out`. `delimiter` SHW_STORAGE_DELIMITER: one level; what lies deeper is given once, up to and with its next "/".
    /// # Safety
    /// As in C.
    pub unsafe fn shw_storage_list(
        storage: *mut shw_storage,
        prefix: *const c_char,
        prefix_size: u64,
        delimiter: i32,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().storage_list.unwrap_unchecked())(storage, prefix, prefix_size, delimiter, out, err) }
    }

    /// Removes an object; a missing key is OK.
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

    /// Releases the storage; checkpoints and jobs that use it keep it alive. NULL is allowed.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_storage_release(storage: *mut shw_storage) {
        unsafe { (table().storage_release.unwrap_unchecked())(storage) }
    }

    /// Fills a call with zeros and its size, as SHW_COLLECTIVE_CALL_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_call_init(call: *mut shw_collective_call, struct_size: u32) {
        unsafe { (table().collective_call_init.unwrap_unchecked())(call, struct_size) }
    }

    /// Fills a table with zeros, its size and the interface version. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_vtable_init(vtable: *mut shw_collective_vtable, struct_size: u32) {
        unsafe { (table().collective_vtable_init.unwrap_unchecked())(vtable, struct_size) }
    }

    /// Makes the collective of a single rank.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_create_single(out: *mut *mut shw_collective, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().collective_create_single.unwrap_unchecked())(out, err) }
    }

    /// Makes `size` ranks in this process, each to be used by a thread of its own.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_group_create(
        size: i32,
        out: *mut *mut shw_collective_group,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().collective_group_create.unwrap_unchecked())(size, out, err) }
    }

    /// Gives the collective of one rank of the group; each rank can be taken once. A rank whose collective is released while others wait makes them return ABORTED naming it.
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

    /// Releases the group; its members live on. NULL is allowed.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_group_release(group: *mut shw_collective_group) {
        unsafe { (table().collective_group_release.unwrap_unchecked())(group) }
    }

    /// Makes a collective of a host's table, which is copied. On success the collective owns `vtable->user` and calls the table's release once.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_create(
        vtable: *const shw_collective_vtable,
        out: *mut *mut shw_collective,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().collective_create.unwrap_unchecked())(vtable, out, err) }
    }

    /// Makes a collective of the ranks of another one through the memory of their machine, where all of them run on one (2 to 64 ranks of one user that reach each other's memory). An operation that takes a network a fraction of a millisecond takes some microseconds there. Where they do not, `out` is another end of the same transport. Collective over `collective`: one all_gather, with `call`. `out` keeps that transport alive and aborts it when it is aborted or fails; until `out` is released the transport is used through it alone. A rank whose process ends is named (UNAVAILABLE) to all that wait for it.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_create_node(
        collective: *mut shw_collective,
        call: *const shw_collective_call,
        out: *mut *mut shw_collective,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().collective_create_node.unwrap_unchecked())(collective, call, out, err) }
    }

    /// Rank of this end, from 0.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_rank(collective: *const shw_collective) -> i32 {
        unsafe { (table().collective_rank.unwrap_unchecked())(collective) }
    }

    /// Number of ranks; 0 for NULL.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_size(collective: *const shw_collective) -> i32 {
        unsafe { (table().collective_size.unwrap_unchecked())(collective) }
    }

    /// Name of the transport, such as "threads". Borrowed until the collective is released.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_name(collective: *const shw_collective, size: *mut u64) -> *const c_char {
        unsafe { (table().collective_name.unwrap_unchecked())(collective, size) }
    }

    /// Waits until all ranks are here. `call` NULL = all zero, here and below.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_barrier(
        collective: *mut shw_collective,
        call: *const shw_collective_call,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().collective_barrier.unwrap_unchecked())(collective, call, err) }
    }

    /// Sends the root's bytes to all ranks; `size` is equal on all.
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

    /// Gathers `size` bytes of each rank in rank order into `gathered` (size x ranks bytes).
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

    /// Gathers sizes[rank] bytes of each rank back to back; `sizes` has one value per rank.
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

    /// The root gets sizes[rank] bytes of each rank back to back in `gathered`. Both are the root's only (one size per rank) and not looked at elsewhere. Sizes that are not those of the ranks are INVALID_ARGUMENT on all of them.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_gather_v(
        collective: *mut shw_collective,
        call: *const shw_collective_call,
        data: *const c_void,
        size: u64,
        gathered: *mut c_void,
        sizes: *const u64,
        root: i32,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe {
            (table().collective_gather_v.unwrap_unchecked())(collective, call, data, size, gathered, sizes, root, err)
        }
    }

    /// Gives each rank sizes[rank] bytes, which lie back to back in the root's `parts`; the rank gets them in `data`, whose size it knows. `parts` and `sizes` are the root's only (one size per rank) and not looked at elsewhere. Sizes as with gather_v.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_scatter_v(
        collective: *mut shw_collective,
        call: *const shw_collective_call,
        parts: *const c_void,
        sizes: *const u64,
        data: *mut c_void,
        size: u64,
        root: i32,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe {
            (table().collective_scatter_v.unwrap_unchecked())(collective, call, parts, sizes, data, size, root, err)
        }
    }

    /// Sends sent_sizes[rank] bytes to each rank and receives received_sizes[rank] bytes from it, this rank itself included. The parts lie back to back in rank order in `sent` and in `received`, which have no byte in common; both rows have one size per rank. What a rank expects of another one must be what that one sends it: else all fail with INVALID_ARGUMENT, and no byte moves.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_all_to_all_v(
        collective: *mut shw_collective,
        call: *const shw_collective_call,
        sent: *const c_void,
        sent_sizes: *const u64,
        received: *mut c_void,
        received_sizes: *const u64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe {
            (table().collective_all_to_all_v.unwrap_unchecked())(
                collective,
                call,
                sent,
                sent_sizes,
                received,
                received_sizes,
                err,
            )
        }
    }

    /// Reduces `count` values in place on all ranks with one of the SHW_REDUCE_ operations.
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

    /// Wakes all ranks that wait in this collective; they return `code` with the message.
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

    /// Takes part in the save or load (SHW_CALL_) that the other ranks make now, in place of this rank's own call, and tells them that it failed: they return `code` with `message` at once. For a host that finds out, on its way to shw_save or shw_load, that it cannot make the call; those tell the others of their own arguments themselves. Returns when all ranks have heard; nothing happens on a collective of one rank. shw_collective_decline_async goes with jobs. Refused in a callback, as the calls themselves, the collective is aborted, unless a call or job has it.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_decline(
        collective: *mut shw_collective,
        call: i32,
        code: shw_status,
        message: *const c_char,
        message_size: u64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().collective_decline.unwrap_unchecked())(collective, call, code, message, message_size, err) }
    }

    /// Releases the collective; jobs that use it keep it alive. NULL is allowed.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_collective_release(collective: *mut shw_collective) {
        unsafe { (table().collective_release.unwrap_unchecked())(collective) }
    }

    /// Fills an allocator with zeros and its size, as SHW_ALLOCATOR_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_allocator_init(allocator: *mut shw_allocator, struct_size: u32) {
        unsafe { (table().allocator_init.unwrap_unchecked())(allocator, struct_size) }
    }

    /// Fills options with zeros and their size, as SHW_CONTEXT_OPTIONS_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_context_options_init(options: *mut shw_context_options, struct_size: u32) {
        unsafe { (table().context_options_init.unwrap_unchecked())(options, struct_size) }
    }

    /// Makes a context and starts its threads. SHW_PLUGIN_PATH and SHW_LOG (a level name; raises or lowers `log_level`) of the environment are read here only, and never in set-uid processes.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_context_create(
        options: *const shw_context_options,
        out: *mut *mut shw_context,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().context_create.unwrap_unchecked())(options, out, err) }
    }

    /// Waits for the jobs of the context; cancels what is left when half of `timeout_ns` passed and waits for the rest of it. Afterwards the context takes no new jobs. PENDING when jobs are still running.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_context_shutdown(
        context: *mut shw_context,
        timeout_ns: i64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().context_shutdown.unwrap_unchecked())(context, timeout_ns, err) }
    }

    /// Loads a plugin: a file when `path` has a "/", else the name of one that is looked for in the directories of the options, of SHW_PLUGIN_PATH, and beside this library, as NAME.shw-plugin.json, then as libshardwright_NAME.so. Loading one twice does nothing.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_context_load_plugin(
        context: *mut shw_context,
        path: *const c_char,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().context_load_plugin.unwrap_unchecked())(context, path, err) }
    }

    /// Lists plugins, loaded or described by a manifest in the search path, as JSON text.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_context_plugins(
        context: *mut shw_context,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().context_plugins.unwrap_unchecked())(context, out, err) }
    }

    /// Asks a loaded plugin something that its documentation names; question and answer are text.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_context_ask_plugin(
        context: *mut shw_context,
        plugin: *const c_char,
        question: *const c_char,
        question_size: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().context_ask_plugin.unwrap_unchecked())(context, plugin, question, question_size, out, err) }
    }

    /// Makes a storage of a loaded plugin; `config` is text that the plugin understands.
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

    /// Makes a collective of a loaded plugin; `config` is text that the plugin understands.
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

    /// Releases the context; jobs and checkpoints that use it keep it alive. NULL is allowed.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_context_release(context: *mut shw_context) {
        unsafe { (table().context_release.unwrap_unchecked())(context) }
    }

    /// Fills options with zeros and their size, as SHW_SAVE_OPTIONS_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_save_options_init(options: *mut shw_save_options, struct_size: u32) {
        unsafe { (table().save_options_init.unwrap_unchecked())(options, struct_size) }
    }

    /// Sets a metadata pair of the options: adds it, or replaces the value of its key. `out` keeps the texts of all pairs, those that were there included, and is released after the last use of the options; what an earlier call for them gave may go at once.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_save_options_set_metadata(
        options: *mut shw_save_options,
        key: *const c_char,
        value: *const c_char,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().save_options_set_metadata.unwrap_unchecked())(options, key, value, out, err) }
    }

    /// Saves the states of all ranks as one checkpoint and returns when it is committed. All ranks return the same status.
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

    /// Starts the save as a job. The memory of the state's tensors must stay unchanged until the job is staged; the collective belongs to the job until it is terminal. The jobs of a context run one after another, so ranks of one process need a context each.
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

    /// Makes the memory into which jobs copy such a state, with all its pages, so that the first one is as fast as those after it. The context keeps it; while a job has it this makes more. RESOURCE_EXHAUSTED when there is not so much.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_prepare(
        context: *mut shw_context,
        state: *const shw_state,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().prepare.unwrap_unchecked())(context, state, err) }
    }

    /// Makes the planner of rank `rank` of `world_size`; it keeps context and state alive.
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

    /// Describes this rank's state: a plan buffer for the rank that calls global_plan.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_save_planner_local_plan(
        planner: *mut shw_save_planner,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().save_planner_local_plan.unwrap_unchecked())(planner, out, err) }
    }

    /// On the rank that will commit: checks the target, draws the generation and merges the local plans of all ranks (a blob cut by world_size + 1 offsets, rank order). `out` has one part per rank: what that rank gives to finish.
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

    /// Takes this rank's part of the global plan and checks that it fits the state.
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

    /// Writes this rank's file. `out` is the result buffer for the rank that commits. When writing fails the error is returned and nothing of this rank is left behind.
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

    /// On the rank that made the global plan: checks the results of all ranks (a blob cut by world_size + 1 offsets, rank order; an empty part = that rank failed) and commits at the path of the global plan, or removes what was written.
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

    /// Releases the planner. NULL is allowed.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_save_planner_release(planner: *mut shw_save_planner) {
        unsafe { (table().save_planner_release.unwrap_unchecked())(planner) }
    }

    /// Fills options with zeros and their size, as SHW_CHECKPOINT_OPTIONS_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_options_init(options: *mut shw_checkpoint_options, struct_size: u32) {
        unsafe { (table().checkpoint_options_init.unwrap_unchecked())(options, struct_size) }
    }

    /// Opens a checkpoint and recognises its format. `storage` NULL = `path` is a path of the file system; else it is a key prefix inside the storage. `path` is not kept.
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

    /// Name of the format, such as "native".
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_format(checkpoint: *const shw_checkpoint, size: *mut u64) -> *const c_char {
        unsafe { (table().checkpoint_format.unwrap_unchecked())(checkpoint, size) }
    }

    /// Generation that is read; "" when the format has none.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_generation(checkpoint: *const shw_checkpoint, size: *mut u64) -> *const c_char {
        unsafe { (table().checkpoint_generation.unwrap_unchecked())(checkpoint, size) }
    }

    /// Number of ranks that saved it.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_world_size(checkpoint: *const shw_checkpoint) -> i32 {
        unsafe { (table().checkpoint_world_size.unwrap_unchecked())(checkpoint) }
    }

    /// Time of the save in nanoseconds since 1970 UTC; 0 when unknown.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_created_ns(checkpoint: *const shw_checkpoint) -> i64 {
        unsafe { (table().checkpoint_created_ns.unwrap_unchecked())(checkpoint) }
    }

    /// Number of metadata pairs; they are ordered by key.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_metadata_count(checkpoint: *const shw_checkpoint) -> u64 {
        unsafe { (table().checkpoint_metadata_count.unwrap_unchecked())(checkpoint) }
    }

    /// Key of a metadata pair.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_metadata_key(
        checkpoint: *const shw_checkpoint,
        index: u64,
        size: *mut u64,
    ) -> *const c_char {
        unsafe { (table().checkpoint_metadata_key.unwrap_unchecked())(checkpoint, index, size) }
    }

    /// Value of a metadata pair.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_metadata_value(
        checkpoint: *const shw_checkpoint,
        index: u64,
        size: *mut u64,
    ) -> *const c_char {
        unsafe { (table().checkpoint_metadata_value.unwrap_unchecked())(checkpoint, index, size) }
    }

    /// The checkpoint as JSON text with "schema": 1: format, generation, counts, metadata, files, tensors, objects.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_info(
        checkpoint: *const shw_checkpoint,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().checkpoint_info.unwrap_unchecked())(checkpoint, out, err) }
    }

    /// Checks the manifest and each file's size, header and index, with SHW_VERIFY_DEEP every byte. All of it is read again, whatever this handle read before. The report says what was read; damage is DATA_LOSS with the place of the first in its details.
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

    /// As shw_checkpoint_verify, but lists all damage in the report instead of failing with the first.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_find_damage(
        checkpoint: *const shw_checkpoint,
        flags: u64,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().checkpoint_find_damage.unwrap_unchecked())(checkpoint, flags, out, err) }
    }

    /// Finds (with SHW_GC_APPLY removes) generations at a path that its manifest does not name and whose newest file is older than `grace_ns` (0 = 24 hours, -1 = any age). It has the path for itself: it removes nothing and notes it in the report while a save runs there, and saves that begin wait. Without a manifest that it can read it refuses: DATA_LOSS when it is damaged, FAILED_PRECONDITION when there are generations without one, or with less than 24 hours on a storage without locks.
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

    /// Finds (with SHW_REMOVE_APPLY removes) tensors and objects of a checkpoint of torch DCP or Megatron whose names begin with `prefix` (UTF-8, not empty) as its index has them, and files that hold nothing else. The index without them, which loses nothing else, is durable before a file goes; digests and integrity.json follow. The report lists the entries with their bytes as removed, and counts the files. It has the path for itself. One that was cut off is ended first.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_remove(
        context: *mut shw_context,
        storage: *mut shw_storage,
        path: *const c_char,
        prefix: *const c_char,
        flags: u64,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().checkpoint_remove.unwrap_unchecked())(context, storage, path, prefix, flags, out, err) }
    }

    /// Lists the checkpoints step-NNNNNNNN, and iter_NNNNNNN of Megatron, below a run directory and names the newest whole one, as JSON text with "schema": 1. "tracker" is the text of Megatron's latest_checkpointed_iteration.txt and "tracked" the step that it names; "" for what is not there.
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

    /// Finds the newest whole step of a run directory: `out` is the path to open, `path` joined with step-NNNNNNNN or iter_NNNNNNN. Looks at the newest step first. One that is damaged, uncommitted or no checkpoint is passed over with a warning in the log; when a step cannot be looked at at all, that is the error, so that no older step stands in for it. NOT_FOUND: there is no step, or none is whole.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_latest(
        context: *mut shw_context,
        storage: *mut shw_storage,
        path: *const c_char,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().checkpoint_latest.unwrap_unchecked())(context, storage, path, out, err) }
    }

    /// Releases the checkpoint. NULL is allowed.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_release(checkpoint: *mut shw_checkpoint) {
        unsafe { (table().checkpoint_release.unwrap_unchecked())(checkpoint) }
    }

    /// Fills a struct with zeros and its size, as SHW_TENSOR_INFO_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_tensor_info_init(info: *mut shw_tensor_info, struct_size: u32) {
        unsafe { (table().tensor_info_init.unwrap_unchecked())(info, struct_size) }
    }

    /// Fills a struct with zeros and its size, as SHW_CHUNK_INFO_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_chunk_info_init(info: *mut shw_chunk_info, struct_size: u32) {
        unsafe { (table().chunk_info_init.unwrap_unchecked())(info, struct_size) }
    }

    /// Fills a batch with zeros and its size, as SHW_BOX_BATCH_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_box_batch_init(batch: *mut shw_box_batch, struct_size: u32) {
        unsafe { (table().box_batch_init.unwrap_unchecked())(batch, struct_size) }
    }

    /// Number of tensors.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_tensor_count(checkpoint: *const shw_checkpoint) -> u64 {
        unsafe { (table().checkpoint_tensor_count.unwrap_unchecked())(checkpoint) }
    }

    /// Name of a tensor.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_tensor_name(
        checkpoint: *const shw_checkpoint,
        index: u64,
        size: *mut u64,
    ) -> *const c_char {
        unsafe { (table().checkpoint_tensor_name.unwrap_unchecked())(checkpoint, index, size) }
    }

    /// Nested path of a tensor; "" when it is flat.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_tensor_path(
        checkpoint: *const shw_checkpoint,
        index: u64,
        size: *mut u64,
    ) -> *const c_char {
        unsafe { (table().checkpoint_tensor_path.unwrap_unchecked())(checkpoint, index, size) }
    }

    /// Extents of a tensor, as many as its info says; NULL when there is no such tensor.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_tensor_shape(checkpoint: *const shw_checkpoint, index: u64) -> *const i64 {
        unsafe { (table().checkpoint_tensor_shape.unwrap_unchecked())(checkpoint, index) }
    }

    /// Describes `count` tensors from number `first` on; each `struct_size` must be set and equal.
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

    /// Gives the names of all tensors, one per part; those of rank-local tensors repeat.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_tensor_names(
        checkpoint: *const shw_checkpoint,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().checkpoint_tensor_names.unwrap_unchecked())(checkpoint, out, err) }
    }

    /// Finds a tensor by name; `out` receives its number. Of rank-local tensors that of `rank` is taken. NOT_FOUND carries the three nearest names.
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

    /// Number of chunks of all tensors.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_chunk_count(checkpoint: *const shw_checkpoint) -> u64 {
        unsafe { (table().checkpoint_chunk_count.unwrap_unchecked())(checkpoint) }
    }

    /// Describes `count` chunks from number `first` on; each `struct_size` must be set and equal. Reads the indexes of files that were not needed before.
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

    /// Writes the box of a chunk: as many offsets as its tensor has dimensions, then the sizes. `size` receives the number of values; BUFFER_TOO_SMALL when it is above `capacity`.
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

    /// Number of byte objects.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_object_count(checkpoint: *const shw_checkpoint) -> u64 {
        unsafe { (table().checkpoint_object_count.unwrap_unchecked())(checkpoint) }
    }

    /// Name of an object.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_object_name(
        checkpoint: *const shw_checkpoint,
        index: u64,
        size: *mut u64,
    ) -> *const c_char {
        unsafe { (table().checkpoint_object_name.unwrap_unchecked())(checkpoint, index, size) }
    }

    /// Nested path of an object; "" when it is flat.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_object_path(
        checkpoint: *const shw_checkpoint,
        index: u64,
        size: *mut u64,
    ) -> *const c_char {
        unsafe { (table().checkpoint_object_path.unwrap_unchecked())(checkpoint, index, size) }
    }

    /// Content type of an object, such as "application/json".
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_object_content_type(
        checkpoint: *const shw_checkpoint,
        index: u64,
        size: *mut u64,
    ) -> *const c_char {
        unsafe { (table().checkpoint_object_content_type.unwrap_unchecked())(checkpoint, index, size) }
    }

    /// Number of bytes of an object.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_object_size(checkpoint: *const shw_checkpoint, index: u64) -> u64 {
        unsafe { (table().checkpoint_object_size.unwrap_unchecked())(checkpoint, index) }
    }

    /// Owner of a rank-local object, else -1.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_object_rank(checkpoint: *const shw_checkpoint, index: u64) -> i32 {
        unsafe { (table().checkpoint_object_rank.unwrap_unchecked())(checkpoint, index) }
    }

    /// Gives the names of all objects, one per part; those of rank-local objects repeat.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_object_names(
        checkpoint: *const shw_checkpoint,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().checkpoint_object_names.unwrap_unchecked())(checkpoint, out, err) }
    }

    /// Finds an object by name; as shw_checkpoint_find_tensor.
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

    /// Reads `count` objects (NULL `indices` = 0, 1, ...), one per part of `out`.
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

    /// What an object is, for people: one JSON object with `content_type`, `bytes` and `value`. JSON is itself; of a pickle, or an archive of torch.save, `value` says what would be made of it, in at most about 256 KiB, and nothing is; text is text, anything else null.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_describe_object(
        checkpoint: *const shw_checkpoint,
        index: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().checkpoint_describe_object.unwrap_unchecked())(checkpoint, index, out, err) }
    }

    /// Reads `size` bytes of an object from `offset` on into one part, fewer only where the object ends: what other formats hold may be larger than memory.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_read_object_part(
        checkpoint: *const shw_checkpoint,
        index: u64,
        offset: u64,
        size: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().checkpoint_read_object_part.unwrap_unchecked())(checkpoint, index, offset, size, out, err) }
    }

    /// Number of data files.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_file_count(checkpoint: *const shw_checkpoint) -> u64 {
        unsafe { (table().checkpoint_file_count.unwrap_unchecked())(checkpoint) }
    }

    /// Key of a data file, relative to the checkpoint.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_file_name(
        checkpoint: *const shw_checkpoint,
        index: u64,
        size: *mut u64,
    ) -> *const c_char {
        unsafe { (table().checkpoint_file_name.unwrap_unchecked())(checkpoint, index, size) }
    }

    /// Number of bytes of a data file.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_checkpoint_file_size(checkpoint: *const shw_checkpoint, index: u64) -> u64 {
        unsafe { (table().checkpoint_file_size.unwrap_unchecked())(checkpoint, index) }
    }

    /// Reads boxes of tensors into memory of the caller. On failure the targets may hold part of the bytes.
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

    /// Reads one box (both NULL = the whole tensor) into a new tensor; `ndim` is that of the tensor.
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

    /// Computes the digests of `count` tensors (NULL `indices` = 0, 1, ...): one part of `out` per tensor, lower-case hexadecimal text that does not depend on layout and format.
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

    /// Fills options with zeros and their size, as SHW_LOAD_OPTIONS_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_load_options_init(options: *mut shw_load_options, struct_size: u32) {
        unsafe { (table().load_options_init.unwrap_unchecked())(options, struct_size) }
    }

    /// Opens the checkpoint at `path` and fills the state of every rank from it. All ranks return the same status. When it fails after reading began, tensors may hold part of the bytes.
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

    /// Starts the load as a job. State, tensor memory and collective belong to the job until it is terminal.
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

    /// Makes the planner of rank `rank` (which selects rank-local entries); it keeps checkpoint and state alive.
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

    /// Matches what the state wants with what is stored.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_load_planner_local_plan(
        planner: *mut shw_load_planner,
        out: *mut *mut shw_plan,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().load_planner_local_plan.unwrap_unchecked())(planner, out, err) }
    }

    /// Reads what the plan says into the state. A plan of another state or checkpoint is FAILED_PRECONDITION.
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

    /// Releases the planner. NULL is allowed.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_load_planner_release(planner: *mut shw_load_planner) {
        unsafe { (table().load_planner_release.unwrap_unchecked())(planner) }
    }

    /// Fills a round with zeros and its size, as SHW_EXCHANGE_ROUND_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_exchange_round_init(round: *mut shw_exchange_round, struct_size: u32) {
        unsafe { (table().exchange_round_init.unwrap_unchecked())(round, struct_size) }
    }

    /// Lists the stored blocks that the load plan of this planner's rank wants, as a plan of kind SHW_PLAN_WANT_LIST for the rank that plans the exchange. `world_size` is the number of ranks; a rank with less than 2 MiB to read wants nothing from others. A load plan of another state or checkpoint is FAILED_PRECONDITION.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_load_planner_want_list(
        planner: *mut shw_load_planner,
        load_plan: *const shw_plan,
        world_size: i32,
        out: *mut *mut shw_plan,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().load_planner_want_list.unwrap_unchecked())(planner, load_plan, world_size, out, err) }
    }

    /// Plans the exchange of all ranks from their want lists, `count` in rank order. `plans` has room for `count` plans of kind SHW_PLAN_EXCHANGE, that of rank r at place r: all are written, or none. Lists of other ranks, another number of ranks or different generations are INVALID_ARGUMENT naming the rank. Equal lists give equal plans.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_exchange_plans(
        want_lists: *const *const shw_plan,
        count: u64,
        plans: *mut *mut shw_plan,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().exchange_plans.unwrap_unchecked())(want_lists, count, plans, err) }
    }

    /// Begins a load of what `load_plan` says whose blocks come as `exchange_plan` says. It keeps what the planner has, its cancellation too, but not the handles; the planner's deadline counts from here. The memory of all rounds is taken here from the memory budget. An exchange plan of another rank or generation, or of other blocks than the load plan wants, and a load plan of another state or checkpoint, are FAILED_PRECONDITION; a budget without room is RESOURCE_EXHAUSTED.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_load_exchange_create(
        planner: *mut shw_load_planner,
        load_plan: *const shw_plan,
        exchange_plan: *const shw_plan,
        out: *mut *mut shw_load_exchange,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().load_exchange_create.unwrap_unchecked())(planner, load_plan, exchange_plan, out, err) }
    }

    /// Gives how many rounds there are, the same number on all ranks; 0 where nothing is exchanged.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_load_exchange_round_count(exchange: *const shw_load_exchange) -> u64 {
        unsafe { (table().load_exchange_round_count.unwrap_unchecked())(exchange) }
    }

    /// Begins the next round: what the rank has to read for others in it has been read and checked. A round that has not ended, and one more than there are, are FAILED_PRECONDITION and change nothing; after any other failure, here and below, the load has failed and all calls say so.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_load_exchange_begin_round(
        exchange: *mut shw_load_exchange,
        out: *mut shw_exchange_round,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().load_exchange_begin_round.unwrap_unchecked())(exchange, out, err) }
    }

    /// Ends the round when `incoming` is filled: what came is checked, unless the planner's `verify` is off, and goes to where it is wanted. The memory of the round may not be used any more. Without a round that has begun it is FAILED_PRECONDITION.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_load_exchange_end_round(
        exchange: *mut shw_load_exchange,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().load_exchange_end_round.unwrap_unchecked())(exchange, err) }
    }

    /// Reads what is not exchanged, when all rounds have ended, and hands objects to the state. Once; earlier or again it is FAILED_PRECONDITION.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_load_exchange_finish(
        exchange: *mut shw_load_exchange,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().load_exchange_finish.unwrap_unchecked())(exchange, out, err) }
    }

    /// Releases the exchange and the memory of its round; waits for reads that are under way. Tensors hold a part of the bytes where it was not finished. NULL is allowed.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_load_exchange_release(exchange: *mut shw_load_exchange) {
        unsafe { (table().load_exchange_release.unwrap_unchecked())(exchange) }
    }

    /// Writes a state as items into a new file `name`, [TEXT]__R_K.GENERATION.distcp, of the directory `path`: each piece of each tensor, empty ones too, then each object. Of the options durability, digests, file_mode, threads, memory_budget, deadline and cancellation count. The first part of `out` has three 8-byte numbers in the machine's order for each item: the entry (of an object its number behind all tensors), then offset and length in the file; the second is for shw_torch_digests_write. After a failure nothing is left.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_torch_items_write(
        context: *mut shw_context,
        state: *const shw_state,
        storage: *mut shw_storage,
        path: *const c_char,
        name: *const c_char,
        options: *const shw_save_options,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe {
            (table().torch_items_write.unwrap_unchecked())(context, state, storage, path, name, options, out, err)
        }
    }

    /// Writes the digests of an index into the directory `path`, as .shardwright.GENERATION.digests. `data` are the `size` bytes that .metadata has, or is going to have: digests count for these very bytes. `results` are second parts of shw_torch_items_write, a blob cut by result_count + 1 offsets; items of the index that are in none of them have no digests. Files of several generations are INVALID_ARGUMENT. Of the options durability counts.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_torch_digests_write(
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
    ) -> shw_status {
        unsafe {
            (table().torch_digests_write.unwrap_unchecked())(
                context,
                storage,
                path,
                data,
                size,
                results,
                result_offsets,
                result_count,
                options,
                err,
            )
        }
    }

    /// Fills options with zeros and their size, as SHW_CONVERT_OPTIONS_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_convert_options_init(options: *mut shw_convert_options, struct_size: u32) {
        unsafe { (table().convert_options_init.unwrap_unchecked())(options, struct_size) }
    }

    /// Saves the checkpoint at `source` (of a format that shw_checkpoint_open takes, or of the zarr backend of Megatron-core up to 0.14) to `target`, never inside of it, in another format; the source is only read. Memory is bounded by the budget, but for byte objects. What was written stays when the call fails, and the same call goes on with it; shw_checkpoint_gc removes it. A target that this call has made before is compared and left as it is.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_convert(
        context: *mut shw_context,
        source_storage: *mut shw_storage,
        source: *const c_char,
        target_storage: *mut shw_storage,
        target: *const c_char,
        options: *const shw_convert_options,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe {
            (table().convert.unwrap_unchecked())(
                context,
                source_storage,
                source,
                target_storage,
                target,
                options,
                out,
                err,
            )
        }
    }

    /// Fills options with zeros and their size, as SHW_RESHARD_OPTIONS_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_reshard_options_init(options: *mut shw_reshard_options, struct_size: u32) {
        unsafe { (table().reshard_options_init.unwrap_unchecked())(options, struct_size) }
    }

    /// Saves the checkpoint of Megatron at `source` to `target` for a job of another shape, optimizer included; the source is only read. What lies in a bucket is proved by its contents. Memory, a killed call and a target that was made before are as in shw_convert.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_reshard(
        context: *mut shw_context,
        source_storage: *mut shw_storage,
        source: *const c_char,
        target_storage: *mut shw_storage,
        target: *const c_char,
        options: *const shw_reshard_options,
        out: *mut *mut shw_report,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe {
            (table().reshard.unwrap_unchecked())(
                context,
                source_storage,
                source,
                target_storage,
                target,
                options,
                out,
                err,
            )
        }
    }

    /// What the pickles at `path` (a file, or all files below a directory) would import and call if they were unpickled, whether a checkpoint can be opened there or not. `out` is one JSON object: `globals` (each with `module`, `name`, `known`, `calls`, `file`, `record`, `offset`, ...), `unknown` (how many are not known to make plain values), `failures` and `unread` (what could not be looked at to its end), `files`, `pickles`, `notes`.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_scan_pickles(
        context: *mut shw_context,
        storage: *mut shw_storage,
        path: *const c_char,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().scan_pickles.unwrap_unchecked())(context, storage, path, out, err) }
    }

    /// Writes files with pickles once more, with None in place of what is not known; the original is only read. Of a file `target` becomes a whole file. Of a directory, indexes of torch DCP and other files with pickles are written below `target`; an index leaves out entries whose items are not clean. `out` is one JSON object: `files`, each with `file`, `replaced` and `left_out`.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_clean_pickles(
        context: *mut shw_context,
        source_storage: *mut shw_storage,
        source: *const c_char,
        target_storage: *mut shw_storage,
        target: *const c_char,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe {
            (table().clean_pickles.unwrap_unchecked())(
                context,
                source_storage,
                source,
                target_storage,
                target,
                out,
                err,
            )
        }
    }

    /// Fills a batch with zeros and its size, as SHW_ENTRY_BATCH_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_entry_batch_init(batch: *mut shw_entry_batch, struct_size: u32) {
        unsafe { (table().entry_batch_init.unwrap_unchecked())(batch, struct_size) }
    }

    /// Fills options with zeros and their size, as SHW_DESCRIBE_OPTIONS_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_describe_options_init(options: *mut shw_describe_options, struct_size: u32) {
        unsafe { (table().describe_options_init.unwrap_unchecked())(options, struct_size) }
    }

    /// Fills options with zeros and their size, as SHW_MERGE_OPTIONS_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_merge_options_init(options: *mut shw_merge_options, struct_size: u32) {
        unsafe { (table().merge_options_init.unwrap_unchecked())(options, struct_size) }
    }

    /// Fills options with zeros and their size, as SHW_MATCH_OPTIONS_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_match_options_init(options: *mut shw_match_options, struct_size: u32) {
        unsafe { (table().match_options_init.unwrap_unchecked())(options, struct_size) }
    }

    /// Makes a plan buffer, the one part of `out`, of what the entries describe. Equal entries give equal bytes.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plan_describe(
        options: *const shw_describe_options,
        entries: *const shw_entry_batch,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().plan_describe.unwrap_unchecked())(options, entries, out, err) }
    }

    /// The entries of a local or merged plan as they were described; `out->struct_size` must be set. Arrays that have one value per entry or box are never NULL, except `order`, `secondary`, `attributes` and `digests` where they say nothing. All are borrowed until the plan is released.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plan_entries(
        plan: *const shw_plan,
        out: *mut shw_entry_batch,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().plan_entries.unwrap_unchecked())(plan, out, err) }
    }

    /// Merges the local plans of all ranks (a blob cut by plan_count + 1 offsets, rank order). Part 0 of `out` is the merged plan. Part 1 + r says what rank r keeps: one uint32 for each box of its plan, as shw_plan_entries lists them, the number of its chunk in its tensor (0 for an object), or SHW_NOT_KEPT where another rank writes it. How presets and owners choose and number: docs/planning.md.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plan_merge(
        options: *const shw_merge_options,
        plans: *const c_void,
        plan_offsets: *const u64,
        plan_count: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().plan_merge.unwrap_unchecked())(options, plans, plan_offsets, plan_count, out, err) }
    }

    /// shw_plan_merge of plans that lie apart, as a transport left them: plan r is the `plan_sizes[r]` bytes at `plans[r]`. Those at a multiple of 8 are read in place.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plan_merge_buffers(
        options: *const shw_merge_options,
        plans: *const *const c_void,
        plan_sizes: *const u64,
        plan_count: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().plan_merge_buffers.unwrap_unchecked())(options, plans, plan_sizes, plan_count, out, err) }
    }

    /// Intersects wanted boxes with the chunks of a merged plan, by name. Parts of `out`: 0 numbers of wanted boxes (u64), 1 numbers of chunks in their tensor (u64), 2 offsets inside the wanted box, 3 offsets inside the chunk, 4 sizes (i64, ndim values per match, back to back in the order of the matches), 5 first match of each entry and the end (u64, count + 1). A stored object is one match without dimensions.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plan_match(
        options: *const shw_match_options,
        stored: *const shw_plan,
        wanted: *const shw_entry_batch,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().plan_match.unwrap_unchecked())(options, stored, wanted, out, err) }
    }

    /// Digest of what a local or merged plan describes, 16 bytes: equal for equal entries in equal order on equal ranks, whatever the content digests of the entries are.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plan_digest(
        plan: *const shw_plan,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().plan_digest.unwrap_unchecked())(plan, out, err) }
    }

    /// XXH3-128 of `size` bytes in canonical byte order, 16 bytes, as `digests` of entries want it.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_content_digest(
        data: *const c_void,
        size: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().content_digest.unwrap_unchecked())(data, size, out, err) }
    }

    /// Fills options with zeros and their size, as SHW_ESTIMATE_OPTIONS_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_estimate_options_init(options: *mut shw_estimate_options, struct_size: u32) {
        unsafe { (table().estimate_options_init.unwrap_unchecked())(options, struct_size) }
    }

    /// Reads a JSON description. What is wrong is told with line and column, which are also the details `line` and `column`; keys that are not known are refused with the nearest known one.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_job_description_create(
        data: *const c_void,
        size: u64,
        out: *mut *mut shw_job_description,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().job_description_create.unwrap_unchecked())(data, size, out, err) }
    }

    /// Takes what a checkpoint stores: each chunk is held by the rank that wrote it.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_job_description_from_checkpoint(
        checkpoint: *const shw_checkpoint,
        out: *mut *mut shw_job_description,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().job_description_from_checkpoint.unwrap_unchecked())(checkpoint, out, err) }
    }

    /// The tensors and objects of `source` as `target` lays them out: as it lists them, else by the first of its rules that matches.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_job_description_lay_out(
        source: *const shw_job_description,
        target: *const shw_job_description,
        out: *mut *mut shw_job_description,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().job_description_lay_out.unwrap_unchecked())(source, target, out, err) }
    }

    /// Number of ranks; 0 for NULL.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_job_description_rank_count(description: *const shw_job_description) -> i32 {
        unsafe { (table().job_description_rank_count.unwrap_unchecked())(description) }
    }

    /// The JSON text that shw_job_description_create reads, repeats written out.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_job_description_json(
        description: *const shw_job_description,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().job_description_json.unwrap_unchecked())(description, out, err) }
    }

    /// Plans the save of all ranks and gives what it costs as JSON text with "schema": 1 (part 0 of `out`). With SHW_ESTIMATE_WITH_PLAN part 1 is the merged plan as a plan buffer.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_estimate_save(
        description: *const shw_job_description,
        options: *const shw_estimate_options,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().estimate_save.unwrap_unchecked())(description, options, out, err) }
    }

    /// Plans the load by the ranks of `wanted` (shw_job_description_lay_out made it from `stored`) of what the checkpoint of `stored` holds, or of what a save of `stored` would store; `wanted` NULL = `stored` itself. What it costs is JSON text with "schema": 1 (part 0 of `out`). With SHW_ESTIMATE_WITH_PLAN part 1 + r is the load plan of rank r as a plan buffer, up to 4 GiB in all; its entries are the tensors and objects that the rank holds, in the order of the description.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_estimate_load(
        stored: *const shw_job_description,
        wanted: *const shw_job_description,
        options: *const shw_estimate_options,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().estimate_load.unwrap_unchecked())(stored, wanted, options, out, err) }
    }

    /// Releases the description. NULL is allowed.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_job_description_release(description: *mut shw_job_description) {
        unsafe { (table().job_description_release.unwrap_unchecked())(description) }
    }

    /// Describes what `options->rank` of `options->world_size` holds. `layouts` has one layout per entry, NULL where the boxes of `entries` count; `layouts` NULL = no entry has one. An entry with a layout lists no boxes and is of kind SHARDED unless its kind says otherwise or no axis of the layout cuts. `numbers`, `order`, `secondary` and `attributes` are NULL. Parts of `out`: 0 the description (a plan buffer), 1 its digest, 2 this rank's part (a plan buffer), empty when there is none.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_global_plan_describe(
        options: *const shw_describe_options,
        entries: *const shw_entry_batch,
        layouts: *const *const shw_layout,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().global_plan_describe.unwrap_unchecked())(options, entries, layouts, out, err) }
    }

    /// Ranks that send their description: the lowest of each distinct digest, ascending by first use (int32, the one part of `out`). `digests` has 16 bytes per rank.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_global_plan_representatives(
        digests: *const c_void,
        rank_count: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().global_plan_representatives.unwrap_unchecked())(digests, rank_count, out, err) }
    }

    /// Makes the plan of all ranks. `descriptions` are those of the representatives in their order (a blob cut by description_count + 1 offsets), `parts` those of the ranks that have one, in any order (a blob cut by part_count + 1 offsets; NULL with part_count 0). Of `options`, `owner` is any but ALL, and `cover` FULL.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_global_plan_create(
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
    ) -> shw_status {
        unsafe {
            (table().global_plan_create.unwrap_unchecked())(
                options,
                digests,
                rank_count,
                descriptions,
                description_offsets,
                description_count,
                parts,
                part_offsets,
                part_count,
                out,
                err,
            )
        }
    }

    /// What rank `rank` writes, as a plan buffer of kind WRITE_LIST. An entry is counted among the tensors or among the objects of the rank's entries. `generation` is 32 hex digits; `plan_digest` has the 16 bytes that the list carries, NULL = those of shw_global_plan_digest.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_global_plan_write_list(
        plan: *const shw_global_plan,
        rank: i32,
        generation: *const c_char,
        plan_digest: *const c_void,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().global_plan_write_list.unwrap_unchecked())(plan, rank, generation, plan_digest, out, err) }
    }

    /// Bytes that each rank writes, without padding (uint64, the one part of `out`).
    /// # Safety
    /// As in C.
    pub unsafe fn shw_global_plan_rank_bytes(
        plan: *const shw_global_plan,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().global_plan_rank_bytes.unwrap_unchecked())(plan, out, err) }
    }

    /// Rank that writes each chunk of a tensor that is not rank_local, in the order of the explicit catalog (int32, the one part of `out`).
    /// # Safety
    /// As in C.
    pub unsafe fn shw_global_plan_owners(
        plan: *const shw_global_plan,
        name: *const c_char,
        name_size: u64,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().global_plan_owners.unwrap_unchecked())(plan, name, name_size, out, err) }
    }

    /// Counts of the plan as JSON text with "schema": 1: ranks, descriptions, tensors, items, chunks, objects, files, bytes, most_bytes (of the rank that writes most).
    /// # Safety
    /// As in C.
    pub unsafe fn shw_global_plan_json(
        plan: *const shw_global_plan,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().global_plan_json.unwrap_unchecked())(plan, out, err) }
    }

    /// Digest of what the plan is made of, 16 bytes: equal on all ranks that made the same plan.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_global_plan_digest(
        plan: *const shw_global_plan,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().global_plan_digest.unwrap_unchecked())(plan, out, err) }
    }

    /// The explicit plan: part 0 of `out` is the merged plan, part 1 + r the write list of rank r, each with the digest of the explicit catalog. Costs what the explicit plan costs.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_global_plan_expand(
        plan: *const shw_global_plan,
        generation: *const c_char,
        out: *mut *mut shw_buffer,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().global_plan_expand.unwrap_unchecked())(plan, generation, out, err) }
    }

    /// Releases the plan. NULL is allowed.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_global_plan_release(plan: *mut shw_global_plan) {
        unsafe { (table().global_plan_release.unwrap_unchecked())(plan) }
    }

    /// Fills a call with zeros and its size, as SHW_COMMUNICATOR_CALL_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_communicator_call_init(call: *mut shw_communicator_call, struct_size: u32) {
        unsafe { (table().communicator_call_init.unwrap_unchecked())(call, struct_size) }
    }

    /// Fills a table with zeros, its size and the interface version. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_communicator_vtable_init(vtable: *mut shw_communicator_vtable, struct_size: u32) {
        unsafe { (table().communicator_vtable_init.unwrap_unchecked())(vtable, struct_size) }
    }

    /// Makes a communicator of a host's table, which is copied. On success it owns `vtable->user` and calls the table's release once.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_communicator_create(
        vtable: *const shw_communicator_vtable,
        out: *mut *mut shw_communicator,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().communicator_create.unwrap_unchecked())(vtable, out, err) }
    }

    /// Makes `size` ranks in this process, each to be used by a thread of its own.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_communicator_group_create(
        size: i32,
        out: *mut *mut shw_communicator_group,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().communicator_group_create.unwrap_unchecked())(size, out, err) }
    }

    /// Gives the communicator of one rank of the group; each rank can be taken once. A rank whose communicator is released while others wait for it makes them return ABORTED naming it.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_communicator_group_member(
        group: *mut shw_communicator_group,
        rank: i32,
        out: *mut *mut shw_communicator,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().communicator_group_member.unwrap_unchecked())(group, rank, out, err) }
    }

    /// Releases the group; its members live on. NULL is allowed.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_communicator_group_release(group: *mut shw_communicator_group) {
        unsafe { (table().communicator_group_release.unwrap_unchecked())(group) }
    }

    /// Makes one rank of `size` that moves nothing and always succeeds, for estimates and for checks of what would be issued.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_communicator_create_fake(
        rank: i32,
        size: i32,
        out: *mut *mut shw_communicator,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().communicator_create_fake.unwrap_unchecked())(rank, size, out, err) }
    }

    /// Puts a communicator behind an emulated link of this rank: each operation ends `latency_ns` after its bytes have come at `bytes_per_second` (0 = at once). No processor is used meanwhile. `out` keeps `communicator` alive, which is used through it alone.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_communicator_create_delay(
        communicator: *mut shw_communicator,
        latency_ns: i64,
        bytes_per_second: f64,
        out: *mut *mut shw_communicator,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe {
            (table().communicator_create_delay.unwrap_unchecked())(communicator, latency_ns, bytes_per_second, out, err)
        }
    }

    /// Makes a communicator over a collective, which it keeps alive: works everywhere, waits for other ranks where an operation is issued.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_communicator_create_over(
        collective: *mut shw_collective,
        out: *mut *mut shw_communicator,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().communicator_create_over.unwrap_unchecked())(collective, out, err) }
    }

    /// Makes a communicator of a loaded plugin; `config` is text that the plugin understands.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_context_open_communicator(
        context: *mut shw_context,
        plugin: *const c_char,
        config: *const c_char,
        config_size: u64,
        out: *mut *mut shw_communicator,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe {
            (table().context_open_communicator.unwrap_unchecked())(context, plugin, config, config_size, out, err)
        }
    }

    /// Rank of this end, from 0.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_communicator_rank(communicator: *const shw_communicator) -> i32 {
        unsafe { (table().communicator_rank.unwrap_unchecked())(communicator) }
    }

    /// Number of ranks; 0 for NULL.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_communicator_size(communicator: *const shw_communicator) -> i32 {
        unsafe { (table().communicator_size.unwrap_unchecked())(communicator) }
    }

    /// SHW_COMMUNICATOR_ bits.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_communicator_capabilities(communicator: *const shw_communicator) -> u64 {
        unsafe { (table().communicator_capabilities.unwrap_unchecked())(communicator) }
    }

    /// Name of the transport, such as "threads". Borrowed until the communicator is released.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_communicator_name(communicator: *const shw_communicator, size: *mut u64) -> *const c_char {
        unsafe { (table().communicator_name.unwrap_unchecked())(communicator, size) }
    }

    /// Issues all_gather: `in` has call->count elements, `out` those of all ranks in rank order. Sizes are in bytes, here and below, and those that count and dtype say.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_communicator_all_gather(
        communicator: *mut shw_communicator,
        call: *const shw_communicator_call,
        r#in: *const c_void,
        in_size: u64,
        out: *mut c_void,
        out_size: u64,
        out_work: *mut *mut shw_work,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe {
            (table().communicator_all_gather.unwrap_unchecked())(
                communicator,
                call,
                r#in,
                in_size,
                out,
                out_size,
                out_work,
                err,
            )
        }
    }

    /// Issues all_to_all: `in` and `out` have call->count elements for and from each rank.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_communicator_all_to_all(
        communicator: *mut shw_communicator,
        call: *const shw_communicator_call,
        r#in: *const c_void,
        in_size: u64,
        out: *mut c_void,
        out_size: u64,
        out_work: *mut *mut shw_work,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe {
            (table().communicator_all_to_all.unwrap_unchecked())(
                communicator,
                call,
                r#in,
                in_size,
                out,
                out_size,
                out_work,
                err,
            )
        }
    }

    /// Issues reduce_scatter: `in` has call->count elements for each rank, `out` call->count elements, reduced as call->op says.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_communicator_reduce_scatter(
        communicator: *mut shw_communicator,
        call: *const shw_communicator_call,
        r#in: *const c_void,
        in_size: u64,
        out: *mut c_void,
        out_size: u64,
        out_work: *mut *mut shw_work,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe {
            (table().communicator_reduce_scatter.unwrap_unchecked())(
                communicator,
                call,
                r#in,
                in_size,
                out,
                out_size,
                out_work,
                err,
            )
        }
    }

    /// Issues all_reduce of call->count elements in place.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_communicator_all_reduce(
        communicator: *mut shw_communicator,
        call: *const shw_communicator_call,
        data: *mut c_void,
        size: u64,
        out_work: *mut *mut shw_work,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().communicator_all_reduce.unwrap_unchecked())(communicator, call, data, size, out_work, err) }
    }

    /// Issues broadcast of call->count elements of the root, in place.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_communicator_broadcast(
        communicator: *mut shw_communicator,
        call: *const shw_communicator_call,
        data: *mut c_void,
        size: u64,
        root: i32,
        out_work: *mut *mut shw_work,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe {
            (table().communicator_broadcast.unwrap_unchecked())(communicator, call, data, size, root, out_work, err)
        }
    }

    /// Issues a barrier, which ends when all ranks have issued it.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_communicator_barrier(
        communicator: *mut shw_communicator,
        call: *const shw_communicator_call,
        out_work: *mut *mut shw_work,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().communicator_barrier.unwrap_unchecked())(communicator, call, out_work, err) }
    }

    /// Wakes all ranks that wait in this communicator, and ends it; they return `code` with the message.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_communicator_abort(
        communicator: *mut shw_communicator,
        code: shw_status,
        message: *const c_char,
        message_size: u64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().communicator_abort.unwrap_unchecked())(communicator, code, message, message_size, err) }
    }

    /// Releases the communicator; works, meshes and other communicators that use it keep it alive. NULL is allowed.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_communicator_release(communicator: *mut shw_communicator) {
        unsafe { (table().communicator_release.unwrap_unchecked())(communicator) }
    }

    /// Waits until the operation has ended: OK; PENDING after `timeout_ns` (-1 = no limit but that of the operation). A failure is returned again at each further call.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_work_wait(work: *mut shw_work, timeout_ns: i64, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().work_wait.unwrap_unchecked())(work, timeout_ns, err) }
    }

    /// The same without waiting: OK or PENDING.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_work_poll(work: *mut shw_work, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().work_poll.unwrap_unchecked())(work, err) }
    }

    /// A stream of a device goes on after the operation, and the host does not wait; for memory of the host it waits.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_work_order(work: *mut shw_work, stream: u64, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().work_order.unwrap_unchecked())(work, stream, err) }
    }

    /// Releases the work; one that has not ended is given up, and where other ranks still need this one the communicator has failed. NULL is allowed.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_work_release(work: *mut shw_work) {
        unsafe { (table().work_release.unwrap_unchecked())(work) }
    }

    /// Fills a table with zeros, its size and the interface version. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_device_vtable_init(vtable: *mut shw_device_vtable, struct_size: u32) {
        unsafe { (table().device_vtable_init.unwrap_unchecked())(vtable, struct_size) }
    }

    /// Makes a device of a host's table, which is copied. On success it owns `vtable->user` and calls the table's release once.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_device_create(
        vtable: *const shw_device_vtable,
        out: *mut *mut shw_device,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().device_create.unwrap_unchecked())(vtable, out, err) }
    }

    /// Makes the host as a device. Lanes are threads; with `inline_lanes` 1 what is put on them runs where it is put, which makes an order of events that repeats.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_device_create_host(
        inline_lanes: shw_bool,
        out: *mut *mut shw_device,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().device_create_host.unwrap_unchecked())(inline_lanes, out, err) }
    }

    /// Makes a device of a loaded plugin; `config` is text that the plugin understands.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_context_open_device(
        context: *mut shw_context,
        plugin: *const c_char,
        config: *const c_char,
        config_size: u64,
        out: *mut *mut shw_device,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().context_open_device.unwrap_unchecked())(context, plugin, config, config_size, out, err) }
    }

    /// Name of the device, such as "host". Borrowed until the device is released.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_device_name(device: *const shw_device, size: *mut u64) -> *const c_char {
        unsafe { (table().device_name.unwrap_unchecked())(device, size) }
    }

    /// Where memory of the device lies: one of SHW_DEVICE_CPU and its like, and which device of that kind. What lies there enters and leaves with these numbers (shw_tensor, DLPack). 0 for NULL.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_device_type(device: *const shw_device) -> i32 {
        unsafe { (table().device_type.unwrap_unchecked())(device) }
    }

    /// As shw_device_type, the number among devices of its type, from 0 on.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_device_id(device: *const shw_device) -> i32 {
        unsafe { (table().device_id.unwrap_unchecked())(device) }
    }

    /// Releases the device; contexts of HSDP that use it keep it alive. NULL is allowed.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_device_release(device: *mut shw_device) {
        unsafe { (table().device_release.unwrap_unchecked())(device) }
    }

    /// Fills options with zeros and their size, as SHW_HSDP_OPTIONS_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_options_init(options: *mut shw_hsdp_options, struct_size: u32) {
        unsafe { (table().hsdp_options_init.unwrap_unchecked())(options, struct_size) }
    }

    /// Makes the mesh of `rank`, which is one of its ranks. Of `spec` the fields of the mesh count: shape, axis names, ranks; the others are NULL or zero.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_mesh_create(
        spec: *const shw_layout_spec,
        rank: i32,
        out: *mut *mut shw_hsdp_mesh,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_mesh_create.unwrap_unchecked())(spec, rank, out, err) }
    }

    /// Sets the communicator of an axis for a lane (SHW_HSDP_LANE_); it stays alive with the mesh. Its ranks are those along the axis in the order of their coordinates; for SHW_HSDP_LANE_SECONDARY the n neighbours [k n, k n + n) with this rank among them, for each n that units use. Before the context is created, and again between a failure and shw_hsdp_reset.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_mesh_set_communicator(
        mesh: *mut shw_hsdp_mesh,
        axis: i32,
        lane: i32,
        communicator: *mut shw_communicator,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_mesh_set_communicator.unwrap_unchecked())(mesh, axis, lane, communicator, err) }
    }

    /// Releases the mesh; contexts keep it alive. NULL is allowed.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_mesh_release(mesh: *mut shw_hsdp_mesh) {
        unsafe { (table().hsdp_mesh_release.unwrap_unchecked())(mesh) }
    }

    /// Makes a context of units, which keeps `context`, mesh and device alive. FAILED_PRECONDITION: an axis of several ranks has no communicator, or one that does not sum in rank order.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_create(
        context: *mut shw_context,
        options: *const shw_hsdp_options,
        out: *mut *mut shw_hsdp,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_create.unwrap_unchecked())(context, options, out, err) }
    }

    /// The backward is over: reduces what was not reduced yet. In the last backward of an iteration (see SHW_HSDP_IS_LAST_BACKWARD) also waits for all reductions, drops what was gathered in vain, and in the first iterations compares with the other ranks in which order units ran (ABORTED naming the first unit that differs and both ranks).
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_finalize_backward(hsdp: *mut shw_hsdp, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().hsdp_finalize_backward.unwrap_unchecked())(hsdp, err) }
    }

    /// Parameters of the shards have changed (an optimizer step, a load): what was gathered before is of no use. Shards of a unit that is being gathered stay as they are: a host that may have asked for that calls this before the change, too. `event` of the device after which they are there, 0 = they are there, and what wrote them has ended. FAILED_PRECONDITION names a unit whose gradients still wait for the replicas.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_step_event(hsdp: *mut shw_hsdp, event: u64, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().hsdp_step_event.unwrap_unchecked())(hsdp, event, err) }
    }

    /// Recovery, on all ranks: gives up what is under way and drops all gradients and all that was gathered. After a failure the mesh needs new communicators first (FAILED_PRECONDITION names one that has failed).
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_reset(hsdp: *mut shw_hsdp, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().hsdp_reset.unwrap_unchecked())(hsdp, err) }
    }

    /// Norm of order `p` (positive; infinity: the largest) of the gradients of all shards, replicas counted once; equal on all ranks. Collective over the shard axis.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_global_norm(
        hsdp: *mut shw_hsdp,
        p: f64,
        out: *mut f64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_global_norm.unwrap_unchecked())(hsdp, p, out, err) }
    }

    /// Multiplies all gradients of the shards by a finite factor.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_scale_grads(hsdp: *mut shw_hsdp, factor: f64, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().hsdp_scale_grads.unwrap_unchecked())(hsdp, factor, err) }
    }

    /// Drops all gradients of the shards.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_zero_grads(hsdp: *mut shw_hsdp, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().hsdp_zero_grads.unwrap_unchecked())(hsdp, err) }
    }

    /// Sets a value of the context (SHW_HSDP_MAX_INFLIGHT_REDUCE, SHW_HSDP_PREFETCH_DEPTH, SHW_HSDP_IS_LAST_BACKWARD), or one of shw_hsdp_unit_set_i64 in all units. Equal on all ranks.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_set_i64(hsdp: *mut shw_hsdp, key: i32, value: i64, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().hsdp_set_i64.unwrap_unchecked())(hsdp, key, value, err) }
    }

    /// The value of the context that shw_hsdp_set_i64 sets (SHW_HSDP_MAX_INFLIGHT_REDUCE, SHW_HSDP_PREFETCH_DEPTH, SHW_HSDP_IS_LAST_BACKWARD); those of units are read of each.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_get_i64(
        hsdp: *const shw_hsdp,
        key: i32,
        out: *mut i64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_get_i64.unwrap_unchecked())(hsdp, key, out, err) }
    }

    /// Sets one of the values of shw_hsdp_unit_set_f64 in all units. Equal on all ranks.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_set_f64(hsdp: *mut shw_hsdp, key: i32, value: f64, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().hsdp_set_f64.unwrap_unchecked())(hsdp, key, value, err) }
    }

    /// Adds what this rank holds of all sealed units to a state, under `prefix` (`prefix_size` bytes; "" = none) followed by the names of the parameters; aliases are one entry. Memory is borrowed: the state keeps the context alive. Where it lies on a device, saves and loads copy it by that device, and so tensors that are added later and lie there. Entries have the layout of their shards, those of ragged units boxes; padding is in none. After a load call shw_hsdp_step_event. `what`: SHW_HSDP_PARAMS, or SHW_HSDP_GRADS, for which FAILED_PRECONDITION names a unit whose gradients still travel or wait for the replicas.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_add_to_state(
        hsdp: *mut shw_hsdp,
        prefix: *const c_char,
        prefix_size: u64,
        what: i32,
        state: *mut shw_state,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_add_to_state.unwrap_unchecked())(hsdp, prefix, prefix_size, what, state, err) }
    }

    /// Releases the context: what is under way is given up, and other ranks that wait for it are told. Its units, works and states keep it alive. NULL is allowed.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_release(hsdp: *mut shw_hsdp) {
        unsafe { (table().hsdp_release.unwrap_unchecked())(hsdp) }
    }

    /// Fills a struct with zeros and its size, as its INIT macro does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_options_init(options: *mut shw_hsdp_unit_options, struct_size: u32) {
        unsafe { (table().hsdp_unit_options_init.unwrap_unchecked())(options, struct_size) }
    }

    /// As shw_hsdp_unit_options_init.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_param_batch_init(batch: *mut shw_hsdp_param_batch, struct_size: u32) {
        unsafe { (table().hsdp_param_batch_init.unwrap_unchecked())(batch, struct_size) }
    }

    /// As shw_hsdp_unit_options_init.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_box_init(r#box: *mut shw_hsdp_box, struct_size: u32) {
        unsafe { (table().hsdp_box_init.unwrap_unchecked())(r#box, struct_size) }
    }

    /// As shw_hsdp_unit_options_init.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_allocator_init(allocator: *mut shw_hsdp_allocator, struct_size: u32) {
        unsafe { (table().hsdp_allocator_init.unwrap_unchecked())(allocator, struct_size) }
    }

    /// Makes a unit. Its name is for messages, and equal on all ranks.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_create(
        hsdp: *mut shw_hsdp,
        name: *const c_char,
        name_size: u64,
        options: *const shw_hsdp_unit_options,
        out: *mut *mut shw_hsdp_unit,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_unit_create.unwrap_unchecked())(hsdp, name, name_size, options, out, err) }
    }

    /// Adds all parameters of the batch or none; they are numbered from 0 in the order in which they are added. Full tensors are borrowed until the unit is sealed, names copied.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_add_params(
        unit: *mut shw_hsdp_unit,
        batch: *const shw_hsdp_param_batch,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_unit_add_params.unwrap_unchecked())(unit, batch, err) }
    }

    /// As shw_hsdp_unit_add_params with versioned DLPack tensors, `batch->count` of them, in place of `batch->tensors`. On success all are consumed: their deleters run once when the unit is sealed or ends.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_add_params_dlpack(
        unit: *mut shw_hsdp_unit,
        batch: *const shw_hsdp_param_batch,
        managed: *const *mut DLManagedTensorVersioned,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_unit_add_params_dlpack.unwrap_unchecked())(unit, batch, managed, err) }
    }

    /// As shw_hsdp_unit_add_params_dlpack with legacy DLPack tensors.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_add_params_dlpack_legacy(
        unit: *mut shw_hsdp_unit,
        batch: *const shw_hsdp_param_batch,
        managed: *const *mut DLManagedTensor,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_unit_add_params_dlpack_legacy.unwrap_unchecked())(unit, batch, managed, err) }
    }

    /// Whole parameters lie in memory that the host gives from now on, which is memory of the context's device. The table is copied; on success the unit owns `allocator->user` and calls its release once. Called on the thread that calls the unit.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_set_allocator(
        unit: *mut shw_hsdp_unit,
        allocator: *const shw_hsdp_allocator,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_unit_set_allocator.unwrap_unchecked())(unit, allocator, err) }
    }

    /// Lays the unit out, compares that on all ranks (INVALID_ARGUMENT on all of them, naming the unit and a rank that differs), makes the shards and fills them.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_seal(unit: *mut shw_hsdp_unit, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().hsdp_unit_seal.unwrap_unchecked())(unit, err) }
    }

    /// Number of parameters.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_param_count(unit: *const shw_hsdp_unit) -> u64 {
        unsafe { (table().hsdp_unit_param_count.unwrap_unchecked())(unit) }
    }

    /// Name of a parameter of a sealed unit; "" when there is none. Borrowed until the unit is released.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_param_name(unit: *const shw_hsdp_unit, index: u64, size: *mut u64) -> *const c_char {
        unsafe { (table().hsdp_unit_param_name.unwrap_unchecked())(unit, index, size) }
    }

    /// What this rank holds of a parameter.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_box(
        unit: *mut shw_hsdp_unit,
        index: u64,
        out: *mut shw_hsdp_box,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_unit_box.unwrap_unchecked())(unit, index, out, err) }
    }

    /// Layout of a parameter over the mesh, for state of the host that is cut as the parameter is, such as that of an optimizer. UNIMPLEMENTED: the cut of a ragged unit is no rule of a mesh; use shw_hsdp_unit_box.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_layout(
        unit: *mut shw_hsdp_unit,
        index: u64,
        out: *mut *mut shw_layout,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_unit_layout.unwrap_unchecked())(unit, index, out, err) }
    }

    /// Releases the unit; it goes on in its context, which keeps its parameters and runs it no more. NULL is allowed.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_release(unit: *mut shw_hsdp_unit) {
        unsafe { (table().hsdp_unit_release.unwrap_unchecked())(unit) }
    }

    /// Fills options with zeros and their size, as SHW_HSDP_PHASE_OPTIONS_INIT does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_phase_options_init(options: *mut shw_hsdp_phase_options, struct_size: u32) {
        unsafe { (table().hsdp_phase_options_init.unwrap_unchecked())(options, struct_size) }
    }

    /// Before forward of the unit: waits for its whole parameters, and gathers what probably comes next.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_pre_forward(
        unit: *mut shw_hsdp_unit,
        options: *const shw_hsdp_phase_options,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_unit_pre_forward.unwrap_unchecked())(unit, options, err) }
    }

    /// After forward of the unit: reshards as its policy says.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_post_forward(
        unit: *mut shw_hsdp_unit,
        options: *const shw_hsdp_phase_options,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_unit_post_forward.unwrap_unchecked())(unit, options, err) }
    }

    /// Before backward of the unit: waits for its whole parameters, and gathers what ran before it.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_pre_backward(unit: *mut shw_hsdp_unit, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().hsdp_unit_pre_backward.unwrap_unchecked())(unit, err) }
    }

    /// After backward of the unit, its gradients were handed in: reduces and reshards as the settings say. A second call within one backward does nothing.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_post_backward(unit: *mut shw_hsdp_unit, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().hsdp_unit_post_backward.unwrap_unchecked())(unit, err) }
    }

    /// Gathers. `out` NULL: returns when the unit is UNSHARDED; else the gather is under way, and waiting for the work makes the unit UNSHARDED. The shards of all ranks stay as they are until then.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_unshard(
        unit: *mut shw_hsdp_unit,
        out: *mut *mut shw_work,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_unit_unshard.unwrap_unchecked())(unit, out, err) }
    }

    /// Waits for a gather under way; nothing where there is none.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_wait(unit: *mut shw_hsdp_unit, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().hsdp_unit_wait.unwrap_unchecked())(unit, err) }
    }

    /// Reshards in a phase (SHW_HSDP_FORWARD, SHW_HSDP_BACKWARD). A gather under way is waited for and dropped; its work does nothing then.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_reshard(unit: *mut shw_hsdp_unit, phase: i32, err: *mut *mut shw_error) -> shw_status {
        unsafe { (table().hsdp_unit_reshard.unwrap_unchecked())(unit, phase, err) }
    }

    /// Hands in gradients of whole parameters, all or none: `grads[i]` (dense, row-major, of the global shape and any floating dtype) is that of parameter `params[i]`. It lies in memory of the host or of the context's device, where what wrote it has ended (`stream` 0). `mode`: SHW_HSDP_ADD or SHW_HSDP_TAKE, which copies what does not lie in the context's memory.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_add_grads(
        unit: *mut shw_hsdp_unit,
        params: *const u64,
        grads: *const shw_tensor,
        count: u64,
        mode: i32,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_unit_add_grads.unwrap_unchecked())(unit, params, grads, count, mode, err) }
    }

    /// As shw_hsdp_unit_add_grads with versioned DLPack tensors. On success all are consumed: their deleters run once when they are not read any more.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_add_grads_dlpack(
        unit: *mut shw_hsdp_unit,
        params: *const u64,
        managed: *const *mut DLManagedTensorVersioned,
        count: u64,
        mode: i32,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_unit_add_grads_dlpack.unwrap_unchecked())(unit, params, managed, count, mode, err) }
    }

    /// As shw_hsdp_unit_add_grads_dlpack with legacy DLPack tensors.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_add_grads_dlpack_legacy(
        unit: *mut shw_hsdp_unit,
        params: *const u64,
        managed: *const *mut DLManagedTensor,
        count: u64,
        mode: i32,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe {
            (table().hsdp_unit_add_grads_dlpack_legacy.unwrap_unchecked())(unit, params, managed, count, mode, err)
        }
    }

    /// Packs the gradients that were handed in, reshards, and reduces. `out` NULL: returns when they are in the gradient of the shard (or in the partial sum); else waiting for the work brings them there. So does polling it, until it is OK, as far as nothing waits for other ranks: sums over replicas by a transport that is not asynchronous (SHW_COMMUNICATOR_ASYNC) begin in a wait. Both change the unit, so they are calls of its context.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_reduce(
        unit: *mut shw_hsdp_unit,
        out: *mut *mut shw_work,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_unit_reduce.unwrap_unchecked())(unit, out, err) }
    }

    /// State of the unit, SHW_HSDP_SHARDED to SHW_HSDP_SECONDARY.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_state(unit: *const shw_hsdp_unit) -> i32 {
        unsafe { (table().hsdp_unit_state.unwrap_unchecked())(unit) }
    }

    /// How far its gradients are, SHW_HSDP_GRAD_; where several are under way, the furthest.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_grad_state(unit: *const shw_hsdp_unit) -> i32 {
        unsafe { (table().hsdp_unit_grad_state.unwrap_unchecked())(unit) }
    }

    /// Describes `count` parameters from `first` on as SHW_HSDP_VIEW_ says: dense, row-major, padding excluded, on the context's device (`device_type`, `device_id`), where the library has written all of it. Memory is borrowed until the unit's state changes next, shapes until it is released. `data` is NULL where there is no gradient. Whole parameters are there only while UNSHARDED.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_views(
        unit: *mut shw_hsdp_unit,
        view: i32,
        first: u64,
        count: u64,
        out: *mut shw_tensor,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_unit_views.unwrap_unchecked())(unit, view, first, count, out, err) }
    }

    /// One view as a versioned DLPack tensor, which keeps the context alive. A gradient stays as it is when shw_hsdp_zero_grads has dropped it, for as long as the tensor lives: a host takes gradients without a copy by exporting and dropping them. FAILED_PRECONDITION where there is no gradient.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_view_dlpack(
        unit: *mut shw_hsdp_unit,
        view: i32,
        index: u64,
        out: *mut *mut DLManagedTensorVersioned,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_unit_view_dlpack.unwrap_unchecked())(unit, view, index, out, err) }
    }

    /// As shw_hsdp_unit_view_dlpack, a legacy DLPack tensor.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_view_dlpack_legacy(
        unit: *mut shw_hsdp_unit,
        view: i32,
        index: u64,
        out: *mut *mut DLManagedTensor,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_unit_view_dlpack_legacy.unwrap_unchecked())(unit, view, index, out, err) }
    }

    /// Gives memory of the context's device for the whole parameters from `first` on, `sizes[i]` bytes at `memory[i]`, to a unit made with SHW_HSDP_UNIT_HOST_MEMORY; it is used whenever the unit is gathered from now on. While the unit is not UNSHARDED the host may free or move it, and gives it anew before the next gather is waited for. For hosts to which a call of shw_hsdp_allocator is expensive.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_set_memory(
        unit: *mut shw_hsdp_unit,
        first: u64,
        count: u64,
        memory: *const *mut c_void,
        sizes: *const u64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_unit_set_memory.unwrap_unchecked())(unit, first, count, memory, sizes, err) }
    }

    /// Sets a value of the unit, SHW_HSDP_REQUIRES_GRADIENT_SYNC to SHW_HSDP_UNUSED_POLICY, from now on and equally on all ranks.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_set_i64(
        unit: *mut shw_hsdp_unit,
        key: i32,
        value: i64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_unit_set_i64.unwrap_unchecked())(unit, key, value, err) }
    }

    /// The value that shw_hsdp_unit_set_i64 sets.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_get_i64(
        unit: *const shw_hsdp_unit,
        key: i32,
        out: *mut i64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_unit_get_i64.unwrap_unchecked())(unit, key, out, err) }
    }

    /// The value that shw_hsdp_unit_set_f64 sets.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_get_f64(
        unit: *const shw_hsdp_unit,
        key: i32,
        out: *mut f64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_unit_get_f64.unwrap_unchecked())(unit, key, out, err) }
    }

    /// Sets SHW_HSDP_DIVIDE_FACTOR of the unit.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_set_f64(
        unit: *mut shw_hsdp_unit,
        key: i32,
        value: f64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_unit_set_f64.unwrap_unchecked())(unit, key, value, err) }
    }

    /// Sets the units that are gathered ahead when this one runs (SHW_HSDP_FORWARD_PREFETCH, SHW_HSDP_BACKWARD_PREFETCH), in place of what the last iteration foretells; none restores that.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_set_units(
        unit: *mut shw_hsdp_unit,
        key: i32,
        units: *const *mut shw_hsdp_unit,
        count: u64,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_unit_set_units.unwrap_unchecked())(unit, key, units, count, err) }
    }

    /// A parameter gets no gradients, or gets them again, from the next pre_forward on.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_set_frozen(
        unit: *mut shw_hsdp_unit,
        index: u64,
        frozen: shw_bool,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_unit_set_frozen.unwrap_unchecked())(unit, index, frozen, err) }
    }

    /// Fills a struct with zeros and its size, as its INIT macro does. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_memory_init(memory: *mut shw_hsdp_memory, struct_size: u32) {
        unsafe { (table().hsdp_memory_init.unwrap_unchecked())(memory, struct_size) }
    }

    /// As shw_hsdp_memory_init.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_estimate_unit_init(unit: *mut shw_hsdp_estimate_unit, struct_size: u32) {
        unsafe { (table().hsdp_estimate_unit_init.unwrap_unchecked())(unit, struct_size) }
    }

    /// As shw_hsdp_memory_init.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_estimate_world_init(world: *mut shw_hsdp_estimate_world, struct_size: u32) {
        unsafe { (table().hsdp_estimate_world_init.unwrap_unchecked())(world, struct_size) }
    }

    /// Foretells what one rank holds in iterations in which `count` units run forward in their order and backward in the reverse one, and gradients of the shards are dropped before the next: `out` is what shw_hsdp_stats would say of `kind` (SHW_HSDP_MEMORY_), padding aside; what a transport allocates is not in it. `mesh` and `device` of `options` are not looked at, its axes only as far as they are -1. `options` of a unit may be NULL.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_estimate(
        units: *const shw_hsdp_estimate_unit,
        count: u64,
        world: *const shw_hsdp_estimate_world,
        options: *const shw_hsdp_options,
        kind: i32,
        out: *mut shw_hsdp_memory,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_estimate.unwrap_unchecked())(units, count, world, options, kind, out, err) }
    }

    /// Memory that is and was held for one kind (SHW_HSDP_MEMORY_) in all units of a context, of its device: what offloaded units have in memory of the host beside one is not counted. Padding and unsharded units are told for SHW_HSDP_MEMORY_ALL.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_stats(
        hsdp: *const shw_hsdp,
        kind: i32,
        out: *mut shw_hsdp_memory,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_stats.unwrap_unchecked())(hsdp, kind, out, err) }
    }

    /// Memory that is and was held for one unit, padding included.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_hsdp_unit_stats(
        unit: *const shw_hsdp_unit,
        out: *mut shw_hsdp_memory,
        err: *mut *mut shw_error,
    ) -> shw_status {
        unsafe { (table().hsdp_unit_stats.unwrap_unchecked())(unit, out, err) }
    }

    /// Fills a struct with zeros, its size and the interface version. NULL is skipped.
    /// # Safety
    /// As in C.
    pub unsafe fn shw_plugin_init(plugin: *mut shw_plugin, struct_size: u32) {
        unsafe { (table().plugin_init.unwrap_unchecked())(plugin, struct_size) }
    }
}
