// SPDX-License-Identifier: Apache-2.0
//
// shardwright plan show, plan diff, plan validate: plan buffers (SHWP) as files.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "cli/plan.h"
#include "cli/text.h"

namespace shardwright::cli {
namespace {

using Plan = Owner<shw_plan, shw_plan_release>;
constexpr uint64_t kAll = INT64_MAX;

Plan open_plan(const std::string& path) {
  const std::string bytes = read_file(path);
  return made_by<shw_plan, shw_plan_release>(
      [&](shw_plan** out, shw_error** error) {
        return shw_plan_create(bytes.data(), bytes.size(), out, error);
      },
      "read the plan", path);
}

PlanJson json_of(const Plan& plan, uint64_t limit, const std::string& path) {
  const Buffer text = made_by<shw_buffer, shw_buffer_release>(
      [&](shw_buffer** out, shw_error** error) {
        return shw_plan_json(plan.get(), limit, out, error);
      },
      "print the plan", path);
  return PlanJson::parse(text_of(text));
}

std::string value_text(const PlanJson& value) {
  return printable(value.is_string()
                       ? value.get<std::string>()
                       : value.dump(-1, ' ', false, PlanJson::error_handler_t::replace));
}

// "name=..., dtype=..." of an item of a list.
std::string item_text(const PlanJson& item) {
  if (!item.is_object()) return value_text(item);
  std::string text;
  for (const auto& [key, value] : item.items())
    text += fmt::format("{}{}={}", text.empty() ? "" : "  ", key, value_text(value));
  return text;
}

std::string plan_text(const PlanJson& json, uint64_t limit) {
  std::string text;
  for (const auto& [key, value] : json.items()) {
    if (key == "schema") continue;
    if (!value.is_array()) {
      text += fmt::format("{:<15} {}\n", key, value_text(value));
      continue;
    }
    text += fmt::format("{}:\n", key);
    for (const PlanJson& item : value) text += "  " + item_text(item) + "\n";
    if (value.size() == limit) text += fmt::format("  at most {} are shown (--limit)\n", limit);
  }
  return text;
}

// Differences of two plans, one sentence each.
class PlanDifference {
 public:
  PlanDifference(const PlanJson& first, const PlanJson& second) : a_(first), b_(second) {}

  std::vector<std::string> find() && {
    if (a_["kind"] != b_["kind"]) {
      add("kind", a_["kind"], b_["kind"]);
      return std::move(found_);
    }
    std::set<std::string> keys;
    for (const auto& [key, value] : a_.items()) keys.insert(key);
    for (const auto& [key, value] : b_.items()) keys.insert(key);
    for (const std::string& key : keys) {
      // Another save attempt and what follows from the rest are no differences of their own.
      if (key == "generation" || key == "plan_digest" || key.ends_with("_count")) continue;
      const PlanJson& first = a_.contains(key) ? a_[key] : null_;
      const PlanJson& second = b_.contains(key) ? b_[key] : null_;
      if (first.is_array() && second.is_array()) {
        compare_lists(key, first, second);
      } else if (first != second) {
        add(key, first, second);
      }
    }
    return std::move(found_);
  }

 private:
  void add(const std::string& what, const PlanJson& first, const PlanJson& second) {
    found_.push_back(fmt::format("{}: {} and {}", what, value_text(first), value_text(second)));
  }

  // What an item is called in both plans: its name, or the tensor and box of a chunk.
  std::string label(const std::string& list, const PlanJson& plan, const PlanJson& item,
                    size_t index) const {
    if (item.contains("name")) {
      const std::string rank = item.contains("rank") ? "@rank-" + item["rank"].dump() : "";
      return item["name"].get<std::string>() + rank;
    }
    if (list == "chunks") {
      const auto tensor = item["tensor"].get<size_t>();
      return fmt::format("{} {}+{}", plan["tensors"][tensor]["name"].get<std::string>(),
                         item["offsets"].dump(), item["sizes"].dump());
    }
    return fmt::format("number {}", index);
  }

  std::map<std::string, const PlanJson*> labelled(const std::string& list,
                                                  const PlanJson& plan) const {
    std::map<std::string, const PlanJson*> items;
    size_t index = 0;
    for (const PlanJson& item : plan[list]) items.emplace(label(list, plan, item, index++), &item);
    return items;
  }

  void compare_lists(const std::string& list, const PlanJson& first, const PlanJson& second) {
    if (first == second) return;
    if ((!first.empty() && !first[0].is_object()) || (!second.empty() && !second[0].is_object())) {
      add(list, first, second);
      return;
    }
    const auto a = labelled(list, a_);
    const auto b = labelled(list, b_);
    for (const auto& [name, item] : a) {
      const auto other = b.find(name);
      if (other == b.end()) {
        found_.push_back(fmt::format("{}: only the first has {}", list, printable(name)));
      } else {
        compare_items(fmt::format("{}: {}", list, printable(name)), *item, *other->second);
      }
    }
    for (const auto& [name, item] : b) {
      if (!a.contains(name))
        found_.push_back(fmt::format("{}: only the second has {}", list, printable(name)));
    }
  }

  void compare_items(const std::string& what, const PlanJson& first, const PlanJson& second) {
    for (const auto& [key, value] : first.items()) {
      if (key == "tensor") continue;  // a number that depends on the other tensors
      const PlanJson& other = second.contains(key) ? second[key] : null_;
      if (value != other) add(what + ", " + key, value, other);
    }
  }

  const PlanJson& a_;
  const PlanJson& b_;
  const PlanJson null_;
  std::vector<std::string> found_;
};

}  // namespace

int show_plan(Session& session, const PlanFileOptions& options) {
  const Plan plan = open_plan(options.first);
  const PlanJson json = json_of(plan, session.options.json ? kAll : options.limit, options.first);
  if (session.options.json) {
    Session::print_line(json.dump(-1, ' ', false, PlanJson::error_handler_t::replace));
  } else {
    Session::print(plan_text(json, options.limit));
  }
  return kExitFine;
}

int diff_plans(Session& session, const PlanFileOptions& options) {
  const PlanJson first = json_of(open_plan(options.first), kAll, options.first);
  const PlanJson second = json_of(open_plan(options.second), kAll, options.second);
  const std::vector<std::string> found = PlanDifference(first, second).find();
  if (session.options.json) {
    const PlanJson json = {{"schema", 1}, {"equal", found.empty()}, {"differences", found}};
    Session::print_line(json.dump(-1, ' ', false, PlanJson::error_handler_t::replace));
  } else if (found.empty()) {
    Session::print_line("the plans do the same");
  } else {
    for (size_t i = 0; i < std::min<uint64_t>(found.size(), options.limit); ++i)
      Session::print_line(found[i]);
    Session::print_line(plural(found.size(), "difference"));
  }
  return found.empty() ? kExitFine : kExitDamage;
}

int validate_plan(Session& session, const PlanFileOptions& options) {
  const std::string bytes = read_file(options.first);
  const Buffer findings = made_by<shw_buffer, shw_buffer_release>(
      [&](shw_buffer** out, shw_error** error) {
        return shw_plan_findings(bytes.data(), bytes.size(), out, error);
      },
      "check the plan", options.first);
  PlanJson list = PlanJson::array();
  for (uint64_t i = 0; i < shw_buffer_part_count(findings.get()); ++i) {
    list.push_back(std::string(static_cast<const char*>(shw_buffer_part_data(findings.get(), i)),
                               shw_buffer_part_size(findings.get(), i)));
  }
  const int code = list.empty() ? kExitFine : kExitDamage;
  if (session.options.json) {
    const PlanJson json = {{"schema", 1}, {"valid", list.empty()}, {"findings", list}};
    Session::print_line(json.dump(-1, ' ', false, PlanJson::error_handler_t::replace));
    return code;
  }
  for (const PlanJson& finding : list) Session::print_line(printable(finding.get<std::string>()));
  Session::print_line(list.empty() ? "valid" : plural(list.size(), "finding"));
  return code;
}

}  // namespace shardwright::cli
