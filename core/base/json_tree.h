// SPDX-License-Identifier: Apache-2.0
//
// JsonTree: JSON text as a tree whose every value knows where it stands, so that whatever is wrong
// with a description can be told with line and column. Values lie in one flat column. Reading is
// bounded in bytes, values and depth; an object that has a key twice is refused. The text must
// outlive the tree. Immutable, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace shardwright {

struct JsonLimits {
  size_t text_bytes = size_t{64} << 20;
  size_t values = size_t{8} << 20;
  size_t depth = 16;
};

enum class JsonType : uint8_t { kNull, kBoolean, kInteger, kReal, kText, kArray, kObject };

class JsonTree;

// One value of a tree, which it borrows.
class JsonValueView {
 public:
  JsonValueView() = default;
  bool exists() const { return tree_ != nullptr; }
  JsonType type() const;
  size_t offset() const;          // of its first byte in the text
  int64_t integer() const;        // kInteger; kBoolean: 0 or 1
  double real() const;            // kReal; kInteger
  std::string_view text() const;  // kText
  size_t size() const;            // members of an array or object
  // Members in the order of the text: item = item.next() until it does not exist.
  JsonValueView first() const;
  JsonValueView next() const;
  // Of a member of an object.
  std::string_view key() const;
  size_t key_offset() const;
  // Member of an object by its key; does not exist when there is none. Linear in the members.
  JsonValueView member(std::string_view key) const;

  // INVALID_ARGUMENT: "line 3, column 7: what". Details line and column.
  Status wrong(std::string_view what) const;
  Status wrong_key(std::string_view what) const;    // at the key
  Status unsupported(std::string_view what) const;  // UNIMPLEMENTED, else as wrong
  // Fails as wrong_key, naming the nearest, unless every key of this object is a known one; detail
  // parameter is the key. noun: "a mesh".
  Status check_keys(std::string_view noun, std::span<const std::string_view> known) const;

 private:
  friend class JsonTree;
  JsonValueView(const JsonTree* tree, uint32_t index) : tree_(tree), index_(index) {}
  const JsonTree* tree_ = nullptr;
  uint32_t index_ = 0;
};

class JsonTree {
 public:
  // INVALID_ARGUMENT with line and column for what is no JSON, a key that stands twice, too much
  // depth; RESOURCE_EXHAUSTED for too many bytes or values.
  static Result<JsonTree> parse(std::string_view text, const JsonLimits& limits = {});
  JsonValueView root() const { return {this, 0}; }

 private:
  friend class JsonValueView;
  friend class JsonTreeBuilder;
  static constexpr uint32_t kNone = 0xFFFFFFFF;
  struct Node {
    JsonType type = JsonType::kNull;
    uint32_t offset = 0;
    uint32_t key_offset = kNone;
    uint32_t key = 0;       // number of the key's text
    uint32_t size = 0;      // members
    uint32_t next = kNone;  // next member of the parent
    int64_t value = 0;      // integer, bits of a double, or number of the text
  };
  // Children of a container stand behind it: the first is the next node.

  std::string_view source_;
  std::vector<Node> nodes_;
  std::vector<std::string> texts_;
};

// "line 3, column 7" of a byte of the text; both count from 1, columns in characters.
struct TextPosition {
  size_t line = 1;
  size_t column = 1;
};
TextPosition position_in(std::string_view text, size_t offset);

}  // namespace shardwright
