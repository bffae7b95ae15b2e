// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/parameter_states.h"

#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/base/text.h"

namespace shardwright::reshard {
namespace {

class StatesMaker {
 public:
  StatesMaker(const StatesInput& input, Contents* contents)
      : input_(input), catalog_(input.source.catalog()), contents_(contents) {}

  Result<ParameterStates> run() {
    for (const Assigned& each : input_.assigned) SHW_RETURN_IF_ERROR(add_pieces(each));
    for (const size_t tensor : differing_)
      result_.notes.push_back(
          fmt::format("replicas of the states of '{}' differ; those of the first "
                      "group were taken",
                      escape_text(catalog_.tensor_name(tensor))));
    for (auto& [key, boxes] : pieces_) {
      exec::ViewTensor tensor;
      tensor.name = state_name(key.first, catalog_.tensor_name(key.second));
      tensor.shape = Dims(catalog_.shape(key.second));
      for (auto& [box, piece] : boxes) tensor.pieces.push_back(piece);
      SHW_RETURN_IF_ERROR(check_whole(tensor, key.second));
      result_.tensors.push_back(std::move(tensor));
    }
    note_without_states();
    return std::move(result_);
  }

 private:
  Status add_pieces(const Assigned& each) {
    const LocalParameter& parameter = input_.parameters[each.parameter];
    for (const auto& [state, bucket_tensor] : input_.buckets[each.bucket].states) {
      int64_t begin = each.begin;
      for (const LocalPart& part : parameter.parts) {
        const exec::ViewPiece piece{part.box, bucket_tensor, {begin}};
        const auto [it, is_new] = pieces_[{state, part.tensor}].emplace(part.box, piece);
        if (!is_new) {
          SHW_ASSIGN_OR_RETURN(const bool equal, are_equal(it->second, piece));
          if (!equal) differing_.insert(part.tensor);
        }
        begin += box_element_count(part.box);
      }
    }
    return {};
  }

  Result<bool> are_equal(const exec::ViewPiece& a, const exec::ViewPiece& b) const {
    const int64_t elements = box_element_count(a.box);
    const DType dtype = catalog_.tensors[a.tensor].dtype;
    SHW_ASSIGN_OR_RETURN(const ContentDigest first,
                         contents_->of_run({a.tensor, a.offsets[0], elements}, dtype));
    SHW_ASSIGN_OR_RETURN(const ContentDigest second,
                         contents_->of_run({b.tensor, b.offsets[0], elements}, dtype));
    return first == second;
  }

  Status check_whole(const exec::ViewTensor& tensor, size_t parameter) const {
    int64_t elements = 0;
    for (const exec::ViewPiece& piece : tensor.pieces) elements += box_element_count(piece.box);
    const int64_t wanted = box_element_count(whole_box(tensor.shape));
    if (elements == wanted) return {};
    return failed_precondition(
               fmt::format("buckets hold {} of the {} elements of '{}': those of some ranks are "
                           "missing",
                           elements, wanted, escape_text(catalog_.tensor_name(parameter))))
        .with_detail("tensor", catalog_.tensor_name(parameter));
  }

  void note_without_states() {
    std::set<size_t> with;
    for (const auto& [key, boxes] : pieces_) with.insert(key.second);
    std::vector<std::string_view> without;
    for (size_t i = 0; i < catalog_.tensors.size(); ++i) {
      if (is_of_model(catalog_.tensor_name(i)) && !with.contains(i))
        without.push_back(catalog_.tensor_name(i));
    }
    if (without.empty()) return;
    result_.notes.push_back(
        fmt::format("{} tensors of the model are in no bucket (frozen, or no "
                    "parameters), '{}' first",
                    without.size(), escape_text(without[0])));
  }

  using PieceKey = std::pair<std::string, size_t>;  // state and tensor

  const StatesInput& input_;
  const plan::Catalog& catalog_;
  Contents* const contents_;
  std::map<PieceKey, std::map<Box, exec::ViewPiece>> pieces_;
  std::set<size_t> differing_;
  ParameterStates result_;
};

}  // namespace

Result<ParameterStates> parameter_states(const StatesInput& input, Contents* contents) {
  return StatesMaker(input, contents).run();
}

}  // namespace shardwright::reshard
