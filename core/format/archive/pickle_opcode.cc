// SPDX-License-Identifier: Apache-2.0
#include "core/format/archive/pickle_opcode.h"

#include <array>

namespace shardwright::format::archive {
namespace {

struct Row {
  PickleOpcode opcode;
  PickleOpcodeInfo info;
};

using enum PickleOpcode;

constexpr Row kRows[] = {
    {kMark, {"MARK", PickleArgument::kNone}},
    {kStop, {"STOP", PickleArgument::kEnd}},
    {kPop, {"POP", PickleArgument::kNone}},
    {kPopMark, {"POP_MARK", PickleArgument::kNone}},
    {kDup, {"DUP", PickleArgument::kNone}},
    {kFloat, {"FLOAT", PickleArgument::kLine}},
    {kInt, {"INT", PickleArgument::kLine}},
    {kBinInt, {"BININT", PickleArgument::kInt4}},
    {kBinInt1, {"BININT1", PickleArgument::kUint1}},
    {kLong, {"LONG", PickleArgument::kLine}},
    {kBinInt2, {"BININT2", PickleArgument::kUint2}},
    {kNone, {"NONE", PickleArgument::kNone}},
    {kPersId, {"PERSID", PickleArgument::kLine}},
    {kBinPersId, {"BINPERSID", PickleArgument::kNone}},
    {kReduce, {"REDUCE", PickleArgument::kNone}},
    {kString, {"STRING", PickleArgument::kLine}},
    {kBinString, {"BINSTRING", PickleArgument::kSigned4}},
    {kShortBinString, {"SHORT_BINSTRING", PickleArgument::kBytes1}},
    {kUnicode, {"UNICODE", PickleArgument::kLine}},
    {kBinUnicode, {"BINUNICODE", PickleArgument::kBytes4}},
    {kAppend, {"APPEND", PickleArgument::kNone}},
    {kBuild, {"BUILD", PickleArgument::kNone}},
    {kGlobal, {"GLOBAL", PickleArgument::kTwoLines}},
    {kDict, {"DICT", PickleArgument::kNone}},
    {kEmptyDict, {"EMPTY_DICT", PickleArgument::kNone}},
    {kAppends, {"APPENDS", PickleArgument::kNone}},
    {kGet, {"GET", PickleArgument::kLine}},
    {kBinGet, {"BINGET", PickleArgument::kUint1}},
    {kInst, {"INST", PickleArgument::kTwoLines}},
    {kLongBinGet, {"LONG_BINGET", PickleArgument::kUint4}},
    {kList, {"LIST", PickleArgument::kNone}},
    {kEmptyList, {"EMPTY_LIST", PickleArgument::kNone}},
    {kObj, {"OBJ", PickleArgument::kNone}},
    {kPut, {"PUT", PickleArgument::kLine}},
    {kBinPut, {"BINPUT", PickleArgument::kUint1}},
    {kLongBinPut, {"LONG_BINPUT", PickleArgument::kUint4}},
    {kSetItem, {"SETITEM", PickleArgument::kNone}},
    {kTuple, {"TUPLE", PickleArgument::kNone}},
    {kEmptyTuple, {"EMPTY_TUPLE", PickleArgument::kNone}},
    {kSetItems, {"SETITEMS", PickleArgument::kNone}},
    {kBinFloat, {"BINFLOAT", PickleArgument::kFloat8}},
    {kProto, {"PROTO", PickleArgument::kUint1}},
    {kNewObj, {"NEWOBJ", PickleArgument::kNone}},
    {kExt1, {"EXT1", PickleArgument::kUint1}},
    {kExt2, {"EXT2", PickleArgument::kUint2}},
    {kExt4, {"EXT4", PickleArgument::kInt4}},
    {kTuple1, {"TUPLE1", PickleArgument::kNone}},
    {kTuple2, {"TUPLE2", PickleArgument::kNone}},
    {kTuple3, {"TUPLE3", PickleArgument::kNone}},
    {kNewTrue, {"NEWTRUE", PickleArgument::kNone}},
    {kNewFalse, {"NEWFALSE", PickleArgument::kNone}},
    {kLong1, {"LONG1", PickleArgument::kBytes1}},
    {kLong4, {"LONG4", PickleArgument::kSigned4}},
    {kBinBytes, {"BINBYTES", PickleArgument::kBytes4}},
    {kShortBinBytes, {"SHORT_BINBYTES", PickleArgument::kBytes1}},
    {kShortBinUnicode, {"SHORT_BINUNICODE", PickleArgument::kBytes1}},
    {kBinUnicode8, {"BINUNICODE8", PickleArgument::kBytes8}},
    {kBinBytes8, {"BINBYTES8", PickleArgument::kBytes8}},
    {kEmptySet, {"EMPTY_SET", PickleArgument::kNone}},
    {kAddItems, {"ADDITEMS", PickleArgument::kNone}},
    {kFrozenSet, {"FROZENSET", PickleArgument::kNone}},
    {kNewObjEx, {"NEWOBJ_EX", PickleArgument::kNone}},
    {kStackGlobal, {"STACK_GLOBAL", PickleArgument::kNone}},
    {kMemoize, {"MEMOIZE", PickleArgument::kNone}},
    {kFrame, {"FRAME", PickleArgument::kFrame}},
    {kByteArray8, {"BYTEARRAY8", PickleArgument::kBytes8}},
    {kNextBuffer, {"NEXT_BUFFER", PickleArgument::kNone}},
    {kReadonlyBuffer, {"READONLY_BUFFER", PickleArgument::kNone}},
};

constexpr auto kTable = [] {
  std::array<PickleOpcodeInfo, 256> table{};
  for (const Row& row : kRows) table[static_cast<uint8_t>(row.opcode)] = row.info;
  return table;
}();

constexpr auto kArguments = [] {
  std::array<PickleArgument, 256> arguments{};
  for (size_t code = 0; code < arguments.size(); ++code) arguments[code] = kTable[code].argument;
  return arguments;
}();

}  // namespace

const PickleArgument* pickle_arguments() {
  return kArguments.data();
}

const PickleOpcodeInfo& pickle_opcode_info(PickleOpcode opcode) {
  return kTable[static_cast<uint8_t>(opcode)];
}

}  // namespace shardwright::format::archive
