// SPDX-License-Identifier: Apache-2.0
//
// Values of the contract: texts, numbers and the bytes of tensors by pattern. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace contract {

using Json = nlohmann::json;
using Bytes = std::vector<uint8_t>;

// A member, or null when there is none.
const Json& member(const Json& object, const char* key);
// A JSON string, or {"repeat": text, "count": n}; "" for anything else.
std::string text_of(const Json& value);
std::string text_of(const Json& object, const char* key);
// The texts are equal, or the wanted one holds a '*' for the part of the found one that is not
// fixed.
bool matches(const std::string& wanted, const std::string& found);
std::vector<int64_t> numbers_of(const Json& value);
Bytes bytes_of_hex(const std::string& hex);
std::string hex_of(const void* data, uint64_t size);
// Number of an option's word; std::runtime_error for an unknown option or word.
int32_t word_of(const std::string& option, const std::string& word);
// Sets the fields of a struct from the words of these options.
void set_words(const Json& words, const std::map<std::string, int32_t*>& fields);

// Row-major bytes of a tensor step: its hex, or by its pattern.
Bytes pattern_bytes(const Json& step, int32_t dtype, const std::vector<int64_t>& shape);
// Moves elements between row-major and column order (2-d).
Bytes reorder(const Bytes& bytes, const std::vector<int64_t>& shape, bool to_columns);

}  // namespace contract
