// SPDX-License-Identifier: Apache-2.0
//
// Save rules as text that ranks compare.
#include <fmt/format.h>

#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/plan/plan_options.h"

namespace shardwright::plan {
namespace {

std::string_view owner_name(OwnerRule rule) {
  switch (rule) {
    case OwnerRule::kBalanced:
      return "balanced";
    case OwnerRule::kLowestRank:
      return "lowest_rank";
    case OwnerRule::kExact:
      return "exact";
    case OwnerRule::kAll:
      return "all";
  }
  return "unknown";
}

std::string_view verify_name(VerifyReplicas rule) {
  switch (rule) {
    case VerifyReplicas::kAuto:
      return "auto";
    case VerifyReplicas::kAll:
      return "all";
    case VerifyReplicas::kOff:
      return "off";
  }
  return "unknown";
}

std::string_view preset_name(Preset preset) {
  switch (preset) {
    case Preset::kStandard:
      return "standard";
    case Preset::kDefault:
      return "default";
    case Preset::kMegatron:
      return "megatron";
  }
  return "unknown";
}

}  // namespace

std::string save_rules_text(const SaveRules& rules) {
  std::string text =
      fmt::format("owner={}\nverify_replicas={}\npreset={}\n", owner_name(rules.owner),
                  verify_name(rules.verify_replicas), preset_name(rules.preset));
  for (size_t i = 0; i < rules.kinds.size(); ++i) {
    text += fmt::format("kind[{}]={} -> {}\n", i, escape_text(rules.kinds[i].glob, kMaxNameBytes),
                        entry_kind_name(rules.kinds[i].kind));
  }
  return text;
}

}  // namespace shardwright::plan
