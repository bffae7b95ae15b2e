// SPDX-License-Identifier: Apache-2.0
//
// The machine's scalars and containers.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include "core/format/archive/pickle_machine_internal.h"
#include "core/format/archive/pickle_text_internal.h"

namespace shardwright::format::archive::internal {
namespace {

// Without the bytes that only repeat the sign.
std::string_view without_padding(std::string_view bytes) {
  while (bytes.size() > 1) {
    const auto last = static_cast<uint8_t>(bytes.back());
    const bool next_is_negative = (static_cast<uint8_t>(bytes[bytes.size() - 2]) & 0x80) != 0;
    if (last != (next_is_negative ? 0xFF : 0)) break;
    bytes.remove_suffix(1);
  }
  return bytes;
}

}  // namespace

bool PickleMachine::check_memory() {
  if (arena_->bytes() <= options_.limits.arena_bytes) return true;
  return fail(fmt::format("needs more than {} bytes of memory", options_.limits.arena_bytes));
}

bool PickleMachine::push_node(PickleRef value) {
  if (!check_memory()) return false;
  if (arena_->node_count() > options_.limits.nodes)
    return fail(fmt::format("makes more than {} values", options_.limits.nodes));
  push(value);
  return true;
}

bool PickleMachine::push_wide_integer(std::string_view bytes) {
  const std::string_view number = without_padding(bytes);
  if (number.size() <= sizeof(int64_t)) {
    const bool is_negative = !number.empty() && (static_cast<uint8_t>(number.back()) & 0x80) != 0;
    int64_t value = is_negative ? -1 : 0;
    std::memcpy(&value, number.data(), number.size());
    return push_number(value);
  }
  if (number.size() > options_.limits.integer_bytes) {
    return fail(fmt::format("is an integer of {} bytes, more than {}", number.size(),
                            options_.limits.integer_bytes));
  }
  return push_node(arena_->text(PickleKind::kLongInteger, number));
}

bool PickleMachine::push_decimal(std::string_view text) {
  const size_t max_bytes = static_cast<size_t>(options_.limits.integer_bytes);
  const auto bytes = from_decimal(text, max_bytes);
  if (!bytes.has_value()) return fail("has no decimal number, or one that is too long");
  if (without_padding(*bytes).size() <= sizeof(int64_t)) return push_wide_integer(*bytes);
  return push_wide_integer(arena_->keep(*bytes));
}

// INT says booleans with two digits; LONG ends with an L.
bool PickleMachine::push_decimal_line() {
  std::string_view text = token_.data;
  if (token_.opcode == PickleOpcode::kInt && (text == "00" || text == "01")) {
    push(text == "01" ? kTrueRef : kFalseRef);
    return true;
  }
  if (token_.opcode == PickleOpcode::kLong && text.ends_with('L')) text.remove_suffix(1);
  // One of CPython's unpicklers takes a leading zero for an octal number, the other for a decimal.
  const size_t sign = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  if (text.size() > sign + 1 && text[sign] == '0') return fail("has a number with leading zeros");
  return push_decimal(text);
}

bool PickleMachine::push_real(double value) {
  const PickleRef made = arena_->make(PickleKind::kReal);
  arena_->node(made).payload = std::bit_cast<uint64_t>(value);
  return push_node(made);
}

bool PickleMachine::push_real_line() {
  const std::string_view text = token_.data;
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec == std::errc() && parsed.ptr == text.data() + text.size()) return push_real(value);
  return fail("has no number");
}

bool PickleMachine::push_text(std::string_view text) {
  if (text.size() > options_.limits.text_bytes)
    return fail(fmt::format("has {} bytes, more than {}", text.size(), options_.limits.text_bytes));
  if (!is_python_text(text)) return fail("has bytes that are no UTF-8");
  return push_node(arena_->text(PickleKind::kText, text));
}

bool PickleMachine::push_bytes(PickleKind kind, std::string_view bytes) {
  if (bytes.size() > options_.limits.object_bytes) {
    return fail(
        fmt::format("has {} bytes, more than {}", bytes.size(), options_.limits.object_bytes));
  }
  return push_node(arena_->text(kind, bytes));
}

bool PickleMachine::push_old_string(std::string_view bytes) {
  return is_ascii(bytes) ? push_text(bytes) : push_bytes(PickleKind::kBytes, bytes);
}

bool PickleMachine::push_quoted_string(std::string_view line) {
  auto bytes = unquote(line);
  if (!bytes.has_value()) return fail("has no text in quotes");
  return push_old_string(arena_->keep(std::move(*bytes)));
}

bool PickleMachine::push_raw_unicode(std::string_view line) {
  auto text = from_raw_unicode(line);
  if (!text.has_value()) return fail("has an escape that is no character");
  return push_text(arena_->keep(std::move(*text)));
}

bool PickleMachine::note_depth(PickleNode* holder, std::span<const PickleRef> values) {
  uint32_t depth = holder->depth;
  for (const PickleRef value : values) depth = std::max(depth, depth_of(value));
  if (depth > options_.limits.depth)
    return fail(fmt::format("nests more than {} values", options_.limits.depth));
  holder->depth = static_cast<uint16_t>(std::min<uint32_t>(depth, UINT16_MAX - 1));
  return true;
}

// values: the newest of the stack, which they leave.
bool PickleMachine::push_tuple(PickleKind kind, std::span<const PickleRef> values) {
  const PickleRef made = arena_->make(kind);
  PickleNode& node = arena_->node(made);
  if (!note_depth(&node, values)) return false;
  node.count = static_cast<uint32_t>(values.size());
  node.slots = arena_->slots(values.size());
  std::ranges::copy(values, node.slots);
  drop(values.size());
  return push_node(made);
}

bool PickleMachine::tuple_of(size_t count) {
  if (stack_.size() < fence_ + count) return fail("finds too few values on the stack");
  return push_tuple(PickleKind::kTuple, std::span<const PickleRef>(stack_).last(count));
}

bool PickleMachine::tuple_to_mark(PickleKind kind) {
  std::span<const PickleRef> values;
  return to_mark(&values) && push_tuple(kind, values);
}

bool PickleMachine::container_to_mark(PickleKind kind) {
  std::span<const PickleRef> values;
  if (!to_mark(&values)) return false;
  const PickleRef made = arena_->make(kind);
  if (!add_parts(made, values, kind)) return false;
  drop(values.size());
  return push_node(made);
}

bool PickleMachine::append(size_t count) {
  if (stack_.size() < fence_ + count + 1) return fail("finds too few values on the stack");
  const auto values = std::span<const PickleRef>(stack_).last(count);
  if (!add_parts(stack_[stack_.size() - count - 1], values, PickleKind::kList)) return false;
  drop(count);
  return true;
}

bool PickleMachine::append_to_mark(PickleKind kind) {
  std::span<const PickleRef> values;
  PickleRef holder;
  if (!to_mark(&values)) return false;
  if (stack_.size() <= fence_ + values.size()) return fail("finds nothing that it could add to");
  holder = stack_[stack_.size() - values.size() - 1];
  if (!add_parts(holder, values, kind)) return false;
  drop(values.size());
  return true;
}

bool PickleMachine::set_items(size_t count) {
  if (stack_.size() < fence_ + count + 1) return fail("finds too few values on the stack");
  const auto values = std::span<const PickleRef>(stack_).last(count);
  if (!add_parts(stack_[stack_.size() - count - 1], values, PickleKind::kDict)) return false;
  drop(count);
  return true;
}

bool PickleMachine::set_items_to_mark() {
  return append_to_mark(PickleKind::kDict);
}

bool PickleMachine::add_parts(PickleRef holder, std::span<const PickleRef> values,
                              PickleKind kind) {
  if (kind == PickleKind::kDict && values.size() % 2 != 0) return fail("has a key without a value");
  if (!PickleArena::is_node(holder)) return fail("adds to something that holds nothing");
  if (arena_->node(holder).kind == PickleKind::kRecord && !make_object_of(holder)) return false;
  PickleNode& node = arena_->node(holder);
  PickleSegment** last = &node.last;
  if (node.kind == PickleKind::kObject) {
    last = kind == PickleKind::kDict ? &node.body->pairs : &node.body->parts;
  } else if (node.kind != kind) {
    return fail("adds to something that is not of its kind");
  }
  if (values.empty()) return true;
  if (!note_depth(&node, values)) return false;
  if (values.size() > UINT32_MAX - node.count) return fail("adds more values than can be counted");
  if (node.kind != PickleKind::kObject) node.count += static_cast<uint32_t>(values.size());
  PickleSegment* const segment = arena_->segment(values.size());
  std::ranges::copy(values, segment->values());
  segment->next = *last == nullptr ? segment : (*last)->next;
  if (*last != nullptr) (*last)->next = segment;
  *last = segment;
  return check_memory();
}

}  // namespace shardwright::format::archive::internal
