// SPDX-License-Identifier: Apache-2.0
#include "core/format/megatron/marker_file.h"

#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "core/format/json_events.h"

namespace shardwright::format::megatron {
namespace {

constexpr size_t kMaxMarkerDepth = 16;
constexpr std::string_view kTorchDist = "torch_dist";
constexpr std::string_view kZarr = "zarr";
constexpr std::string_view kSharded = "sharded_backend";
constexpr std::string_view kShardedVersion = "sharded_backend_version";
constexpr std::string_view kCommon = "common_backend";
constexpr std::string_view kCommonVersion = "common_backend_version";

Status wrong_marker(std::string_view what) {
  return data_loss(fmt::format("file '{}': {}", kMarkerName, what))
      .with_detail("file", kMarkerName)
      .with_detail("hint",
                   "write the file again, or move it away: .metadata beside it is then opened as a "
                   "checkpoint of torch DCP, without the common state");
}

Status not_read(std::string_view what, std::string_view hint) {
  return unimplemented(fmt::format("file '{}': {}", kMarkerName, what))
      .with_detail("file", kMarkerName)
      .with_detail("format", "a Megatron dist_checkpointing checkpoint")
      .with_detail("hint", hint);
}

// The scalars at the top; texts in quotes, so that "1" is not 1.
class TopScalars final : public JsonSink {
 public:
  Status open(bool) override {
    ++depth_;
    return depth_ == 2 ? keep("a container") : Status();
  }
  Status close() override {
    --depth_;
    return {};
  }
  Status key(std::string&& name) override {
    if (depth_ == 1) key_ = std::move(name);
    return {};
  }
  Status text(std::string&& value) override { return scalar("'" + shown(value) + "'"); }
  Status natural(uint64_t value) override { return scalar(fmt::to_string(value)); }
  Status other(std::string_view type) override { return scalar(std::string(type)); }

  // "" = it is not there.
  std::string value(std::string_view key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? "" : found->second;
  }

 private:
  Status scalar(std::string value) { return depth_ == 1 ? keep(std::move(value)) : Status(); }
  Status keep(std::string value) {
    const bool is_first = values_.try_emplace(key_, std::move(value)).second;
    return is_first ? Status() : wrong_marker(fmt::format("it has '{}' twice", shown(key_)));
  }

  size_t depth_ = 0;
  std::string key_;
  std::map<std::string, std::string, std::less<>> values_;
};

// What stands at the two keys is this backend, of version 1.
Status check_backend(const TopScalars& marker, std::pair<std::string_view, std::string_view> keys,
                     std::string_view backend) {
  const std::string found = marker.value(keys.first);
  if (found.find('\'') == std::string::npos)
    return wrong_marker(fmt::format("{} is {}, not a text", keys.first, found));
  if (found != fmt::format("'{}'", backend)) {
    return not_read(fmt::format("its {} is {}, and only '{}' is read", keys.first, found, backend),
                    "load it with the megatron-core that wrote it and save it as torch_dist");
  }
  const std::string version = marker.value(keys.second);
  if (version == "1") return {};
  if (version.empty() || version.find_first_not_of("0123456789") != std::string::npos ||
      version == "0") {
    return wrong_marker(fmt::format("{} is {}, not a version", keys.second,
                                    version.empty() ? "not there" : version));
  }
  return not_read(fmt::format("its {} is {}, and 1 is read", keys.second, version),
                  "use a newer shardwright, or save it with an older megatron-core");
}

}  // namespace

std::string_view marker_text(const MarkerFile& marker) {
  if (!marker.has_common_file)
    return R"({"sharded_backend": "torch_dist", "sharded_backend_version": 1})";
  return R"({"sharded_backend": "torch_dist", "sharded_backend_version": 1, )"
         R"("common_backend": "torch", "common_backend_version": 1})";
}

Result<MarkerFile> decode_marker(std::span<const std::byte> bytes) {
  TopScalars top;
  const Status read =
      read_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, kMaxMarkerDepth, &top);
  if (!read.ok()) return read.detail("file").empty() ? wrong_marker(read.message()) : read;
  if (top.value(kSharded).empty())
    return wrong_marker(fmt::format("it has no {}, so it is no metadata of Megatron", kSharded));
  MarkerFile marker;
  if (top.value(kSharded) == fmt::format("'{}'", kZarr)) marker.backend = Backend::kZarr;
  const std::string_view backend = marker.backend == Backend::kZarr ? kZarr : kTorchDist;
  SHW_RETURN_IF_ERROR(check_backend(top, {kSharded, kShardedVersion}, backend));
  marker.has_common_file = !top.value(kCommon).empty();
  if (marker.has_common_file)
    SHW_RETURN_IF_ERROR(check_backend(top, {kCommon, kCommonVersion}, "torch"));
  return marker;
}

Status check_readable(const MarkerFile& marker) {
  if (marker.backend != Backend::kZarr) return {};
  return not_read(fmt::format("its {} is '{}', which is only read to be converted; '{}' is opened",
                              kSharded, kZarr, kTorchDist),
                  "`shardwright convert SOURCE TARGET --to megatron` (in every language: convert) "
                  "saves it as torch_dist");
}

}  // namespace shardwright::format::megatron
