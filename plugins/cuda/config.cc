// SPDX-License-Identifier: Apache-2.0
#include "plugins/cuda/config.h"

#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace shardwright::cuda_plugin {
namespace {

using collective::NcclRequest;
using nlohmann::json;

constexpr int32_t kMostDevices = 1024;
constexpr int32_t kMostRanks = 1 << 24;
constexpr double kMostSeconds = 3e8;
constexpr std::string_view kDeviceExample = R"({"device": 0})";
constexpr std::string_view kQuestionExample = R"({"ask": "nccl_id"})";
constexpr std::string_view kCommunicatorExample =
    R"({"id": "<256 hexadecimal digits>", "rank": 0, "size": 8, "device": 0})";

// Reads one config text; failures show what such a text looks like.
class Reader {
 public:
  explicit Reader(std::string_view example) : example_(example) {}

  Status wrong(std::string_view what) const {
    return invalid_argument(
               fmt::format("the config of the plugin for CUDA {}; it is a JSON object such as {}",
                           what, example_))
        .with_detail("parameter", "config");
  }
  // take(key, value) for each pair.
  template <typename Take>
  Status read(std::string_view text, const Take& take) const {
    const json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!parsed.is_object()) return wrong("is no JSON object");
    for (const auto& [key, value] : parsed.items()) SHW_RETURN_IF_ERROR(take(key, value));
    return {};
  }
  // From 0 to most.
  Status number(const std::string& key, const json& value, int32_t most, int32_t* out) const {
    if (!value.is_number_integer() || value < 0 || value > most)
      return wrong(fmt::format("has no number from 0 to {} as '{}'", most, key));
    *out = value.get<int32_t>();
    return {};
  }
  Status text(const std::string& key, const json& value, std::string* out) const {
    if (!value.is_string() || value.get_ref<const std::string&>().empty())
      return wrong(fmt::format("has no text as '{}'", key));
    *out = value.get<std::string>();
    return {};
  }
  Status seconds(const std::string& key, const json& value, int64_t* nanoseconds) const {
    if (!value.is_number() || !(value.get<double>() > 0) || value.get<double>() > kMostSeconds)
      return wrong(fmt::format("has no positive number of seconds as '{}'", key));
    *nanoseconds = static_cast<int64_t>(value.get<double>() * 1e9);
    return {};
  }
  Status unknown(const std::string& key) const {
    return wrong(fmt::format("has the unknown key '{}'", key));
  }

 private:
  const std::string_view example_;
};

// The keys of a communicator that must be there.
struct Given {
  std::string id;
  bool rank = false;
  bool size = false;
};

Status take_communicator_key(const Reader& reader, const std::string& key, const json& value,
                             NcclRequest* request, Given* given) {
  if (key == "id") return reader.text(key, value, &given->id);
  if (key == "library") return reader.text(key, value, &request->library);
  if (key == "seconds") return reader.seconds(key, value, &request->timeout_ns);
  if (key == "device") return reader.number(key, value, kMostDevices, &request->device);
  given->rank |= key == "rank";
  given->size |= key == "size";
  if (key == "rank") return reader.number(key, value, kMostRanks, &request->rank);
  if (key == "size") return reader.number(key, value, kMostRanks, &request->size);
  return reader.unknown(key);
}

}  // namespace

Result<DeviceConfig> read_device_config(std::string_view text) {
  DeviceConfig config;
  if (text.empty()) return config;
  const Reader reader(kDeviceExample);
  SHW_RETURN_IF_ERROR(reader.read(text, [&](const std::string& key, const json& value) {
    if (key != "device") return reader.unknown(key);
    return reader.number(key, value, kMostDevices, &config.device);
  }));
  return config;
}

Result<NcclRequest> read_communicator_config(std::string_view text) {
  NcclRequest request;
  Given given;
  const Reader reader(kCommunicatorExample);
  SHW_RETURN_IF_ERROR(reader.read(text, [&](const std::string& key, const json& value) {
    return take_communicator_key(reader, key, value, &request, &given);
  }));
  if (given.id.empty() || !given.rank || !given.size)
    return reader.wrong("lacks 'id', 'rank' or 'size'");
  SHW_ASSIGN_OR_RETURN(request.id, collective::read_nccl_id(given.id));
  return request;
}

Result<std::string> read_question(std::string_view text) {
  std::string asked;
  std::string library = collective::kNcclLibrary;
  const Reader reader(kQuestionExample);
  SHW_RETURN_IF_ERROR(reader.read(text, [&](const std::string& key, const json& value) {
    if (key == "ask") return reader.text(key, value, &asked);
    if (key == "library") return reader.text(key, value, &library);
    return reader.unknown(key);
  }));
  if (asked != "nccl_id") return reader.wrong("asks nothing that is known");
  return library;
}

}  // namespace shardwright::cuda_plugin
