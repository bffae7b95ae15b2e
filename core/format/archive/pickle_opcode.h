// SPDX-License-Identifier: Apache-2.0
//
// Opcodes of pickle protocols 0 to 5 and what follows each in the stream. The codes are frozen by
// the format (CPython's pickletools describes them). Immutable.
#pragma once

#include <cstdint>
#include <string_view>

namespace shardwright::format::archive {

enum class PickleOpcode : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kFloat = 'F',
  kInt = 'I',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kLong = 'L',
  kBinInt2 = 'M',
  kNone = 'N',
  kPersId = 'P',
  kBinPersId = 'Q',
  kReduce = 'R',
  kString = 'S',
  kBinString = 'T',
  kShortBinString = 'U',
  kUnicode = 'V',
  kBinUnicode = 'X',
  kAppend = 'a',
  kBuild = 'b',
  kGlobal = 'c',
  kDict = 'd',
  kEmptyDict = '}',
  kAppends = 'e',
  kGet = 'g',
  kBinGet = 'h',
  kInst = 'i',
  kLongBinGet = 'j',
  kList = 'l',
  kEmptyList = ']',
  kObj = 'o',
  kPut = 'p',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kEmptyTuple = ')',
  kSetItems = 'u',
  kBinFloat = 'G',
  kProto = 0x80,
  kNewObj = 0x81,
  kExt1 = 0x82,
  kExt2 = 0x83,
  kExt4 = 0x84,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kFrozenSet = 0x91,
  kNewObjEx = 0x92,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
  kByteArray8 = 0x96,
  kNextBuffer = 0x97,
  kReadonlyBuffer = 0x98,
};

// What follows the byte of the opcode. Integers are little-endian.
enum class PickleArgument : uint8_t {
  kUnknown,   // there is no such opcode
  kNone,      //
  kEnd,       // nothing, and nothing comes behind it
  kUint1,     //
  kUint2,     //
  kUint4,     //
  kInt4,      // signed
  kFloat8,    // big-endian
  kBytes1,    // bytes behind their count in 1 byte
  kBytes4,    //
  kBytes8,    //
  kSigned4,   // bytes behind a signed count in 4 bytes
  kFrame,     // a count in 8 bytes; what it counts are opcodes
  kLine,      // text up to a newline
  kTwoLines,  //
};

struct PickleOpcodeInfo {
  std::string_view name;  // as pickletools names it, "" = unknown
  PickleArgument argument = PickleArgument::kUnknown;
};

const PickleOpcodeInfo& pickle_opcode_info(PickleOpcode opcode);
// The arguments alone, of all 256 bytes.
const PickleArgument* pickle_arguments();

}  // namespace shardwright::format::archive
