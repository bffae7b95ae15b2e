// SPDX-License-Identifier: Apache-2.0
//
// report.h: reports of the core as texts, lists and figures.
#include "shardwright/report.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "capi/boundary/arguments.h"
#include "capi/boundary/guard.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/struct_reader.h"
#include "core/base/without_exceptions.h"

namespace shardwright::capi {
namespace {

int64_t stage_ns(const exec::Report& report, std::string_view stage) {
  int64_t total = 0;
  for (const exec::StageTime& each : report.times) {
    if (each.stage == stage) total += each.duration_ns;
  }
  return total;
}

uint32_t report_flags(const exec::Report& report) {
  uint32_t flags = 0;
  if (report.operation == "save" && report.durability != "full") flags |= SHW_REPORT_NOT_DURABLE;
  if (!report.digests) flags |= SHW_REPORT_WITHOUT_DIGESTS;
  if (report.verify == "off") flags |= SHW_REPORT_UNVERIFIED;
  return flags;
}

shw_report_summary summary_of(const exec::Report& report) {
  shw_report_summary summary = SHW_REPORT_SUMMARY_INIT;
  const bool saved = report.operation == "save";
  summary.flags = report_flags(report);
  summary.tensor_count = report.tensors;
  summary.object_count = report.objects;
  summary.chunk_count = report.chunks;
  summary.file_count = report.files;
  summary.bytes = saved ? report.bytes_written : report.bytes_read;
  summary.bytes_total = report.bytes_total;
  summary.bytes_over_read = report.bytes_over_read;
  summary.bytes_staged_peak = report.staging_peak_bytes;
  summary.plan_ns =
      stage_ns(report, "plan") + stage_ns(report, "local_plan") + stage_ns(report, "global_plan");
  summary.stage_ns = stage_ns(report, "stage");
  summary.transfer_ns = stage_ns(report, "write") + stage_ns(report, "read");
  summary.sync_ns = stage_ns(report, "sync");
  summary.commit_ns = stage_ns(report, "commit");
  summary.elapsed_ns = report.elapsed_ns;
  summary.bytes_received = report.bytes_received;
  summary.bytes_cached = report.bytes_cached;
  return summary;
}

const std::vector<std::string>* name_list(const shw_report* report, int32_t list) {
  const auto* impl = peek(report);
  if (impl == nullptr || list < 0) return nullptr;
  const auto number = static_cast<size_t>(list);
  return number < kReportListCount ? &impl->lists[number] : nullptr;
}

// Texts and lists of a report that is in place.
void describe(ReportImpl* impl) {
  const exec::Report& report = impl->report;
  impl->json = report.to_json();
  impl->lists[SHW_REPORT_LOADED] = report.loaded;
  impl->lists[SHW_REPORT_MISSING] = report.missing;
  impl->lists[SHW_REPORT_UNEXPECTED] = report.unexpected;
  for (const exec::CastReport& each : report.casts) {
    impl->lists[SHW_REPORT_CAST].push_back(
        fmt::format("{}: {} -> {}", each.name, each.stored, each.wanted));
  }
  for (const exec::ShapeReport& each : report.shapes) {
    impl->lists[SHW_REPORT_SHAPE].push_back(fmt::format(
        "{}: [{}] -> [{}]", each.name, fmt::join(each.stored, ", "), fmt::join(each.wanted, ", ")));
  }
  for (const exec::DamageReport& each : report.damage) {
    impl->lists[SHW_REPORT_FINDING].push_back(each.message);
  }
  for (const exec::NamedBytes& each : report.removed) {
    impl->lists[SHW_REPORT_REMOVED].push_back(each.name);
  }
}

}  // namespace

shw_report* report_of(exec::Report report) {
  auto impl = std::make_shared<ReportImpl>();
  impl->report = std::move(report);
  describe(impl.get());
  return make_handle<shw_report>(std::move(impl));
}

ReportHandle::ReportHandle() : handle_(std::make_unique<shw_report>()) {
  handle_->impl = std::make_shared<ReportImpl>();
  handle_->impl->json = "{}";
}

ReportHandle::~ReportHandle() = default;

shw_report* ReportHandle::fill(exec::Report report, const std::string& shown_path) noexcept {
  handle_->impl->report = std::move(report);
  static_cast<void>(without_exceptions("a report", [&] {
    handle_->impl->report.path = shown_path;
    describe(handle_->impl.get());
    return Status();
  }));
  return handle_.release();
}

}  // namespace shardwright::capi

namespace capi = shardwright::capi;

extern "C" {

void shw_report_summary_init(shw_report_summary* summary, uint32_t struct_size) noexcept {
  capi::init_struct(summary, struct_size);
}

const char* shw_report_json(const shw_report* report, uint64_t* size) noexcept {
  const auto* impl = capi::peek(report);
  return capi::text_out(impl == nullptr ? std::string_view("") : impl->json, size);
}

shw_status shw_report_summarize(const shw_report* report, shw_report_summary* out,
                                shw_error** err) noexcept {
  return capi::guarded(err, [&]() -> shardwright::Status {
    SHW_ASSIGN_OR_RETURN(const auto impl, capi::need(report, "report"));
    SHW_RETURN_IF_ERROR(capi::check_out(out, "out"));
    capi::write_out(capi::summary_of(impl->report), out);
    return {};
  });
}

uint64_t shw_report_name_count(const shw_report* report, int32_t list) noexcept {
  const auto* names = capi::name_list(report, list);
  return names == nullptr ? 0 : names->size();
}

const char* shw_report_name(const shw_report* report, int32_t list, uint64_t index,
                            uint64_t* size) noexcept {
  const auto* names = capi::name_list(report, list);
  const bool there = names != nullptr && index < names->size();
  return capi::text_out(there ? std::string_view((*names)[index]) : std::string_view(""), size);
}

void shw_report_release(shw_report* report) noexcept {
  capi::release_handle(report);
}

}  // extern "C"
