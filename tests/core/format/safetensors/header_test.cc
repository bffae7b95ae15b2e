// SPDX-License-Identifier: Apache-2.0
//
// Headers one by one: what is accepted, and every way in which one can be wrong.
#include "core/format/safetensors/header.h"

#include <array>
#include <cstring>

#include <gtest/gtest.h>

#include "tests/core/format/safetensors/sample_files.h"
#include "tests/support/random_source.h"

namespace shardwright::format::safetensors {
namespace {

using test::entry_of;

Result<Header> decode(std::string_view text, uint64_t buffer_bytes) {
  return decode_header(text, buffer_bytes, "f.safetensors");
}

std::string object_of(const std::string& entries) {
  return "{" + entries + "}";
}

TEST(SafetensorsHeader, KnowsEveryDType) {
  struct Row {
    const char* text;
    DType dtype;
    const char* shape;
    uint64_t bytes;
  };
  const Row rows[] = {{"BOOL", DType::kBool, "[3]", 3},
                      {"U8", DType::kUint8, "[3]", 3},
                      {"I8", DType::kInt8, "[3]", 3},
                      {"U16", DType::kUint16, "[3]", 6},
                      {"I16", DType::kInt16, "[3]", 6},
                      {"U32", DType::kUint32, "[3]", 12},
                      {"I32", DType::kInt32, "[3]", 12},
                      {"U64", DType::kUint64, "[3]", 24},
                      {"I64", DType::kInt64, "[3]", 24},
                      {"F16", DType::kFloat16, "[3]", 6},
                      {"BF16", DType::kBfloat16, "[3]", 6},
                      {"F32", DType::kFloat32, "[3]", 12},
                      {"F64", DType::kFloat64, "[3]", 24},
                      {"C64", DType::kComplex64, "[3]", 24},
                      {"F8_E4M3", DType::kFloat8E4m3fn, "[3]", 3},
                      {"F8_E5M2", DType::kFloat8E5m2, "[3]", 3},
                      {"F8_E8M0", DType::kFloat8E8m0fnu, "[3]", 3},
                      {"F8_E4M3FNUZ", DType::kFloat8E4m3fnuz, "[3]", 3},
                      {"F8_E5M2FNUZ", DType::kFloat8E5m2fnuz, "[3]", 3},
                      {"F6_E2M3", DType::kFloat6E2m3fn, "[2, 4]", 6},
                      {"F6_E3M2", DType::kFloat6E3m2fn, "[4]", 3},
                      {"F4", DType::kFloat4E2m1fn, "[2, 3]", 3}};
  for (const Row& row : rows) {
    const auto header =
        decode(object_of(entry_of("w", row.text, row.shape, 0, row.bytes)), row.bytes);
    ASSERT_TRUE(header.ok()) << row.text << header.status().to_string();
    EXPECT_EQ(header->tensors[0].dtype, row.dtype) << row.text;
  }
}

TEST(SafetensorsHeader, AcceptsWhatTheFormatAllows) {
  const std::string two = entry_of("b", "U8", "[2]", 1, 3) + "," + entry_of("a", "U8", "[]", 0, 1);
  const std::pair<std::string, uint64_t> texts[] = {
      {"{}", 0},
      {"  {}", 0},
      {"{} \n ", 0},
      {object_of(two), 3},
      {object_of(entry_of("", "U8", "[1]", 0, 1)), 1},
      {object_of(entry_of("e", "F32", "[0]", 0, 0) + "," + entry_of("f", "I8", "[3,0]", 0, 0)), 0},
      {object_of(entry_of("e", "F32", "[4611686018427387904,0]", 0, 0)), 0},
      {object_of("\"__metadata__\":{}," + two), 3},
      {object_of(two + ",\"__metadata__\":{\"k\":\"\"}"), 3},
      {object_of(entry_of("\\u0000 \\u20ac", "U8", "[1]", 0, 1)), 1}};
  for (const auto& [text, bytes] : texts)
    EXPECT_TRUE(decode(text, bytes).ok()) << text << decode(text, bytes).status().to_string();
}

TEST(SafetensorsHeader, GivesTensorsAsTheyLieAndMetadata) {
  const std::string text = object_of(entry_of("b", "U16", "[2,1]", 4, 8) + "," +
                                     R"("__metadata__":{"format":"pt","x":"\u00fc"},)" +
                                     entry_of("a", "F32", "[]", 0, 4));
  const auto header = decode(text, 8);
  ASSERT_TRUE(header.ok()) << header.status().to_string();
  ASSERT_EQ(header->tensors.size(), 2U);
  EXPECT_EQ(header->name(header->tensors[0]), "a");
  EXPECT_TRUE(header->shape(header->tensors[0]).empty());
  EXPECT_EQ(header->name(header->tensors[1]), "b");
  EXPECT_EQ(header->shape(header->tensors[1]).size(), 2U);
  EXPECT_EQ(header->metadata,
            (std::map<std::string, std::string>{{"format", "pt"}, {"x", "\xC3\xBC"}}));
  EXPECT_EQ(header->note, "");
}

TEST(SafetensorsHeader, NotesKeysThatItDoesNotKnow) {
  const auto header = decode(
      R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"scale":[1,-2.5],"by":null}})", 1);
  ASSERT_TRUE(header.ok()) << header.status().to_string();
  EXPECT_NE(header->note.find("'scale' of tensor 'w'"), std::string::npos) << header->note;
}

// text, bytes of the buffer, what the message says
struct Wrong {
  std::string text;
  uint64_t bytes;
  std::string says;
};

void expect_refused(const std::vector<Wrong>& rows, StatusCode code = StatusCode::kDataLoss) {
  for (const Wrong& row : rows) {
    const Status status = decode(row.text, row.bytes).status();
    EXPECT_EQ(status.code(), code) << row.text;
    EXPECT_NE(std::string(status.message()).find(row.says), std::string::npos)
        << row.text << "\n"
        << status.to_string();
    EXPECT_NE(std::string(status.message()).find("f.safetensors"), std::string::npos);
    EXPECT_EQ(status.detail("file"), "f.safetensors") << row.text;
  }
}

TEST(SafetensorsHeader, RefusesWhatIsNoJsonObject) {
  using namespace std::string_literals;
  expect_refused({{"", 0, "begin with '{'"},
                  {"   ", 0, "begin with '{'"},
                  {"[]", 0, "begin with '{'"},
                  {"\xEF\xBB\xBF{}", 0, "begin with '{'"},
                  {"{}\0"s, 0, "NUL"},
                  {"{}x", 0, "no JSON"},
                  {"{", 0, "no JSON"},
                  {"{\"a\":}", 0, "no JSON"},
                  {"{\"\xff\":1}", 0, "no JSON"},
                  {"{\"\\ud800\":1}", 0, "no JSON"},
                  {"{\"a\":{\"x\":[[1]]}}", 0, "deeper than 3"}});
}

TEST(SafetensorsHeader, RefusesEntriesThatAreNone) {
  const auto entry = [](const char* text) { return "{\"w\":" + std::string(text) + "}"; };
  expect_refused({
      {entry("1"), 0, "its entry is a number"},
      {entry("[]"), 0, "its entry is a list"},
      {entry("{}"), 0, "no 'dtype'"},
      {entry(R"({"dtype":"U8","shape":[1]})"), 1, "no 'data_offsets'"},
      {entry(R"({"dtype":"U8","data_offsets":[0,1]})"), 1, "no 'shape'"},
      {entry(R"({"dtype":1,"shape":[1],"data_offsets":[0,1]})"), 1, "its dtype is a number"},
      {entry(R"({"dtype":["U8"],"shape":[1],"data_offsets":[0,1]})"), 1, "its dtype is a list"},
      {entry(R"({"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]})"), 1, "twice"},
      {entry(R"({"dtype":"U8","shape":1,"data_offsets":[0,1]})"), 1, "its shape is a number"},
      {entry(R"({"dtype":"U8","shape":{},"data_offsets":[0,1]})"), 1, "its shape is an object"},
      {entry(R"({"dtype":"U8","shape":[-1],"data_offsets":[0,1]})"), 1, "shape holds a negative"},
      {entry(R"({"dtype":"U8","shape":[-0],"data_offsets":[0,0]})"), 0, "shape holds a negative"},
      {entry(R"({"dtype":"U8","shape":[1.0],"data_offsets":[0,1]})"), 1, "no natural one"},
      {entry(R"({"dtype":"U8","shape":[1e0],"data_offsets":[0,1]})"), 1, "no natural one"},
      {entry(R"({"dtype":"U8","shape":["1"],"data_offsets":[0,1]})"), 1, "shape holds a text"},
      {entry(R"({"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,1]})"), 1, "large"},
      {entry(R"({"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,1]})"), 1, "2^63"},
      {entry(R"({"dtype":"U8","shape":[1],"data_offsets":[0]})"), 1, "1 numbers, not 2"},
      {entry(R"({"dtype":"U8","shape":[1],"data_offsets":[0,1,2]})"), 1, "more than 2"},
      {entry(R"({"dtype":"U8","shape":[1],"data_offsets":[1,0]})"), 1, "before it begins"},
      {entry(R"({"dtype":"U8","shape":[1],"data_offsets":[true,1]})"), 1, "hold a boolean"},
  });
  std::string deep = "1";
  for (int i = 0; i < 64; ++i) deep += ",1";
  expect_refused({{object_of(entry_of("w", "U8", "[" + deep + "]", 0, 1)), 1, "64 dimensions"},
                  {object_of(entry_of(std::string(65536, 'n'), "U8", "[1]", 0, 1)), 1, "65535"}});
}

TEST(SafetensorsHeader, RefusesSizesThatDoNotFit) {
  expect_refused(
      {{object_of(entry_of("w", "F32", "[2]", 0, 7)), 7, "make 8 bytes, data_offsets 7"},
       {object_of(entry_of("w", "F32", "[0]", 0, 4)), 4, "make 0 bytes"},
       {object_of(entry_of("w", "F4", "[3]", 0, 2)), 2, "do not end with a byte"},
       {object_of(entry_of("w", "F6_E2M3", "[2]", 0, 2)), 2, "do not end with a byte"},
       {object_of(entry_of("w", "U8", "[4294967296,4294967296]", 0, 0)), 0, "can be counted"},
       {object_of(entry_of("w", "F64", "[4611686018427387904]", 0, 0)), 0, "can be counted"},
       {object_of(entry_of("w", "U8", "[4611686018427387904,4,0]", 0, 0)), 0, "can be counted"}});
}

TEST(SafetensorsHeader, RefusesGapsOverlapsAndTrailingBytes) {
  const std::string a = entry_of("a", "U8", "[4]", 0, 4);
  expect_refused(
      {{object_of(entry_of("a", "U8", "[4]", 1, 5)), 5, "begins at byte 1"},
       {object_of(a + "," + entry_of("b", "U8", "[2]", 5, 7)), 7, "nothing names the bytes"},
       {object_of(a + "," + entry_of("b", "U8", "[4]", 3, 7)), 7, "shares bytes"},
       {object_of(a + "," + entry_of("b", "U8", "[4]", 0, 4)), 4, "shares bytes"},
       {object_of(a + "," + entry_of("b", "U8", "[0]", 2, 2)), 4, "expected 4"},
       {object_of(a), 5, "bytes follow"},
       {object_of(a), 3, "it was cut"},
       {"{}", 1, "bytes follow"}});
}

TEST(SafetensorsHeader, RefusesWhatIsThereTwice) {
  const std::string a = entry_of("a", "U8", "[1]", 0, 1);
  const Status status = decode(object_of(a + "," + entry_of("a", "U8", "[1]", 1, 2)), 2).status();
  EXPECT_EQ(status.detail("tensor"), "a");
  expect_refused({{object_of(a + "," + entry_of("a", "U8", "[1]", 1, 2)), 2, "there twice"},
                  {object_of(a + "," + entry_of("\\u0061", "U8", "[1]", 1, 2)), 2, "there twice"},
                  {R"({"__metadata__":{},"__metadata__":{}})", 0, "__metadata__ twice"},
                  {R"({"__metadata__":{"k":"a","k":"b"}})", 0, "'k' twice"}});
}

TEST(SafetensorsHeader, RefusesMetadataThatIsNoText) {
  expect_refused({{R"({"__metadata__":1})", 0, "__metadata__"},
                  {R"({"__metadata__":[]})", 0, "__metadata__"},
                  {R"({"__metadata__":{"k":1}})", 0, "a number under 'k'"},
                  {R"({"__metadata__":{"k":null}})", 0, "null under 'k'"},
                  {R"({"__metadata__":{"k":{}}})", 0, "an object under 'k'"}});
}

TEST(SafetensorsHeader, RefusesADTypeByName) {
  const std::string text = object_of(entry_of("w", "F8_NEW", "[1]", 0, 1));
  expect_refused({{text, 1, "'F8_NEW'"}}, StatusCode::kUnimplemented);
  EXPECT_EQ(decode(text, 1).status().detail("tensor"), "w");
}

TEST(SafetensorsHeader, RefusesLengthsBeforeMemoryIsTaken) {
  const auto length = [](uint64_t value, uint64_t file_bytes) {
    std::array<std::byte, 8> bytes{};
    std::memcpy(bytes.data(), &value, sizeof(value));
    return header_length(bytes, file_bytes, "f.safetensors");
  };
  EXPECT_EQ(*length(2, 10), 2U);
  EXPECT_EQ(*length(kMaxHeaderBytes, kMaxHeaderBytes + 8), kMaxHeaderBytes);
  for (const auto& [value, file_bytes] :
       std::vector<std::pair<uint64_t, uint64_t>>{{3, 10},
                                                  {2, 7},
                                                  {0, 0},
                                                  {kMaxHeaderBytes + 1, uint64_t{1} << 40},
                                                  {UINT64_MAX, 100},
                                                  {UINT64_MAX - 7, UINT64_MAX}}) {
    const Status status = length(value, file_bytes).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << value << " of " << file_bytes;
    EXPECT_EQ(status.detail("file"), "f.safetensors");
    EXPECT_FALSE(status.detail("hint").empty());
  }
  const auto named = [](std::string_view text) {
    return header_length(std::as_bytes(std::span(text)), 100, "f").status();
  };
  EXPECT_EQ(named("PK\x03\x04....").code(), StatusCode::kUnimplemented);
  EXPECT_NE(named("version ").message().find("Git LFS"), std::string_view::npos);
}

// Whatever a header becomes by a few changed, lost or doubled bytes: it is refused with its file,
// or it still tiles its buffer.
TEST(SafetensorsHeader, MutationsAreRefusedOrSound) {
  shardwright::test::RandomSource random;
  const std::string sound = object_of(
      R"("__metadata__":{"format":"pt"},)" + entry_of("a.b", "F32", "[2,3]", 0, 24) + "," +
      entry_of("empty", "I64", "[0,5]", 24, 24) + "," + entry_of("c", "BF16", "[4]", 24, 32));
  const std::string alphabet = R"({}[]":,0123456789-.eE\ua"FUIB)";
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = sound;
    for (int64_t changes = random.between(1, 4); changes > 0 && !text.empty(); --changes) {
      const auto at = static_cast<size_t>(random.between(0, static_cast<int64_t>(text.size()) - 1));
      const auto length = static_cast<size_t>(random.between(1, 12));
      const char drawn = random.chance(90)
                             ? alphabet[static_cast<size_t>(random.next() % alphabet.size())]
                             : static_cast<char>(random.next());
      if (random.chance(60)) {
        text[at] = drawn;
      } else if (random.chance(50)) {
        text.erase(at, length);
      } else {
        text.insert(at, text.substr(at, length));
      }
    }
    const auto header = decode(text, 32);
    if (!header.ok()) {
      ASSERT_FALSE(header.status().detail("file").empty()) << text;
      continue;
    }
    ++accepted;
    uint64_t end = 0;
    for (const HeaderTensor& tensor : header->tensors) {
      ASSERT_EQ(tensor.begin, end) << text;
      end = tensor.end;
    }
    ASSERT_EQ(end, 32U) << text;
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace shardwright::format::safetensors
