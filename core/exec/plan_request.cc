// SPDX-License-Identifier: Apache-2.0
//
// A request that is no checksum ends with one byte that says what it is; the plan buffer in it
// thus keeps its alignment. A reply is its kind in one byte and then, for a plan, its digest, the
// digest of the local plan that it is about, world, number of sets, sets (number, position, size,
// counts of tensors and objects, their numbers; 32 bits each), number of bits, their words, the
// order behind its length, generation; for a plan as before, the generation. Little-endian.
#include "core/exec/plan_request_internal.h"

#include <bit>
#include <cstring>
#include <type_traits>

#include <fmt/format.h>

namespace shardwright::exec::internal {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers travel in little-endian order");

template <typename Value>
void append(Bytes* bytes, const Value& value) {
  static_assert(std::is_trivially_copyable_v<Value>);
  const auto* first = reinterpret_cast<const std::byte*>(&value);
  bytes->insert(bytes->end(), first, first + sizeof(value));
}

void append_numbers(Bytes* bytes, std::span<const uint32_t> numbers) {
  const std::span<const std::byte> raw = std::as_bytes(numbers);
  bytes->insert(bytes->end(), raw.begin(), raw.end());
}

enum class RequestKind : uint8_t { kNothing = 1, kDigest = 2, kDescription = 3 };

bool asks(PlanReply::Kind kind) {
  return kind == PlanReply::Kind::kSendRequest || kind == PlanReply::Kind::kSendDescription ||
         kind == PlanReply::Kind::kWait;
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename Value>
  bool read(Value* value) {
    if (bytes_.size() < sizeof(*value)) return false;
    std::memcpy(value, bytes_.data(), sizeof(*value));
    bytes_ = bytes_.subspan(sizeof(*value));
    return true;
  }
  // count numbers below limit.
  bool read(uint32_t count, size_t limit, std::vector<uint32_t>* numbers) {
    if (bytes_.size() / sizeof(uint32_t) < count) return false;
    numbers->resize(count);
    for (uint32_t& number : *numbers) {
      if (!read(&number) || number >= limit) return false;
    }
    return true;
  }
  std::span<const std::byte> rest() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

bool read_set(Reader* reader, size_t tensors, size_t objects, plan::ReplicaSet* set) {
  uint32_t tensor_count = 0;
  uint32_t object_count = 0;
  return reader->read(&set->number) && reader->read(&set->position) && reader->read(&set->size) &&
         set->size >= 2 && set->position < set->size && reader->read(&tensor_count) &&
         reader->read(&object_count) && reader->read(tensor_count, tensors, &set->tensors) &&
         reader->read(object_count, objects, &set->objects);
}

bool read_sets(Reader* reader, size_t tensors, size_t objects, plan::ReplicaSets* sets) {
  uint32_t count = 0;
  if (!reader->read(&count)) return false;
  for (uint32_t i = 0; i < count; ++i) {
    if (!read_set(reader, tensors, objects, &sets->emplace_back())) return false;
  }
  return true;
}

bool read_bits(Reader* reader, PlanReply* reply) {
  constexpr uint64_t kWordBits = 64;
  if (!reader->read(&reply->bit_count)) return false;
  const uint64_t words = reply->bit_count / kWordBits + (reply->bit_count % kWordBits != 0);
  if (reader->rest().size() / sizeof(uint64_t) < words) return false;
  reply->kept.resize(static_cast<size_t>(words));
  for (uint64_t& word : reply->kept) {
    if (!reader->read(&word)) return false;
  }
  const uint64_t rest = reply->bit_count % kWordBits;
  return rest == 0 || reply->kept.back() >> rest == 0;
}

bool read_order(Reader* reader, std::vector<uint32_t>* order) {
  uint32_t count = 0;
  if (!reader->read(&count) || !reader->read(count, count, order)) return false;
  std::vector<bool> listed(order->size(), false);
  for (const uint32_t entry : *order) {
    if (listed[entry]) return false;
    listed[entry] = true;
  }
  return true;
}

// False when the request cannot be read.
bool read_request(size_t rank, std::span<const std::byte> request, PlanRequests* read) {
  Reader reader(request);
  if (request.size() == sizeof(plan::Checksum)) {
    plan::Checksum checksum;
    ++read->checksum_count;
    if (!reader.read(&checksum)) return false;
    read->sum += checksum;
    return true;
  }
  if (request.empty()) return false;
  const auto kind = static_cast<RequestKind>(request.back());
  reader = Reader(request.first(request.size() - sizeof(kind)));
  switch (kind) {
    case RequestKind::kNothing:
      return reader.rest().empty();
    case RequestKind::kDigest:
      if (!reader.read(&read->keys.emplace_back()) || !reader.read(&read->digests.emplace_back()))
        return false;
      if (!reader.rest().empty()) read->parts.push_back({rank, reader.rest()});
      return true;
    case RequestKind::kDescription:
      read->descriptions.push_back({rank, reader.rest()});
      return true;
  }
  return false;
}

}  // namespace

Bytes encode_request(const plan::Checksum& checksum) {
  Bytes bytes;
  append(&bytes, checksum);
  return bytes;
}

Bytes encode_request(const Digest128& key, const Digest128& description,
                     std::span<const std::byte> part) {
  Bytes bytes;
  append(&bytes, key);
  append(&bytes, description);
  bytes.insert(bytes.end(), part.begin(), part.end());
  append(&bytes, RequestKind::kDigest);
  return bytes;
}

Bytes encode_description_request(std::span<const std::byte> description) {
  Bytes bytes(description.begin(), description.end());
  append(&bytes, RequestKind::kDescription);
  return bytes;
}

Bytes encode_empty_request() {
  Bytes bytes;
  append(&bytes, RequestKind::kNothing);
  return bytes;
}

Result<PlanRequests> read_requests(std::span<const Bytes> requests) {
  PlanRequests read;
  for (size_t rank = 0; rank < requests.size(); ++rank) {
    if (!read_request(rank, requests[rank], &read)) {
      return invalid_argument(
                 fmt::format("rank {} sent a plan of {} bytes", rank, requests[rank].size()))
          .with_detail("rank", fmt::to_string(rank));
    }
  }
  return read;
}

Bytes encode_reply(const PlanReply& reply) {
  Bytes bytes;
  append(&bytes, reply.kind);
  if (reply.kind == PlanReply::Kind::kPlan) {
    append(&bytes, reply.plan_digest);
    append(&bytes, reply.local_digest);
    append(&bytes, reply.world);
    append(&bytes, static_cast<uint32_t>(reply.sets.size()));
    for (const plan::ReplicaSet& set : reply.sets) {
      append_numbers(&bytes, std::array{set.number, set.position, set.size,
                                        static_cast<uint32_t>(set.tensors.size()),
                                        static_cast<uint32_t>(set.objects.size())});
      append_numbers(&bytes, set.tensors);
      append_numbers(&bytes, set.objects);
    }
    append(&bytes, reply.bit_count);
    for (const uint64_t word : reply.kept) append(&bytes, word);
    append(&bytes, static_cast<uint32_t>(reply.order.size()));
    append_numbers(&bytes, reply.order);
  }
  if (reply.kind == PlanReply::Kind::kPlan || reply.kind == PlanReply::Kind::kAsBefore) {
    const std::span<const std::byte> text = std::as_bytes(std::span(reply.generation));
    bytes.insert(bytes.end(), text.begin(), text.end());
  }
  return bytes;
}

Result<PlanReply> decode_reply(std::span<const std::byte> bytes, size_t tensors, size_t objects) {
  PlanReply reply;
  Reader reader(bytes);
  bool sound = reader.read(&reply.kind);
  switch (reply.kind) {
    case PlanReply::Kind::kPlan:
      sound = sound && reader.read(&reply.plan_digest) && reader.read(&reply.local_digest) &&
              reader.read(&reply.world) && read_sets(&reader, tensors, objects, &reply.sets) &&
              read_bits(&reader, &reply) && read_order(&reader, &reply.order);
      [[fallthrough]];
    case PlanReply::Kind::kAsBefore:
      reply.generation.assign(reinterpret_cast<const char*>(reader.rest().data()),
                              reader.rest().size());
      break;
    default:
      sound = sound && asks(reply.kind) && reader.rest().empty();
  }
  if (sound) return reply;
  return data_loss(fmt::format("the coordinator's reply of {} bytes cannot be read", bytes.size()))
      .with_detail("rank", "0");
}

bool asks_again(std::span<const std::byte> reply) {
  if (reply.size() != sizeof(PlanReply::Kind)) return false;
  return asks(static_cast<PlanReply::Kind>(reply[0]));
}

}  // namespace shardwright::exec::internal
