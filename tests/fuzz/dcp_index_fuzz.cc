// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an index of torch.distributed.checkpoint, alone and as that of two ranks. What is
// read makes a sound catalog or is refused, and what a rank sends of it reads back the same.
#include <vector>

#include "core/format/torch_dcp/contents_internal.h"

namespace {

using namespace shardwright::format::torch_dcp;  // NOLINT: a fuzz target is one file

constexpr uint64_t kFileBytes = uint64_t{1} << 20;

void open(const internal::Opened& given) {
  internal::Opened opened = given;
  auto index = internal::index_of(opened);
  if (!index.ok()) return;
  for (const DcpIndex::Tensor& tensor : index->tensors) {
    for (uint64_t i = 0; i < tensor.chunk_count; ++i) {
      if (index->offsets(tensor, i).size() != tensor.shape.size()) __builtin_trap();
    }
  }
  opened.file_bytes.assign(index->files.size(), kFileBytes);
  opened.objects.assign(index->objects.size(), {"application/json", "1", false});
  const auto contents = internal::contents_of(std::move(*index), opened);
  const auto bytes = internal::encode_opened(opened);
  const auto decoded = internal::decode_opened(bytes);
  if (!decoded.ok() || internal::encode_opened(*decoded) != bytes) __builtin_trap();
  if (!contents.ok()) return;
  if (!shardwright::plan::check_catalog(contents->catalog).ok()) __builtin_trap();
  if (contents->chunks.size() != contents->catalog.chunk_count()) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  const std::vector<std::byte> bytes(input.begin(), input.end());
  internal::Opened opened;
  opened.indexes.push_back({".metadata", bytes});
  open(opened);
  opened.indexes.push_back({"__1.metadata", bytes});
  open(opened);
  (void)internal::decode_opened(input);  // refused or not, it stays inside of its bytes
  return 0;
}
