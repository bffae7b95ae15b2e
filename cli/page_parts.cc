// SPDX-License-Identifier: Apache-2.0
#include "cli/page_parts.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "cli/chunk_picture.h"
#include "cli/text.h"

namespace shardwright::cli {
namespace {

constexpr size_t kMaxBars = 128;
constexpr int kChartWidth = 720;
constexpr int kChartHeight = 220;
constexpr int kLeft = 78;
constexpr int kBottom = 34;
constexpr int kTop = 10;
constexpr uint64_t kFewRanks = 24;  // each has a colour of its own

// The smallest of 1, 2, 5, 10, 20, 50, ... times a power of 1024 that cuts top into at most 5.
uint64_t tick_step(uint64_t top) {
  uint64_t unit = 1;
  while (top / unit >= 1024) unit *= 1024;
  for (uint64_t scale = 1;; scale *= 10) {
    for (const uint64_t digit : {uint64_t{1}, uint64_t{2}, uint64_t{5}}) {
      const uint64_t step = unit * scale * digit;
      if (top / step <= 4) return step;
    }
  }
}

// In the unit of the step, so that ticks are whole numbers.
std::string tick_text(uint64_t bytes, uint64_t step) {
  if (bytes == 0) return "0";
  uint64_t unit = 1;
  size_t name = 0;
  constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  while (step / unit >= 1024) {
    unit *= 1024;
    ++name;
  }
  return fmt::format("{} {}", bytes / unit, kUnits[name]);
}

std::string ranks_text(uint64_t first, uint64_t last) {
  return first == last ? fmt::format("rank {}", first) : fmt::format("ranks {} to {}", first, last);
}

class ChartDrawing {
 public:
  explicit ChartDrawing(const Chart& chart) : chart_(chart), ranks_(chart.series[0].values.size()) {
    bars_ = std::min(ranks_, kMaxBars);
    for (size_t r = 0; r < ranks_; ++r) top_ = std::max(top_, total_of(r));
    step_ = tick_step(std::max<uint64_t>(top_, 1));
    scale_ = (top_ / step_ + 1) * step_;
    if (top_ % step_ == 0 && top_ > 0) scale_ = top_;
  }

  std::string draw() {
    out_ = fmt::format(
        "<figure class=\"chart\" tabindex=\"0\"><figcaption>{}</figcaption>"
        "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-labelledby=\"{}-t\">"
        "<title id=\"{}-t\">{}: {} at most, over {} ranks</title>",
        html_text(chart_.title), kChartWidth, kChartHeight, chart_.id, chart_.id,
        html_text(chart_.title), size_text(top_), count_text(ranks_));
    draw_axes();
    for (size_t b = 0; b < bars_; ++b) draw_bar(b);
    out_ += "</svg>";
    draw_legend();
    return out_ + "</figure>";
  }

 private:
  uint64_t total_of(size_t rank) const {
    uint64_t total = 0;
    for (const ChartSeries& series : chart_.series) total += series.values[rank];
    return total;
  }
  size_t first_of(size_t bar) const { return bar * ranks_ / bars_; }
  double y_of(uint64_t value) const {
    return kChartHeight - kBottom -
           static_cast<double>(kChartHeight - kBottom - kTop) * static_cast<double>(value) /
               static_cast<double>(scale_);
  }
  double x_of(size_t bar) const {
    return kLeft + static_cast<double>(kChartWidth - kLeft - 8) * static_cast<double>(bar) /
                       static_cast<double>(bars_);
  }

  void draw_axes() {
    for (uint64_t tick = 0; tick <= scale_; tick += step_) {
      out_ += fmt::format(
          "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
          "<text class=\"tick\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>",
          kLeft, kChartWidth - 8, y_of(tick), y_of(tick), kLeft - 6, y_of(tick) + 4,
          tick_text(tick, step_));
    }
    const size_t labels = std::min<size_t>(bars_, 8);
    for (size_t i = 0; i < labels; ++i) {
      const size_t bar = i * bars_ / labels;
      out_ += fmt::format(
          "<text class=\"tick\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
          (x_of(bar) + x_of(bar + 1)) / 2, kChartHeight - kBottom + 14, count_text(first_of(bar)));
    }
    out_ += fmt::format("<text class=\"tick\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">rank</text>",
                        (kLeft + kChartWidth) / 2, kChartHeight - 4);
  }

  void draw_bar(size_t bar) {
    const size_t first = first_of(bar);
    const size_t end = first_of(bar + 1);
    size_t shown = first;
    for (size_t r = first; r < end; ++r) {
      if (total_of(r) > total_of(shown)) shown = r;
    }
    const double gap = bars_ > 64 ? 0.5 : 2;
    const double width = std::min(48.0, x_of(bar + 1) - x_of(bar) - gap);
    const double x = (x_of(bar) + x_of(bar + 1) - width) / 2;
    std::string title = ranks_text(first, end - 1);
    if (end - first > 1) title += fmt::format(", largest is rank {}", shown);
    for (const ChartSeries& series : chart_.series)
      title += fmt::format("\n{} {}", html_text(series.label), size_text(series.values[shown]));
    out_ += fmt::format("<g><title>{}</title>", title);
    uint64_t below = 0;
    for (const ChartSeries& series : chart_.series) {
      const uint64_t value = series.values[shown];
      if (value == 0) continue;
      const double y = y_of(below + value);
      out_ += fmt::format(
          "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>",
          series.style, x, y, width, y_of(below) - y);
      below += value;
    }
    out_ += "</g>";
  }

  void draw_legend() {
    out_ += "<ul class=\"legend\">";
    for (const ChartSeries& series : chart_.series) {
      out_ += fmt::format(
          "<li><svg viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect class=\"{}\" "
          "width=\"10\" height=\"10\"/></svg>{}</li>",
          series.style, html_text(series.label));
    }
    if (ranks_ > kMaxBars)
      out_ += fmt::format("<li>each bar is the largest of about {} ranks</li>",
                          count_text(ranks_ / bars_));
    out_ += "</ul>";
  }

  const Chart& chart_;
  size_t ranks_;
  size_t bars_ = 1;
  uint64_t top_ = 0;
  uint64_t step_ = 1;
  uint64_t scale_ = 1;
  std::string out_;
};

std::string holders_text(uint64_t fewest, uint64_t most) {
  if (most <= 1) return "held by one rank each";
  if (fewest == most) return fmt::format("held by {} ranks each", count_text(most));
  return fmt::format("held by {} to {} ranks", count_text(fewest), count_text(most));
}

class PictureDrawing {
 public:
  PictureDrawing(const ChunkPicture& picture, uint64_t fewest, uint64_t most, uint64_t rank_count)
      : picture_(picture),
        rows_(picture.rows),
        columns_(picture.columns),
        rank_count_(rank_count),
        same_holders_(fewest == most),
        copies_(static_cast<int>(std::min<uint64_t>(most, 4)) - 1) {
    size_ = std::clamp<size_t>(320 / std::max(rows_, columns_), 13, 56);
  }

  std::string draw(const std::string& label) {
    const size_t shift = static_cast<size_t>(std::max(copies_, 0)) * 4;
    const size_t width = columns_ * size_ + shift + 2;
    const size_t height = rows_ * size_ + shift + 2;
    std::string out = fmt::format(
        "<svg class=\"cells\" viewBox=\"0 0 {} {}\" width=\"{}\" height=\"{}\" role=\"img\" "
        "aria-label=\"{}\">",
        width, height, width, height, label);
    // Replicas lie behind as sheets.
    for (int copy = copies_; copy > 0; --copy) {
      out += fmt::format("<rect class=\"copy\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
                         copy * 4 + 1, copy * 4 + 1, columns_ * size_, rows_ * size_);
    }
    for (size_t i = 0; i < picture_.cells.size(); ++i) {
      const PictureCell& each = picture_.cells[i];
      if (each.chunks != 0) out += cell(each, i / columns_, i % columns_);
    }
    return out + "</svg>";
  }

 private:
  std::string cell(const PictureCell& cell, size_t row, size_t column) const {
    const uint64_t first = cell.first_rank;
    const uint64_t last = cell.last_rank;
    std::string title =
        first == last ? fmt::format("rank {}", first) : fmt::format("ranks {}-{}", first, last);
    if (cell.chunks > 1) title += fmt::format(", {} chunks", cell.chunks);
    if (!same_holders_) {
      title += ", ";
      title += holders_text(cell.fewest_holders, cell.most_holders);
    }
    std::string out = fmt::format(
        "<rect style=\"--h:{}\" x=\"{}\" y=\"{}\" width=\"{}\" "
        "height=\"{}\"><title>{}</title></rect>",
        rank_hue((first + last) / 2, rank_count_), column * size_ + 1, row * size_ + 1, size_,
        size_, title);
    const std::string text = fmt::to_string(first);
    if (first == last && text.size() * 7 + 4 <= size_) {
      out += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>", column * size_ + 1 + size_ / 2,
                         row * size_ + 5 + size_ / 2, text);
    }
    return out;
  }

  const ChunkPicture& picture_;
  size_t rows_;
  size_t columns_;
  uint64_t rank_count_;
  bool same_holders_;
  int copies_;
  size_t size_ = 13;
};

std::string side_text(int64_t dim, size_t parts, size_t cells, const char* direction) {
  if (dim < 0) return "";
  std::string text = fmt::format("dimension {} {}: {} parts", dim, direction, count_text(parts));
  if (cells < parts) text += fmt::format(", drawn as {}", cells);
  return text;
}

ChunkColumns columns_of(const PlanJson& chunk_list) {
  ChunkColumns columns;
  columns.dims = chunk_list.at("dims").get<std::vector<int64_t>>();
  columns.offsets = chunk_list.at("offsets").get<std::vector<std::vector<int64_t>>>();
  columns.ranks = chunk_list.at("ranks").get<std::vector<uint64_t>>();
  columns.holders = chunk_list.at("holders").get<std::vector<uint64_t>>();
  return columns;
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

int rank_hue(uint64_t rank, uint64_t rank_count) {
  if (rank_count <= kFewRanks) {
    // Neighbours are far apart on the circle.
    return static_cast<int>((210 + rank * 137) % 360);
  }
  return static_cast<int>((200 + rank * 300 / rank_count) % 360);
}

std::string chart_html(const Chart& chart) {
  return ChartDrawing(chart).draw();
}

std::string picture_html(const PlanJson& group, uint64_t rank_count, size_t number) {
  const auto count = group.at("count").get<uint64_t>();
  const auto fewest = group.at("fewest_holders").get<uint64_t>();
  const auto most = group.at("most_holders").get<uint64_t>();
  const std::string names = html_text(group.at("names").get<std::string>());
  std::string facts = fmt::format("{} {}, {}", html_text(group.at("dtype").get<std::string>()),
                                  shape_text(group.at("shape").get<std::vector<int64_t>>()),
                                  size_text(group.at("bytes").get<uint64_t>()));
  if (count > 1) facts += fmt::format(" each, {} tensors, the first is drawn", count_text(count));
  const auto smallest = group.at("smallest_chunk_bytes").get<uint64_t>();
  const auto largest = group.at("largest_chunk_bytes").get<uint64_t>();
  std::string cut = group.at("kind") == "rank_local"
                        ? fmt::format("each of {} has its own", plural(most, "rank"))
                        : fmt::format("{}, {}", plural(group.at("chunks").get<uint64_t>(), "chunk"),
                                      holders_text(fewest, most));
  cut += smallest == largest
             ? fmt::format(", {} per chunk", size_text(largest))
             : fmt::format(", {} to {} per chunk", size_text(smallest), size_text(largest));
  std::string out = fmt::format(
      "<figure class=\"tensor\" tabindex=\"0\" aria-labelledby=\"p{}\"><figcaption id=\"p{}\">"
      "<b>{}</b><span>{}</span><span>{}</span>",
      number, number, names, facts, cut);
  const std::string layout = html_text(group.at("layout").get<std::string>());
  if (!layout.empty()) out += fmt::format("<span class=\"layout\">{}</span>", layout);
  out += "</figcaption>";
  const ChunkPicture picture = draw_chunks(columns_of(group.at("chunk_list")));
  out += PictureDrawing(picture, fewest, most, rank_count).draw(names + ": " + cut);
  const std::string down = side_text(picture.row_dim, picture.row_parts, picture.rows, "down");
  const std::string right =
      side_text(picture.column_dim, picture.column_parts, picture.columns, "to the right");
  const std::string sides = down + (down.empty() || right.empty() ? "" : "; ") + right;
  if (!sides.empty()) out += fmt::format("<p class=\"sides\">{}</p>", sides);
  return out + "</figure>";
}

}  // namespace shardwright::cli
