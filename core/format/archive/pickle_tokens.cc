// SPDX-License-Identifier: Apache-2.0
#include "core/format/archive/pickle_tokens.h"

#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "core/base/text.h"

namespace shardwright::format::archive {
namespace {

constexpr int kNewestProtocol = 5;

}  // namespace

Status PickleTokens::failure(std::string_view file, const PickleToken& token,
                             std::string_view what) {
  const std::string_view name = pickle_opcode_info(token.opcode).name;
  const std::string opcode = name.empty()
                                 ? fmt::format("byte 0x{:02x}", static_cast<uint8_t>(token.opcode))
                                 : std::string(name);
  return data_loss(fmt::format("file '{}': {} at offset {} of its pickle {}", escape_text(file),
                               opcode, token.offset, what))
      .with_detail("file", file)
      .with_detail("offset", fmt::to_string(token.offset));
}

PickleTokens::PickleTokens(std::span<const std::byte> input, std::string_view file)
    : arguments_(pickle_arguments()),
      begin_(reinterpret_cast<const char*>(input.data())),
      end_(input.size()),
      file_(file) {}

bool PickleTokens::fail(const PickleToken& token, std::string_view what) {
  status_ = failure(file_, token, what);
  end_ = 0;
  return false;
}

bool PickleTokens::end_of_input() {
  if (end_ == 0 && position_ > 0) return false;  // STOP or a failure came before
  status_ = data_loss(fmt::format("file '{}': its pickle ends at offset {} without STOP",
                                  escape_text(file_), position_))
                .with_detail("file", file_)
                .with_detail("offset", fmt::to_string(position_));
  end_ = 0;
  return false;
}

template <typename Number>
bool PickleTokens::read_number(PickleToken* token) {
  if (left() < sizeof(Number)) return fail(*token, "ends with the input in its argument");
  Number value = 0;
  std::memcpy(&value, begin_ + position_, sizeof(Number));
  position_ += sizeof(Number);
  token->number = static_cast<int64_t>(value);
  return true;
}

template <typename Number>
bool PickleTokens::read_counted(PickleToken* token) {
  if (!read_number<Number>(token)) return false;
  if (token->number < 0) return fail(*token, "has a count of bytes that is out of range");
  const auto count = static_cast<uint64_t>(token->number);
  if (count > left()) {
    return fail(*token, fmt::format("counts {} bytes where {} are left", count, left()));
  }
  token->data = {begin_ + position_, count};
  position_ += count;
  return true;
}

bool PickleTokens::read_argument(PickleArgument argument, PickleToken* token) {
  switch (argument) {
    case PickleArgument::kUint1:
      return read_number<uint8_t>(token) &&
             (token->opcode != PickleOpcode::kProto || check_protocol(*token));
    case PickleArgument::kUint2:
      return read_number<uint16_t>(token);
    case PickleArgument::kUint4:
      return read_number<uint32_t>(token);
    case PickleArgument::kInt4:
      return read_number<int32_t>(token);
    case PickleArgument::kFloat8:
      if (!read_number<uint64_t>(token)) return false;
      token->number =
          std::bit_cast<int64_t>(__builtin_bswap64(std::bit_cast<uint64_t>(token->number)));
      return true;
    case PickleArgument::kBytes1:
      return read_counted<uint8_t>(token);
    case PickleArgument::kBytes4:
      return read_counted<uint32_t>(token);
    case PickleArgument::kBytes8:
      return read_counted<uint64_t>(token);
    case PickleArgument::kSigned4:
      return read_counted<int32_t>(token);
    case PickleArgument::kFrame:
      return read_number<uint64_t>(token) && begin_frame(*token);
    case PickleArgument::kLine:
      return read_line(*token, &token->data);
    case PickleArgument::kTwoLines:
      return read_line(*token, &token->data) && read_line(*token, &token->second);
    case PickleArgument::kNone:
      return true;
    case PickleArgument::kEnd:
      return end_of_pickle(*token);
    case PickleArgument::kUnknown:
      break;
  }
  return fail(*token, "is no opcode");
}

bool PickleTokens::read_line(const PickleToken& token, std::string_view* line) {
  const std::string_view rest(begin_ + position_, left());
  const size_t end = rest.find('\n');
  if (end == std::string_view::npos) return fail(token, "has no newline behind its text");
  *line = rest.substr(0, end);
  position_ += end + 1;
  return true;
}

bool PickleTokens::check_protocol(const PickleToken& token) {
  if (token.number <= kNewestProtocol) {
    protocol_ = static_cast<int>(token.number);
    return true;
  }
  status_ = unimplemented(fmt::format("file '{}': its pickle is of protocol {}, {} is the newest "
                                      "that is known",
                                      escape_text(file_), token.number, kNewestProtocol))
                .with_detail("file", file_)
                .with_detail("offset", fmt::to_string(token.offset));
  end_ = 0;
  return false;
}

bool PickleTokens::begin_frame(const PickleToken& token) {
  if (frame_end_ != kNoFrame) return fail(token, "begins inside another frame");
  const auto count = std::bit_cast<uint64_t>(token.number);
  if (count > left())
    return fail(token, fmt::format("counts {} bytes where {} are left", count, left()));
  if (count > 0) frame_end_ = position_ + count;
  return true;
}

bool PickleTokens::leave_frame(const PickleToken& token) {
  if (position_ > frame_end_) return fail(token, "leaves the frame in which it begins");
  frame_end_ = kNoFrame;
  return true;
}

bool PickleTokens::end_of_pickle(const PickleToken& token) {
  if (frame_end_ != kNoFrame && frame_end_ != position_)
    return fail(token, "comes before the end of its frame");
  end_ = 0;
  return true;
}

}  // namespace shardwright::format::archive
