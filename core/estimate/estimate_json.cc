// SPDX-License-Identifier: Apache-2.0
//
// An estimate as JSON text: totals and ranges first, then columns over ranks, then groups of
// tensors.
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
    if (estimate_.is_load) {
      count("ranks_per_node", estimate_.options.ranks_per_node);
      const bool exchanges = estimate_.options.exchange != NodeExchange::kOff;
      json_.key("exchange").text(exchanges ? "always" : "off");
    }
    write_counts();
    write_ranges();
    write_time();
    write_per_rank();
    json_.key("tensors").begin_array();
    for (const TensorGroup& group : estimate_.groups) write_group(group);
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
    if (estimate_.is_load) {
      write_range("shared_bytes", estimate_.shared_bytes);
      write_range("received_bytes", estimate_.received_bytes);
      write_range("sent_bytes", estimate_.sent_bytes);
    }
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
    if (estimate_.is_load) {
      write_column("shared_bytes", estimate_.shared_bytes);
      write_column("received_bytes", estimate_.received_bytes);
      write_column("sent_bytes", estimate_.sent_bytes);
    }
    write_column(estimate_.is_load ? "reads" : "writes", estimate_.operations);
    write_column("files", estimate_.files);
    write_column("held_bytes", estimate_.held_bytes);
    write_column("peak_bytes", estimate_.peak_bytes);
    json_.end_object();
  }

  void write_group(const TensorGroup& group) {
    json_.begin_object();
    json_.key("names").text(group.names).key("first").text(group.first_name);
    count("count", group.tensor_count);
    json_.key("dtype").text(dtype_name(group.dtype));
    json_.key("kind").text(entry_kind_name(group.kind));
    json_.key("shape").begin_array();
    for (const int64_t extent : group.shape) json_.number(extent);
    json_.end_array().key("layout").text(group.layout);
    count("bytes", group.tensor_bytes);
    count("chunks", group.chunk_count);
    count("smallest_chunk_bytes", group.smallest_bytes);
    count("largest_chunk_bytes", group.largest_bytes);
    count("fewest_holders", group.fewest_holders);
    count("most_holders", group.most_holders);
    if (!group.chunks.empty()) write_chunks(group);
    json_.end_object();
  }

  // Columns with one value per chunk; only dimensions that some chunk does not cover whole.
  void write_chunks(const TensorGroup& group) {
    json_.key("chunk_list").begin_object();
    std::vector<size_t> split;
    for (size_t d = 0; d < group.shape.size(); ++d) {
      const auto is_cut = [&](const ListedChunk& chunk) {
        return chunk.box.sizes[d] != group.shape[d];
      };
      if (std::ranges::any_of(group.chunks, is_cut)) split.push_back(d);
    }
    json_.key("dims").begin_array();
    for (const size_t dim : split) json_.number(static_cast<int64_t>(dim));
    json_.end_array();
    write_extents("offsets", group, split, &Box::offsets);
    write_extents("sizes", group, split, &Box::sizes);
    json_.key("ranks").begin_array();
    for (const ListedChunk& chunk : group.chunks) json_.number(chunk.rank);
    json_.end_array().key("holders").begin_array();
    for (const ListedChunk& chunk : group.chunks) json_.number_unsigned(chunk.holders);
    json_.end_array().end_object();
  }

  void write_extents(std::string_view key, const TensorGroup& group, std::span<const size_t> split,
                     Dims Box::* extents) {
    json_.key(key).begin_array();
    for (const size_t dim : split) {
      json_.begin_array();
      for (const ListedChunk& chunk : group.chunks) json_.number((chunk.box.*extents)[dim]);
      json_.end_array();
    }
    json_.end_array();
  }

  const Estimate& estimate_;
  JsonWriter json_;
};

}  // namespace

std::string estimate_json(const Estimate& estimate) {
  return EstimateWriter(estimate).write();
}

}  // namespace shardwright::estimate
