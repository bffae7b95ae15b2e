// SPDX-License-Identifier: Apache-2.0
//
// The value of an object is [{"buckets_coalesced": True, 0: {(dtype, dtype): {"param": tensor,
// "exp_avg": tensor, "exp_avg_sq": tensor, "numel_unpadded": 7040}}}].
#include "core/reshard/gathered_buffers.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/exec/checkpoint_view.h"
#include "core/format/archive/pickle_reader.h"
#include "core/format/archive/torch_archive.h"
#include "core/format/archive/torch_tensor.h"
#include "core/reshard/buckets.h"

namespace shardwright::reshard {
namespace {

namespace archive = format::archive;
using archive::PickleKind;
using archive::PickleRef;

constexpr std::string_view kGathered = ".param_state/shard_";

// What one object holds.
class GatheredObject {
 public:
  GatheredObject(const exec::Checkpoint& source, size_t object, const exec::CallContext& call)
      : object_(object), name_(source.catalog().object_name(object)) {
    bytes_.size_bytes = source.catalog().objects[object].size_bytes;
    bytes_.file = name_;
    bytes_.read = [&source, &call, object](uint64_t offset, std::span<std::byte> data) {
      return source.read_object_part(object, offset, data, {}, call);
    };
  }

  Status add_to(std::vector<exec::ViewTensor>* tensors) {
    SHW_ASSIGN_OR_RETURN(const archive::TorchArchive stored, archive::TorchArchive::open(bytes_));
    SHW_RETURN_IF_ERROR(archive::check_payloads(bytes_));
    SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> pickle, stored.read_pickle(bytes_));
    archive::PickleOptions options;
    options.file = name_;
    options.vocabulary = archive::torch_vocabulary();
    SHW_ASSIGN_OR_RETURN(const archive::PickleData data, archive::read_pickle(pickle, options));
    const PickleRef list = data.root();
    if (data.kind(list) != PickleKind::kList || data.part_count(list) != 1)
      return other("it is no list with one value");
    PickleRef buffers;
    archive::PickleCursor parts = data.parts(list);
    parts.next(&buffers);
    if (data.kind(buffers) != PickleKind::kDict) return other("it has no dict of buffers");
    archive::PickleCursor pairs = data.pairs(buffers);
    for (PickleRef key, value; pairs.next(&key) && pairs.next(&value);) {
      if (data.kind(key) != PickleKind::kInteger) {
        if (data.kind(key) == PickleKind::kText && data.text(key) == "buckets_coalesced" &&
            data.kind(value) == PickleKind::kBool && data.boolean(value))
          continue;
        return other("a key that is no number of a buffer");
      }
      SHW_RETURN_IF_ERROR(add_buffer(stored, data, data.integer(key), value, tensors));
    }
    return {};
  }

 private:
  Status other(std::string_view what) const {
    return failed_precondition(
               fmt::format("object '{}' holds no gathered buffers as Megatron writes them: {}",
                           escape_text(name_), what))
        .with_detail("object", name_);
  }

  // "(torch.bfloat16, torch.float32)".
  static std::optional<std::string> dtypes_of(const archive::PickleData& data, PickleRef key) {
    if (data.kind(key) != PickleKind::kTuple || data.tuple(key).size() != 2) return std::nullopt;
    const auto parameter = archive::torch_dtype_name(data, data.tuple(key)[0]);
    const auto gradient = archive::torch_dtype_name(data, data.tuple(key)[1]);
    if (!parameter.has_value() || !gradient.has_value()) return std::nullopt;
    return fmt::format("(torch.{}, torch.{})", *parameter, *gradient);
  }

  Status add_buffer(const archive::TorchArchive& stored, const archive::PickleData& data,
                    int64_t number, PickleRef value, std::vector<exec::ViewTensor>* tensors) const {
    if (number < 0 || number > UINT32_MAX || data.kind(value) != PickleKind::kDict ||
        data.part_count(value) != 1)
      return other("a buffer that is no dict with one pair of dtypes");
    PickleRef key;
    PickleRef states;
    archive::PickleCursor pairs = data.pairs(value);
    pairs.next(&key);
    pairs.next(&states);
    const std::optional<std::string> dtypes = dtypes_of(data, key);
    if (!dtypes.has_value() || data.kind(states) != PickleKind::kDict)
      return other("a buffer that is no dict with one pair of dtypes");
    const std::string front = fmt::format("{}.gbuf_idx_{}.dtype_{}.bucket_idx_0.",
                                          name_.substr(0, name_.rfind(kGathered)), number, *dtypes);
    archive::PickleCursor members = data.pairs(states);
    for (PickleRef state, tensor; members.next(&state) && members.next(&tensor);) {
      if (data.kind(state) != PickleKind::kText) return other("a state without a name");
      if (data.text(state) == "numel_unpadded") continue;
      SHW_ASSIGN_OR_RETURN(const auto found, archive::torch_tensor(data, tensor, name_));
      if (!found.has_value()) return other("a state that is no tensor");
      SHW_ASSIGN_OR_RETURN(exec::ViewTensor made, run_of(stored, *found));
      made.name = front + std::string(data.text(state));
      tensors->push_back(std::move(made));
    }
    return {};
  }

  Result<exec::ViewTensor> run_of(const archive::TorchArchive& stored,
                                  const archive::TorchTensor& tensor) const {
    const bool is_run =
        tensor.shape.size() == 1 && (tensor.shape[0] <= 1 || tensor.strides == Dims{1});
    if (!is_run) return other("a state that is no run of elements");
    const std::optional<archive::ZipEntry> entry = stored.storage(tensor.storage);
    if (!entry.has_value() || entry->size_bytes != tensor.storage_bytes)
      return bytes_.damaged(0, fmt::format("there is no storage '{}' of {} bytes",
                                           escape_text(tensor.storage), tensor.storage_bytes));
    SHW_ASSIGN_OR_RETURN(const uint64_t payload, archive::locate_payload(bytes_, *entry));
    exec::ViewTensor made;
    made.shape = tensor.shape;
    made.run = {object_, payload + tensor.offset_bytes, tensor.dtype};
    return made;
  }

  const size_t object_;
  const std::string name_;
  archive::ArchiveBytes bytes_;
};

}  // namespace

bool holds_gathered_buffers(std::string_view object) {
  return object.find(kOfGroup) != std::string_view::npos &&
         object.find(kGathered) != std::string_view::npos;
}

Result<std::shared_ptr<const exec::Checkpoint>> with_gathered_buffers(
    exec::Runtime& runtime, std::shared_ptr<const exec::Checkpoint> source,
    const exec::CallContext& call) {
  exec::ViewContents contents;
  const plan::Catalog& catalog = source->catalog();
  for (size_t i = 0; i < catalog.objects.size(); ++i) {
    if (!holds_gathered_buffers(catalog.object_name(i))) continue;
    SHW_RETURN_IF_ERROR(GatheredObject(*source, i, call).add_to(&contents.tensors));
  }
  if (contents.tensors.empty()) return source;
  for (size_t i = 0; i < catalog.tensors.size(); ++i)
    contents.tensors.push_back(exec::tensor_as_stored(catalog, i));
  for (size_t i = 0; i < catalog.objects.size(); ++i)
    contents.objects.push_back(exec::as_stored(catalog, i));
  contents.identity = "gathered buffers";
  return exec::make_view(runtime, std::move(source), std::move(contents));
}

}  // namespace shardwright::reshard
