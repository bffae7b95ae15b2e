// SPDX-License-Identifier: Apache-2.0
#include "core/state/mapped_state.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/text.h"
#include "core/state/object_key.h"
#include "core/state/piece_place.h"

namespace shardwright {
namespace {

// One stored tensor while its boxes come together.
struct Target {
  TensorRef like;  // of the first entry that gives a box
  Dims global_shape;
  Dims fragments;  // that all boxes agree on; empty where they do not
  bool read_only = false;
  std::vector<Piece> pieces;
  std::vector<int64_t> addresses;  // per piece
  std::vector<int64_t> strides;    // per piece and axis
  int64_t elements = 0;
};

class StateMapper {
 public:
  StateMapper(const State& from, const Mapping& mapping) : from_(from), mapping_(mapping) {}

  Status run(State* to) {
    SHW_RETURN_IF_ERROR(check_rules());
    TensorAdd add(to, from_.tensors().size(), 0);
    for (size_t t = 0; t < from_.tensors().size(); ++t) {
      const TensorRef entry = from_.tensors()[t];
      SHW_ASSIGN_OR_RETURN(const std::optional<size_t> rule, mapping_.rule_of(entry.name));
      SHW_RETURN_IF_ERROR(rule.has_value() ? map_tensor(t) : add.add(entry));
    }
    for (auto& [name, target] : targets_) SHW_RETURN_IF_ERROR(add_target(name, target, &add));
    SHW_RETURN_IF_ERROR(add.commit());
    for (const ZeroedMemory& zeroed : from_.zeroed()) to->add_zeroed(zeroed);
    for (ZeroedMemory& zeroed : zeroed_) to->add_zeroed(std::move(zeroed));
    for (std::shared_ptr<void>& memory : zeros_) to->add_keepalive(std::move(memory));
    return map_objects(to);
  }

 private:
  Status check_rules() const {
    std::vector<std::string_view> names;
    for (const TensorRef entry : from_.tensors()) names.push_back(entry.name);
    for (const ObjectEntry& entry : from_.objects()) names.push_back(entry.name);
    return mapping_.check_used(names);
  }

  Status map_tensor(size_t tensor) {
    const TensorRef entry = from_.tensors()[tensor];
    const Dims untold(entry.global_shape.size(), 0);
    const auto fragments = entry.fragments.empty() && !is_one_part(entry)
                               ? std::span<const int64_t>(untold)
                               : entry.fragments;
    for (size_t p = 0; p < entry.pieces.size(); ++p) {
      const Piece piece = entry.pieces[p];
      SHW_ASSIGN_OR_RETURN(const std::vector<MappedBox> boxes,
                           mapping_.apply({entry.name, entry.local.dtype, entry.global_shape,
                                           fragments, piece.box}));
      if (boxes.empty()) continue;
      SHW_ASSIGN_OR_RETURN(const StridedWindow window, from_.piece_window(tensor, p));
      for (const MappedBox& box : boxes) SHW_RETURN_IF_ERROR(add_box(entry, window, box));
    }
    return {};
  }

  // Whether the box tells the grid: several boxes, or a run of elements, may be any cut of a part.
  static bool is_one_part(const TensorRef& entry) {
    return entry.pieces.size() == 1 &&
           (entry.memory.exists() || place_of_pieces(entry) != PiecePlace::kRun);
  }

  Status add_box(const TensorRef& entry, const StridedWindow& window, const MappedBox& mapped) {
    if (dtype_is_subbyte(entry.local.dtype)) {
      return unimplemented(
                 fmt::format("the entry '{}' has elements narrower than a byte ({}), which "
                             "no mapping takes",
                             escape_text(entry.name), dtype_name(entry.local.dtype)))
          .with_detail("tensor", entry.name);
    }
    if (mapped.role == BoxRole::kLeftOut) {
      TensorView memory = part_of(entry, window, mapped);
      memory.shape = mapped.source.sizes;
      memory.strides = window.strides;
      zeroed_.push_back({std::string(entry.name), std::move(memory)});
      return {};
    }
    SHW_ASSIGN_OR_RETURN(Target* const target, target_of(entry, mapped));
    if (mapped.role == BoxRole::kZeros) {
      SHW_RETURN_IF_ERROR(add_zeros(entry, window, mapped, target));
    } else {
      target->addresses.push_back(std::bit_cast<int64_t>(part_of(entry, window, mapped).data));
      for (const int64_t axis : mapped.axes)
        target->strides.push_back(axis < 0 ? 0 : window.strides[static_cast<size_t>(axis)]);
    }
    target->pieces.push_back({mapped.box, target->elements});
    target->elements += box_element_count(mapped.box);
    target->read_only = target->read_only || entry.local.read_only;
    return {};
  }

  // What the source of a box is of the entry's memory, without its shape.
  static TensorView part_of(const TensorRef& entry, const StridedWindow& window,
                            const MappedBox& mapped) {
    int64_t skipped = 0;
    for (size_t d = 0; d < mapped.source.offsets.size(); ++d)
      skipped += mapped.source.offsets[d] * window.strides[d];
    const TensorSpan& local = entry.local;
    return {window.data + skipped * static_cast<int64_t>(window.element_bytes),
            local.dtype,
            {},
            {},
            local.device_type,
            local.device_id,
            local.read_only,
            local.stream};
  }

  // Memory of its own for a box of padding: a save reads zeros, and a load brings what the entry
  // has no room for.
  Status add_zeros(const TensorRef& entry, const StridedWindow& window, const MappedBox& mapped,
                   Target* target) {
    if (entry.local.device_type != static_cast<int32_t>(DeviceType::kCpu)) {
      return unimplemented(fmt::format("the entry '{}' is padded, but lies on a device; only "
                                       "memory of the host is",
                                       escape_text(entry.name)))
          .with_detail("tensor", entry.name);
    }
    SHW_ASSIGN_OR_RETURN(const int64_t count, checked_element_count(mapped.box.sizes));
    void* const zeros = std::calloc(static_cast<size_t>(count), window.element_bytes);
    if (zeros == nullptr) {
      return resource_exhausted("memory", fmt::format("no memory for {} elements of padding of the "
                                                      "entry '{}'",
                                                      count, escape_text(entry.name)));
    }
    zeros_.emplace_back(zeros, [](void* memory) { std::free(memory); });
    StridedWindow packed =
        packed_window(static_cast<std::byte*>(zeros), window.element_bytes, mapped.box.sizes);
    target->addresses.push_back(std::bit_cast<int64_t>(packed.data));
    target->strides.insert(target->strides.end(), packed.strides.begin(), packed.strides.end());
    TensorView memory;
    memory.data = packed.data;
    memory.dtype = entry.local.dtype;
    memory.shape = std::move(packed.shape);
    zeroed_.push_back({std::string(entry.name), std::move(memory)});
    return {};
  }

  Result<Target*> target_of(const TensorRef& entry, const MappedBox& mapped) {
    const auto [place, is_new] = places_.try_emplace(mapped.name, targets_.size());
    if (is_new) {
      Target target;
      target.like = entry;
      target.global_shape = mapped.global_shape;
      target.fragments = mapped.fragments;
      targets_.emplace_back(mapped.name, std::move(target));
    }
    Target& target = targets_[place->second].second;
    const std::string_view differs = difference(target, entry, mapped);
    if (target.fragments != mapped.fragments) target.fragments = {};
    if (differs.empty()) return &target;
    return invalid_argument(
               fmt::format("the entries '{}' and '{}' both hold a part of '{}', but differ in {}",
                           escape_text(target.like.name), escape_text(entry.name),
                           escape_text(mapped.name), differs))
        .with_detail("tensor", mapped.name);
  }

  static std::string_view difference(const Target& target, const TensorRef& entry,
                                     const MappedBox& mapped) {
    const TensorSpan& a = target.like.local;
    const TensorSpan& b = entry.local;
    if (target.global_shape != mapped.global_shape) return "the shape that they give it";
    if (a.dtype != b.dtype) return "dtype";
    if (target.like.kind != entry.kind) return "kind";
    if (a.device_type != b.device_type || a.device_id != b.device_id || a.stream != b.stream)
      return "device";
    return target.like.replica == entry.replica ? "" : "which rank saves them";
  }

  static Status add_target(std::string_view name, Target& target, TensorAdd* add) {
    TensorRef tensor;
    tensor.name = name;
    tensor.global_shape = target.global_shape;
    tensor.replica = target.like.replica;
    tensor.fragments = target.fragments;
    tensor.local = target.like.local;
    tensor.local.read_only = target.read_only;
    tensor.local.data = std::bit_cast<std::byte*>(target.addresses[0]);
    const size_t rank = target.global_shape.size();
    const Dims elements{target.elements};
    if (target.pieces.size() == 1) {
      tensor.local.shape = target.pieces[0].box.sizes;
      tensor.local.strides = target.strides;
    } else {
      tensor.local.shape = elements;
      tensor.local.strides = {};
      tensor.memory = PieceMemory(rank, target.addresses.data(), target.strides.data());
    }
    PieceBuffer buffer;
    tensor.pieces = buffer.assign(rank, target.pieces);
    // A part is no tensor that all ranks hold.
    const bool parted = !covers_whole(tensor) && target.like.kind != EntryKind::kRankLocal;
    tensor.kind = parted ? EntryKind::kSharded : target.like.kind;
    return add->add(tensor);
  }

  Status map_objects(State* to) const {
    std::vector<ObjectEntry> objects;
    for (const ObjectEntry& object : from_.objects()) {
      ObjectEntry& mapped = objects.emplace_back(object);
      SHW_ASSIGN_OR_RETURN(const std::optional<size_t> rule, mapping_.rule_of(object.name));
      if (!rule.has_value()) continue;
      SHW_ASSIGN_OR_RETURN(const std::vector<MappedBox> boxes,
                           mapping_.apply({object.name, DType::kUint8, {}, {}, {}}));
      const MappedBox& box = boxes.at(0);
      mapped.name = box.name;
      mapped.path.clear();
      if (!box.global_shape.empty()) {
        SHW_ASSIGN_OR_RETURN(mapped.name,
                             format_object_key(box.name, box.box.offsets, box.global_shape));
      }
    }
    return to->add_objects(std::move(objects));
  }

  const State& from_;
  const Mapping& mapping_;
  std::vector<std::pair<std::string, Target>> targets_;
  std::unordered_map<std::string, size_t> places_;  // of a name among the targets
  std::vector<ZeroedMemory> zeroed_;
  std::vector<std::shared_ptr<void>> zeros_;  // co-owned with the state that is made
};

// What the memory of the tensors needs of the state that they come from.
void keep_memory_of(const std::shared_ptr<const State>& from, State* to) {
  for (const DeviceAccess& each : from->accesses()) to->add_access(each);
  to->add_keepalive({from, const_cast<State*>(from.get())});  // only kept, never used
}

}  // namespace

Result<std::shared_ptr<State>> map_state(const std::shared_ptr<const State>& from,
                                         const Mapping& mapping) {
  auto to = std::make_shared<State>();
  SHW_RETURN_IF_ERROR(StateMapper(*from, mapping).run(to.get()));
  keep_memory_of(from, to.get());
  return to;
}

Result<std::shared_ptr<const State>> without_replicas(const std::shared_ptr<const State>& from) {
  const auto is_replica = [](const ObjectEntry& entry) { return entry.replica; };
  if (!from->tensors().has_replicas() && std::ranges::none_of(from->objects(), is_replica))
    return from;
  auto to = std::make_shared<State>();
  TensorAdd add(to.get(), from->tensors().size(), 0);
  for (const TensorRef entry : from->tensors()) {
    if (!entry.replica) SHW_RETURN_IF_ERROR(add.add(entry));
  }
  SHW_RETURN_IF_ERROR(add.commit());
  std::vector<ObjectEntry> objects;
  std::ranges::remove_copy_if(from->objects(), std::back_inserter(objects), is_replica);
  SHW_RETURN_IF_ERROR(to->add_objects(std::move(objects)));
  keep_memory_of(from, to.get());
  return std::shared_ptr<const State>(std::move(to));
}

}  // namespace shardwright
