// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/mapped_contents.h"

#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/reshard/local_parameters.h"
#include "core/state/object_key.h"

namespace shardwright::reshard {
namespace {

using Rule = std::optional<size_t>;

// A tensor that is being put together, and the first entry that gives a part of it.
struct Target {
  exec::ViewTensor tensor;
  size_t like = 0;
  Rule rule;
};

class ContentsMapper {
 public:
  ContentsMapper(const exec::Checkpoint& source, const Mapping& mapping)
      : catalog_(source.catalog()), mapping_(mapping) {}

  Result<exec::ViewContents> run() {
    SHW_RETURN_IF_ERROR(check_rules());
    for (size_t i = 0; i < catalog_.tensors.size(); ++i) SHW_RETURN_IF_ERROR(add_tensor(i));
    exec::ViewContents contents;
    contents.tensors.reserve(targets_.size());
    for (Target& target : targets_) contents.tensors.push_back(std::move(target.tensor));
    for (size_t i = 0; i < catalog_.objects.size(); ++i) {
      SHW_ASSIGN_OR_RETURN(exec::ViewObject object, object_of(i));
      contents.objects.push_back(std::move(object));
    }
    return contents;
  }

 private:
  Status check_rules() const {
    std::vector<std::string_view> names;
    std::vector<std::string> keys;
    for (size_t i = 0; i < catalog_.tensors.size(); ++i) {
      if (is_of_model(catalog_.tensor_name(i))) names.push_back(catalog_.tensor_name(i));
    }
    for (size_t i = 0; i < catalog_.objects.size(); ++i) {
      const std::string_view name = catalog_.object_name(i);
      if (is_of_model(name)) keys.push_back(parts_of(name).key);
    }
    names.insert(names.end(), keys.begin(), keys.end());
    return mapping_.check_used(names);
  }

  // Of an object that is no cell of a grid the whole name is its key.
  static ObjectKey parts_of(std::string_view name) {
    Result<ObjectKey> parsed = parse_object_key(name);
    return parsed.ok() ? *std::move(parsed) : ObjectKey{std::string(name), {}, {}};
  }

  Status add_tensor(size_t number) {
    const std::string_view name = catalog_.tensor_name(number);
    const std::string_view model = model_name(name);
    Rule rule;
    if (is_of_model(name) || model.size() != name.size()) {
      SHW_ASSIGN_OR_RETURN(rule, mapping_.rule_of(model));
    }
    if (!rule.has_value() || catalog_.tensors[number].chunk_count == 0) {
      exec::ViewTensor stored = exec::tensor_as_stored(catalog_, number);
      SHW_ASSIGN_OR_RETURN(Target* const target,
                           target_of(std::string(name), stored.shape, {number, rule}));
      target->tensor = std::move(stored);
      return {};
    }
    return map_tensor(number, name.substr(0, name.size() - model.size()), *rule);
  }

  // The whole of each tensor lies before the rules, so that it is one part of its grid; its chunks
  // stay apart, for they tell what ranks share out.
  Status map_tensor(size_t number, std::string_view prefix, size_t rule) {
    const plan::TensorRecord& record = catalog_.tensors[number];
    const std::span<const int64_t> shape = catalog_.shape(number);
    const Dims one_part(shape.size(), 1);
    for (uint64_t k = 0; k < record.chunk_count; ++k) {
      const Box chunk = catalog_.chunk_box(record.chunk_begin + k);
      SHW_ASSIGN_OR_RETURN(std::vector<MappedBox> boxes,
                           mapping_.apply({catalog_.tensor_name(number).substr(prefix.size()),
                                           record.dtype, shape, one_part, chunk}));
      for (MappedBox& box : boxes) {
        if (box.role == BoxRole::kLeftOut) continue;
        const std::string name = fmt::format("{}{}", prefix, box.name);
        SHW_ASSIGN_OR_RETURN(Target* const target,
                             target_of(name, box.global_shape, {number, rule}));
        target->tensor.pieces.push_back(piece_of(number, chunk, std::move(box)));
      }
    }
    return {};
  }

  static exec::ViewPiece piece_of(size_t number, const Box& chunk, MappedBox mapped) {
    exec::ViewPiece piece;
    piece.box = std::move(mapped.box);
    piece.tensor = number;
    if (mapped.role == BoxRole::kZeros) {
      piece.tensor = exec::ViewPiece::kZeros;
      return piece;
    }
    piece.offsets = chunk.offsets;
    for (size_t d = 0; d < piece.offsets.size(); ++d) piece.offsets[d] += mapped.source.offsets[d];
    if (mapped.source.sizes != piece.box.sizes) piece.sizes = std::move(mapped.source.sizes);
    return piece;
  }

  struct Giver {
    size_t tensor = 0;
    Rule rule;
  };

  Result<Target*> target_of(const std::string& name, const Dims& shape, const Giver& giver) {
    const auto [place, is_new] = places_.try_emplace(name, targets_.size());
    if (is_new) {
      Target target;
      target.tensor.name = name;
      target.tensor.shape = shape;
      target.like = giver.tensor;
      target.rule = giver.rule;
      targets_.push_back(std::move(target));
      return &targets_.back();
    }
    Target& target = targets_[place->second];
    const std::string_view differs = difference(target, shape, giver);
    if (differs.empty()) return &target;
    const size_t rule = giver.rule.has_value() ? *giver.rule : target.rule.value_or(0);
    return invalid_argument(
               fmt::format("'{}' and '{}' both give '{}' under rule {} ('{}') of the mapping, but "
                           "{}",
                           escape_text(catalog_.tensor_name(target.like)),
                           escape_text(catalog_.tensor_name(giver.tensor)), escape_text(name),
                           rule + 1, escape_text(mapping_.rules()[rule].match), differs))
        .with_detail("tensor", name)
        .with_detail("rule", fmt::to_string(rule + 1));
  }

  std::string_view difference(const Target& target, const Dims& shape, const Giver& giver) const {
    if (!giver.rule.has_value() || !target.rule.has_value())
      return "one of them has no rule and is all of it";
    if (target.tensor.shape != shape) return "differ in the shape that they give it";
    const bool same = catalog_.tensors[target.like].dtype == catalog_.tensors[giver.tensor].dtype;
    return same ? "" : "differ in dtype";
  }

  Result<exec::ViewObject> object_of(size_t number) const {
    exec::ViewObject object = exec::as_stored(catalog_, number);
    if (!is_of_model(object.name)) return object;
    const ObjectKey parts = parts_of(object.name);
    SHW_ASSIGN_OR_RETURN(const Rule rule, mapping_.rule_of(parts.key));
    if (!rule.has_value()) return object;
    Box cell{parts.offsets, Dims(parts.offsets.size(), 1)};
    SHW_ASSIGN_OR_RETURN(const std::vector<MappedBox> boxes,
                         mapping_.apply({parts.key, DType::kUint8, parts.shape, {}, cell}));
    if (boxes.size() != 1 || boxes[0].role != BoxRole::kStored ||
        box_element_count(boxes[0].box) != 1)
      return invalid_argument(
                 fmt::format("rule {} ('{}') of the mapping cuts or pads the object '{}', which "
                             "has no elements: give the rule an exception",
                             *rule + 1, escape_text(mapping_.rules()[*rule].match),
                             escape_text(object.name)))
          .with_detail("object", object.name)
          .with_detail("rule", fmt::to_string(*rule + 1));
    object.name = boxes[0].name;
    object.path.clear();
    if (!boxes[0].global_shape.empty()) {
      SHW_ASSIGN_OR_RETURN(object.name, format_object_key(boxes[0].name, boxes[0].box.offsets,
                                                          boxes[0].global_shape));
    }
    return object;
  }

  const plan::Catalog& catalog_;
  const Mapping& mapping_;
  std::vector<Target> targets_;
  std::unordered_map<std::string, size_t> places_;  // of a name among the targets
};

}  // namespace

Result<exec::ViewContents> mapped_contents(const exec::Checkpoint& source, const Mapping& mapping) {
  return ContentsMapper(source, mapping).run();
}

}  // namespace shardwright::reshard
