// SPDX-License-Identifier: Apache-2.0
//
// An offer that is no share ends with one byte that says what it is; the plan buffer in it thus
// keeps its alignment. An answer is its kind in one byte and then, for a plan, its digest, the
// digest that it answers, world, number of sets, sets (number, position, size, counts of tensors
// and objects, their numbers; 32 bits each), number of bits, their words, the order behind its
// length, generation; for a plan as before, the generation. Little-endian.
#include "core/exec/plan_offer_internal.h"

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

enum class OfferKind : uint8_t { kNothing = 1, kDigest = 2, kDescription = 3 };

bool asks(Answer::Kind kind) {
  return kind == Answer::Kind::kSendOffer || kind == Answer::Kind::kSendDescription ||
         kind == Answer::Kind::kWait;
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

bool read_bits(Reader* reader, Answer* answer) {
  constexpr uint64_t kWordBits = 64;
  if (!reader->read(&answer->bit_count)) return false;
  const uint64_t words = answer->bit_count / kWordBits + (answer->bit_count % kWordBits != 0);
  if (reader->rest().size() / sizeof(uint64_t) < words) return false;
  answer->kept.resize(static_cast<size_t>(words));
  for (uint64_t& word : answer->kept) {
    if (!reader->read(&word)) return false;
  }
  const uint64_t rest = answer->bit_count % kWordBits;
  return rest == 0 || answer->kept.back() >> rest == 0;
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

// False when the offer cannot be read.
bool read_offer(size_t rank, std::span<const std::byte> offer, Offers* read) {
  Reader reader(offer);
  if (offer.size() == sizeof(plan::Share)) {
    plan::Share share;
    ++read->share_count;
    if (!reader.read(&share)) return false;
    read->sum += share;
    return true;
  }
  if (offer.empty()) return false;
  const auto kind = static_cast<OfferKind>(offer.back());
  reader = Reader(offer.first(offer.size() - sizeof(kind)));
  switch (kind) {
    case OfferKind::kNothing:
      return reader.rest().empty();
    case OfferKind::kDigest:
      if (!reader.read(&read->keys.emplace_back()) || !reader.read(&read->digests.emplace_back()))
        return false;
      if (!reader.rest().empty()) read->parts.push_back({rank, reader.rest()});
      return true;
    case OfferKind::kDescription:
      read->descriptions.push_back({rank, reader.rest()});
      return true;
  }
  return false;
}

}  // namespace

Bytes encode_offer(const plan::Share& share) {
  Bytes bytes;
  append(&bytes, share);
  return bytes;
}

Bytes encode_offer(const Digest128& key, const Digest128& description,
                   std::span<const std::byte> part) {
  Bytes bytes;
  append(&bytes, key);
  append(&bytes, description);
  bytes.insert(bytes.end(), part.begin(), part.end());
  append(&bytes, OfferKind::kDigest);
  return bytes;
}

Bytes encode_description_offer(std::span<const std::byte> description) {
  Bytes bytes(description.begin(), description.end());
  append(&bytes, OfferKind::kDescription);
  return bytes;
}

Bytes encode_empty_offer() {
  Bytes bytes;
  append(&bytes, OfferKind::kNothing);
  return bytes;
}

Result<Offers> read_offers(std::span<const Bytes> offers) {
  Offers read;
  for (size_t rank = 0; rank < offers.size(); ++rank) {
    if (!read_offer(rank, offers[rank], &read)) {
      return invalid_argument(
                 fmt::format("rank {} offered a plan of {} bytes", rank, offers[rank].size()))
          .with_detail("rank", fmt::to_string(rank));
    }
  }
  return read;
}

Bytes encode_answer(const Answer& answer) {
  Bytes bytes;
  append(&bytes, answer.kind);
  if (answer.kind == Answer::Kind::kPlan) {
    append(&bytes, answer.plan_digest);
    append(&bytes, answer.local_digest);
    append(&bytes, answer.world);
    append(&bytes, static_cast<uint32_t>(answer.sets.size()));
    for (const plan::ReplicaSet& set : answer.sets) {
      append_numbers(&bytes, std::array{set.number, set.position, set.size,
                                        static_cast<uint32_t>(set.tensors.size()),
                                        static_cast<uint32_t>(set.objects.size())});
      append_numbers(&bytes, set.tensors);
      append_numbers(&bytes, set.objects);
    }
    append(&bytes, answer.bit_count);
    for (const uint64_t word : answer.kept) append(&bytes, word);
    append(&bytes, static_cast<uint32_t>(answer.order.size()));
    append_numbers(&bytes, answer.order);
  }
  if (answer.kind == Answer::Kind::kPlan || answer.kind == Answer::Kind::kAsBefore) {
    const std::span<const std::byte> text = std::as_bytes(std::span(answer.generation));
    bytes.insert(bytes.end(), text.begin(), text.end());
  }
  return bytes;
}

Result<Answer> decode_answer(std::span<const std::byte> bytes, size_t tensors, size_t objects) {
  Answer answer;
  Reader reader(bytes);
  bool sound = reader.read(&answer.kind);
  switch (answer.kind) {
    case Answer::Kind::kPlan:
      sound = sound && reader.read(&answer.plan_digest) && reader.read(&answer.local_digest) &&
              reader.read(&answer.world) && read_sets(&reader, tensors, objects, &answer.sets) &&
              read_bits(&reader, &answer) && read_order(&reader, &answer.order);
      [[fallthrough]];
    case Answer::Kind::kAsBefore:
      answer.generation.assign(reinterpret_cast<const char*>(reader.rest().data()),
                               reader.rest().size());
      break;
    default:
      sound = sound && asks(answer.kind) && reader.rest().empty();
  }
  if (sound) return answer;
  return data_loss(fmt::format("the coordinator's answer of {} bytes cannot be read", bytes.size()))
      .with_detail("rank", "0");
}

bool asks_for_offer(std::span<const std::byte> answer) {
  if (answer.size() != sizeof(Answer::Kind)) return false;
  return asks(static_cast<Answer::Kind>(answer[0]));
}

}  // namespace shardwright::exec::internal
