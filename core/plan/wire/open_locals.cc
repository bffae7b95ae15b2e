// SPDX-License-Identifier: Apache-2.0
//
// Reads the plan buffers of all ranks where they lie. A rank whose table has the bytes of the
// previous rank's, or of any earlier one by digest, costs two comparisons and the checks of its
// boxes.
#include "core/plan/wire/open_locals.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include <fmt/format.h>

#include "core/plan/digest.h"
#include "core/plan/wire/catalog_generated.h"
#include "core/plan/wire/catalog_wire.h"
#include "core/plan/wire/columns_internal.h"
#include "core/plan/wire/findings_internal.h"
#include "core/plan/wire/open_each_internal.h"
#include "core/plan/wire/plan_generated.h"
#include "core/plan/wire/plan_parts_internal.h"

namespace shardwright::plan {
namespace {

using internal::column_in_place;

// Bytes of the columns that make a table, as they lie on the wire.
struct TableBytes {
  std::span<const std::byte> texts;
  std::span<const std::byte> ends;
  std::span<const std::byte> shapes;
  std::span<const std::byte> tensors;

  std::array<std::span<const std::byte>, 4> all() const { return {tensors, ends, shapes, texts}; }
};

template <typename T>
std::span<const std::byte> bytes_of(const flatbuffers::Vector<T>* vector) {
  if (vector == nullptr) return {};
  return {reinterpret_cast<const std::byte*>(vector->Data()),
          vector->size() * flatbuffers::IndirectHelper<T>::element_stride};
}

bool equal(const TableBytes& a, const TableBytes& b) {
  for (size_t i = 0; i < a.all().size(); ++i) {
    const auto first = a.all()[i];
    const auto second = b.all()[i];
    if (first.size() != second.size()) return false;
    if (!first.empty() && std::memcmp(first.data(), second.data(), first.size()) != 0) return false;
  }
  return true;
}

uint64_t hash_of(const TableBytes& table) {
  uint64_t hash = 0;
  for (const auto bytes : table.all()) {
    uint64_t part = 0;
    const Digest128 digest = content_digest(bytes);
    std::memcpy(&part, digest.data(), sizeof(part));
    hash = hash * 31 + part;
  }
  return hash;
}

// Whether a tensor of the table belongs to the rank.
bool has_rank_local(const wire::Catalog& catalog) {
  for (flatbuffers::uoffset_t t = 0; t < internal::count_of(catalog.tensors()); ++t) {
    const auto kind = static_cast<EntryKind>(internal::record_at(catalog.tensors(), t).kind());
    if (kind == EntryKind::kRankLocal) return true;
  }
  return false;
}

class LocalOpener {
 public:
  Status add(std::span<const std::byte> buffer) {
    SHW_ASSIGN_OR_RETURN(internal::OpenedPlan opened, internal::open_plan(buffer));
    if (opened.kind != PlanKind::kLocalSave) {
      return invalid_argument("the plan buffer holds no local save plan")
          .with_detail("expected", "local save plan");
    }
    if (!opened.aligned.empty()) {
      // The view outlives this call, so the aligned copy is kept; moving it keeps its address.
      own(std::move(opened.aligned));
    }
    const wire::LocalSave& body = *opened.root->local_save();
    const wire::Catalog* catalog = body.catalog();
    if (catalog == nullptr) return data_loss("the local save plan is damaged: it has no catalog");
    LocalView view;
    SHW_ASSIGN_OR_RETURN(const bool known, find_table(*catalog, &view));
    SHW_RETURN_IF_ERROR(read_columns(body, &view));
    const std::vector<std::string> findings =
        internal::local_view_findings(view, /*kept=*/false, 1, known);
    if (!findings.empty())
      return data_loss(fmt::format("the local save plan is damaged: {}", findings[0]));
    if (view.world_size == 0) view.rank = static_cast<int32_t>(made_.views.size());
    made_.views.push_back(view);
    return {};
  }

  LocalViews take() {
    made_.table_count = static_cast<uint32_t>(tables_.size());
    return std::move(made_);
  }

 private:
  // Sets texts, shapes, tensors and table of the view; true when the table was seen before. A table
  // in which tensors belong to the rank is shared with no other and not looked for.
  Result<bool> find_table(const wire::Catalog& catalog, LocalView* view) {
    const TableBytes bytes{bytes_of(catalog.texts()), bytes_of(catalog.text_ends()),
                           bytes_of(catalog.shapes()), bytes_of(catalog.tensors())};
    const auto number = static_cast<uint32_t>(tables_.size());
    if (!has_rank_local(catalog)) {
      const auto same = [&](uint32_t table) { return equal(tables_[table], bytes); };
      if (!made_.views.empty() && same(made_.views.back().table)) {
        use_table(made_.views.back().table, view);
        return true;
      }
      std::vector<uint32_t>& candidates = by_hash_[hash_of(bytes)];
      const auto found = std::ranges::find_if(candidates, same);
      if (found != candidates.end()) {
        use_table(*found, view);
        return true;
      }
      candidates.push_back(number);
    }
    SHW_ASSIGN_OR_RETURN(std::vector<TensorRecord> tensors, copy_tensor_records(&catalog));
    tables_.push_back(bytes);
    view->table = number;
    view->catalog.tensors = own(std::move(tensors));
    view->catalog.texts =
        TextView({reinterpret_cast<const char*>(bytes.texts.data()), bytes.texts.size()},
                 column_in_place<uint64_t>(catalog.text_ends(), &made_.owned));
    view->catalog.shapes = column_in_place<int64_t>(catalog.shapes(), &made_.owned);
    table_views_.push_back(view->catalog);
    return false;
  }

  void use_table(uint32_t number, LocalView* view) const {
    view->table = number;
    view->catalog = table_views_[number];
  }

  Status read_columns(const wire::LocalSave& body, LocalView* view) {
    const wire::Catalog& catalog = *body.catalog();
    view->rank = body.rank();
    view->world_size = body.world_size();
    view->options_digest = wire::decode_digest(body.options_digest());
    const auto text = bytes_of(body.options_text());
    view->options_text = {reinterpret_cast<const char*>(text.data()), text.size()};
    view->catalog.boxes = column_in_place<ChunkRecord>(catalog.boxes(), &made_.owned);
    view->catalog.more = column_in_place<ExtentPair>(catalog.more(), &made_.owned);
    SHW_ASSIGN_OR_RETURN(std::vector<ObjectRecord> objects, copy_object_records(&catalog));
    view->catalog.objects = own(std::move(objects));
    view->tensor_digests = column_in_place<Digest128>(body.tensor_digests(), &made_.owned);
    view->object_digests = column_in_place<Digest128>(body.object_digests(), &made_.owned);
    view->listing.object_begins = column_in_place<uint32_t>(body.object_begins(), &made_.owned);
    view->listing.order = column_in_place<uint32_t>(body.order(), &made_.owned);
    view->listing.secondary = column_in_place<uint8_t>(body.secondary(), &made_.owned);
    if (body.attributes() != nullptr) {
      view->listing.attributes = column_in_place<char>(body.attributes()->texts(), &made_.owned);
      view->listing.attribute_ends =
          column_in_place<uint64_t>(body.attributes()->ends(), &made_.owned);
    }
    return {};
  }

  template <typename T>
  std::span<const T> own(std::vector<T> values) {
    if (values.empty()) return {};
    auto kept = std::make_shared<const std::vector<T>>(std::move(values));
    const std::span<const T> span = *kept;
    made_.owned.push_back(std::move(kept));
    return span;
  }

  LocalViews made_;
  std::vector<TableBytes> tables_;        // distinct ones
  std::vector<CatalogView> table_views_;  // texts, shapes and tensors of each table
  std::unordered_map<uint64_t, std::vector<uint32_t>> by_hash_;
};

}  // namespace

Result<LocalViews> open_local_saves(std::span<const std::span<const std::byte>> buffers) {
  LocalOpener opener;
  SHW_RETURN_IF_ERROR(internal::open_each(buffers, &opener));
  return opener.take();
}

}  // namespace shardwright::plan
