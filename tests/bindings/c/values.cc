// SPDX-License-Identifier: Apache-2.0
//
// See values.h.
#include "tests/bindings/c/values.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "shardwright/shardwright.h"

namespace contract {
namespace {

template <typename T>
void append(Bytes* out, T value) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  out->insert(out->end(), bytes, bytes + sizeof(value));
}

Bytes index_bytes(const std::string& dtype, int64_t count) {
  Bytes out;
  for (int64_t i = 0; i < count; ++i) {
    if (dtype == "float32") append(&out, static_cast<float>(i));
    if (dtype == "float64") append(&out, static_cast<double>(i));
    if (dtype == "int32") append(&out, static_cast<int32_t>(i));
    if (dtype == "int64") append(&out, i);
  }
  return out;
}

}  // namespace

const Json& member(const Json& object, const char* key) {
  static const Json kNull;
  const auto found = object.find(key);
  return object.is_object() && found != object.end() ? *found : kNull;
}

std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  std::string out;
  if (!value.is_object()) return out;
  const auto count = member(value, "count").get<size_t>();
  for (size_t i = 0; i < count; ++i) out += member(value, "repeat").get<std::string>();
  return out;
}

std::string text_of(const Json& object, const char* key) {
  return text_of(member(object, key));
}

bool matches(const std::string& wanted, const std::string& found) {
  const size_t star = wanted.find('*');
  if (star == std::string::npos) return found == wanted;
  return found.size() + 1 >= wanted.size() && found.starts_with(wanted.substr(0, star)) &&
         found.ends_with(wanted.substr(star + 1));
}

std::vector<int64_t> numbers_of(const Json& value) {
  return value.is_array() ? value.get<std::vector<int64_t>>() : std::vector<int64_t>();
}

Bytes bytes_of_hex(const std::string& hex) {
  Bytes out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    out.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return out;
}

std::string hex_of(const void* data, uint64_t size) {
  static constexpr char kDigits[] = "0123456789abcdef";
  const auto* bytes = static_cast<const uint8_t*>(data);
  std::string out;
  for (uint64_t i = 0; i < size; ++i) {
    out += kDigits[bytes[i] >> 4];
    out += kDigits[bytes[i] & 15];
  }
  return out;
}

int32_t word_of(const std::string& option, const std::string& word) {
  static const std::map<std::string, std::vector<std::string>> kWords = {
      {"overwrite", {"replace", "refuse"}},
      {"owner", {"balanced", "lowest_rank", "exact", "all"}},
      {"preset", {"native", "hyperparallel", "torch", "megatron"}},
      {"verify_replicas", {"auto", "all", "off"}},
      {"format", {"auto", "native", "torch_dcp", "safetensors", "megatron"}},
      {"common", {"file", "object"}},
      {"missing", {"error", "report"}},
      {"cast", {"error", "allow"}},
      {"shape", {"error", "crop_and_pad"}},
      {"read_path", {"auto", "direct", "buffered"}},
      {"exchange", {"auto", "off", "always"}},
      {"priority", {"normal", "background"}},
      {"kind", {"auto", "replicated", "sharded", "rank_local"}},
      {"cover", {"full", "disjoint", "off"}},
      {"order", {"wanted", "sweep"}}};
  const auto words = kWords.find(option);
  if (words == kWords.end()) throw std::runtime_error("unknown option " + option);
  const auto found = std::find(words->second.begin(), words->second.end(), word);
  if (found == words->second.end())
    throw std::runtime_error("unknown word " + word + " of option " + option);
  return static_cast<int32_t>(found - words->second.begin());
}

void set_words(const Json& words, const std::map<std::string, int32_t*>& fields) {
  for (const auto& [key, word] : words.items()) {
    const auto field = fields.find(key);
    if (field == fields.end()) throw std::runtime_error("unknown option " + key);
    *field->second = word_of(key, text_of(word));
  }
}

Bytes pattern_bytes(const Json& step, int32_t dtype, const std::vector<int64_t>& shape) {
  if (step.contains("hex")) return bytes_of_hex(text_of(step, "hex"));
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  const uint64_t size = shw_dtype_byte_size(dtype, static_cast<uint64_t>(count));
  const std::string name = shw_dtype_name(dtype);
  const std::string pattern = text_of(step, "pattern");
  if (pattern == "index") return index_bytes(name, count);
  Bytes out(size, 0);
  if (pattern == "zeros") return out;
  const uint64_t seed = member(step, "seed").is_null() ? 0 : member(step, "seed").get<uint64_t>();
  for (uint64_t k = 0; k < size; ++k) {
    out[k] = static_cast<uint8_t>(name == "bool" ? (seed + k) % 2 : (seed + 31 * k) % 251);
  }
  return out;
}

Bytes reorder(const Bytes& bytes, const std::vector<int64_t>& shape, bool to_columns) {
  const auto rows = static_cast<size_t>(shape[0]);
  const auto columns = static_cast<size_t>(shape[1]);
  Bytes out(bytes.size());
  if (rows * columns == 0) return out;
  const size_t width = bytes.size() / (rows * columns);
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < columns; ++c) {
      const size_t row_major = (r * columns + c) * width;
      const size_t column_major = (c * rows + r) * width;
      std::memcpy(&out[to_columns ? column_major : row_major],
                  &bytes[to_columns ? row_major : column_major], width);
    }
  }
  return out;
}

}  // namespace contract
