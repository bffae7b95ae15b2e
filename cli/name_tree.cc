// SPDX-License-Identifier: Apache-2.0
#include "cli/name_tree.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace shardwright::cli {
namespace {

constexpr size_t kMaxNumberDigits = 9;
constexpr size_t kMaxDepth = 64;  // parts of a name; what is left stays together in the last one

bool is_number(std::string_view part) {
  return !part.empty() && part.size() <= kMaxNumberDigits &&
         part.find_first_not_of("0123456789") == std::string_view::npos;
}

// Numbers first, by value; then text.
bool before(const std::string& a, const std::string& b) {
  const bool a_number = is_number(a);
  const bool b_number = is_number(b);
  if (a_number != b_number) return a_number;
  if (!a_number) return a < b;
  const int value_a = std::stoi(a);
  const int value_b = std::stoi(b);
  return value_a != value_b ? value_a < value_b : a < b;
}

struct Parts {
  std::string_view rest;
  size_t depth = 0;
};

// The first part of what is left of a name.
std::string_view first_part(const Parts& parts) {
  return parts.depth + 1 >= kMaxDepth ? parts.rest : parts.rest.substr(0, parts.rest.find('.'));
}

struct Pending {
  const TreeEntry* entry = nullptr;
  Parts parts;
};

void fill(TreeNode* node, const std::vector<Pending>& pending) {
  std::map<std::string, std::vector<Pending>, decltype(&before)> groups(&before);
  for (const Pending& item : pending) {
    node->entries += 1;
    node->bytes += item.entry->bytes;
    if (item.parts.rest.data() == nullptr) {
      node->facts = item.entry->facts;
      continue;
    }
    const std::string_view part = first_part(item.parts);
    Parts rest{{}, item.parts.depth + 1};
    if (part.size() < item.parts.rest.size()) rest.rest = item.parts.rest.substr(part.size() + 1);
    groups[std::string(part)].push_back({item.entry, rest});
  }
  for (const auto& [part, items] : groups) {
    TreeNode child;
    child.part = part;
    fill(&child, items);
    node->children.push_back(std::move(child));
  }
}

bool same_structure(const TreeNode& a, const TreeNode& b) {
  return a.facts == b.facts && a.entries == b.entries && a.bytes == b.bytes &&
         std::equal(a.children.begin(), a.children.end(), b.children.begin(), b.children.end(),
                    [](const TreeNode& x, const TreeNode& y) {
                      return x.part == y.part && same_structure(x, y);
                    });
}

// Children first, so that equal layers have equal folds below them.
void fold_children(std::vector<TreeNode>* children) {
  std::vector<TreeNode> folded;
  for (size_t first = 0; first < children->size();) {
    size_t last = first + 1;
    TreeNode node = (*children)[first];
    while (last < children->size() && is_number(node.part) && is_number((*children)[last].part) &&
           same_structure((*children)[first], (*children)[last])) {
      node.entries += (*children)[last].entries;
      node.bytes += (*children)[last].bytes;
      ++last;
    }
    if (last - first > 1)
      node.part = fmt::format("{{{}..{}}}", node.part, (*children)[last - 1].part);
    folded.push_back(std::move(node));
    first = last;
  }
  *children = std::move(folded);
}

}  // namespace

TreeNode make_tree(const std::vector<TreeEntry>& entries) {
  std::vector<Pending> pending;
  for (const TreeEntry& entry : entries) pending.push_back({&entry, {entry.name, 0}});
  TreeNode root;
  fill(&root, pending);
  return root;
}

void fold_numbered(TreeNode* node) {
  for (TreeNode& child : node->children) fold_numbered(&child);
  fold_children(&node->children);
}

}  // namespace shardwright::cli
