// SPDX-License-Identifier: Apache-2.0
//
// The local plans must be those of all ranks, in order, made under the same options.
#include <algorithm>

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/plan/save/merge_internal.h"

namespace shardwright::plan::internal {
namespace {

// Next line without its newline; text is advanced.
std::string_view take_line(std::string_view* text) {
  const size_t end = std::min(text->find('\n'), text->size());
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return line;
}

Status options_differ(const LocalView& first, const LocalView& other) {
  std::string_view expected = first.options_text;
  std::string_view found = other.options_text;
  std::string_view expected_line;
  std::string_view found_line;
  while (expected_line == found_line && !(expected.empty() && found.empty())) {
    expected_line = take_line(&expected);
    found_line = take_line(&found);
  }
  const std::string_view named = expected_line.empty() ? found_line : expected_line;
  const std::string_view option = named.substr(0, named.find('='));
  return invalid_argument(
             fmt::format("the ranks disagree on option '{}': rank {} says '{}', rank {} says '{}'",
                         escape_text(option), first.rank, escape_text(expected_line), other.rank,
                         escape_text(found_line)))
      .with_detail("parameter", option)
      .with_detail("rank", std::to_string(other.rank))
      .with_detail("expected", expected_line)
      .with_detail("found", found_line);
}

Status check_rank(std::span<const LocalView> locals, size_t i) {
  const LocalView& local = locals[i];
  if (local.rank != static_cast<int32_t>(i)) {
    const auto first = std::find_if(locals.begin(), locals.begin() + static_cast<std::ptrdiff_t>(i),
                                    [&](const LocalView& each) { return each.rank == local.rank; });
    const bool doubled = first != locals.begin() + static_cast<std::ptrdiff_t>(i);
    return invalid_argument(fmt::format("plan {} of {} is that of rank {}{}; plans are wanted in "
                                        "rank order, one per rank",
                                        i, locals.size(), local.rank,
                                        doubled ? " a second time" : ""))
        .with_detail("rank", std::to_string(local.rank))
        .with_detail("expected", std::to_string(i))
        .with_detail("found", std::to_string(local.rank));
  }
  if (local.world_size != 0 && std::cmp_not_equal(local.world_size, locals.size())) {
    return invalid_argument(fmt::format("rank {} plans for {} ranks, but there are plans of {}",
                                        local.rank, local.world_size, locals.size()))
        .with_detail("rank", std::to_string(local.rank))
        .with_detail("expected", std::to_string(local.world_size))
        .with_detail("found", std::to_string(locals.size()));
  }
  const CatalogView& catalog = local.catalog;
  if ((!local.tensor_digests.empty() && local.tensor_digests.size() != catalog.tensors.size()) ||
      (!local.object_digests.empty() && local.object_digests.size() != catalog.objects.size())) {
    return invalid_argument(
               fmt::format(
                   "rank {} gives {} tensor and {} object digests for {} tensors and {} objects",
                   local.rank, local.tensor_digests.size(), local.object_digests.size(),
                   catalog.tensors.size(), catalog.objects.size()))
        .with_detail("rank", std::to_string(local.rank));
  }
  if (local.options_digest != locals[0].options_digest) return options_differ(locals[0], local);
  return {};
}

}  // namespace

Status check_ranks(std::span<const LocalView> locals) {
  if (locals.empty()) return invalid_argument("there is no local plan to merge");
  for (size_t i = 0; i < locals.size(); ++i) SHW_RETURN_IF_ERROR(check_rank(locals, i));
  return {};
}

}  // namespace shardwright::plan::internal
