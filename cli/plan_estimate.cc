// SPDX-License-Identifier: Apache-2.0
//
// shardwright plan save, plan load, plan describe.
#include <filesystem>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "cli/plan.h"
#include "cli/text.h"

namespace shardwright::cli {
namespace {

using JobDescription = Owner<shw_job_description, shw_job_description_release>;
constexpr size_t kShownGroups = 12;

JobDescription job_of_text(const std::string& path) {
  const std::string text = read_file(path);
  return made_by<shw_job_description, shw_job_description_release>(
      [&](shw_job_description** out, shw_error** error) {
        return shw_job_description_create(text.data(), text.size(), out, error);
      },
      "read the description", path);
}

JobDescription job_of_checkpoint(Session& session, const std::string& path) {
  const Checkpoint checkpoint = session.open(path);
  return made_by<shw_job_description, shw_job_description_release>(
      [&](shw_job_description** out, shw_error** error) {
        return shw_job_description_from_checkpoint(checkpoint.get(), out, error);
      },
      "describe the checkpoint", Place::of_checkpoint(path));
}

// A regular file is a description; a checkpoint is a folder.
JobDescription job_of(Session& session, const std::string& path) {
  std::error_code ignored;  // the next step says what is wrong with the path
  const bool text = path == "-" || std::filesystem::is_regular_file(path, ignored);
  return text ? job_of_text(path) : job_of_checkpoint(session, path);
}

JobDescription laid_out(const JobDescription& source, const std::string& path) {
  const JobDescription target = job_of_text(path);
  return made_by<shw_job_description, shw_job_description_release>(
      [&](shw_job_description** out, shw_error** error) {
        return shw_job_description_lay_out(source.get(), target.get(), out, error);
      },
      "lay the tensors out", path);
}

shw_estimate_options native_options(Session& session, const PlanEstimateOptions& options) {
  shw_estimate_options native = SHW_ESTIMATE_OPTIONS_INIT;
  native.owner = options.owner;
  native.preset = options.preset;
  native.memory_budget = session.options.memory_bytes;
  native.rank_bytes_per_second = options.rank_bytes_per_second;
  native.total_bytes_per_second = options.total_bytes_per_second;
  native.ranks_per_node = options.ranks_per_node;
  native.exchange = options.exchange;
  if (!options.out.empty()) native.flags |= SHW_ESTIMATE_WITH_PLAN;
  if (!options.html.empty()) native.flags |= SHW_ESTIMATE_WITH_CHUNKS;
  if (options.measure.empty()) return native;
  const MeasuredRates rates = measure_rates(session, options.measure, options.measure_bytes);
  native.rank_bytes_per_second =
      options.load ? rates.read_bytes_per_second : rates.write_bytes_per_second;
  return native;
}

Buffer estimate(Session& session, const PlanEstimateOptions& options) {
  const JobDescription source = job_of(session, options.source);
  JobDescription target;
  if (!options.target.empty()) target = laid_out(source, options.target);
  const shw_estimate_options native = native_options(session, options);
  return made_by<shw_buffer, shw_buffer_release>(
      [&](shw_buffer** out, shw_error** error) {
        if (options.load) return shw_estimate_load(source.get(), target.get(), &native, out, error);
        return shw_estimate_save(target == nullptr ? source.get() : target.get(), &native, out,
                                 error);
      },
      options.load ? "plan the load" : "plan the save", options.source);
}

std::string_view part_of(const Buffer& buffer, uint64_t part) {
  return {static_cast<const char*>(shw_buffer_part_data(buffer.get(), part)),
          shw_buffer_part_size(buffer.get(), part)};
}

// The plans behind the estimate, one after the other.
std::string plans_in(const Buffer& buffer) {
  std::string plans;
  for (uint64_t part = 1; part < shw_buffer_part_count(buffer.get()); ++part)
    plans += part_of(buffer, part);
  return plans;
}

// Whether blocks go over the network.
bool exchanges(const PlanJson& json) {
  return json.contains("exchange") && json["exchange"] != "off";
}

std::string range_table(const PlanJson& json, bool load) {
  Table table({false, true, true, true, true});
  table.add({"  per rank", "min", "median", "max", "all ranks"});
  const auto add = [&](const char* label, const char* key, bool bytes) {
    const PlanJson& range = json.at(key);
    const auto text = [&](const char* which) {
      return bytes ? size_text(number(range, which)) : count_text(number(range, which));
    };
    table.add({std::string("  ") + label, text("min"), text("median"), text("max"), text("total")});
  };
  add(load ? "bytes read" : "bytes written", "bytes", true);
  if (load) add("of them over-read", "over_bytes", true);
  if (load && number(json, "ranks_per_node") > 1) add("from its machine", "shared_bytes", true);
  if (exchanges(json)) add("from other machines", "received_bytes", true);
  if (exchanges(json)) add("sent to them", "sent_bytes", true);
  add(load ? "reads" : "writes", load ? "reads" : "writes", false);
  add("files", "files", false);
  add("state held", "held_bytes", true);
  add("staging", "staging_bytes", true);
  add("peak memory", "peak_bytes", true);
  return table.text();
}

std::string rate_text(uint64_t bytes_per_second) {
  if (bytes_per_second >= 1'000'000'000)
    return fmt::format("{:.2f} GB/s", static_cast<double>(bytes_per_second) / 1e9);
  return fmt::format("{:.1f} MB/s", static_cast<double>(bytes_per_second) / 1e6);
}

std::string time_text(const PlanJson& json, const PlanEstimateOptions& options) {
  const PlanJson& time = json["time"];
  if (time.is_null()) return "time: give --bandwidth or --measure DIR for an estimate\n";
  std::string text = fmt::format("time: {:.2f} s", time["seconds"].get<double>());
  const bool total = time["limit"] == "total";
  text += fmt::format(
      ", limited by {} {}", total ? "all ranks together at" : "the busiest rank at",
      rate_text(number(time, total ? "total_bytes_per_second" : "rank_bytes_per_second")));
  if (!options.measure.empty() && !total) text += " (measured here with one rank)";
  return text + "\n";
}

std::string groups_table(const PlanJson& groups) {
  Table table({false, true, false, false, true, true, true});
  table.add({"  tensors", "count", "dtype", "shape", "bytes", "chunks", "holders"});
  for (size_t i = 0; i < std::min(groups.size(), kShownGroups); ++i) {
    const PlanJson& group = groups[i];
    const uint64_t fewest = number(group, "fewest_holders");
    const uint64_t most = number(group, "most_holders");
    table.add({"  " + printable(group["names"].get<std::string>()),
               count_text(number(group, "count")), group["dtype"].get<std::string>(),
               shape_text(group["shape"].get<std::vector<int64_t>>()),
               size_text(number(group, "bytes")), count_text(number(group, "chunks")),
               fewest == most ? count_text(most) : fmt::format("{}-{}", fewest, most)});
  }
  std::string text = table.text();
  if (groups.size() > kShownGroups)
    text += fmt::format("  and {} more groups (--json lists all)\n", groups.size() - kShownGroups);
  return text;
}

std::string rank_table(const PlanJson& json, bool load) {
  std::vector<std::string> heading{"  rank", load ? "read" : "written", load ? "reads" : "writes",
                                   "held", "peak memory"};
  const bool has_network = exchanges(json);
  if (has_network) heading.insert(heading.begin() + 2, {"received", "sent"});
  Table table(std::vector<bool>(heading.size(), true));
  table.add(heading);
  const PlanJson& columns = json["per_rank"];
  for (size_t r = 0; r < columns["bytes"].size(); ++r) {
    const auto size = [&](const char* key) { return size_text(columns[key][r].get<uint64_t>()); };
    std::vector<std::string> row{fmt::format("  {}", r), size("bytes")};
    if (has_network) row.insert(row.end(), {size("received_bytes"), size("sent_bytes")});
    row.push_back(count_text(columns[load ? "reads" : "writes"][r].get<uint64_t>()));
    row.insert(row.end(), {size("held_bytes"), size("peak_bytes")});
    table.add(row);
  }
  return table.text();
}

std::string estimate_text(const PlanJson& json, const PlanEstimateOptions& options) {
  const PlanJson& stored = json["stored"];
  std::string text = fmt::format(
      "{} of {}: {} in {}, {}, {} in {}\n", options.load ? "load" : "save",
      plural(number(json, "ranks"), "rank"), plural(number(stored, "tensors"), "tensor"),
      plural(number(stored, "chunks"), "chunk"), plural(number(stored, "objects"), "object"),
      size_text(number(stored, "bytes")), plural(number(stored, "files"), "file"));
  text += range_table(json, options.load);
  if (!options.load)
    text +=
        fmt::format("plans of all ranks on rank 0: {}\n", size_text(number(json, "plan_bytes")));
  text += time_text(json, options);
  text += groups_table(json["tensors"]);
  if (options.per_rank) text += rank_table(json, options.load);
  return text;
}

}  // namespace

int estimate_plan(Session& session, const PlanEstimateOptions& options) {
  const Buffer buffer = estimate(session, options);
  const std::string_view text = part_of(buffer, 0);
  PlanJson json = PlanJson::parse(text);
  if (!options.out.empty()) write_file(options.out, plans_in(buffer));
  if (!options.html.empty())
    write_file(options.html, estimate_page(json, options.source, options.target));
  if (session.options.json) {
    for (PlanJson& group : json["tensors"]) group.erase("chunk_list");  // the page's
    Session::print_line(json.dump());
    return kExitFine;
  }
  Session::print(estimate_text(json, options));
  if (!options.out.empty())
    Session::print_line("plan: shardwright plan show " + shell_word(options.out));
  if (!options.html.empty()) Session::print_line("page: " + shell_word(options.html));
  return kExitFine;
}

int describe_checkpoint(Session& session, const PlanFileOptions& options) {
  const JobDescription job = job_of_checkpoint(session, options.first);
  const Buffer json = made_by<shw_buffer, shw_buffer_release>(
      [&](shw_buffer** out, shw_error** error) {
        return shw_job_description_json(job.get(), out, error);
      },
      "describe the checkpoint", options.first);
  Session::print_line(text_of(json));
  return kExitFine;
}

}  // namespace shardwright::cli
