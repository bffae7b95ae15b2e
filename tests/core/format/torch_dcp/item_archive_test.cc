// SPDX-License-Identifier: Apache-2.0
//
// Archives of items: byte for byte those of torch.save 2.15 where that is asked for, and in every
// framing such that the reader finds the tensor.
#include "core/format/torch_dcp/item_archive.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/base/text.h"
#include "core/format/archive/torch_archive.h"
#include "core/format/torch_dcp/dcp_index.h"
#include "core/format/torch_dcp/tensor_item.h"
#include "core/integrity/crc32.h"
#include "core/storage/backends.h"

namespace shardwright::format::torch_dcp {
namespace {

using Bytes = std::vector<std::byte>;

void put_checksum(Bytes* bytes, size_t base, std::span<const uint32_t> places, uint32_t sum) {
  for (const uint32_t place : places) std::memcpy(bytes->data() + base + place, &sum, sizeof(sum));
}

Bytes whole_item(const Wrapping& wrapping, std::span<const std::byte> payload) {
  Bytes item = wrapping.front;
  item.insert(item.end(), payload.begin(), payload.end());
  item.insert(item.end(), wrapping.behind.begin(), wrapping.behind.end());
  const uint32_t sum = integrity::crc32(0, payload);
  put_checksum(&item, 0, wrapping.front_checksums, sum);
  put_checksum(&item, wrapping.front.size() + payload.size(), wrapping.behind_checksums, sum);
  return item;
}

Bytes tensor_item(Framing framing, DType dtype, const Dims& sizes,
                  std::span<const std::byte> payload) {
  const auto wrapping = wrap_tensor(framing, dtype, sizes, payload.size());
  EXPECT_TRUE(wrapping.ok()) << wrapping.status().to_string();
  return whole_item(*wrapping, payload);
}

Bytes ramp(size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 1);
  return bytes;
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(ItemArchive, OfAStockTensorIsThatOfTorchSave) {
  const Bytes item = tensor_item(Framing::kStock, DType::kFloat32, {3, 4}, ramp(48));
  EXPECT_EQ(item.size(), 1577U);
  EXPECT_EQ(
      to_hex(std::span(item).subspan(64, 154)),
      "800263746f7263682e5f7574696c730a5f72656275696c645f74656e736f725f76320a71002828580700000073"
      "746f72616765710163746f7263680a466c6f617453746f726167650a71025801000000307103580300000063"
      "707571044b0c747105514b004b034b048671064b044b018671078963636f6c6c656374696f6e730a4f726465"
      "726564446963740a71082952710974710a52710b2e");
  const struct {
    size_t header;
    size_t payload;
    std::string_view name;
  } records[] = {{0, 64, "data.pkl"},
                 {234, 320, ".format_version"},
                 {337, 448, ".storage_alignment"},
                 {466, 576, "byteorder"},
                 {598, 704, "data/0"},
                 {768, 832, "version"},
                 {850, 960, ".data/serialization_id"}};
  for (const auto& record : records) {
    EXPECT_EQ(text_of(std::span(item).subspan(record.header, 4)), "PK\x03\x04");
    EXPECT_EQ(text_of(std::span(item).subspan(record.header + 30, 8 + record.name.size())),
              "archive/" + std::string(record.name));
  }
  EXPECT_EQ(text_of(std::span(item).subspan(1479, 4)), "PK\x06\x06");
}

TEST(ItemArchive, HasTheSizesOfTorchs) {
  const struct {
    DType dtype;
    Dims sizes;
    size_t bytes;
    size_t total;
  } cases[] = {{DType::kFloat32, {3, 4}, 48, 1577},     {DType::kUint8, {63}, 63, 1577},
               {DType::kUint8, {64}, 64, 1641},         {DType::kFloat32, {0}, 0, 1513},
               {DType::kFloat8E4m3fn, {2, 3}, 6, 1641}, {DType::kUint8, {}, 1, 1577}};
  for (const auto& each : cases)
    EXPECT_EQ(tensor_item(Framing::kStock, each.dtype, each.sizes, ramp(each.bytes)).size(),
              each.total);
  const std::string_view pickle("\x80\x02K\x07.", 5);
  EXPECT_EQ(wrap_value(Framing::kStock, std::as_bytes(std::span(pickle)))->size(), 1261U);
}

TEST(ItemArchive, OfMoreThanFourGigabytesHasWideRecords) {
  const uint64_t bytes = (uint64_t{1} << 32) + 1024;
  const auto wrapping =
      wrap_tensor(Framing::kStock, DType::kUint8, Dims{static_cast<int64_t>(bytes)}, bytes);
  ASSERT_TRUE(wrapping.ok());
  EXPECT_EQ(wrapping->front.size(), 704U);
  const std::string behind = text_of(wrapping->behind);
  EXPECT_EQ(behind.substr(0, 4), "PK\x07\x08");
  EXPECT_EQ(704 + bytes + behind.find("PK\x03\x04"), 4294969048U);
  EXPECT_EQ(704 + bytes + behind.find("3\n"), 4294969152U);
  ASSERT_EQ(wrapping->behind_checksums.size(), 2U);
  EXPECT_EQ(wrapping->behind_checksums[0], 4U);
}

TEST(ItemArchive, SaysItsChecksumWhereTheFramingWantsIt) {
  const auto aligned = *wrap_tensor(Framing::kAligned, DType::kFloat32, Dims{4}, 16);
  EXPECT_EQ(aligned.front_checksums.size(), 1U);
  EXPECT_EQ(aligned.behind_checksums.size(), 1U);
  for (const Framing framing : {Framing::kOrdered, Framing::kStock}) {
    const auto behind = *wrap_tensor(framing, DType::kFloat32, Dims{4}, 16);
    EXPECT_TRUE(behind.front_checksums.empty());
    EXPECT_EQ(behind.behind_checksums.size(), 2U);
  }
}

TEST(ItemArchive, IsReadBackInEveryFramingOfEveryDtype) {
  for (int32_t number = 1; number < kDTypeCount; ++number) {
    const auto dtype = static_cast<DType>(number);
    const auto elements = torch_elements(dtype);
    if (!elements.ok()) {
      EXPECT_EQ(elements.status().code(), StatusCode::kUnimplemented);
      continue;
    }
    for (const Dims& box : {Dims{2, 3, 4}, Dims{5, 2}, Dims{8}, Dims{1, 2, 1, 4}}) {
      const auto bytes = *dtype_packed_bytes(dtype, element_count_of(box));
      const auto sizes = torch_extents(*elements, box);
      ASSERT_TRUE(sizes.ok());
      for (const Framing framing : {Framing::kAligned, Framing::kOrdered, Framing::kStock}) {
        const Bytes item = tensor_item(framing, dtype, *sizes, ramp(bytes));
        const archive::ArchiveBytes archive = archive::bytes_of(item, 0, "item");
        const auto source = find_elements(archive, std::span(item), dtype, box);
        ASSERT_TRUE(source.ok()) << dtype_name(dtype) << source.status().to_string();
        EXPECT_TRUE(
            std::ranges::equal(std::span(item).subspan(source->source.offset, bytes), ramp(bytes)));
        EXPECT_EQ(source->source.offset % 64, 0U);
        const auto records = archive::TorchArchive::open(archive);
        ASSERT_TRUE(records.ok()) << records.status().to_string();
        EXPECT_TRUE(records->read_pickle(archive).ok());
      }
    }
  }
}

TEST(ItemArchive, CutsNoPairs) {
  const TorchElements pairs = *torch_elements(DType::kFloat4E2m1fn);
  EXPECT_EQ((*torch_extents(pairs, Dims{3, 4}))[1], 2);
  EXPECT_EQ(torch_extents(pairs, Dims{3, 5}).status().code(), StatusCode::kUnimplemented);
  EXPECT_EQ(torch_extents(pairs, Dims{}).status().code(), StatusCode::kUnimplemented);
}

// Where two items may differ: in the digits of .data/serialization_id and their checksums.
bool is_id_byte(const std::string& item, size_t at) {
  const size_t name = item.find("archive/.data/serialization_id");
  const size_t payload = (name + 30 + 4 + 63) / 64 * 64;  // behind its padding
  const size_t entry = item.rfind("PK\x01\x02");
  return (at >= payload && at < payload + 40 + 16) || (at >= entry + 16 && at < entry + 20);
}

// What torch 2.15 wrote, item by item.
TEST(ItemArchive, IsThatOfFilesThatTorchWrote) {
  size_t compared = 0;
  for (const std::string_view name : {"dcp_dtypes_single", "dcp_shapes_single"}) {
    const std::string directory =
        fmt::format("{}/tests/golden/torch_dcp/{}/ckpt", std::getenv("SHW_SOURCE_DIR"), name);
    const auto files = storage::make_posix_storage(directory);
    const auto index_bytes = storage::read_all(*files, ".metadata", 1 << 30);
    ASSERT_TRUE(index_bytes.ok());
    const auto index = decode_index(*index_bytes, ".metadata");
    ASSERT_TRUE(index.ok());
    for (const DcpIndex::Tensor& tensor : index->tensors) {
      const ItemPlace& place = index->places[tensor.chunk_begin];
      const auto file = *storage::read_all(*files, index->files[place.file], 1 << 30);
      const Bytes item(file.begin() + static_cast<ptrdiff_t>(place.offset),
                       file.begin() + static_cast<ptrdiff_t>(place.offset + place.size_bytes));
      const archive::ArchiveBytes archive = archive::bytes_of(item, 0, "item");
      const auto source = find_elements(archive, item, tensor.dtype, index->sizes(tensor, 0));
      ASSERT_TRUE(source.ok()) << tensor.name;
      if (!is_packed(source->source.shape, source->source.strides))
        continue;  // kept as it lay in memory
      const auto bytes =
          *dtype_packed_bytes(tensor.dtype, element_count_of(index->sizes(tensor, 0)));
      const Bytes made =
          tensor_item(Framing::kStock, tensor.dtype,
                      *torch_extents(*torch_elements(tensor.dtype), index->sizes(tensor, 0)),
                      std::span(item).subspan(source->source.offset, bytes));
      ASSERT_EQ(made.size(), item.size()) << tensor.name;
      const std::string ours = text_of(made);
      for (size_t at = 0; at < item.size(); ++at) {
        ASSERT_TRUE(made[at] == item[at] || is_id_byte(ours, at)) << tensor.name << " at " << at;
      }
      ++compared;
    }
  }
  EXPECT_GT(compared, 30U);
}

}  // namespace
}  // namespace shardwright::format::torch_dcp
