// SPDX-License-Identifier: Apache-2.0
//
// shardwright plan show, plan diff, plan validate: plan buffers (SHWP) as files. A file has one
// buffer, or several one after the other, such as the load plans of all ranks; each begins with its
// length, 4 bytes little-endian, which counts what follows them.
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

constexpr size_t kPrefixBytes = 4;
constexpr size_t kLeastBytes = 8;  // behind a length; less is no plan buffer

// The buffers of a file. What cannot be cut is one of its own, for the library to say why.
std::vector<std::string> plans_of(const std::string& bytes) {
  std::vector<std::string> plans;
  size_t begin = 0;
  while (begin < bytes.size() || plans.empty()) {
    uint64_t length = 0;
    const size_t left = bytes.size() - begin;
    for (size_t i = 0; i < kPrefixBytes && left >= kPrefixBytes; ++i)
      length |= uint64_t{static_cast<unsigned char>(bytes[begin + i])} << (8 * i);
    const bool whole = length >= kLeastBytes && length <= left - kPrefixBytes;
    const size_t size = whole ? static_cast<size_t>(length) + kPrefixBytes : left;
    plans.push_back(bytes.substr(begin, size));
    begin += size;
  }
  return plans;
}

PlanJson json_of(const std::string& bytes, uint64_t limit, const std::string& path) {
  const Plan plan = made_by<shw_plan, shw_plan_release>(
      [&](shw_plan** out, shw_error** error) {
        return shw_plan_create(bytes.data(), bytes.size(), out, error);
      },
      "read the plan", path);
  const Buffer text = made_by<shw_buffer, shw_buffer_release>(
      [&](shw_buffer** out, shw_error** error) {
        return shw_plan_json(plan.get(), limit, out, error);
      },
      "print the plan", path);
  return PlanJson::parse(text_of(text));
}

std::vector<PlanJson> jsons_of(const std::string& path, uint64_t limit) {
  std::vector<PlanJson> plans;
  for (const std::string& bytes : plans_of(read_file(path)))
    plans.push_back(json_of(bytes, limit, path));
  return plans;
}

// "load of rank 3", for files of several plans.
std::string title_of(const PlanJson& plan) {
  const std::string kind = plan["kind"].get<std::string>();
  return plan.contains("rank") ? fmt::format("{} of rank {}", kind, plan["rank"].dump()) : kind;
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
    if (list == "reads") {
      return fmt::format("entry {} {}+{}", item["entry"].dump(), item["offsets"].dump(),
                         item["sizes"].dump());
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

// Plans of two files are compared in pairs, as they stand.
std::vector<std::string> differences_of(const std::vector<PlanJson>& first,
                                        const std::vector<PlanJson>& second) {
  std::vector<std::string> found;
  if (first.size() != second.size())
    found.push_back(fmt::format("plans: {} and {}", first.size(), second.size()));
  for (size_t i = 0; i < std::min(first.size(), second.size()); ++i) {
    const std::string title = first.size() == 1 ? "" : title_of(first[i]) + ": ";
    for (const std::string& each : PlanDifference(first[i], second[i]).find())
      found.push_back(title + each);
  }
  return found;
}

std::vector<std::string> findings_of(const std::string& bytes, const std::string& path) {
  const Buffer findings = made_by<shw_buffer, shw_buffer_release>(
      [&](shw_buffer** out, shw_error** error) {
        return shw_plan_findings(bytes.data(), bytes.size(), out, error);
      },
      "check the plan", path);
  std::vector<std::string> list;
  const uint64_t count = shw_buffer_part_count(findings.get());
  list.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    list.emplace_back(static_cast<const char*>(shw_buffer_part_data(findings.get(), i)),
                      shw_buffer_part_size(findings.get(), i));
  }
  return list;
}

}  // namespace

int show_plan(Session& session, const PlanFileOptions& options) {
  const std::vector<PlanJson> plans =
      jsons_of(options.first, session.options.json ? kAll : options.limit);
  if (session.options.json) {
    const PlanJson json = plans.size() == 1
                              ? plans[0]
                              : PlanJson{{"schema", 1}, {"kind", "several"}, {"plans", plans}};
    Session::print_line(json.dump(-1, ' ', false, PlanJson::error_handler_t::replace));
    return kExitFine;
  }
  for (const PlanJson& plan : plans) {
    if (plans.size() > 1) Session::print_line(fmt::format("--- {}", title_of(plan)));
    Session::print(plan_text(plan, options.limit));
  }
  return kExitFine;
}

int diff_plans(Session& session, const PlanFileOptions& options) {
  const std::vector<std::string> found =
      differences_of(jsons_of(options.first, kAll), jsons_of(options.second, kAll));
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
  const std::vector<std::string> plans = plans_of(read_file(options.first));
  PlanJson list = PlanJson::array();
  for (size_t plan = 0; plan < plans.size(); ++plan) {
    for (const std::string& finding : findings_of(plans[plan], options.first))
      list.push_back(plans.size() == 1 ? finding : fmt::format("plan {}: {}", plan, finding));
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
