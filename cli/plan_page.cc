// SPDX-License-Identifier: Apache-2.0
//
// The page of an estimate. It holds everything itself: no script, no font, no image from elsewhere,
// so that it can be attached to a ticket and opened in twenty years.
#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "cli/page_parts.h"
#include "cli/plan.h"
#include "cli/text.h"

namespace shardwright::cli {
namespace {

constexpr size_t kMaxDrawn = 32;    // pictures on a page
constexpr size_t kMaxListed = 500;  // rows of a table
constexpr std::string_view kStyle = R"css(
:root{color-scheme:light dark;--bg:#fbfbfa;--card:#fff;--ink:#1c2024;--soft:#5b646e;--line:#dfe3e6;--a:#2a6fdb;--b:#e08a1e;--c:#7a8793;--d:#8b5fbf;--l:68%;--t:#111}
@media (prefers-color-scheme:dark){:root{--bg:#14171a;--card:#1c2126;--ink:#e8ebee;--soft:#9aa5b1;--line:#323a42;--a:#6aa5ff;--b:#f2ad5c;--c:#71808f;--d:#b892e6;--l:44%;--t:#fff}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,"Segoe UI","DejaVu Sans",sans-serif}
main,header,footer{max-width:1120px;margin:0 auto;padding:0 20px}
header{padding-top:28px}
h1{font-size:26px;line-height:1.2;margin:0 0 6px}
h2{font-size:18px;margin:34px 0 10px}
p{margin:4px 0;color:var(--soft)}
a{color:var(--a)}
code,.layout,td:first-child{font-family:ui-monospace,"DejaVu Sans Mono",monospace;font-size:13px}
code{overflow-wrap:anywhere}
nav a{margin-right:16px}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(170px,1fr));gap:10px;margin:18px 0;padding:0}
.facts div{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:10px 12px;min-width:0}
.facts dt{color:var(--soft);font-size:12.5px}
.facts dd{margin:0;font-size:19px;font-weight:600;overflow-wrap:anywhere}
.facts small{display:block;font-size:12px;font-weight:400;color:var(--soft)}
figure{margin:0 0 16px;background:var(--card);border:1px solid var(--line);border-radius:8px;padding:14px;min-width:0}
figcaption b{display:block;font-size:15px;overflow-wrap:anywhere}
figcaption span{display:block;color:var(--soft);font-size:13px;overflow-wrap:anywhere}
.chart figcaption{font-weight:600;margin-bottom:6px}
svg{display:block;max-width:100%;height:auto}
.chart svg{width:100%}
.legend svg{width:12px;height:12px;display:inline-block;margin-right:6px;vertical-align:-1px}
.legend{display:flex;flex-wrap:wrap;gap:4px 18px;list-style:none;margin:8px 0 0;padding:0;color:var(--soft);font-size:13px}
.grid{stroke:var(--line)}
.tick{fill:var(--soft);font-size:11px}
.a{fill:var(--a)}.b{fill:var(--b)}.c{fill:var(--c)}.d{fill:var(--d)}
.tensors{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(340px,100%),1fr));gap:14px;align-items:start}
.tensors figure{margin:0}
.cells{margin:12px 0 4px}
.cells rect{fill:hsl(var(--h) 62% var(--l));stroke:var(--card)}
.cells .copy{fill:var(--line);stroke:var(--soft)}
.cells rect:hover{stroke:var(--ink);stroke-width:2}
.cells text{fill:var(--t);font-size:11px;text-anchor:middle;pointer-events:none}
.sides{font-size:12.5px}
.ramp{height:12px;border-radius:6px;margin:6px 0 2px}
.ends{display:flex;justify-content:space-between;font-size:12.5px;color:var(--soft)}
.scroll{overflow-x:auto;border:1px solid var(--line);border-radius:8px;background:var(--card)}
table{border-collapse:collapse;width:100%;font-size:13.5px}
th,td{padding:5px 10px;text-align:right;white-space:nowrap;border-top:1px solid var(--line)}
tr:first-child th{border-top:0}
th:first-child,td:first-child{text-align:left}
td:first-child{white-space:normal;overflow-wrap:anywhere;min-width:180px}
th{color:var(--soft);font-weight:600}
summary{cursor:pointer;padding:6px 0}
:focus-visible{outline:3px solid var(--a);outline-offset:2px;border-radius:4px}
footer{padding-top:24px;padding-bottom:40px;color:var(--soft);font-size:13px}
@media print{figure{break-inside:avoid}}
)css";

class Page {
 public:
  explicit Page(const PlanJson& estimate)
      : estimate_(estimate),
        load_(estimate.at("command") == "load"),
        ranks_(number(estimate, "ranks")),
        groups_(estimate.at("tensors").size()) {
    std::iota(groups_.begin(), groups_.end(), size_t{0});
    const auto weight = [&](size_t group) {
      return number(estimate_["tensors"][group], "count") *
             number(estimate_["tensors"][group], "bytes");
    };
    std::ranges::stable_sort(groups_, [&](size_t a, size_t b) { return weight(a) > weight(b); });
  }

  std::string write(std::string_view source, std::string_view target) && {
    const std::string title =
        fmt::format("{} plan of {}", load_ ? "Load" : "Save", plural(ranks_, "rank"));
    out_ = fmt::format(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
        "<title>{}: {}</title><style>{}</style></head><body>\n<header><h1>{}</h1><p>{}</p>"
        "<nav aria-label=\"Sections\"><a href=\"#ranks\">Ranks</a><a href=\"#tensors\">Tensors</a>"
        "<a href=\"#all\">All tensors</a></nav></header>\n<main>",
        title, html_text(source), kStyle, title, source_text(source, target));
    write_facts();
    write_ranks();
    write_pictures();
    write_groups();
    out_ +=
        "</main>\n<footer>Written by shardwright plan. Nothing was moved. This page needs no "
        "network and no script.</footer></body></html>\n";
    return std::move(out_);
  }

 private:
  static std::string source_text(std::string_view source, std::string_view target) {
    std::string text = fmt::format("<code>{}</code>", html_text(source));
    if (!target.empty()) text += fmt::format(" laid out as <code>{}</code>", html_text(target));
    return text;
  }

  void fact(std::string_view label, std::string_view value, std::string_view note) {
    out_ += fmt::format("<div><dt>{}</dt><dd>{}<small>{}</small></dd></div>", label, value, note);
  }

  void range_fact(std::string_view label, const char* key) {
    const PlanJson& range = estimate_.at(key);
    fact(label, size_text(number(range, "max")),
         fmt::format("{} at least, {} in the middle; rank {} has most",
                     size_text(number(range, "min")), size_text(number(range, "median")),
                     number(range, "max_rank")));
  }

  void write_facts() {
    const PlanJson& stored = estimate_.at("stored");
    out_ += "<dl class=\"facts\">";
    fact("Stored", size_text(number(stored, "bytes")),
         fmt::format("{}, {}", plural(number(stored, "tensors"), "tensor"),
                     plural(number(stored, "objects"), "object")));
    fact("Chunks", count_text(number(stored, "chunks")),
         fmt::format("in {}", plural(number(stored, "files"), "file")));
    range_fact(load_ ? "Most bytes read by a rank" : "Most bytes written by a rank", "bytes");
    const PlanJson& operations = estimate_.at(load_ ? "reads" : "writes");
    fact(load_ ? "Most reads of a rank" : "Most writes of a rank",
         count_text(number(operations, "max")),
         fmt::format("{} in all", count_text(number(operations, "total"))));
    if (load_) {
      fact("Over-read", size_text(number(estimate_["over_bytes"], "total")),
           "read beside what is wanted, to check digests");
    }
    if (shares_reads()) {
      fact("Read once per machine", size_text(number(estimate_["shared_bytes"], "total")),
           fmt::format("copied from memory that {} ranks share",
                       number(estimate_, "ranks_per_node")));
    }
    if (exchanges()) {
      range_fact("Most bytes from other machines", "received_bytes");
      fact("Sent between machines", size_text(number(estimate_["sent_bytes"], "total")),
           "what several of them want, which one of them reads");
    }
    range_fact("Peak memory of a rank", "peak_bytes");
    if (!load_)
      fact("Plans on rank 0", size_text(number(estimate_, "plan_bytes")), "while it merges them");
    if (!estimate_.at("time").is_null()) {
      fact("Estimated time", fmt::format("{:.2f} s", estimate_["time"]["seconds"].get<double>()),
           estimate_["time"]["limit"] == "total" ? "limited by the bandwidth that all ranks share"
                                                 : "limited by the busiest rank");
    }
    out_ += "</dl>\n";
  }

  bool shares_reads() const { return load_ && number(estimate_, "ranks_per_node") > 1; }
  bool exchanges() const { return load_ && estimate_.at("exchange") != "off"; }

  std::vector<uint64_t> column(const char* key) const {
    return estimate_.at("per_rank").at(key).get<std::vector<uint64_t>>();
  }

  void write_ranks() {
    out_ += "<section id=\"ranks\"><h2>Ranks</h2>";
    std::vector<uint64_t> moved = column("bytes");
    const std::vector<uint64_t> over = column("over_bytes");
    const std::vector<uint64_t> held = column("held_bytes");
    std::vector<uint64_t> peak = column("peak_bytes");
    for (size_t r = 0; r < moved.size(); ++r) {
      moved[r] -= over[r];
      peak[r] -= held[r];
    }
    Chart moved_chart{load_ ? "Bytes read per rank" : "Bytes written per rank",
                      "moved",
                      {{load_ ? "wanted" : "tensors and objects", "a", moved},
                       {load_ ? "over-read" : "padding", "b", over}}};
    if (shares_reads())
      moved_chart.series.push_back({"read by its machine", "c", column("shared_bytes")});
    if (exchanges())
      moved_chart.series.push_back({"from other machines", "d", column("received_bytes")});
    out_ += chart_html(moved_chart);
    out_ += chart_html({"Peak memory per rank",
                        "peak",
                        {{"the rank's own state", "c", held},
                         {load_ ? "staging" : "staging, and the plans on rank 0", "a", peak}}});
    write_rank_table();
    out_ += "</section>\n";
  }

  void write_rank_table() {
    const char* operations = load_ ? "reads" : "writes";
    const size_t shown = std::min<size_t>(ranks_, kMaxListed);
    out_ += fmt::format(
        "<details><summary>Table of {}</summary><div class=\"scroll\" tabindex=\"0\"><table>"
        "<tr><th>rank</th><th>bytes {}</th><th>{}</th><th>files</th><th>held</th>"
        "<th>peak memory</th></tr>",
        shown < ranks_ ? fmt::format("the first {} of {} ranks", shown, count_text(ranks_))
                       : plural(ranks_, "rank"),
        load_ ? "read" : "written", operations);
    const PlanJson& columns = estimate_.at("per_rank");
    for (size_t r = 0; r < shown; ++r) {
      out_ +=
          fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                      r, count_text(columns["bytes"][r].get<uint64_t>()),
                      count_text(columns[operations][r].get<uint64_t>()),
                      count_text(columns["files"][r].get<uint64_t>()),
                      count_text(columns["held_bytes"][r].get<uint64_t>()),
                      count_text(columns["peak_bytes"][r].get<uint64_t>()));
    }
    out_ += "</table></div></details>";
  }

  // The colours of all ranks from left to right.
  void write_ramp() {
    if (ranks_ < 2) return;
    const uint64_t stops = std::min<uint64_t>(ranks_, 24);
    std::string colours;
    for (uint64_t i = 0; i < stops; ++i) {
      const uint64_t rank = ranks_ <= stops ? i : i * (ranks_ - 1) / (stops - 1);
      const std::string colour = fmt::format("hsl({} 62% var(--l))", rank_hue(rank, ranks_));
      colours += fmt::format("{}{} {:.1f}% {:.1f}%", i == 0 ? "" : ",", colour,
                             100.0 * static_cast<double>(i) / static_cast<double>(stops),
                             100.0 * static_cast<double>(i + 1) / static_cast<double>(stops));
    }
    out_ += fmt::format(
        "<div class=\"ramp\" style=\"background:linear-gradient(90deg,{})\"></div>"
        "<div class=\"ends\"><span>rank 0</span><span>rank {}</span></div>",
        colours, ranks_ - 1);
  }

  void write_pictures() {
    out_ += fmt::format(
        "<section id=\"tensors\"><h2>Tensors</h2><p>How each tensor is cut; the colour is the rank "
        "that "
        "{}. Sheets behind a picture are replicas.</p>",
        load_ ? "holds the part (the lowest of its holders)" : "writes the chunk");
    write_ramp();
    out_ += "<div class=\"tensors\">";
    size_t drawn = 0;
    for (const size_t group : groups_) {
      if (drawn == kMaxDrawn) break;
      if (estimate_["tensors"][group].contains("chunk_list"))
        out_ += picture_html(estimate_["tensors"][group], ranks_, drawn++);
    }
    out_ += "</div>";
    if (drawn < groups_.size())
      out_ += fmt::format("<p>The largest {} of {} groups are drawn.</p>", drawn,
                          count_text(groups_.size()));
    out_ += "</section>\n";
  }

  void write_groups() {
    const size_t shown = std::min(groups_.size(), kMaxListed);
    out_ += fmt::format(
        "<section id=\"all\"><h2>All tensors</h2><details{}><summary>{}</summary>"
        "<div class=\"scroll\" "
        "tabindex=\"0\"><table><tr><th>names</th><th>tensors</th><th>dtype</th>"
        "<th>shape</th><th>bytes each</th><th>chunks each</th><th>holders</th></tr>",
        shown <= 12 ? " open" : "",
        shown < groups_.size()
            ? fmt::format("The largest {} of {} groups", shown, count_text(groups_.size()))
            : plural(groups_.size(), "group"));
    for (size_t i = 0; i < shown; ++i) {
      const PlanJson& group = estimate_["tensors"][groups_[i]];
      const uint64_t fewest = number(group, "fewest_holders");
      const uint64_t most = number(group, "most_holders");
      out_ += fmt::format(
          "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
          html_text(group["names"].get<std::string>()), count_text(number(group, "count")),
          html_text(group["dtype"].get<std::string>()),
          shape_text(group["shape"].get<std::vector<int64_t>>()), size_text(number(group, "bytes")),
          count_text(number(group, "chunks")),
          fewest == most ? count_text(most)
                         : fmt::format("{} to {}", count_text(fewest), count_text(most)));
    }
    out_ += "</table></div></details></section>\n";
  }

  const PlanJson& estimate_;
  bool load_;
  uint64_t ranks_;
  std::vector<size_t> groups_;  // largest first
  std::string out_;
};

}  // namespace

std::string estimate_page(const PlanJson& estimate, std::string_view source,
                          std::string_view target) {
  return Page(estimate).write(source, target);
}

}  // namespace shardwright::cli
