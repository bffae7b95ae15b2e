# SPDX-License-Identifier: Apache-2.0
"""Names of the standard planners that are the same for every framework."""
from .faults import (ArgumentTypeError, IncompleteTensorError, MissingEntryError, OutsideTensorError, UnknownNameError,
                     UnsafePickleError)
from .geometry import chunk_to_area, infer_intersection, infer_slice_area_by_rank, rank_id_to_dev_id_list
from .layout_files import check_path, combine_layout, has_valid_filename, load_layout, save_layout
from .matching import create_read_items_for_chunk_list
from .merging import remove_redundant_plans
from .model import (BytesStorageMetadata, ChunkStorageMetadata, LoadItemType, LoadPlan, Metadata, MetadataIndex,
                    ReadItem, SavePlan, StorageInfo, TensorProperties, TensorStorageMetadata, WriteItem, WriteItemType,
                    WriteResult)
from .objects import decode_object, encode_object
from .placements import placements_to_tensor_map, tensor_map_to_placements
from .planner import LoadPlanner, SavePlanner
from .reshard import ReshardHandler, check_layout

__all__ = [
    "ArgumentTypeError", "BytesStorageMetadata", "ChunkStorageMetadata", "IncompleteTensorError", "LoadItemType",
    "LoadPlan", "LoadPlanner", "Metadata", "MetadataIndex", "MissingEntryError", "OutsideTensorError", "ReadItem",
    "ReshardHandler", "SavePlan", "SavePlanner", "StorageInfo", "TensorProperties", "TensorStorageMetadata",
    "UnknownNameError", "UnsafePickleError", "WriteItem", "WriteItemType", "WriteResult", "check_layout",
    "check_path", "chunk_to_area", "combine_layout", "create_read_items_for_chunk_list", "decode_object",
    "encode_object", "has_valid_filename", "infer_intersection", "infer_slice_area_by_rank", "load_layout",
    "placements_to_tensor_map", "rank_id_to_dev_id_list", "remove_redundant_plans", "save_layout",
    "tensor_map_to_placements",
]
