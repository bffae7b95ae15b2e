// SPDX-License-Identifier: Apache-2.0
//
//   1  what is left to do behind 3 is written down (removal_list.h)
//   2  digests of the index without the entries are put beside those of the old one
//   3  that index takes the place of the old one, durable: the removal has taken place
//   4  files go that nothing lies in any more; the new digests take the place of the old ones
//   5  what was written down goes
//
// Cut off before 3 there are files that no reader takes notice of; behind it whatever a reader
// needs of the new index is there. 4 and 5 are done again by the next removal, which looks at what
// is in place: so it need not know where the one before ended.
#include "core/format/torch_dcp/entry_removal.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/format/torch_dcp/dcp_index.h"
#include "core/format/torch_dcp/file_names.h"
#include "core/format/torch_dcp/find_sidecar.h"
#include "core/format/torch_dcp/index_without.h"
#include "core/format/torch_dcp/torch_dcp_checkpoint.h"
#include "core/storage/storage.h"

namespace shardwright::format::torch_dcp {
namespace {

// Of what is being put in place, so that what a killed removal left is known.
constexpr std::string_view kTemporarySuffix = "removal";

class Removal {
 public:
  Removal(const Location& location, const AroundRemoval& around)
      : location_(location), storage_(*location.storage), around_(around) {}

  Result<EntryRemoval> run(const EntryNameRule& goes, bool apply) {
    SHW_ASSIGN_OR_RETURN(const EntryRemoval earlier, finish_earlier(apply));
    SHW_RETURN_IF_ERROR(plan(goes));
    SHW_ASSIGN_OR_RETURN(EntryRemoval removal, removal_of_plan());
    if (apply && !removal.entries.empty()) SHW_RETURN_IF_ERROR(carry_out());
    removal.was_cut_off = earlier.was_cut_off;
    removal.files.insert(removal.files.begin(), earlier.files.begin(), earlier.files.end());
    return removal;
  }
  // What an earlier one has left, its files in the result.
  Result<EntryRemoval> finish_earlier(bool apply) const;

 private:
  std::string key_of(std::string_view name) const {
    return storage::join_key(location_.prefix, name);
  }
  Result<std::vector<std::byte>> read_index() const {
    return storage::read_all(storage_, key_of(kIndexName), kMaxIndexBytes);
  }

  Status plan(const EntryNameRule& goes);
  Result<EntryRemoval> removal_of_plan() const;
  Status carry_out();
  Result<std::vector<std::byte>> make_digests(RemovalList* list) const;
  Status put_index(const RemovalList& list, std::span<const std::byte> digests) const;
  Status finish(const RemovalList& list, std::span<const std::byte> index,
                std::span<const std::string> gone) const;
  Status move_digests(const RemovalList& list, std::span<const std::byte> index) const;
  Status remove(std::string_view name) const;

  const Location& location_;
  storage::Storage& storage_;
  const AroundRemoval& around_;
  std::vector<std::byte> before_;  // the index, after plan
  IndexWithout without_;           // likewise
};

// What is there of some files.
Result<std::vector<EntryRemoval::Part>> present_of(const Location& location,
                                                   std::span<const std::string> names) {
  std::vector<EntryRemoval::Part> parts;
  for (const std::string& name : names) {
    const auto stat = location.storage->stat(storage::join_key(location.prefix, name));
    if (stat.status().code() == StatusCode::kNotFound) continue;
    SHW_RETURN_IF_ERROR(stat.status());
    parts.push_back({name, stat->size_bytes});
  }
  return parts;
}

// Of files to go, those that an index does not name.
std::vector<std::string> unnamed(std::vector<std::string> files, const DcpIndex& index) {
  std::erase_if(files, [&](const std::string& file) {
    return std::ranges::find(index.files, file) != index.files.end();
  });
  return files;
}

Status Removal::plan(const EntryNameRule& goes) {
  SHW_ASSIGN_OR_RETURN(before_, read_index());
  SHW_ASSIGN_OR_RETURN(without_, index_without(before_, goes));
  // An index may say that an item lies in any file; what is no file of data stays.
  std::erase_if(without_.files, [](const std::string& file) { return !is_data_file(file); });
  return {};
}

Result<EntryRemoval> Removal::removal_of_plan() const {
  EntryRemoval removal;
  removal.entries = without_.entries;
  SHW_ASSIGN_OR_RETURN(removal.files, present_of(location_, without_.files));
  return removal;
}

Status Removal::carry_out() {
  const auto after = std::as_bytes(std::span(without_.bytes));
  RemovalList list{digest_text(before_), digest_text(after), without_.files};
  SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> digests, make_digests(&list));
  if (around_.keep) {
    SHW_ASSIGN_OR_RETURN(list.kept, around_.keep());
  }
  const std::string text = encode_removal_list(list);
  SHW_RETURN_IF_ERROR(put_in_place(location_, kRemovalListName, std::as_bytes(std::span(text))));
  SHW_RETURN_IF_ERROR(put_index(list, digests));
  return finish(list, after, list.files);
}

// The digests that the old index has, as those of the new one; none where it has none.
Result<std::vector<std::byte>> Removal::make_digests(RemovalList* list) const {
  SHW_ASSIGN_OR_RETURN(const auto found, find_sidecar(location_, before_, nullptr));
  if (!found.has_value()) return std::vector<std::byte>();
  SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                       storage::read_all(storage_, found->key, kMaxSidecarBytes));
  if (bytes.size() < kSidecarHeaderBytes) return std::vector<std::byte>();
  auto digests = decode_sidecar(found->header, std::span(bytes).subspan(kSidecarHeaderBytes));
  // Those that are damaged are of no use to the index before either.
  if (!digests.ok()) return std::vector<std::byte>();
  list->digests = found->key.substr(found->key.rfind('/') + 1);
  list->new_digests = digests_file_name(list->after);
  return encode_sidecar(sidecar_without(std::move(*digests), without_),
                        std::as_bytes(std::span(without_.bytes)));
}

// Steps 2 and 3.
Status Removal::put_index(const RemovalList& list, std::span<const std::byte> digests) const {
  if (around_.withdraw) SHW_RETURN_IF_ERROR(around_.withdraw());
  if (!list.new_digests.empty())
    SHW_RETURN_IF_ERROR(put_in_place(location_, list.new_digests, digests));
  return put_in_place(location_, kIndexName, std::as_bytes(std::span(without_.bytes)));
}

Result<EntryRemoval> Removal::finish_earlier(bool apply) const {
  EntryRemoval earlier;
  SHW_ASSIGN_OR_RETURN(const auto list, read_removal_list(location_));
  if (!list.has_value()) return earlier;
  earlier.was_cut_off = true;
  SHW_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, read_index());
  SHW_ASSIGN_OR_RETURN(const DcpIndex index, decode_index(bytes, kIndexName));
  const std::vector<std::string> gone = unnamed(list->files, index);
  SHW_ASSIGN_OR_RETURN(earlier.files, present_of(location_, gone));
  if (apply) SHW_RETURN_IF_ERROR(finish(*list, bytes, gone));
  return earlier;
}

// Steps 4 and 5. index: the one that is in place, which names none of what is to go.
Status Removal::finish(const RemovalList& list, std::span<const std::byte> index,
                       std::span<const std::string> gone) const {
  for (const std::string& file : gone) SHW_RETURN_IF_ERROR(remove(file));
  SHW_RETURN_IF_ERROR(move_digests(list, index));
  // Where a save has replaced both indexes, what was kept is of none that is there.
  const std::string now = digest_text(index);
  const bool is_ours = now == list.before || now == list.after;
  if (is_ours && !list.kept.empty() && around_.restore)
    SHW_RETURN_IF_ERROR(around_.restore(list, gone));
  SHW_RETURN_IF_ERROR(sync_names(location_));
  return remove(kRemovalListName);
}

Status Removal::move_digests(const RemovalList& list, std::span<const std::byte> index) const {
  if (list.new_digests.empty()) return {};
  const std::string waiting = key_of(list.new_digests);
  if (digest_text(index) == list.after) {
    const auto bytes = storage::read_all(storage_, waiting, kMaxSidecarBytes);
    if (bytes.ok()) {
      SHW_RETURN_IF_ERROR(put_in_place(location_, list.digests, *bytes));
    } else if (bytes.status().code() != StatusCode::kNotFound) {  // they have been moved
      return bytes.status();
    }
  }
  return remove(list.new_digests);
}

Status Removal::remove(std::string_view name) const {
  return storage_.remove(key_of(name));
}

}  // namespace

Status sync_names(const Location& location) {
  if (location.prefix.empty() && !storage::offers(*location.storage, storage::kDurable)) return {};
  bool supported = false;
  return location.storage->sync_prefix(location.prefix, &supported);
}

Status put_in_place(const Location& location, std::string_view name,
                    std::span<const std::byte> bytes) {
  storage::OpenOptions options;
  options.durable = true;
  options.temporary_suffix = kTemporarySuffix;
  return storage::put_in_place(*location.storage, storage::join_key(location.prefix, name), bytes,
                               std::move(options));
}

Result<EntryRemoval> remove_entries(const Location& location, const EntryNameRule& goes, bool apply,
                                    const AroundRemoval& around) {
  return Removal(location, around).run(goes, apply);
}

Status finish_removal(const Location& location, const AroundRemoval& around) {
  return Removal(location, around).finish_earlier(true).status();
}

}  // namespace shardwright::format::torch_dcp
