// SPDX-License-Identifier: Apache-2.0
//
// The stack machine behind read_pickle and scan_pickle. It keeps the rules of CPython's unpickler
// where they decide what a pickle means (what a mark fences off, what POP does to one) and is
// stricter where CPython is lenient.
//
// To hold an index of a million chunks in little memory it gives back what only the machine itself
// ever knew: the state dict of an instance whose fields took its values, and the tuple of arguments
// of a call. A memo entry of theirs stays behind as "forgotten". CPython never asks for one; a
// pickle that does is read again from the start with nothing given back.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/hash_index.h"
#include "core/base/status.h"
#include "core/format/archive/pickle_arena_internal.h"
#include "core/format/archive/pickle_reader.h"
#include "core/format/archive/pickle_tokens.h"

namespace shardwright::format::archive::internal {

enum class Recycling : uint8_t { kOn, kOff };

// Values by their ids, which mostly count up. It grows without copies of itself: it is as large as
// a quarter of what it remembers.
class PickleMemoTable {
 public:
  size_t size() const { return size_; }
  PickleRef at(size_t id) const { return blocks_[id / kBlock][id % kBlock]; }
  void set(size_t id, PickleRef value) {
    if (id >= size_) grow(id + 1);
    blocks_[id / kBlock][id % kBlock] = value;
  }

 private:
  static constexpr size_t kBlock = 4096;
  void grow(size_t size) {
    while (blocks_.size() * kBlock < size) blocks_.push_back(std::make_unique<PickleRef[]>(kBlock));
    size_ = size;
  }

  std::vector<std::unique_ptr<PickleRef[]>> blocks_;
  size_t size_ = 0;
};

class PickleMachine {
 public:
  PickleMachine(std::span<const std::byte> input, const PickleOptions& options,
                Recycling recycling);

  // Runs to STOP. False when it failed, or when it needs_again.
  bool run();
  const Status& status() const { return status_; }
  bool needs_again() const { return needs_again_; }

  PickleRef root() const { return root_; }
  uint64_t end() const { return tokens_.position(); }
  int protocol() const { return tokens_.protocol(); }
  std::unique_ptr<PickleArena> take_arena() { return std::move(arena_); }
  std::span<const PickleGlobal> globals() const { return arena_->globals; }
  // Calls of what is no global, and where the first one is.
  uint64_t computed_calls() const { return computed_calls_; }
  uint64_t first_computed_call() const { return first_computed_call_; }

 private:
  bool step();
  bool step_rare();
  bool step_objects();
  bool fail(std::string_view what);

  // The stack. Nothing below the last mark can be reached.
  void push(PickleRef value) { stack_.push_back(value); }
  bool pop(PickleRef* value) {
    if (stack_.size() <= fence_) return fail("finds nothing on the stack");
    *value = stack_.back();
    stack_.pop_back();
    return true;
  }
  bool top(PickleRef* value) {
    if (stack_.size() <= fence_) return fail("finds nothing on the stack");
    *value = stack_.back();
    return true;
  }
  bool push_mark();
  // Whether the values fit into the memory that they may have.
  bool check_memory();
  // Values above the last mark, which goes; they stay where they are until drop().
  bool to_mark(std::span<const PickleRef>* values);
  void drop(size_t values) { stack_.resize(stack_.size() - values); }
  bool pop_any();
  bool duplicate();

  // Scalars.
  bool push_node(PickleRef value);
  bool push_number(int64_t value) { return push_node(arena_->integer(value)); }
  bool push_wide_integer(std::string_view bytes);
  bool push_decimal(std::string_view text);
  bool push_decimal_line();
  bool push_real(double value);
  bool push_real_line();
  bool push_text(std::string_view text);
  bool push_bytes(PickleKind kind, std::string_view bytes);
  bool push_old_string(std::string_view bytes);
  bool push_quoted_string(std::string_view line);
  bool push_raw_unicode(std::string_view line);

  // Containers.
  bool push_tuple(PickleKind kind, std::span<const PickleRef> values);
  bool tuple_of(size_t count);
  bool tuple_to_mark(PickleKind kind);
  bool container_to_mark(PickleKind kind);
  bool append(size_t count);
  bool append_to_mark(PickleKind kind);
  bool set_items(size_t count);
  bool set_items_to_mark();
  bool add_parts(PickleRef holder, std::span<const PickleRef> values, PickleKind kind);
  bool note_depth(PickleNode* holder, std::span<const PickleRef> values);
  uint32_t depth_of(PickleRef value) const {
    return PickleArena::is_node(value) ? arena_->node(value).depth + 1U : 1U;
  }

  // Memo.
  bool put(int64_t id);
  bool get(int64_t id);
  bool line_id(int64_t* id);
  bool memoize() { return put(static_cast<int64_t>(memo_count_)); }
  void share(PickleRef value) {
    if (!PickleArena::is_node(value)) return;
    PickleNode& node = arena_->node(value);
    if ((node.flags & PickleNode::kShared) == 0) node.flags |= PickleNode::kShared;
  }
  // Whether nobody can ask for the node any more, its memo entry apart, which is forgotten then.
  bool forget(PickleRef value);

  // Globals, calls, instances.
  PickleRef global(std::string_view module, std::string_view name);
  bool push_global(std::string_view module, std::string_view name);
  bool stack_global();
  bool push_extension(int64_t code);
  bool push_persistent(PickleRef id);
  bool reduce();
  bool new_object();
  bool new_object_with_keywords();
  bool call_to_mark();
  bool instance_to_mark();
  bool build();
  bool check_call(PickleRef callable, PickleRef arguments);
  bool is_member(PickleRef arguments) const;
  bool only_as_data();
  bool refuse_call(std::string_view what);
  bool push_object(PickleRef callable, PickleRef arguments, PickleMaking making,
                   PickleRef keywords = {});
  bool push_record(PickleRef callable, std::span<PickleRef> fields, uint8_t flags);
  bool push_instance(PickleRef callable, size_t fields);
  bool fill_record(PickleRef record, PickleRef state);
  bool take_fields(PickleRef record, const PickleClass& known, PickleRef state);
  size_t field_of(const PickleClass& known, size_t expected, PickleRef key) const;
  // A record that gets parts or a second state is an object after all.
  bool make_object_of(PickleRef record);
  const PickleClass* known_class(PickleRef callable) const;
  PickleKind kind(PickleRef value) const {
    if (PickleArena::is_node(value)) return arena_->node(value).kind;
    if (PickleArena::is_inline_integer(value)) return PickleKind::kInteger;
    if (value == kNoneRef) return PickleKind::kNone;
    return value == kEmptyTupleRef ? PickleKind::kTuple : PickleKind::kBool;
  }
  std::string_view text(PickleRef value) const {
    const PickleNode& node = arena_->node(value);
    return {node.text, node.count};
  }

  const PickleOptions& options_;
  Recycling recycling_;
  PickleTokens tokens_;
  PickleToken token_;
  std::unique_ptr<PickleArena> arena_;
  std::vector<PickleRef> stack_;
  std::vector<size_t> marks_;
  size_t fence_ = 0;  // stack size at the last mark
  uint64_t input_bytes_;
  PickleMemoTable memo_;
  // Ids that no such input counts up to; whoever writes them chooses them, so nothing is hashed.
  std::map<int64_t, PickleRef> far_memo_;
  uint64_t memo_count_ = 0;  // entries that are set
  HashIndex global_index_;   // of the globals that were named
  uint64_t computed_calls_ = 0;
  uint64_t first_computed_call_ = 0;
  bool needs_again_ = false;
  PickleRef root_;
  Status status_;
};

}  // namespace shardwright::format::archive::internal
