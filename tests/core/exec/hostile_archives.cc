// SPDX-License-Identifier: Apache-2.0
//
// Files of torch.save, most of which are zip archives.
#include "tests/core/exec/hostile_rows.h"

namespace shardwright::exec::test {

using enum StatusCode;
using format::archive::ZipFraming;
using format::archive::test::archive_of;
using format::archive::test::kCentral;
using format::archive::test::kEnd;
using format::archive::test::kEnd64;
using format::archive::test::kLocal;
using format::archive::test::patch;
using std::string_literals::operator""s;

namespace {

std::string changed_file(const std::function<void(std::string*)>& change) {
  std::string bytes = sound_file();
  change(&bytes);
  return bytes;
}
std::string file_with(const format::torch_save::test::SampleTensor& tensor) {
  return format::torch_save::test::file_of(format::torch_save::test::pickle_of("w", tensor),
                                           {std::string(kFirst)});
}

}  // namespace

// Files of torch.save: where their directories are.
std::vector<Row> archive_ends() {
  using Change = std::function<void(std::string*)>;
  const auto bad = [](const char* what, const Change& change, StatusCode code, const char* says) {
    return file(what, changed_file(change), code, says);
  };
  return {
      bad(
          "a directory elsewhere",
          [](std::string* bytes) { patch(bytes, kEnd, 0, 16, uint32_t{4}); }, kDataLoss, ""),
      bad(
          "a directory of more entries",
          [](std::string* bytes) {
            patch(bytes, kEnd, 0, 8, uint16_t{9});
            patch(bytes, kEnd, 0, 10, uint16_t{9});
          },
          kDataLoss, ""),
      bad(
          "a zip64 record of 2^63 entries",
          [](std::string* bytes) {
            patch(bytes, kEnd64, 0, 24, uint64_t{1} << 63);
            patch(bytes, kEnd64, 0, 32, uint64_t{1} << 63);
          },
          kDataLoss, ""),
      bad(
          "a zip64 directory behind the end",
          [](std::string* bytes) { patch(bytes, kEnd64, 0, 48, uint64_t{1} << 62); }, kDataLoss,
          ""),
      file(
          "a second directory in the comment",
          [] {
            std::string bytes =
                archive_of(format::torch_save::test::entries_of("N.", {}), ZipFraming::kPlain);
            std::string tail = bytes.substr(format::archive::test::place_of(bytes, kCentral, 0));
            patch(&tail, kEnd, 0, 16, static_cast<uint32_t>(bytes.size()));
            patch(&bytes, kEnd, 0, 20, static_cast<uint16_t>(tail.size()));
            return bytes + tail;
          }(),
          kDataLoss, ""),
  };
}

// Their entries.
std::vector<Row> archive_entries() {
  using Change = std::function<void(std::string*)>;
  const auto bad = [](const char* what, const Change& change, StatusCode code, const char* says) {
    return file(what, changed_file(change), code, says);
  };
  return {
      bad(
          "entries that overlap",
          [](std::string* bytes) { patch(bytes, kCentral, 2, 42, uint32_t{0}); }, kDataLoss, ""),
      bad(
          "an entry behind the end",
          [](std::string* bytes) { patch(bytes, kCentral, 2, 42, uint32_t{0x7FFFFFFF}); },
          kDataLoss, ""),
      bad(
          "an entry that is larger than the file",
          [](std::string* bytes) {
            patch(bytes, kCentral, 2, 20, uint32_t{0x7FFFFFFF});
            patch(bytes, kCentral, 2, 24, uint32_t{0x7FFFFFFF});
          },
          kDataLoss, ""),
      bad(
          "a local header of another name",
          [](std::string* bytes) { (*bytes)[bytes->find("archive/data/0") + 13] = '1'; }, kDataLoss,
          ""),
      bad(
          "a deflated storage",
          [](std::string* bytes) {
            patch(bytes, kCentral, 2, 10, uint16_t{8});
            patch(bytes, kLocal, 2, 8, uint16_t{8});
          },
          kUnimplemented, "deflated"),
      bad(
          "an encrypted storage",
          [](std::string* bytes) {
            patch(bytes, kCentral, 2, 8, uint16_t{0x0809});
            patch(bytes, kLocal, 2, 6, uint16_t{0x0809});
          },
          kUnimplemented, "encrypted"),
      bad(
          "a wrong checksum of the pickle",
          [](std::string* bytes) { (*bytes)[bytes->find("storage")] ^= 1; }, kDataLoss, "CRC-32"),
      bad(
          "a flipped bit of a storage",
          [](std::string* bytes) { (*bytes)[bytes->find(kFirst)] ^= 1; }, kDataLoss, "CRC-32"),
      bad(
          "an archive that was cut", [](std::string* bytes) { bytes->resize(bytes->size() / 2); },
          kDataLoss, ""),
      bad(
          "a name that leads out",
          [](std::string* bytes) {
            for (size_t at = 0; (at = bytes->find("archive/data/0", at)) != std::string::npos;)
              bytes->replace(at, 14, "archive/../../");
          },
          kPermissionDenied, "leads out"),
      file(
          "a name twice",
          [] {
            auto entries = format::torch_save::test::entries_of("N.", {"aaaa", "bbbb"});
            std::string bytes = archive_of(entries);
            for (size_t at = 0; (at = bytes.find("data/1", at)) != std::string::npos;)
              bytes[at + 5] = '0';
            return bytes;
          }(),
          kDataLoss, ""),
  };
}

// Their values.
std::vector<Row> archive_values() {
  return {
      file("no pickle", archive_of({{"archive/version", "3\n"}}), kInvalidArgument, "zip archive"),
      file("a version from far away",
           archive_of({{"archive/data.pkl", "N."}, {"archive/version", "99\n"}}), kUnimplemented,
           "version"),
      file("big-endian numbers",
           archive_of({{"archive/data.pkl", "N."}, {"archive/byteorder", "big"}}), kUnimplemented,
           "big"),
      file("a tensor behind its storage", file_with({"0", 4, 3, {4}, {1}}), kDataLoss, "storage"),
      file("a tensor of negative strides", file_with({"0", 4, 0, {4}, {-1}}), kDataLoss,
           "negative"),
      file("a tensor of a huge shape", file_with({"0", 4, 0, {INT64_MAX, INT64_MAX}, {0, 0}}),
           kDataLoss, ""),
      file("a tensor that repeats one element", file_with({"0", 4, 0, {int64_t{1} << 40}, {0}}),
           kResourceExhausted, "views"),
      file("a storage that claims more", file_with({"0", 4000, 0, {4000}, {1}}), kDataLoss,
           "storage"),
      file("a storage that is not there", file_with({"7", 4, 0, {4}, {1}}), kDataLoss,
           "does not have"),
      file("a list that holds itself",
           format::torch_save::test::file_of("\x80\x02]q\x01h\x01"
                                             "a.",
                                             {}),
           kDataLoss, "nested deeper"),
      file(
          "a memo bomb",
          [] {
            std::string pickle = "\x80\x02]";
            for (int i = 0; i < 40; ++i) {
              const std::string id(1, static_cast<char>(i));
              pickle += "q" + id + "]h" + id + "ah" + id + "a";
            }
            return format::torch_save::test::file_of(pickle + ".", {});
          }(),
          kResourceExhausted, "again"),
      file("an old file that ends in its pickles",
           format::torch_save::test::old_file_of("}.", {}).substr(0, 25), kDataLoss, ""),
      file(
          "an old file of a storage of 2^62 elements",
          [] {
            std::string bytes = format::torch_save::test::old_file_of(
                format::torch_save::test::pickle_of("w", {}), {std::string(kFirst)});
            bytes.replace(bytes.size() - 24, 8, "\0\0\0\0\0\0\0\x40"s);
            return bytes;
          }(),
          kDataLoss, ""),
      file("a pickle that is no file of torch.save", "\x80\x04K\x01.", kUnimplemented, "pickle"),
  };
}

}  // namespace shardwright::exec::test
