// SPDX-License-Identifier: Apache-2.0
//
// The machine's globals, calls and instances: all of them end as nodes.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/format/archive/pickle_machine_internal.h"

namespace shardwright::format::archive::internal {
namespace {

constexpr std::string_view kExtensionModule = "(extension registry)";  // no module is called so

uint64_t hash_of(std::string_view module, std::string_view name) {
  return hash_text(module) * 31 + hash_text(name);
}

}  // namespace

PickleRef PickleMachine::global(std::string_view module, std::string_view name) {
  std::vector<PickleGlobal>& globals = arena_->globals;
  const auto hash_at = [&](size_t i) { return hash_of(globals[i].module, globals[i].name); };
  const auto found = global_index_.find(hash_of(module, name), [&](size_t i) {
    return globals[i].module == module && globals[i].name == name;
  });
  if (found.has_value()) {
    ++globals[*found].imports;
    return arena_->global_refs[*found];
  }
  const auto known = std::ranges::find_if(options_.vocabulary, [&](const PickleClass& each) {
    return each.name == name && each.module == module;
  });
  const PickleRef made = arena_->make(PickleKind::kGlobal);
  PickleNode& node = arena_->node(made);
  node.count = static_cast<uint32_t>(globals.size());
  node.flags = PickleNode::kShared;
  PickleGlobal entry{module, name};
  entry.imports = 1;
  entry.offset = token_.offset;
  if (known != options_.vocabulary.end()) {
    entry.known = static_cast<int32_t>(known - options_.vocabulary.begin());
    arena_->known_refs[static_cast<size_t>(entry.known)] = made;
  }
  globals.push_back(entry);
  arena_->global_refs.push_back(made);
  global_index_.reserve(globals.size(), hash_at);
  global_index_.insert(hash_of(module, name), globals.size() - 1);
  return made;
}

bool PickleMachine::push_global(std::string_view module, std::string_view name) {
  return push_node(global(module, name));
}

bool PickleMachine::stack_global() {
  PickleRef module, name;
  if (!pop(&name) || !pop(&module)) return false;
  if (kind(module) != PickleKind::kText || kind(name) != PickleKind::kText)
    return fail("takes module and name from values that are no text");
  return push_global(text(module), text(name));
}

bool PickleMachine::only_as_data() {
  return options_.calls == PickleCalls::kAsData || fail("has no place in such a file");
}

bool PickleMachine::push_extension(int64_t code) {
  if (code <= 0) return fail("has an extension code that is not positive");
  return only_as_data() &&
         push_global(kExtensionModule, arena_->keep(fmt::format("code {}", code)));
}

bool PickleMachine::push_persistent(PickleRef id) {
  if (!only_as_data()) return false;
  const PickleRef made = arena_->make(PickleKind::kPersistent);
  PickleNode& node = arena_->node(made);
  node.payload = id.bits;
  return note_depth(&node, {&id, 1}) && push_node(made);
}

bool PickleMachine::refuse_call(std::string_view what) {
  status_ = permission_denied(
                fmt::format("file '{}': {} at offset {} of its pickle would call {}, which is no "
                            "part of such a file; nothing was called",
                            escape_text(options_.file), pickle_opcode_info(token_.opcode).name,
                            token_.offset, escape_text(what)))
                .with_detail("file", options_.file)
                .with_detail("offset", fmt::to_string(token_.offset))
                .with_detail("unsafe", what);
  return false;
}

const PickleClass* PickleMachine::known_class(PickleRef callable) const {
  if (kind(callable) != PickleKind::kGlobal) return nullptr;
  const int32_t known = arena_->globals[arena_->node(callable).count].known;
  return known < 0 ? nullptr : &options_.vocabulary[static_cast<size_t>(known)];
}

// Whether these are the arguments of a getattr that takes a member of an enumeration.
bool PickleMachine::is_member(PickleRef arguments) const {
  if (!PickleArena::is_node(arguments)) return false;
  const PickleNode& node = arena_->node(arguments);
  if (node.count != 2 || kind(node.slots[1]) != PickleKind::kText) return false;
  const PickleClass* const holder = known_class(node.slots[0]);
  return holder != nullptr && (holder->uses & kPickleEnum) != 0;
}

// Whether the call may stand in the file; counts it.
bool PickleMachine::check_call(PickleRef callable, PickleRef arguments) {
  const bool is_as_data = options_.calls == PickleCalls::kAsData;
  if (kind(callable) != PickleKind::kGlobal) {
    if (computed_calls_++ == 0) first_computed_call_ = token_.offset;
    return is_as_data || refuse_call("a value that is computed");
  }
  PickleGlobal& named = arena_->globals[arena_->node(callable).count];
  ++named.calls;
  const PickleClass* const known = known_class(callable);
  const uint8_t uses = known == nullptr ? 0 : known->uses;
  if ((uses & kPickleCall) != 0) return true;
  if ((uses & kPickleGetattr) != 0 && is_member(arguments)) return true;
  if ((uses & kPickleDict) != 0 && arguments == kEmptyTupleRef) return true;
  ++named.odd_calls;
  return is_as_data || refuse_call(fmt::format("{}.{}", named.module, named.name));
}

bool PickleMachine::push_object(PickleRef callable, PickleRef arguments, PickleMaking making,
                                PickleRef keywords) {
  const PickleRef made = arena_->make(PickleKind::kObject);
  PickleNode& node = arena_->node(made);
  node.body = arena_->body();
  node.body->callable = callable;
  node.body->arguments = arguments;
  node.body->keywords = keywords;
  node.body->making = making;
  const std::array<PickleRef, 3> below = {callable, arguments, keywords};
  return note_depth(&node, below) && push_node(made);
}

bool PickleMachine::push_record(PickleRef callable, std::span<PickleRef> fields, uint8_t flags) {
  const PickleRef made = arena_->make(PickleKind::kRecord);
  PickleNode& node = arena_->node(made);
  const auto known = static_cast<size_t>(arena_->globals[arena_->node(callable).count].known);
  node.flags = flags;
  node.count = record_count(known, fields.size());
  node.slots = fields.data();
  return note_depth(&node, fields) && push_node(made);
}

bool PickleMachine::push_instance(PickleRef callable, size_t fields) {
  PickleRef* const slots = arena_->slots(fields + 1);
  std::fill_n(slots, fields + 1, PickleRef());
  return push_record(callable, {slots, fields}, PickleNode::kInstance);
}

bool PickleMachine::reduce() {
  PickleRef callable, arguments;
  if (!pop(&arguments) || !pop(&callable)) return false;
  if (kind(arguments) != PickleKind::kTuple) return fail("calls with arguments that are no tuple");
  if (!check_call(callable, arguments)) return false;
  const PickleClass* const known = known_class(callable);
  if (known != nullptr && (known->uses & kPickleDict) != 0 && arguments == kEmptyTupleRef)
    return push_node(arena_->make(PickleKind::kDict));
  const bool is_node = PickleArena::is_node(arguments);
  const uint32_t count = is_node ? arena_->node(arguments).count : 0;
  if (known == nullptr || (known->uses & (kPickleCall | kPickleGetattr)) == 0 ||
      count > kMaxRecordFields)
    return push_object(callable, arguments, PickleMaking::kCall);
  // Nothing changes a tuple, so the record has its slots.
  PickleRef* const slots = is_node ? arena_->node(arguments).slots : nullptr;
  if (forget(arguments)) arena_->give_back(arguments);
  return push_record(callable, {slots, count}, 0);
}

bool PickleMachine::new_object() {
  PickleRef callable, arguments;
  if (!pop(&arguments) || !pop(&callable)) return false;
  if (kind(arguments) != PickleKind::kTuple) return fail("has arguments that are no tuple");
  if (kind(callable) != PickleKind::kGlobal) {
    if (options_.calls == PickleCalls::kKnownOnly) return refuse_call("a class that is computed");
    return push_object(callable, arguments, PickleMaking::kInstance);
  }
  ++arena_->globals[arena_->node(callable).count].instances;
  const PickleClass* const known = known_class(callable);
  if (known != nullptr && (known->uses & kPickleInstance) != 0 && arguments == kEmptyTupleRef)
    return push_instance(callable, known->fields.size());
  return push_object(callable, arguments, PickleMaking::kInstance);
}

bool PickleMachine::new_object_with_keywords() {
  PickleRef callable, arguments, keywords;
  if (!only_as_data() || !pop(&keywords) || !pop(&arguments) || !pop(&callable)) return false;
  if (kind(arguments) != PickleKind::kTuple || kind(keywords) != PickleKind::kDict)
    return fail("has arguments that are no tuple and no dict");
  if (kind(callable) == PickleKind::kGlobal)
    ++arena_->globals[arena_->node(callable).count].instances;
  return push_object(callable, arguments, PickleMaking::kInstance, keywords);
}

// OBJ: the class is the first value behind the mark.
bool PickleMachine::call_to_mark() {
  std::span<const PickleRef> values;
  if (!to_mark(&values)) return false;
  if (values.empty()) return fail("finds no class behind the mark");
  const PickleRef callable = values[0];
  PickleRef arguments;
  if (!push_tuple(PickleKind::kTuple, values.subspan(1)) || !pop(&arguments)) return false;
  stack_.pop_back();  // the class
  return check_call(callable, arguments) && push_object(callable, arguments, PickleMaking::kCall);
}

bool PickleMachine::instance_to_mark() {
  if (!tuple_to_mark(PickleKind::kTuple)) return false;
  const PickleRef arguments = stack_.back();
  stack_.pop_back();
  const PickleRef callable = global(token_.data, token_.second);
  return check_call(callable, arguments) && push_object(callable, arguments, PickleMaking::kCall);
}

bool PickleMachine::build() {
  PickleRef state, object;
  if (!pop(&state) || !top(&object)) return false;
  const PickleKind made = kind(object);
  if (made != PickleKind::kRecord && made != PickleKind::kObject)
    return fail("sets the state of something that is no object");
  PickleNode& node = arena_->node(object);
  if ((node.flags & PickleNode::kBuilt) != 0) return fail("sets the state of an object again");
  if (!note_depth(&node, {&state, 1})) return false;
  if (made == PickleKind::kRecord && (node.flags & PickleNode::kInstance) != 0)
    return fill_record(object, state);
  if (made == PickleKind::kRecord && !make_object_of(object)) return false;
  node.flags |= PickleNode::kBuilt;
  node.body->state = state;
  return true;
}

bool PickleMachine::make_object_of(PickleRef record) {
  PickleNode& node = arena_->node(record);
  if ((node.flags & PickleNode::kBuilt) != 0) return fail("adds to an object behind its state");
  const bool is_instance = (node.flags & PickleNode::kInstance) != 0;
  PickleBody body;
  body.callable = arena_->known_refs[record_known(node)];
  body.arguments = kEmptyTupleRef;
  body.making = is_instance ? PickleMaking::kInstance : PickleMaking::kCall;
  if (!is_instance && record_fields(node) > 0) {
    body.arguments = arena_->make(PickleKind::kTuple);
    PickleNode& tuple = arena_->node(body.arguments);
    tuple.depth = node.depth;
    tuple.count = record_fields(node);
    tuple.slots = node.slots;
  }
  node.kind = PickleKind::kObject;
  node.flags &= static_cast<uint8_t>(~PickleNode::kInstance);
  node.count = 0;
  node.body = arena_->body();
  *node.body = body;
  return true;
}

bool PickleMachine::fill_record(PickleRef record, PickleRef state) {
  PickleNode& node = arena_->node(record);
  node.flags |= PickleNode::kBuilt;
  const PickleClass& known = options_.vocabulary[record_known(node)];
  const bool all_taken = kind(state) == PickleKind::kDict && take_fields(record, known, state);
  if (!all_taken) {
    node.slots[record_fields(node)] = state;
    return true;
  }
  if (!forget(state)) return true;
  PickleSegment* const last = arena_->node(state).last;
  if (last != nullptr && last->next == last) arena_->take_back(last);
  arena_->give_back(state);
  return true;
}

// Whether every entry of the state is a field.
bool PickleMachine::take_fields(PickleRef record, const PickleClass& known, PickleRef state) {
  PickleRef* const slots = arena_->node(record).slots;
  const PickleSegment* const last = arena_->node(state).last;
  if (last == nullptr) return true;
  bool all = true;
  size_t expected = 0;
  const PickleSegment* segment = last;
  do {
    segment = segment->next;
    for (uint32_t i = 0; i + 1 < segment->count; i += 2) {
      const size_t field = field_of(known, expected, segment->values()[i]);
      expected = field + 1;
      if (field == known.fields.size()) {
        all = false;
        expected = 0;
      } else {
        slots[field] = segment->values()[i + 1];
      }
    }
  } while (segment != last);
  return all;
}

// Number of the field with that name, their count when there is none. States come in the order of
// the fields.
size_t PickleMachine::field_of(const PickleClass& known, size_t expected, PickleRef key) const {
  if (kind(key) != PickleKind::kText) return known.fields.size();
  const std::string_view name = text(key);
  if (expected < known.fields.size() && known.fields[expected] == name) return expected;
  const auto found = std::ranges::find(known.fields, name);
  return static_cast<size_t>(found - known.fields.begin());
}

}  // namespace shardwright::format::archive::internal
