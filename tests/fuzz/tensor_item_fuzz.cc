// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as an item of torch DCP that holds a tensor: as the archive itself, as the pickle of a
// sound archive, and as what a transform made of one. What is found lies in the item, by its head
// and by its directory alike; its checksum, what pickles would import, a clean copy and the value
// in words are found or refused.
#include <string>
#include <vector>

#include "core/format/archive/pickle_copy.h"
#include "core/format/archive/pickle_describe.h"
#include "core/format/archive/pickle_reader.h"
#include "core/format/archive/torch_tensor.h"
#include "core/format/archive/zip_reader.h"
#include "core/format/archive/zip_writer.h"
#include "core/format/pickle_survey.h"
#include "core/format/torch_dcp/tensor_item.h"
#include "core/format/torch_dcp/transformed_item.h"
#include "core/integrity/crc32.h"

namespace {

using namespace shardwright;                     // NOLINT: a fuzz target is one file
using namespace shardwright::format;             // NOLINT
using namespace shardwright::format::torch_dcp;  // NOLINT

constexpr uint64_t kMostUnpacked = uint64_t{1} << 20;
const int64_t kSizes[] = {2, 2};

void require(bool holds) {
  if (!holds) __builtin_trap();
}

void check(const archive::ArchiveBytes& item, const FoundElements& found) {
  uint64_t end = found.source.offset;
  const auto elements = elements_spanned(found.source.shape, found.source.strides);
  require(elements.ok());
  require(!__builtin_add_overflow(end, *elements * found.source.element_bytes, &end));
  require(end <= item.size_bytes);
  if (found.is_whole_record)
    (void)archive::crc_of_payload(item, found.source.offset,
                                  *elements * found.source.element_bytes);
}

void look(std::span<const std::byte> bytes) {
  const archive::ArchiveBytes item = archive::bytes_of(bytes, 0, "f");
  const auto head = bytes.first(std::min<size_t>(bytes.size(), kItemHeadBytes));
  const auto quick = find_elements_in_head(item, head, DType::kFloat32, kSizes);
  const auto found = find_elements(item, head, DType::kFloat32, kSizes);
  if (quick.ok() && quick->has_value()) {
    check(item, **quick);
    require(found.ok() && found->source.offset == (*quick)->source.offset);
  }
  if (found.ok()) check(item, *found);
  (void)archive::check_payloads(item);
  const PickleSurvey survey = survey_item(item, "w");
  require(survey.unknown_count >= survey.globals.size() || !survey.globals.empty());
}

// An archive of the pickle and a storage "0" of 16 bytes.
std::vector<std::byte> archive_of(std::span<const std::byte> pickle) {
  archive::ZipWriter writer(archive::ZipFraming::kTorch);
  const std::vector<std::byte> numbers(16);
  std::vector<std::byte> file;
  const auto append = [&file](std::span<const std::byte> bytes) {
    file.insert(file.end(), bytes.begin(), bytes.end());
  };
  const std::vector<std::pair<std::string, std::span<const std::byte>>> records = {
      {"archive/data.pkl", pickle}, {"archive/data/0", numbers}};
  for (const auto& [name, payload] : records) {
    const size_t entry = *writer.add(name, payload.size());
    writer.set_crc(entry, integrity::crc32(0, payload));
    append(writer.header(entry));
    append(payload);
    append(writer.trailer(entry));
  }
  append(writer.end());
  return file;
}

// A clean copy has nothing that is not known, and is clean once more.
void copy(std::span<const std::byte> pickle) {
  archive::PickleOptions options;
  options.file = "f";
  const auto data = archive::read_pickle(pickle, options);
  if (!data.ok()) return;
  archive::PickleCopyRules rules;
  rules.newer_names = false;
  rules.persistent_ids = true;
  rules.budget_bytes = kMostUnpacked;
  rules.known = known_globals();
  const archive::PickleCopy clean = archive::copy_pickle(*data, data->root(), rules);
  if (!clean.is_whole) return;
  const auto scan =
      archive::scan_pickle(std::as_bytes(std::span(clean.bytes)), "f", known_globals());
  for (const archive::PickleImport& import : scan.imports) require(is_known_import(import));
  options.vocabulary = archive::torch_vocabulary();
  const auto again = archive::read_pickle(pickle, options);
  if (again.ok()) (void)archive::describe_value(*again, again->root(), 4096);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  look(input);
  look(archive_of(input));
  copy(input);
  const auto unpacked = unpack_item(archive::bytes_of(input, 0, "f"), kMostUnpacked);
  if (unpacked.ok()) {
    require(unpacked->size() <= kMostUnpacked);
    look(*unpacked);
  }
  return 0;
}
