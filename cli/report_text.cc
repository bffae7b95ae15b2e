// SPDX-License-Identifier: Apache-2.0
#include "cli/report_text.h"

#include <string>

#include <fmt/format.h>

#include "cli/text.h"

namespace shardwright::cli {

using ReportJson = nlohmann::ordered_json;

ReportJson json_of(const Report& report) {
  uint64_t size = 0;
  const char* text = shw_report_json(report.get(), &size);
  return ReportJson::parse(text, text + size);
}

void print_json(const ReportJson& json) {
  Session::print_line(json.dump(-1, ' ', false, ReportJson::error_handler_t::replace));
}

void print_notes(const ReportJson& report) {
  for (const ReportJson& note : report["notes"])
    Session::print_line("note: " + printable(note.get<std::string>()));
}

void print_removed(const ReportJson& report, bool applied) {
  for (const ReportJson& removed : report["removed"]) {
    Session::print_line(fmt::format("{} {}  {}", applied ? "removed" : "would remove",
                                    printable(removed["name"].get<std::string>()),
                                    size_text(removed["bytes"].get<uint64_t>())));
  }
}

}  // namespace shardwright::cli
