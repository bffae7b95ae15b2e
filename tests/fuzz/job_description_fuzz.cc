// SPDX-License-Identifier: Apache-2.0
//
// JSON descriptions of jobs. What is refused has a message, with line and column where it is the
// text's fault. What is read can be written and read again to the same text, and every rank's boxes
// lie inside their tensors.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/job_description/job_description.h"

namespace {

using shardwright::Box;
using shardwright::job_description::JobDescription;

constexpr size_t kLookedAt = 64;  // tensors and ranks whose boxes are made

void check(bool holds) {
  if (!holds) std::abort();
}

void check_boxes(const JobDescription& job) {
  const auto ranks = std::min<int32_t>(job.rank_count, kLookedAt);
  for (size_t t = 0; t < std::min(job.tensors.size(), kLookedAt); ++t) {
    for (int32_t rank = 0; rank < ranks; ++rank) {
      const auto boxes = held_boxes(job, job.tensors[t], rank);
      // Strides may ask for more boxes than a rank can have.
      check(boxes.ok() || boxes.status().code() == shardwright::StatusCode::kResourceExhausted);
      if (!boxes.ok() || boxes->size() > kLookedAt) return;
      for (const Box& box : *boxes)
        check(shardwright::check_box(box, job.tensors[t].shape).ok() && !box_is_empty(box));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto job = shardwright::job_description::read_job_description(text);
  if (!job.ok()) {
    check(!job.status().message().empty());
    if (job.status().code() == shardwright::StatusCode::kInvalidArgument)
      check(!job.status().detail("line").empty() && !job.status().detail("column").empty());
    return 0;
  }
  check_boxes(*job);
  if (job->tensors.size() + job->objects.size() > 10000) return 0;  // writing is long
  const std::string written = job_description_json(*job);
  const auto again = shardwright::job_description::read_job_description(written);
  check(again.ok() && job_description_json(*again) == written);
  return 0;
}
