// SPDX-License-Identifier: Apache-2.0
//
// Parts of HTML pages: escaped text, bar charts over ranks, pictures of tensors. Pure functions;
// every text that comes from outside is escaped here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/plan.h"

namespace shardwright::cli {

// Text of an element or of a quoted attribute; control characters as \xNN.
std::string html_text(std::string_view text);

// A column of a chart: parts that stand on each other, one value per rank each.
struct ChartSeries {
  std::string label;
  std::string style;  // class of its bars
  std::vector<uint64_t> values;
};
// Bars over ranks with axes in binary units. Many ranks are drawn together: a bar is as high as the
// largest of its ranks.
struct Chart {
  std::string title;
  std::string id;  // unique on the page
  std::vector<ChartSeries> series;
};
std::string chart_html(const Chart& chart);

// Hue of a rank's colour, in degrees.
int rank_hue(uint64_t rank, uint64_t rank_count);
// The figure of one element of "tensors" of an estimate, which has a "chunk_list".
std::string picture_html(const PlanJson& group, uint64_t rank_count, size_t number);

}  // namespace shardwright::cli
