// SPDX-License-Identifier: Apache-2.0
//
// Values of pickles in words. The pickles are of CPython 3.11 and numpy 2.4.
#include "core/format/archive/pickle_describe.h"

#include <string>

#include <gtest/gtest.h>

#include "core/format/archive/pickle_reader.h"
#include "core/format/archive/torch_tensor.h"
#include "tests/core/format/archive/pickle_description.h"

namespace shardwright::format::archive {
namespace {

std::string described(const std::string& pickle, uint64_t most_bytes = 1 << 16) {
  PickleOptions options;
  options.file = "f.pkl";
  options.vocabulary = torch_vocabulary();
  const auto bytes = test::pickle_of(pickle);
  const auto data = read_pickle(bytes, options);
  if (!data.ok()) return data.status().to_string();
  return describe_value(*data, data->root(), most_bytes);
}

std::string from_hex(std::string_view digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  return bytes;
}

struct Row {
  const char* what;
  const char* pickle;
  const char* says;
};

constexpr Row kRows[] = {
    {"datetime",
     "8004952a000000000000008c086461746574696d65948c086461746574696d65949394430a07e802"
     "0304050600000794859452942e",
     R"({"$type":"datetime.datetime","value":"2024-02-03T04:05:06.000007"})"},
    {"datetime of protocol 2",
     "8002636461746574696d650a6461746574696d650a7100635f636f646563730a656e636f64650a71"
     "01580b00000007c3a80203040506000000710258060000006c6174696e3171038671045271058571"
     "065271072e",
     R"({"$type":"datetime.datetime","value":"2024-02-03T04:05:06"})"},
    {"date",
     "80049520000000000000008c086461746574696d65948c0464617465949394430407cf0c1f948594"
     "52942e",
     R"({"$type":"datetime.date","value":"1999-12-31"})"},
    {"time",
     "80049522000000000000008c086461746574696d65948c0474696d659493944306173b0100000094"
     "859452942e",
     R"({"$type":"datetime.time","value":"23:59:01"})"},
    {"timedelta",
     "80049524000000000000008c086461746574696d65948c0974696d6564656c74619493944b014b02"
     "4b03879452942e",
     R"({"$type":"datetime.timedelta","value":"1 days 2 s 3 us"})"},
    {"Decimal",
     "80049522000000000000008c07646563696d616c948c07446563696d616c9493948c04312e353094"
     "859452942e",
     R"({"$type":"decimal.Decimal","value":"1.50"})"},
    {"path",
     "8004952d000000000000008c07706174686c6962948c0d50757265506f736978506174689493948c"
     "012f948c0161948c016294879452942e",
     R"({"$type":"pathlib.PurePosixPath","value":"/a/b"})"},
    {"numpy scalar",
     "8004956a000000000000008c166e756d70792e5f636f72652e6d756c74696172726179948c067363"
     "616c61729493948c056e756d7079948c0564747970659493948c02663894898887945294284b038c"
     "013c944e4e4e4affffffff4affffffff4b007494624308000000000000f83f94869452942e",
     R"({"$type":"numpy scalar","dtype":"<f8","value":1.5})"},
    {"numpy integer",
     "80049564000000000000008c166e756d70792e5f636f72652e6d756c74696172726179948c067363"
     "616c61729493948c056e756d7079948c0564747970659493948c02693294898887945294284b038c"
     "013c944e4e4e4affffffff4affffffff4b007494624302fdff94869452942e",
     R"({"$type":"numpy scalar","dtype":"<i2","value":-3})"},
    {"numpy array",
     "80049595000000000000008c166e756d70792e5f636f72652e6d756c74696172726179948c0c5f72"
     "65636f6e7374727563749493948c056e756d7079948c076e6461727261799493944b008594430162"
     "9487945294284b014b03859468038c0564747970659493948c02693494898887945294284b038c01"
     "3c944e4e4e4affffffff4affffffff4b0074946289430c000000000100000002000000947494622e",
     R"({"$type":"numpy.ndarray","dtype":"<i4","shape":[3],"values":[0,1,2]})"},
    {"numpy array of protocol 2",
     "8002636e756d70792e5f636f72652e6d756c746961727261790a5f7265636f6e7374727563740a71"
     "00636e756d70790a6e6461727261790a71014b00857102635f636f646563730a656e636f64650a71"
     "03580100000062710458060000006c6174696e317105867106527107877108527109284b014b014b"
     "0286710a636e756d70790a64747970650a710b58020000006634710c898887710d52710e284b0358"
     "010000003e710f4e4e4e4affffffff4affffffff4b0074711062896803580a0000003fc28000007f"
     "c380000071116805867112527113747114622e",
     R"({"$type":"numpy.ndarray","dtype":">f4","shape":[1,2],"values":[1.0,"nan"]})"},
    {"numpy array of protocol 5",
     "80059577000000000000008c136e756d70792e5f636f72652e6e756d65726963948c0b5f66726f6d"
     "62756666657294939428960300000000000000000102948c056e756d7079948c0564747970659493"
     "948c02753194898887945294284b038c017c944e4e4e4affffffff4affffffff4b007494624b0385"
     "948c014394749452942e",
     R"({"$type":"numpy.ndarray","dtype":"|u1","shape":[3],"values":[0,1,2]})"},
    {"set", "80049507000000000000008f94284b05902e", R"({"$type":"builtins.set","values":[5]})"},
    {"Counter",
     "80049528000000000000008c0b636f6c6c656374696f6e73948c07436f756e7465729493947d948c"
     "0161944b0273859452942e",
     R"({"$object":"collections.Counter","arguments":[{"a":2}]})"},
    {"deque",
     "80049526000000000000008c0b636f6c6c656374696f6e73948c056465717565949394294b098694"
     "5294284b014b02652e",
     R"({"$object":"collections.deque","arguments":[{"$tuple":[]},9],"values":[1,2]})"},
    {"bytes", "8004950600000000000000430201ff942e", R"({"$bytes":"01ff","size":2})"},
    {"stream",
     "80049521000000000000008c035f696f948c074279746573494f94939429819443026162944b004e"
     "8794622e",
     R"({"$object":"_io.BytesIO","state":{"$tuple":[{"$bytes":"6162","size":2},0,null]}})"},
    {"an object of a class",
     "8004951a000000000000008c016d948c03466f6f9493942981947d948c0178944b0173622e",
     R"({"$object":"m.Foo","state":{"x":1}})"},
};

TEST(PickleDescribe, SpellsOutWhatPicklesOfPythonHold) {
  for (const Row& row : kRows) EXPECT_EQ(described(from_hex(row.pickle)), row.says) << row.what;
}

TEST(PickleDescribe, SaysWhatACallWouldBeAndDoesNotMakeIt) {
  EXPECT_EQ(described("cos\nsystem\n(S'id'\ntR."), R"({"$object":"os.system","arguments":["id"]})");
  EXPECT_EQ(described("cos\nsystem\n."), R"({"$global":"os.system"})");
}

TEST(PickleDescribe, IsBoundedByBytesAndDepth) {
  std::string bomb = "]";  // each list holds the one before it twice
  for (int i = 0; i < 60; ++i)
    bomb += "q" + std::string(1, static_cast<char>(i)) + "]h" +
            std::string(1, static_cast<char>(i)) + "ah" + std::string(1, static_cast<char>(i)) +
            "a";
  const std::string text = described("\x80\x02" + bomb + ".", 1000);
  EXPECT_LT(text.size(), 3000U);
  EXPECT_NE(text.find("$more"), std::string::npos);
  EXPECT_NE(described("\x80\x02]q" + std::string(1, '\0') + "h" + std::string(1, '\0') + "a.")
                .find("$more"),
            std::string::npos);
}

}  // namespace
}  // namespace shardwright::format::archive
