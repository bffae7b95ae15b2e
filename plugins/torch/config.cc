// SPDX-License-Identifier: Apache-2.0
#include "plugins/torch/config.h"

#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace shardwright::torch_plugin {
namespace {

using collective::GroupRequest;
using nlohmann::json;

constexpr double kMostSeconds = 3e8;

Status wrong(std::string_view what) {
  return invalid_argument(fmt::format("the config of a collective of torch {}; it is a JSON object "
                                      "such as {{\"group\": \"0\"}}",
                                      what))
      .with_detail("parameter", "config");
}

Status read_text(const std::string& key, const json& value, std::string* out) {
  if (!value.is_string()) return wrong(fmt::format("has no text as '{}'", key));
  *out = value.get<std::string>();
  return {};
}

Status read_seconds(const std::string& key, const json& value, int64_t* milliseconds) {
  if (!value.is_number() || !(value.get<double>() > 0) || value.get<double>() > kMostSeconds)
    return wrong(fmt::format("has no positive number of seconds as '{}'", key));
  *milliseconds = static_cast<int64_t>(value.get<double>() * 1000);
  return {};
}

Status read_value(const std::string& key, const json& value, GroupRequest* request) {
  if (key == "group") return read_text(key, value, &request->name);
  if (key == "use") return read_text(key, value, &request->use);
  if (key == "gloo") return read_text(key, value, &request->gloo);
  if (key == "seconds") return read_seconds(key, value, &request->limit_ms);
  if (key == "poll_seconds") return read_seconds(key, value, &request->poll_ms);
  if (key != "keep") return wrong(fmt::format("has the unknown key '{}'", key));
  if (!value.is_boolean()) return wrong("has neither true nor false as 'keep'");
  request->keep = value.get<bool>();
  return {};
}

}  // namespace

Result<GroupRequest> read_config(std::string_view text) {
  const json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return wrong("is no JSON object");
  GroupRequest request;
  for (const auto& [key, value] : parsed.items())
    SHW_RETURN_IF_ERROR(read_value(key, value, &request));
  if (request.name.empty()) return wrong("names no group");
  return request;
}

}  // namespace shardwright::torch_plugin
