// SPDX-License-Identifier: Apache-2.0
//
// PickleTokens: the opcodes of a pickle one by one, with their arguments. Every length is checked
// against the input before it is believed, and a frame against the opcodes in it: an opcode lies in
// its frame whole, and a frame begins where no other is open. What opcodes mean is not looked at.
// Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/format/archive/pickle_opcode.h"

namespace shardwright::format::archive {

struct PickleToken {
  uint64_t offset = 0;  // of the opcode in the input
  PickleOpcode opcode = PickleOpcode::kStop;
  int64_t number = 0;            // integer arguments; bits of a FLOAT8
  std::string_view data = {};    // counted bytes, or the first line without its newline
  std::string_view second = {};  // the second line
};

class PickleTokens {
 public:
  // input outlives the tokens; file: what messages call it.
  PickleTokens(std::span<const std::byte> input, std::string_view file);

  // False at the end of what can be read: status() then says why. There is no token behind STOP.
  bool next(PickleToken* token) {
    token->offset = position_;
    if (position_ >= end_) return end_of_input();
    token->opcode = static_cast<PickleOpcode>(begin_[position_++]);
    const PickleArgument argument = arguments_[static_cast<uint8_t>(token->opcode)];
    if (argument != PickleArgument::kNone && !read_argument(argument, token)) return false;
    return position_ < frame_end_ || leave_frame(*token);
  }
  // DATA_LOSS naming file, opcode and offset; UNIMPLEMENTED for a protocol above 5.
  const Status& status() const { return status_; }
  // Behind the last token.
  uint64_t position() const { return position_; }
  int protocol() const { return protocol_; }  // 0 until PROTO says more

  // A failure at an opcode, in the words of all failures of a pickle.
  static Status failure(std::string_view file, const PickleToken& token, std::string_view what);

 private:
  bool fail(const PickleToken& token, std::string_view what);
  bool read_argument(PickleArgument argument, PickleToken* token);
  template <typename Number>
  bool read_number(PickleToken* token);
  template <typename Number>
  bool read_counted(PickleToken* token);
  bool read_line(const PickleToken& token, std::string_view* line);
  bool check_protocol(const PickleToken& token);
  bool begin_frame(const PickleToken& token);
  bool leave_frame(const PickleToken& token);
  bool end_of_pickle(const PickleToken& token);
  bool end_of_input();
  uint64_t left() const { return end_ - position_; }

  static constexpr uint64_t kNoFrame = UINT64_MAX;

  const PickleArgument* arguments_;  // by opcode
  const char* begin_;
  uint64_t end_;  // 0 = nothing more is read
  uint64_t position_ = 0;
  uint64_t frame_end_ = kNoFrame;
  int protocol_ = 0;
  std::string file_;
  Status status_;
};

}  // namespace shardwright::format::archive
