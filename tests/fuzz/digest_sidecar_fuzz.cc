// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as the file of digests beside an index of torch, and as the body of one whose header
// fits. What is taken is asked for every block of a small checkpoint, and beyond.
#include <cstring>
#include <vector>

#include "core/format/torch_dcp/item_digests_internal.h"
#include "core/integrity/digest.h"

namespace {

using namespace shardwright;                     // NOLINT: a fuzz target is one file
using namespace shardwright::format::torch_dcp;  // NOLINT: a fuzz target is one file

constexpr uint64_t kFileBytes = uint64_t{1} << 24;
constexpr uint64_t kRows = uint64_t{3} << 19;  // chunks of more than one block

// Two chunks of a tensor and an object, in one file.
DcpIndex index_of_two() {
  DcpIndex index;
  DcpIndex::Tensor tensor;
  tensor.name = "w";
  tensor.dtype = DType::kUint8;
  tensor.shape = Dims{static_cast<int64_t>(2 * kRows)};
  tensor.chunk_count = 2;
  const auto rows = static_cast<int64_t>(kRows);
  index.extents = {0, rows, rows, rows};
  index.tensors.push_back(tensor);
  index.places = {{0, 0, 0, kRows + 1024}, {0, 0, kRows + 1024, kRows + 1024}};
  index.objects.push_back({"step", "", {0, 0, 2 * kRows + 2048, 1024}, -1});
  index.files = {"__0_0.distcp"};
  return index;
}

std::vector<std::byte> with_header(std::span<const std::byte> body) {
  std::vector<std::byte> bytes;
  const auto add = [&bytes](std::span<const std::byte> part) {
    bytes.insert(bytes.end(), part.begin(), part.end());
  };
  const auto add_number = [&](uint64_t number) { add(std::as_bytes(std::span(&number, 1))); };
  add(std::as_bytes(std::span(std::string_view("SHWDGST1"))));
  add_number(body.size());
  add(integrity::xxh3_128(body));
  add_number(0);
  add(integrity::xxh3_128({}));
  add(std::as_bytes(std::span(std::string_view("0123456789abcdef0123456789abcdef"))));
  add(integrity::xxh3_128(bytes));
  add_number(0);
  if (!decode_sidecar_header(bytes).has_value()) __builtin_trap();
  add(body);
  return bytes;
}

void take(std::span<const std::byte> sidecar) {
  const DcpIndex index = index_of_two();
  if (!internal::check_sidecar(sidecar, index).ok()) return;
  internal::Opened opened;
  opened.indexes.push_back({".metadata", {}});
  opened.file_bytes = {kFileBytes};
  opened.objects = {{"application/json", "1", false}};
  opened.sidecar.assign(sidecar.begin(), sidecar.end());
  const CheckItem check = internal::check_items(opened, index);
  const std::vector<std::byte> item(1024);
  if (check) (void)check(0, item);
  const auto contents = internal::contents_of(index, opened);
  if (!contents.ok()) __builtin_trap();
  const internal::ItemDigests digests(opened, *contents);
  for (const uint64_t block : {uint64_t{0}, uint64_t{1}, uint64_t{2}, UINT64_MAX}) {
    for (size_t chunk = 0; chunk < 2; ++chunk) {
      (void)digests.check_chunk(*contents, chunk, block, item);
      const auto payload = digests.payload_offset(chunk);
      if (payload.has_value() && *payload + kRows > kFileBytes) __builtin_trap();
    }
    (void)digests.check_object(*contents, 0, block, item);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  take(input);
  take(with_header(input));
  return 0;
}
