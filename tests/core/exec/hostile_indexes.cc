// SPDX-License-Identifier: Apache-2.0
//
// Indexes of torch DCP, and the files that they name.
#include <sys/stat.h>

#include <gtest/gtest.h>

#include "tests/core/exec/hostile_rows.h"

namespace shardwright::exec::test {

using enum StatusCode;
using format::archive::test::archive_of;
using format::archive::test::kCentral;
using format::archive::test::kLocal;
using format::archive::test::patch;
using format::torch_dcp::test::index_of;
using format::torch_dcp::test::packed;
using format::torch_dcp::test::place_items;
using format::torch_dcp::test::tensor_item;
using format::torch_dcp::test::value_item;
using std::string_literals::operator""s;

namespace {

// The index of the sound sample with something in front of its STOP, or in place of its end.
std::string with_tail(std::string_view tail) {
  SampleDirectory directory = sample();
  place_items(&directory);
  std::string pickle = index_of(directory);
  pickle.pop_back();
  return pickle + std::string(tail);
}

std::string repeated(std::string_view text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

}  // namespace

// Pickles that would run something.
std::vector<Row> index_calls() {
  return {
      index("a command", "cposix\nsystem\n(S'id'\ntR.", kPermissionDenied, "posix.system"),
      index("a command of protocol 4", "\x80\x04\x8C\x05posix\x8C\x06system\x93\x8C\x02id\x85R.",
            kPermissionDenied, "posix.system"),
      index("eval", "c__builtin__\neval\n(S'1'\ntR.", kPermissionDenied, "__builtin__.eval"),
      index("exec", "cbuiltins\nexec\n(S'1'\ntR.", kPermissionDenied, "builtins.exec"),
      index("a subprocess", "csubprocess\nPopen\n(S'id'\ntR.", kPermissionDenied,
            "subprocess.Popen"),
      index("remote code", "ctorch.hub\nload\n(S'a'\nS'b'\ntR.", kPermissionDenied,
            "torch.hub.load"),
      index("a pickle in a pickle", "cpickle\nloads\n(S'N.'\ntR.", kPermissionDenied,
            "pickle.loads"),
      index("a storage from bytes", "ctorch.storage\n_load_from_bytes\n(S'N.'\ntR.",
            kPermissionDenied, "_load_from_bytes"),
      index("a chain of getattr", "cbuiltins\ngetattr\ncos\npath\n\x8C\x02os\x86R.",
            kPermissionDenied, "builtins.getattr"),
      index("a nested name", "\x8C\x05torch\x8C\x09os.system\x93\x8C\x02id\x85R.",
            kPermissionDenied, "torch.os.system"),
      index("a call that is dropped", "cposix\nsystem\n(S'id'\ntR0N.", kPermissionDenied,
            "posix.system"),
      index("a call behind the value", with_tail("cposix\nsystem\n(S'id'\ntR0."), kPermissionDenied,
            "posix.system"),
      index("a call of what is computed", "ctorch\nSize\n)R)R.", kPermissionDenied, "computed"),
      index("INST", "(S'id'\nios\nsystem\n.", kPermissionDenied, "os.system"),
      index("OBJ", "(cos\nsystem\nS'id'\no.", kPermissionDenied, "os.system"),
      index("NEWOBJ_EX", "\x80\x04"s + "cos\nPathLike\n)}\x92.", kDataLoss, "NEWOBJ_EX"),
      index("an extension", "\x80\x02\x82\x05)R.", kDataLoss, "EXT1"),
      index("a persistent id", "Pid\n.", kDataLoss, "PERSID"),
      index("a persistent value", "K\x01Q.", kDataLoss, "BINPERSID"),
  };
}

// Pickles that break who reads them.
std::vector<Row> index_lengths() {
  return {
      index("values deeper than any index has", repeated("]", 3000) + repeated("a", 2999) + ".",
            kDataLoss, "nests"),
      index("a frame behind the end",
            "\x80\x04\x95"s + std::string("\xFF\xFF\xFF\0\0\0\0\0", 8) + "N.", kDataLoss, "FRAME"),
      index("a frame that ends in an opcode",
            "\x80\x04\x95"s + std::string("\x02\0\0\0\0\0\0\0", 8) + "\x8C\x05hello.", kDataLoss,
            "frame"),
      index("a text behind the end", "X"s + std::string("\xFF\xFF\xFF\x7F", 4) + "ab.", kDataLoss,
            "BINUNICODE"),
      index("a text of 2^63 bytes", "\x8D"s + std::string("\0\0\0\0\0\0\0\x80", 8) + "ab.",
            kDataLoss, "BINUNICODE8"),
      index("bytes of 2^63 bytes", "\x8E"s + std::string("\0\0\0\0\0\0\0\x80", 8) + "ab.",
            kDataLoss, "BINBYTES8"),
      index("a number of fewer than no bytes", "\x8B\xFF\xFF\xFF\xFF.", kDataLoss, "LONG4"),
      index("no STOP", with_tail(""), kDataLoss, ""),
      index("bytes behind STOP", with_tail(".."), kDataLoss, "behind its pickle"),
      index("a newer protocol", "\x80\x06N.", kUnimplemented, "protocol"),
      index("no opcode", "\x80\x04\xFF.", kDataLoss, ""),
      index("a memo entry that nobody made", "\x80\x04h\x05.", kDataLoss, "BINGET"),
      index("an empty stack", "\x80\x04R.", kDataLoss, "stack"),
      index("a buffer outside of it", "\x80\x05\x97.", kUnimplemented, "NEXT_BUFFER"),
      index("nothing", "", kDataLoss, ""),
      index("no pickle at all", "no pickle at all", kDataLoss, ""),
      index("another value",
            "]K\x01"
            "a.",
            kDataLoss, "Metadata"),
      index("an empty Metadata", "ctorch.distributed.checkpoint.metadata\nMetadata\n)\x81}b.",
            kDataLoss, "state_dict_metadata"),
      index(
          "names of one text again and again",
          [] {
            // 100,000 entries whose 1,000-byte name stands once.
            std::string pickle =
                "\x80\x04"
                "ctorch.distributed.checkpoint.metadata\nMetadata\n)\x81}(";
            pickle += "X\x13"s + "\0\0\0"s + "state_dict_metadata}(X\xE8\x03\0\0"s +
                      std::string(1000, 'n') + "q\x01" +
                      "ctorch.distributed.checkpoint.metadata\nBytesStorageMetadata\n)\x81q\x02";
            pickle += repeated("h\x01h\x02", 100000) + "uub.";
            return pickle;
          }(),
          kResourceExhausted, "again and again"),
  };
}

// Indexes that are sound pickles: boxes that cannot be.
std::vector<Row> index_boxes() {
  const auto first = [](auto change) {
    return [change](SampleDirectory* directory) { change(&directory->tensors[0].chunks[0]); };
  };
  return {
      places("chunks that overlap", first([](auto* chunk) { chunk->sizes = {3, 2}; }), kDataLoss,
             "'w'"),
      places("a hole between chunks", first([](auto* chunk) { chunk->sizes = {1, 2}; }), kDataLoss,
             "'w'"),
      places(
          "a chunk too few",
          [](SampleDirectory* directory) { directory->tensors[0].chunks.pop_back(); }, kDataLoss,
          "'w'"),
      places("a chunk outside of its tensor", first([](auto* chunk) { chunk->offsets = {9, 0}; }),
             kDataLoss, "'w'"),
      places("a chunk in front of its tensor", first([](auto* chunk) { chunk->offsets = {-2, 0}; }),
             kDataLoss, "'w'"),
      places("a chunk of fewer than no rows", first([](auto* chunk) { chunk->sizes = {-2, 2}; }),
             kDataLoss, "'w'"),
      places("a chunk of other dimensions", first([](auto* chunk) { chunk->sizes = {4}; }),
             kDataLoss, "'w'"),
      places(
          "a negative shape",
          [](SampleDirectory* directory) { directory->tensors[0].shape = {-4, 2}; }, kDataLoss,
          "'w'"),
      places(
          "a shape beyond what can be counted",
          [](SampleDirectory* directory) { directory->tensors[0].shape = {INT64_MAX, INT64_MAX}; },
          kDataLoss, "'w'"),
      places(
          "a huge tensor without chunks",
          [](SampleDirectory* directory) {
            directory->tensors[0].shape = {int64_t{1} << 40, 2};
            directory->tensors[0].chunks.clear();
          },
          kDataLoss, "'w'"),
      places(
          "100 dimensions",
          [](SampleDirectory* directory) {
            directory->tensors[0].shape.assign(100, 1);
            directory->tensors[0].chunks.clear();
          },
          kDataLoss, "'w'"),
  };
}

// Where items cannot lie.
std::vector<Row> index_places() {
  const auto first = [](auto change) {
    return [change](SampleDirectory* directory) { change(&directory->tensors[0].chunks[0]); };
  };
  return {
      places("an item in front of its file", first([](auto* chunk) { chunk->item.offset = -1; }),
             kDataLoss, "'w'"),
      places("an item of fewer than no bytes", first([](auto* chunk) { chunk->item.length = -1; }),
             kDataLoss, "'w'"),
      places("an item beyond what can be counted", first([](auto* chunk) {
               chunk->item.offset = INT64_MAX;
               chunk->item.length = INT64_MAX;
             }),
             kDataLoss, "'w'"),
      places("an item behind its file",
             first([](auto* chunk) { chunk->item.offset = int64_t{1} << 40; }), kDataLoss,
             "an item of the index"),
      places("an item that ends behind its file",
             first([](auto* chunk) { chunk->item.length = int64_t{1} << 40; }), kDataLoss,
             "an item of the index"),
      places("an item of the middle of another one",
             first([](auto* chunk) { chunk->item.offset += 64; }), kDataLoss, ""),
      places(
          "items that were swapped",
          [](SampleDirectory* directory) {
            std::swap(directory->tensors[0].chunks[0].item, directory->objects[0].item);
          },
          kDataLoss, ""),
      places("a file above the checkpoint",
             first([](auto* chunk) { chunk->item.file = "../outside.distcp"; }), kPermissionDenied,
             "no file below"),
      places("a file of the system", first([](auto* chunk) { chunk->item.file = "/etc/passwd"; }),
             kPermissionDenied, "no file below"),
      places("a file with a NUL in its name",
             first([](auto* chunk) { chunk->item.file = "a\0b"s; }), kPermissionDenied,
             "no file below"),
      places("a file by another separator", first([](auto* chunk) { chunk->item.file = "..\\a"; }),
             kPermissionDenied, "no file below"),
      places("a transform that nobody knows",
             first([](auto* chunk) { chunk->item.transforms = {"stream.rot13/1"}; }),
             kUnimplemented, "stream.rot13/1"),
      places("a transform of what is none",
             first([](auto* chunk) { chunk->item.transforms = {"stream.zstd/1"}; }), kDataLoss,
             "not sound"),
      changed(
          "a dtype that nobody knows", kIndex,
          [](std::string* bytes) { bytes->replace(bytes->find("float32"), 7, "float99"); },
          kUnimplemented, "torch.float99"),
  };
}

// Items of tensors.
std::vector<Row> data_items() {
  const auto item = [](std::string bytes) {
    return [bytes = std::move(bytes)](SampleDirectory* directory) {
      directory->tensors[0].chunks[0].item.bytes = bytes;
    };
  };
  const auto entries = [](std::string pickle) {
    return archive_of(
        format::torch_save::test::entries_of(std::move(pickle), {std::string(kFirst)}));
  };
  return {
      items("a file of zeros", item(std::string(1600, '\0')), kDataLoss, ""),
      items("an item of another shape", item(tensor_item({4}, kFirst)), kDataLoss,
            "holds a tensor"),
      items("an item of a value", item(value_item("N.")), kDataLoss, "holds something else"),
      items("an item that would call something", item(entries("cposix\nsystem\n(S'id'\ntR.")),
            kDataLoss, "holds something else"),
      items("an item whose pickle ends early", item(entries("\x80\x02(")), kDataLoss, ""),
      items(
          "a bomb behind a transform",
          [](SampleDirectory* directory) {
            auto& bomb = directory->tensors[0].chunks[0].item;
            bomb.bytes = packed(std::string(size_t{256} << 20, '\0'));
            bomb.transforms = {"stream.zstd/1"};
          },
          kDataLoss, ""),
      changed(
          "a flipped bit of payload", kData,
          [](std::string* bytes) { (*bytes)[bytes->find(kFirst)] ^= 1; }, kDataLoss, "CRC-32"),
      changed(
          "a deflated item", kData,
          [](std::string* bytes) {
            for (size_t i = 0; i < 8; ++i) {
              patch(bytes, kLocal, i, 8, uint16_t{8});
              patch(bytes, kCentral, i, 10, uint16_t{8});
            }
          },
          kUnimplemented, "deflated"),
  };
}

// The files that they lie in.
std::vector<Row> data_files() {
  return {
      changed(
          "a data file that was cut", kData,
          [](std::string* bytes) { bytes->resize(bytes->size() / 3); }, kDataLoss, ""),
      changed(
          "an empty data file", kData, [](std::string* bytes) { bytes->clear(); }, kDataLoss, ""),
      around(
          "no data file", [](const Place& place) { std::filesystem::remove(place.root() / kData); },
          kDataLoss, "__0_0.distcp"),
      around(
          "a link out of the checkpoint",
          [](const Place& place) {
            place.put("outside", place.get(kData));
            std::filesystem::remove(place.root() / kData);
            std::filesystem::create_symlink(place.root() / "outside", place.root() / kData);
          },
          kPermissionDenied, ""),
      around(
          "a pipe for a data file",
          [](const Place& place) {
            std::filesystem::remove(place.root() / kData);
            ASSERT_EQ(::mkfifo((place.root() / kData).c_str(), 0600), 0);
          },
          kPermissionDenied, ""),
      around(
          "a folder for a data file",
          [](const Place& place) {
            std::filesystem::remove(place.root() / kData);
            std::filesystem::create_directory(place.root() / kData);
          },
          kDataLoss, "__0_0.distcp"),
      around(
          "an index that is a link out",
          [](const Place& place) {
            place.put("outside", place.get(kIndex));
            std::filesystem::remove(place.root() / kIndex);
            std::filesystem::create_symlink(place.root() / "outside", place.root() / kIndex);
          },
          kUnimplemented, "without its .metadata"),
      around(
          "an index that was never renamed",
          [](const Place& place) {
            std::filesystem::rename(place.root() / kIndex, place.root() / "ckpt/.metadata.tmp");
          },
          kUnimplemented, "without its .metadata"),
  };
}

}  // namespace shardwright::exec::test
