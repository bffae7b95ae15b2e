// SPDX-License-Identifier: Apache-2.0
//
// The last check: what the numbers of a plan mean. Nothing here looks at a state or a checkpoint;
// check_write_list and check_load_plan do.
#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/base/checked.h"
#include "core/base/digest128.h"
#include "core/base/generation_id.h"
#include "core/base/limits.h"
#include "core/base/text.h"
#include "core/plan/cover/cover_internal.h"
#include "core/plan/findings_internal.h"
#include "core/plan/wire/catalog_wire.h"
#include "core/plan/wire/plan_parts_internal.h"

namespace shardwright::plan::internal {
namespace {

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 62;

void check_generation(std::string_view generation, Findings* findings) {
  if (!is_generation_id(generation)) {
    findings->add("generation '{}' is not 32 lower-case hex digits", escape_text(generation));
  }
}

void check_names(std::string_view what, const std::vector<std::string>& names, Findings* findings) {
  for (const std::string& name : names) {
    if (name.size() > kMaxNameBytes || !is_valid_utf8(name)) {
      findings->add("a name among those {} is not UTF-8 of at most {} bytes", what, kMaxNameBytes);
    }
  }
}

void check_items(const WriteList& list, Findings* findings) {
  uint64_t bytes = 0;
  std::vector<uint64_t> keys;
  keys.reserve(list.items.size());
  for (size_t i = 0; i < list.items.size() && !findings->full(); ++i) {
    const WriteItem& item = list.items[i];
    if (!checked_add(bytes, item.size_bytes, &bytes) || bytes > kMaxFileBytes)
      findings->add("item {} of {} bytes ends past 2^62", i, item.size_bytes);
    if (i > 0 && item.piece != kObjectPiece && list.items[i - 1].piece == kObjectPiece)
      findings->add("item {} is a chunk behind an object", i);
    keys.push_back(uint64_t{item.entry} << 32 | item.piece);
  }
  std::sort(keys.begin(), keys.end());
  if (std::adjacent_find(keys.begin(), keys.end()) != keys.end())
    findings->add("an item is listed twice");
}

bool is_rank(int32_t rank, int32_t world_size) {
  return rank >= 0 && rank < world_size;
}

// Who is no taker has no targets, and nobody takes what he sends.
bool is_sound(const Route& route, const ExchangePlan& plan) {
  if (!route.is_exchanged()) return route == Route();
  const bool is_read = route.source == Route::kStored;
  const bool is_sent = is_rank(route.source, plan.world_size) && route.source != route.taker;
  return is_rank(route.taker, plan.world_size) && route.targets <= kMostTargets &&
         (route.taker == plan.rank || route.targets == 0) && (is_read || is_sent) &&
         (is_read ? route.step == 0 : route.step > 0 && route.step < kMostSteps);
}

void check_read(const LoadPlan& plan, size_t i, Findings* findings) {
  const std::span<const int64_t> offsets = plan.reads.offsets(i);
  const std::span<const int64_t> sizes = plan.reads.sizes(i);
  int64_t elements = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    int64_t end = 0;
    if (offsets[d] < 0 || sizes[d] <= 0 || !checked_add(offsets[d], sizes[d], &end) ||
        !checked_multiply(elements, sizes[d], &elements)) {
      findings->add("read {} has {} elements from {} in dimension {}", i, sizes[d], offsets[d], d);
      return;
    }
  }
  if (i > 0 && plan.reads.key(i - 1) >= plan.reads.key(i))
    findings->add("read {} does not follow read {}", i, i - 1);
}

// Places are ranks, which those of grids are anyway.
void check_writers(std::string_view what, const auto& records, Findings* findings) {
  for (size_t i = 0; i < records.size() && !findings->full(); ++i) {
    if (records[i].place >= static_cast<uint32_t>(kMaxWorldSize))
      findings->add("{} {} is that of rank {}", what, i, records[i].place);
  }
}

void check_ascending(std::string_view what, const auto& notes, Findings* findings) {
  for (size_t i = 1; i < notes.size(); ++i) {
    if (notes[i].entry <= notes[i - 1].entry) findings->add("{} {} is out of order", what, i);
  }
}

}  // namespace

std::vector<std::string> findings_of(const WriteList& list, size_t limit) {
  Findings findings(limit);
  check_rank(list.rank, list.world_size, &findings);
  check_generation(list.generation, &findings);
  check_items(list, &findings);
  return findings.take();
}

std::vector<std::string> findings_of(const LoadPlan& plan, size_t limit) {
  Findings findings(limit);
  check_rank(plan.rank, kMaxWorldSize, &findings);
  if (!plan.generation.empty()) check_generation(plan.generation, &findings);
  for (size_t i = 0; i < plan.reads.size() && !findings.full(); ++i) check_read(plan, i, &findings);
  for (size_t i = 0; i < plan.casts.size(); ++i) {
    const CastNote& note = plan.casts[i];
    if (!dtype_is_valid(note.stored) || !dtype_is_valid(note.wanted) ||
        note.stored == note.wanted) {
      findings.add("cast {} goes from dtype number {} to {}", i, static_cast<int>(note.stored),
                   static_cast<int>(note.wanted));
    }
  }
  check_ascending("object read", plan.objects, &findings);
  check_ascending("cast", plan.casts, &findings);
  check_ascending("shape", plan.shapes, &findings);
  check_names("loaded", plan.loaded, &findings);
  check_names("missing", plan.missing, &findings);
  check_names("unexpected", plan.unexpected, &findings);
  return findings.take();
}

std::vector<std::string> findings_of(const WriteResult& result, size_t limit) {
  Findings findings(limit);
  check_rank(result.rank, kMaxWorldSize, &findings);
  check_generation(result.generation, &findings);
  uint64_t index_end = 0;
  if (!checked_add(result.index_position, result.index_bytes, &index_end) ||
      index_end > result.file_bytes || result.file_bytes > kMaxFileBytes) {
    findings.add("an index of {} bytes at {} leaves a file of {} bytes", result.index_bytes,
                 result.index_position, result.file_bytes);
  }
  if (!result.has_file && (result.file_bytes | result.index_position | result.index_bytes) != 0) {
    findings.add("a result without a file describes one");
  }
  const size_t digest_bytes = result.file_sha256.size();
  if (digest_bytes != 0 && (digest_bytes != kSha256Bytes || !result.has_file))
    findings.add("a SHA-256 of {} bytes is that of no file", digest_bytes);
  if (result.payload_bytes > kMaxFileBytes)
    findings.add("{} bytes of payload", result.payload_bytes);
  return findings.take();
}

std::vector<std::string> findings_of(const WantList& list, size_t limit) {
  Findings findings(limit);
  check_rank(list.rank, list.world_size, &findings);
  if (!is_rank(list.node, list.world_size)) findings.add("node {}", list.node);
  if (!list.generation.empty()) check_generation(list.generation, &findings);
  for (size_t b = 0; b < list.blocks.size() && !findings.full(); ++b) {
    const StoredBlock& block = list.blocks[b];
    uint64_t end = 0;
    if (block.length == 0 || !checked_add(block.position, block.length, &end) ||
        end > kMaxFileBytes)
      findings.add("block {} has {} bytes at {}", b, block.length, block.position);
    if (b > 0 && block <= list.blocks[b - 1])
      findings.add("block {} is not above the one before it", b);
  }
  return findings.take();
}

std::vector<std::string> findings_of(const ExchangePlan& plan, size_t limit) {
  Findings findings(limit);
  check_rank(plan.rank, plan.world_size, &findings);
  if (!plan.generation.empty()) check_generation(plan.generation, &findings);
  uint64_t targets = 0;
  for (size_t r = 0; r < plan.routes.size() && !findings.full(); ++r) {
    const Route& route = plan.routes[r];
    if (!is_sound(route, plan)) {
      findings.add("route {} with taker {}, source {}, step {} and {} targets cannot be", r,
                   route.taker, route.source, route.step, route.targets);
    }
    targets += route.targets;
  }
  if (targets != plan.targets.size())
    findings.add("routes have {} targets, {} are there", targets, plan.targets.size());
  for (const int32_t target : plan.targets) {
    if (!is_rank(target, plan.world_size) || target == plan.rank)
      findings.add("a block is sent to rank {}", target);
  }
  const auto disordered = std::ranges::adjacent_find(plan.rounds, std::greater_equal());
  if (disordered != plan.rounds.end()) findings.add("rounds do not ascend");
  if (!plan.rounds.empty() && (plan.span_bytes == 0 || plan.rounds.back() > kMaxFileBytes))
    findings.add("rounds up to {} of spans of {} bytes", plan.rounds.back(), plan.span_bytes);
  return findings.take();
}

std::vector<std::string> findings_of(const GlobalSavePlan& plan, size_t limit) {
  Findings findings(limit);
  const bool described = plan.generation.empty();
  if (!described) check_generation(plan.generation, &findings);
  if (described && plan.plan_digest != Digest128{})
    findings.add("a plan without a generation has a digest");
  if (findings.full()) return findings.take();
  std::vector<std::string> of_catalog = catalog_findings(
      plan.catalog, findings.room(), described ? kMaxDescribedObjectBytes : kMaxObjectBytes);
  const bool sound = of_catalog.empty();
  findings.add_all(std::move(of_catalog));
  if (!sound) return findings.take();
  const size_t tensors = plan.catalog.tensors.size();
  const size_t objects = plan.catalog.objects.size();
  check_listing(view_of(plan.listing), {tensors, objects, 0, 0}, &findings);
  check_writers("box", plan.catalog.boxes, &findings);
  check_writers("object", plan.catalog.objects, &findings);
  if (described) return findings.take();
  const Status covers = prove_all_covers(plan.catalog, Copies::kAllowed, "rank");
  if (!covers.ok()) findings.add("{}", covers.message());
  const Result<Digest128> digest = catalog_digest(plan.catalog);
  if (!digest.ok() || *digest != plan.plan_digest) findings.add("the catalog has another digest");
  return findings.take();
}

}  // namespace shardwright::plan::internal
