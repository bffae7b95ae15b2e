// SPDX-License-Identifier: Apache-2.0
//
// Names split at dots as a tree with sizes; numbered siblings of equal structure can be folded to
// one line
// ("layers.{0..61}"). Pure, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardwright::cli {

struct TreeEntry {
  std::string name;
  std::string facts;  // "float32 [4, 8]"
  uint64_t bytes = 0;
};

struct TreeNode {
  std::string part;      // one part of the name, or "{0..61}"
  std::string facts;     // of an entry that ends here, else empty
  uint64_t entries = 0;  // at and below this node
  uint64_t bytes = 0;
  std::vector<TreeNode> children;  // numbers first and in their order, then text
};

TreeNode make_tree(const std::vector<TreeEntry>& entries);
// Folds numbered children that are equal but for their number. Entries and bytes of a fold are the
// sums.
void fold_numbered(TreeNode* node);

}  // namespace shardwright::cli
