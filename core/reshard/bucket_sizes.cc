// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/bucket_sizes.h"

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "core/format/archive/pickle_export.h"
#include "core/format/archive/pickle_writer.h"

namespace shardwright::reshard {
namespace {

using format::archive::PickleWriter;

bool is_of_one_group(const Bucket& a, const Bucket& b) {
  return a.prefix == b.prefix && a.group == b.group;
}

// "(torch.bfloat16, torch.float32)" as a tuple of two globals.
void write_dtypes(std::string_view dtypes, PickleWriter* pickle) {
  constexpr std::string_view kModule = "torch.";
  size_t count = 0;
  for (size_t at = dtypes.find(kModule); at != std::string_view::npos;
       at = dtypes.find(kModule, at)) {
    at += kModule.size();
    pickle->global("torch", dtypes.substr(at, dtypes.find_first_of(",)", at) - at));
    ++count;
  }
  if (count >= 1 && count <= 3) {
    pickle->tuple(count);
  } else {
    pickle->empty_tuple();
  }
}

// A list with one value, as Megatron saves objects.
exec::ViewObject size_object(std::span<const Bucket> group, std::string_view key,
                             int64_t Bucket::* size) {
  PickleWriter pickle(format::archive::PickleProtocol::k2);
  pickle.empty_list().empty_list();
  for (size_t b = 0; b < group.size();) {
    pickle.empty_dict();
    write_dtypes(group[b].dtypes, &pickle);
    pickle.empty_list();
    const uint32_t buffer = group[b].buffer;
    for (; b < group.size() && group[b].buffer == buffer; ++b)
      pickle.integer(group[b].*size).append();
    pickle.set_item().append();
  }
  pickle.append();
  const std::string written = std::move(pickle).finish();
  exec::ViewObject object;
  object.name = fmt::format("{}.{}/shard_0_1", group[0].group_name(), key);
  object.content_type = format::archive::kPickleType;
  object.object = exec::ViewObject::kOwnBytes;
  const auto bytes = std::as_bytes(std::span(written));
  object.bytes.assign(bytes.begin(), bytes.end());
  return object;
}

}  // namespace

std::vector<exec::ViewObject> bucket_size_objects(std::span<const Bucket> buckets) {
  std::vector<exec::ViewObject> objects;
  while (!buckets.empty()) {
    size_t count = 1;
    while (count < buckets.size() && is_of_one_group(buckets[0], buckets[count])) ++count;
    const std::span<const Bucket> group = buckets.first(count);
    objects.push_back(size_object(group, kPaddedSizes, &Bucket::padded));
    objects.push_back(size_object(group, kSizes, &Bucket::elements));
    buckets = buckets.subspan(count);
  }
  return objects;
}

}  // namespace shardwright::reshard
