// SPDX-License-Identifier: Apache-2.0
//
// Tensors and objects of an open checkpoint as plain values, and finding one by what a user typed.
// Thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/element_text.h"
#include "cli/handles.h"

namespace shardwright::cli {

struct TensorFacts {
  uint64_t index = 0;
  std::string name;
  std::string listed;  // the name, "@rank-3" behind it for rank-local ones
  std::string dtype;
  ElementType type;
  std::vector<int64_t> shape;
  int32_t kind = 0;
  int32_t rank = -1;
  uint64_t bytes = 0;
  uint64_t chunks = 0;
};

struct ObjectFacts {
  uint64_t index = 0;
  std::string name;
  std::string listed;
  std::string content_type;
  int32_t rank = -1;
  uint64_t bytes = 0;
};

// All of them, ascending by listed name.
std::vector<TensorFacts> list_tensors(const Checkpoint& checkpoint);
// Those whose listed names have the pattern (name_matches).
std::vector<TensorFacts> list_tensors(const Checkpoint& checkpoint, std::string_view pattern);
std::vector<ObjectFacts> list_objects(const Checkpoint& checkpoint);
std::string kind_name(int32_t kind);

// Digests of the contents of tensors, in the order of the indices; algorithm: an SHW_DIGEST_.
// Throws a Failure. path: of the checkpoint.
std::vector<std::string> content_digests(const Checkpoint& checkpoint,
                                         const std::vector<uint64_t>& indices, int32_t algorithm,
                                         std::string_view path);

// For a listing without entries: throws a Failure when a pattern was given, which may be mistyped.
void require_match(const std::string& pattern, std::string_view noun, const std::string& path);

// True when the name has the pattern: '*' is any run, '?' one byte, "" everything.
bool name_matches(std::string_view pattern, std::string_view name);

// An entry that the user named, with what stands behind the name.
struct NamedEntry {
  const TensorFacts* tensor = nullptr;
  const ObjectFacts* object = nullptr;
  std::string_view rest;  // "[...]" or ""
};
// The longest existing name at the front of the text wins; what is left must be a slice. Throws a
// Failure with the nearest names otherwise. path: of the checkpoint.
NamedEntry find_entry(const Checkpoint& checkpoint, const std::vector<TensorFacts>& tensors,
                      const std::vector<ObjectFacts>& objects, std::string_view text,
                      std::string_view path);

// Goes through two lists that ascend by listed name: entries of one of them alone, and pairs.
template <typename Facts, typename OnlyLeft, typename OnlyRight, typename Both>
void pair_by_name(const std::vector<Facts>& left, const std::vector<Facts>& right,
                  const OnlyLeft& only_left, const OnlyRight& only_right, const Both& both) {
  auto a = left.begin();
  auto b = right.begin();
  while (a != left.end() || b != right.end()) {
    if (b == right.end() || (a != left.end() && a->listed < b->listed)) {
      only_left(*a++);
    } else if (a == left.end() || b->listed < a->listed) {
      only_right(*b++);
    } else {
      both(*a++, *b++);
    }
  }
}

}  // namespace shardwright::cli
