// SPDX-License-Identifier: Apache-2.0
#include "core/format/archive/pickle_copy.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/format/archive/harmless_globals.h"
#include "core/format/archive/torch_tensor.h"

namespace shardwright::format::archive {
namespace {

constexpr int kMaxPickleDepth = 256;

bool is_record_of(const PickleData& data, PickleRef value, TorchGlobal global) {
  return data.kind(value) == PickleKind::kRecord &&
         data.known(value) == static_cast<int32_t>(global);
}

// A module under the name that it has in Python 3, which protocols above 2 use.
std::string_view python3_module(std::string_view module) {
  if (module == "__builtin__") return "builtins";
  return module == "copy_reg" ? "copyreg" : module;
}

std::string_view python3_name(std::string_view module, std::string_view name) {
  return module == "__builtin__" && name == "xrange" ? "range" : name;
}

class PickleCopier {
 public:
  PickleCopier(const PickleData& data, const PickleCopyRules& rules, PickleWriter* writer)
      : data_(data), rules_(rules), writer_(*writer) {}

  bool write(PickleRef value, int depth) {
    if (depth > kMaxPickleDepth || writer_.size_bytes() > rules_.budget_bytes) return false;
    if (const auto known = memo_.find(value.bits); known != memo_.end()) {
      writer_.get(known->second);
      return true;
    }
    switch (data_.kind(value)) {
      case PickleKind::kNone:
        writer_.none();
        return true;
      case PickleKind::kBool:
        writer_.boolean(data_.boolean(value));
        return true;
      case PickleKind::kInteger:
        writer_.integer(data_.integer(value));
        return true;
      case PickleKind::kReal:
        writer_.real(data_.real(value));
        return true;
      case PickleKind::kText:
        writer_.shared_text(data_.text(value));
        return true;
      case PickleKind::kBytes:
        writer_.bytes(data_.bytes(value));
        return true;
      case PickleKind::kLongInteger:
        writer_.long_integer(data_.bytes(value));
        return true;
      case PickleKind::kGlobal:
        if (!keeps(data_.global(value))) return replace();
        write_global(data_.global(value).module, data_.global(value).name);
        return true;
      default:
        return write_container(value, depth);
    }
  }
  uint64_t replaced() const { return replaced_; }

 private:
  bool write_container(PickleRef value, int depth) {
    switch (data_.kind(value)) {
      case PickleKind::kList:
        writer_.empty_list();
        remember(value);
        return write_parts(value, depth);
      case PickleKind::kDict:
        writer_.empty_dict();
        remember(value);
        return write_pairs(value, depth);
      default:
        break;
    }
    // What is made of its parts cannot be among them.
    if (!begun_.insert(value.bits).second) return false;
    const bool written = write_made(value, depth);
    begun_.erase(value.bits);
    return written;
  }

  bool write_made(PickleRef value, int depth) {
    switch (data_.kind(value)) {
      case PickleKind::kTuple:
        if (!write_tuple(data_.tuple(value), depth)) return false;
        remember(value);
        return true;
      case PickleKind::kSet:
        return write_set(value, "set", depth);
      case PickleKind::kFrozenSet:
        return write_set(value, "frozenset", depth);
      case PickleKind::kByteArray:
        writer_.global("builtins", "bytearray").bytes(data_.bytes(value)).tuple(1).reduce();
        remember(value);
        return true;
      case PickleKind::kRecord:
        return write_record(value, depth);
      case PickleKind::kObject:
        return write_object(value, depth);
      case PickleKind::kPersistent:
        if (!rules_.persistent_ids || !write(data_.target(value), depth + 1)) return false;
        writer_.persistent_id();
        return true;
      default:
        return false;
    }
  }

  bool write_tuple(std::span<const PickleRef> parts, int depth) {
    if (parts.empty()) {
      writer_.empty_tuple();
      return true;
    }
    if (parts.size() > 3) writer_.mark();
    for (const PickleRef part : parts) {
      if (!write(part, depth + 1)) return false;
    }
    if (parts.size() > 3) {
      writer_.tuple_to_mark();
    } else {
      writer_.tuple(parts.size());
    }
    return true;
  }

  bool write_set(PickleRef value, std::string_view name, int depth) {
    writer_.global("builtins", name).empty_list();
    if (data_.kind(value) == PickleKind::kSet) {
      if (!write_parts(value, depth)) return false;
    } else {
      for (const PickleRef part : data_.tuple(value)) {
        if (!write(part, depth + 1)) return false;
        writer_.append();
      }
    }
    writer_.tuple(1).reduce();
    remember(value);
    return true;
  }

  // The call of a global of the vocabulary.
  bool write_record(PickleRef value, int depth) {
    if (!rules_.known.empty()) return false;  // data for that is read without a vocabulary
    const bool is_torch = rules_.vocabulary.data() == torch_vocabulary().data();
    if (const auto bytes = is_torch ? encoded_bytes(data_, value) : std::nullopt;
        bytes.has_value()) {
      writer_.bytes(std::as_bytes(std::span(*bytes)));
      remember(value);
      return true;
    }
    const PickleClass& known = rules_.vocabulary[static_cast<size_t>(data_.known(value))];
    write_global(known.module, known.name);
    if ((known.uses & kPickleInstance) != 0) return write_instance(value, known, depth);
    if (!write_tuple(data_.fields(value), depth)) return false;
    writer_.reduce();
    remember(value);
    return true;
  }

  // Behind its class.
  bool write_instance(PickleRef value, const PickleClass& known, int depth) {
    writer_.empty_tuple().new_object();
    remember(value);
    if (!data_.state(value).is_absent()) {
      if (!write(data_.state(value), depth + 1)) return false;
      writer_.build();
      return true;
    }
    const auto fields = data_.fields(value);
    if (std::ranges::all_of(fields, &PickleRef::is_absent)) return true;
    writer_.empty_dict();
    for (size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].is_absent()) continue;
      writer_.shared_text(known.fields[i]);
      if (!write(fields[i], depth + 2)) return false;
      writer_.set_item();
    }
    writer_.build();
    return true;
  }

  bool write_object(PickleRef value, int depth) {
    if (!keeps_object(value)) return replace();
    if (!data_.keywords(value).is_absent() || !write(data_.callable(value), depth + 1) ||
        !write_tuple(data_.tuple(data_.arguments(value)), depth))
      return false;
    if (data_.making(value) == PickleMaking::kCall) {
      writer_.reduce();
    } else {
      writer_.new_object();
    }
    remember(value);
    if (!write_parts(value, depth) || !write_pairs(value, depth)) return false;
    if (data_.state(value).is_absent()) return true;
    if (!write(data_.state(value), depth + 1)) return false;
    writer_.build();
    return true;
  }

  bool write_parts(PickleRef value, int depth) {
    PickleCursor parts = data_.parts(value);
    for (PickleRef part; parts.next(&part);) {
      if (!write(part, depth + 1)) return false;
      writer_.append();
    }
    return true;
  }

  bool write_pairs(PickleRef value, int depth) {
    PickleCursor pairs = data_.pairs(value);
    for (PickleRef key, part; pairs.next(&key) && pairs.next(&part);) {
      if (is_left_out(key, depth)) continue;
      if (!write(key, depth + 1)) return false;
      if (const auto number = other_number(key, part); number.has_value()) {
        writer_.integer(*number);
      } else if (!write(part, depth + 1)) {
        return false;
      }
      writer_.set_item();
    }
    return true;
  }

  std::optional<int64_t> other_number(PickleRef key, PickleRef part) const {
    if (rules_.numbers == nullptr || data_.kind(key) != PickleKind::kText ||
        data_.kind(part) != PickleKind::kInteger)
      return std::nullopt;
    const auto found = rules_.numbers->find(data_.text(key));
    if (found == rules_.numbers->end()) return std::nullopt;
    return found->second;
  }

  void write_global(std::string_view module, std::string_view name) {
    if (rules_.newer_names) {
      writer_.global(python3_module(module), python3_name(module, name));
    } else {
      writer_.global(module, name);
    }
  }
  bool replace() {
    ++replaced_;
    writer_.none();
    return true;
  }

  bool is_left_out(PickleRef key, int depth) const {
    return std::ranges::any_of(rules_.left_out, [&](const PickleCopyRules::LeftOut& each) {
      const bool counts = each.depth == PickleCopyRules::kAnyDepth || each.depth == depth;
      return counts && !each.names.empty() && is_one_of(key, each.names);
    });
  }
  bool is_one_of(PickleRef key, const std::set<std::string, std::less<>>& names) const {
    if (data_.kind(key) == PickleKind::kText) return names.contains(data_.text(key));
    if (data_.kind(key) != PickleKind::kObject || data_.kind(data_.state(key)) != PickleKind::kDict)
      return false;
    PickleCursor fields = data_.pairs(data_.state(key));
    for (PickleRef name, value; fields.next(&name) && fields.next(&value);) {
      if (data_.kind(name) == PickleKind::kText && data_.text(name) == "fqn")
        return data_.kind(value) == PickleKind::kText && names.contains(data_.text(value));
    }
    return false;
  }

  const PickleClass* known(const PickleGlobal& global) const {
    const auto found = std::ranges::find_if(rules_.known, [&](const PickleClass& each) {
      return each.module == global.module && each.name == global.name;
    });
    return found == rules_.known.end() ? nullptr : &*found;
  }
  bool keeps(const PickleGlobal& global) const {
    return rules_.known.empty() || known(global) != nullptr ||
           is_torch_value(global.module, global.name);
  }
  // Whether the object is made by something known, in a way that it may be.
  bool keeps_object(PickleRef value) const {
    if (rules_.known.empty()) return true;
    const PickleRef callable = data_.callable(value);
    if (data_.kind(callable) != PickleKind::kGlobal || !data_.keywords(value).is_absent())
      return false;
    const PickleClass* const made_by = known(data_.global(callable));
    if (made_by == nullptr) return false;
    if (data_.making(value) == PickleMaking::kInstance)
      return (made_by->uses & (kPickleInstance | kPickleCall)) != 0;
    if ((made_by->uses & kPickleCall) != 0) return true;
    return (made_by->uses & kPickleGetattr) != 0 && is_member(data_.tuple(data_.arguments(value)));
  }
  bool is_member(std::span<const PickleRef> arguments) const {
    if (arguments.size() != 2 || data_.kind(arguments[0]) != PickleKind::kGlobal ||
        data_.kind(arguments[1]) != PickleKind::kText)
      return false;
    const PickleClass* const holder = known(data_.global(arguments[0]));
    return holder != nullptr && (holder->uses & kPickleEnum) != 0;
  }
  void remember(PickleRef value) { memo_[value.bits] = writer_.memoize(); }

  const PickleData& data_;
  const PickleCopyRules& rules_;
  PickleWriter& writer_;
  std::unordered_map<uint32_t, PickleMemo> memo_;
  std::set<uint32_t> begun_;
  uint64_t replaced_ = 0;
};

}  // namespace

// The bytes of _codecs.encode(text, "latin1"), by which pickles up to protocol 2 say them.
std::optional<std::string> encoded_bytes(const PickleData& data, PickleRef value) {
  const bool is_nothing = is_record_of(data, value, TorchGlobal::kBytes) ||
                          is_record_of(data, value, TorchGlobal::kBytesOf3);
  if (is_nothing && data.fields(value).empty()) return std::string();
  if (!is_record_of(data, value, TorchGlobal::kEncode)) return std::nullopt;
  const auto parts = data.fields(value);
  if (parts.size() != 2 || data.kind(parts[0]) != PickleKind::kText ||
      data.kind(parts[1]) != PickleKind::kText || !data.text(parts[1]).starts_with("latin"))
    return std::nullopt;
  const std::string_view text = data.text(parts[0]);
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto first = static_cast<unsigned char>(text[i]);
    if (first < 0x80) {
      bytes += text[i];
      continue;
    }
    // Two bytes of UTF-8 whose character is below 256.
    const bool is_latin = (first == 0xC2 || first == 0xC3) && i + 1 < text.size();
    if (!is_latin) return std::nullopt;
    const auto second = static_cast<unsigned char>(text[++i]);
    bytes += static_cast<char>((first & 3U) << 6 | (second & 0x3FU));
  }
  return bytes;
}

PickleCopy copy_pickle(const PickleData& data, PickleRef value, const PickleCopyRules& rules) {
  PickleWriter writer(rules.protocol);
  PickleCopier copier(data, rules, &writer);
  PickleCopy copy;
  copy.is_whole = copier.write(value, 0);
  copy.replaced = copier.replaced();
  copy.bytes = std::move(writer).finish();
  return copy;
}

bool copy_pickle_into(const PickleData& data, PickleRef value, const PickleCopyRules& rules,
                      PickleWriter* writer) {
  return PickleCopier(data, rules, writer).write(value, 0);
}

}  // namespace shardwright::format::archive
