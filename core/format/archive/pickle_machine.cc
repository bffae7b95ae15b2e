// SPDX-License-Identifier: Apache-2.0
//
// Opcodes, stack and memo. The order in which the switches are tried puts what an index of tensors
// is made of first.
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/format/archive/pickle_machine_internal.h"

namespace shardwright::format::archive::internal {
namespace {

constexpr size_t kForgetWindow = 32;  // newest memo entries among which a node is looked for

}  // namespace

PickleMachine::PickleMachine(std::span<const std::byte> input, const PickleOptions& options,
                             Recycling recycling)
    : options_(options),
      recycling_(recycling),
      tokens_(input, options.file),
      arena_(std::make_unique<PickleArena>()),
      input_bytes_(input.size()) {
  arena_->known_refs.resize(options.vocabulary.size());
}

bool PickleMachine::fail(std::string_view what) {
  status_ = PickleTokens::failure(options_.file, token_, what);
  return false;
}

bool PickleMachine::run() {
  if (input_bytes_ > std::min<uint64_t>(options_.limits.input_bytes, UINT32_MAX)) {
    status_ = data_loss(fmt::format("file '{}': its pickle has {} bytes, more than {}",
                                    escape_text(options_.file), input_bytes_,
                                    options_.limits.input_bytes))
                  .with_detail("file", options_.file)
                  .with_detail("limit", fmt::to_string(options_.limits.input_bytes));
    return false;
  }
  while (tokens_.next(&token_)) {
    if (token_.opcode == PickleOpcode::kStop) return pop(&root_);
    if (!step()) return false;
  }
  status_ = tokens_.status();
  return false;
}

bool PickleMachine::step() {
  switch (token_.opcode) {
    case PickleOpcode::kMemoize:
      return memoize();
    case PickleOpcode::kBinGet:
    case PickleOpcode::kLongBinGet:
      return get(token_.number);
    case PickleOpcode::kBinPut:
    case PickleOpcode::kLongBinPut:
      return put(token_.number);
    case PickleOpcode::kMark:
      return push_mark();
    case PickleOpcode::kNone:
      push(kNoneRef);
      return true;
    case PickleOpcode::kNewTrue:
      push(kTrueRef);
      return true;
    case PickleOpcode::kNewFalse:
      push(kFalseRef);
      return true;
    case PickleOpcode::kBinInt:
    case PickleOpcode::kBinInt1:
    case PickleOpcode::kBinInt2:
      return push_number(token_.number);
    case PickleOpcode::kLong1:
    case PickleOpcode::kLong4:
      return push_wide_integer(token_.data);
    case PickleOpcode::kShortBinUnicode:
    case PickleOpcode::kBinUnicode:
    case PickleOpcode::kBinUnicode8:
      return push_text(token_.data);
    case PickleOpcode::kEmptyTuple:
      push(kEmptyTupleRef);
      return true;
    case PickleOpcode::kTuple1:
      return tuple_of(1);
    case PickleOpcode::kTuple2:
      return tuple_of(2);
    case PickleOpcode::kTuple3:
      return tuple_of(3);
    case PickleOpcode::kTuple:
      return tuple_to_mark(PickleKind::kTuple);
    case PickleOpcode::kEmptyDict:
      return push_node(arena_->make(PickleKind::kDict));
    case PickleOpcode::kEmptyList:
      return push_node(arena_->make(PickleKind::kList));
    case PickleOpcode::kSetItem:
      return set_items(2);
    case PickleOpcode::kSetItems:
      return set_items_to_mark();
    case PickleOpcode::kAppend:
      return append(1);
    case PickleOpcode::kAppends:
      return append_to_mark(PickleKind::kList);
    case PickleOpcode::kReduce:
      return reduce();
    case PickleOpcode::kNewObj:
      return new_object();
    case PickleOpcode::kBuild:
      return build();
    case PickleOpcode::kFrame:
    case PickleOpcode::kProto:
      return true;
    default:
      return step_objects();
  }
}

bool PickleMachine::step_objects() {
  int64_t id = 0;
  PickleRef value;
  switch (token_.opcode) {
    case PickleOpcode::kGlobal:
      return push_global(token_.data, token_.second);
    case PickleOpcode::kStackGlobal:
      return stack_global();
    case PickleOpcode::kPersId:
      return push_text(token_.data) && pop(&value) && push_persistent(value);
    case PickleOpcode::kBinPersId:
      return pop(&value) && push_persistent(value);
    case PickleOpcode::kExt1:
    case PickleOpcode::kExt2:
    case PickleOpcode::kExt4:
      return push_extension(token_.number);
    case PickleOpcode::kNewObjEx:
      return new_object_with_keywords();
    case PickleOpcode::kObj:
      return call_to_mark();
    case PickleOpcode::kInst:
      return instance_to_mark();
    case PickleOpcode::kGet:
      return line_id(&id) && get(id);
    case PickleOpcode::kPut:
      return line_id(&id) && put(id);
    case PickleOpcode::kPop:
      return pop_any();
    case PickleOpcode::kDup:
      return duplicate();
    case PickleOpcode::kPopMark: {
      std::span<const PickleRef> values;
      if (!to_mark(&values)) return false;
      drop(values.size());
      return true;
    }
    case PickleOpcode::kList:
      return container_to_mark(PickleKind::kList);
    case PickleOpcode::kDict:
      return container_to_mark(PickleKind::kDict);
    case PickleOpcode::kEmptySet:
      return push_node(arena_->make(PickleKind::kSet));
    case PickleOpcode::kAddItems:
      return append_to_mark(PickleKind::kSet);
    case PickleOpcode::kFrozenSet:
      return tuple_to_mark(PickleKind::kFrozenSet);
    default:
      return step_rare();
  }
}

bool PickleMachine::step_rare() {
  switch (token_.opcode) {
    case PickleOpcode::kBinFloat:
      return push_real(std::bit_cast<double>(token_.number));
    case PickleOpcode::kFloat:
      return push_real_line();
    case PickleOpcode::kInt:
    case PickleOpcode::kLong:
      return push_decimal_line();
    case PickleOpcode::kBinBytes:
    case PickleOpcode::kShortBinBytes:
    case PickleOpcode::kBinBytes8:
      return push_bytes(PickleKind::kBytes, token_.data);
    case PickleOpcode::kByteArray8:
      return push_bytes(PickleKind::kByteArray, token_.data);
    case PickleOpcode::kBinString:
    case PickleOpcode::kShortBinString:
      return push_old_string(token_.data);
    case PickleOpcode::kString:
      return push_quoted_string(token_.data);
    case PickleOpcode::kUnicode:
      return push_raw_unicode(token_.data);
    case PickleOpcode::kNextBuffer:
    case PickleOpcode::kReadonlyBuffer:
      status_ = unimplemented(fmt::format("file '{}': {} at offset {} of its pickle asks for a "
                                          "buffer that lies outside of the pickle",
                                          escape_text(options_.file),
                                          pickle_opcode_info(token_.opcode).name, token_.offset))
                    .with_detail("file", options_.file)
                    .with_detail("offset", fmt::to_string(token_.offset));
      return false;
    default:
      return fail("is no opcode that is known");
  }
}

bool PickleMachine::push_mark() {
  if (marks_.size() == options_.limits.marks)
    return fail(fmt::format("opens more than {} marks", options_.limits.marks));
  marks_.push_back(fence_);
  fence_ = stack_.size();
  return true;
}

bool PickleMachine::to_mark(std::span<const PickleRef>* values) {
  if (marks_.empty()) return fail("finds no mark on the stack");
  *values = std::span<const PickleRef>(stack_).subspan(fence_);
  fence_ = marks_.back();
  marks_.pop_back();
  return true;
}

// POP takes a mark when one is on top.
bool PickleMachine::pop_any() {
  if (stack_.size() > fence_) {
    stack_.pop_back();
    return true;
  }
  std::span<const PickleRef> none;
  return to_mark(&none);
}

bool PickleMachine::duplicate() {
  PickleRef value;
  if (!top(&value)) return false;
  share(value);
  push(value);
  return true;
}

bool PickleMachine::put(int64_t id) {
  PickleRef value;
  if (!top(&value)) return false;
  if (PickleArena::is_node(value)) {
    PickleNode& node = arena_->node(value);
    const bool again = (node.flags & PickleNode::kMemoized) != 0;
    node.flags |= again ? PickleNode::kShared : PickleNode::kMemoized;
  }
  // What counts its values as it writes them stays below the size of the input.
  if (static_cast<uint64_t>(id) >= input_bytes_) {
    if (far_memo_.insert_or_assign(id, value).second) ++memo_count_;
    return true;
  }
  const auto index = static_cast<size_t>(id);
  if (index >= memo_.size() || memo_.at(index).is_absent()) ++memo_count_;
  memo_.set(index, value);
  return true;
}

bool PickleMachine::get(int64_t id) {
  PickleRef value;
  if (static_cast<uint64_t>(id) < memo_.size()) {
    value = memo_.at(static_cast<size_t>(id));
  } else if (const auto far = far_memo_.find(id); far != far_memo_.end()) {
    value = far->second;
  }
  if (value.is_absent()) return fail(fmt::format("asks for memo entry {}, which is not set", id));
  if (value == kForgottenRef) {
    needs_again_ = true;
    return false;
  }
  share(value);
  push(value);
  return true;
}

bool PickleMachine::line_id(int64_t* id) {
  const std::string_view text = token_.data;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), *id);
  if (parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && *id >= 0) return true;
  return fail("has no number of a memo entry");
}

bool PickleMachine::forget(PickleRef value) {
  if (recycling_ == Recycling::kOff || !PickleArena::is_node(value)) return false;
  const PickleNode& node = arena_->node(value);
  if ((node.flags & PickleNode::kShared) != 0) return false;
  if ((node.flags & PickleNode::kMemoized) == 0) return true;
  const size_t oldest = memo_.size() - std::min(memo_.size(), kForgetWindow);
  for (size_t id = memo_.size(); id > oldest; --id) {
    if (memo_.at(id - 1) != value) continue;
    memo_.set(id - 1, kForgottenRef);
    return true;
  }
  return false;
}

}  // namespace shardwright::format::archive::internal
