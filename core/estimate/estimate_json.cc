// SPDX-License-Identifier: Apache-2.0
//
// An estimate as JSON text: totals and ranges first, then columns over ranks, then pictures.
#include <algorithm>
#include <numeric>

#include "core/base/json_writer.h"
#include "core/estimate/estimate.h"

namespace shardwright::estimate {
namespace {

uint64_t sum_of(const RankColumn& column) {
  return std::accumulate(column.begin(), column.end(), uint64_t{0});
}

class EstimateWriter {
 public:
  explicit EstimateWriter(const Estimate& estimate) : estimate_(estimate) {}

  std::string write() && {
    json_.begin_object().key("schema").number(1);
    json_.key("command").text(estimate_.is_load ? "load" : "save");
    json_.key("ranks").number(estimate_.rank_count);
    write_counts();
    write_ranges();
    write_time();
    write_per_rank();
    json_.key("tensors").begin_array();
    for (const TensorPicture& picture : estimate_.pictures) write_picture(picture);
    json_.end_array().end_object();
    return json_.take();
  }

 private:
  void count(std::string_view key, uint64_t value) { json_.key(key).number_unsigned(value); }

  void write_counts() {
    json_.key("stored").begin_object();
    count("tensors", estimate_.tensor_count);
    count("objects", estimate_.object_count);
    count("chunks", estimate_.chunk_count);
    count("files", estimate_.file_count);
    count("bytes", estimate_.stored_bytes);
    json_.end_object();
  }

  void write_range(std::string_view key, const RankColumn& column) {
    json_.key(key).begin_object();
    std::vector<uint64_t> sorted = column;
    std::ranges::sort(sorted);
    count("min", sorted.front());
    count("median", sorted[sorted.size() / 2]);
    count("max", sorted.back());
    json_.key("max_rank").number(std::ranges::max_element(column) - column.begin());
    count("total", sum_of(column));
    json_.end_object();
  }

  void write_ranges() {
    write_range("bytes", estimate_.moved_bytes);
    write_range("over_bytes", estimate_.over_bytes);
    write_range(estimate_.is_load ? "reads" : "writes", estimate_.operations);
    write_range("files", estimate_.files);
    write_range("held_bytes", estimate_.held_bytes);
    write_range("staging_bytes", estimate_.staging_bytes);
    write_range("peak_bytes", estimate_.peak_bytes);
    if (!estimate_.is_load) count("plan_bytes", estimate_.plan_bytes);
  }

  void write_time() {
    const EstimateOptions& options = estimate_.options;
    if (options.rank_bytes_per_second == 0 && options.total_bytes_per_second == 0) {
      json_.key("time").null();
      return;
    }
    const uint64_t largest = *std::ranges::max_element(estimate_.moved_bytes);
    const auto seconds = [](uint64_t bytes, uint64_t rate) {
      return rate == 0 ? 0.0 : static_cast<double>(bytes) / static_cast<double>(rate);
    };
    const double slowest = seconds(largest, options.rank_bytes_per_second);
    const double shared = seconds(sum_of(estimate_.moved_bytes), options.total_bytes_per_second);
    json_.key("time").begin_object();
    json_.key("seconds").number_real(std::max(slowest, shared));
    json_.key("limit").text(shared > slowest ? "total" : "rank");
    count("rank_bytes_per_second", options.rank_bytes_per_second);
    count("total_bytes_per_second", options.total_bytes_per_second);
    json_.end_object();
  }

  void write_column(std::string_view key, const RankColumn& column) {
    json_.key(key).begin_array();
    for (const uint64_t value : column) json_.number_unsigned(value);
    json_.end_array();
  }

  void write_per_rank() {
    json_.key("per_rank").begin_object();
    write_column("bytes", estimate_.moved_bytes);
    write_column("over_bytes", estimate_.over_bytes);
    write_column(estimate_.is_load ? "reads" : "writes", estimate_.operations);
    write_column("files", estimate_.files);
    write_column("held_bytes", estimate_.held_bytes);
    write_column("peak_bytes", estimate_.peak_bytes);
    json_.end_object();
  }

  void write_picture(const TensorPicture& picture) {
    json_.begin_object();
    json_.key("names").text(picture.names).key("first").text(picture.first_name);
    count("count", picture.tensor_count);
    json_.key("dtype").text(dtype_name(picture.dtype));
    json_.key("kind").text(entry_kind_name(picture.kind));
    json_.key("shape").begin_array();
    for (const int64_t extent : picture.shape) json_.number(extent);
    json_.end_array().key("layout").text(picture.layout);
    count("bytes", picture.tensor_bytes);
    count("chunks", picture.chunks);
    count("smallest_chunk_bytes", picture.smallest_bytes);
    count("largest_chunk_bytes", picture.largest_bytes);
    count("fewest_holders", picture.fewest_holders);
    count("most_holders", picture.most_holders);
    if (!picture.cells.empty()) write_cells(picture);
    json_.end_object();
  }

  // Cells as [chunks, first owner, last owner, fewest holders, most holders].
  void write_cells(const TensorPicture& picture) {
    json_.key("picture").begin_object();
    json_.key("row_dim").number(picture.row_dim).key("column_dim").number(picture.column_dim);
    count("row_parts", picture.row_parts);
    count("column_parts", picture.column_parts);
    count("rows", picture.rows);
    count("columns", picture.columns);
    json_.key("cells").begin_array();
    for (const PictureCell& cell : picture.cells) {
      json_.begin_array();
      if (cell.chunks != 0) {
        json_.number_unsigned(cell.chunks).number(cell.first_owner).number(cell.last_owner);
        json_.number_unsigned(cell.fewest_holders).number_unsigned(cell.most_holders);
      }
      json_.end_array();
    }
    json_.end_array().end_object();
  }

  const Estimate& estimate_;
  JsonWriter json_;
};

}  // namespace

std::string estimate_json(const Estimate& estimate) {
  return EstimateWriter(estimate).write();
}

}  // namespace shardwright::estimate
