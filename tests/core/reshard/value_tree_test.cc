// SPDX-License-Identifier: Apache-2.0
#include "core/reshard/value_tree.h"

#include <gtest/gtest.h>

#include "core/format/archive/pickle_writer.h"
#include "tests/support/expect_failure.h"

namespace shardwright::reshard::test {
namespace {

std::vector<std::pair<std::string, std::string>> entries_of(const Value& value) {
  std::vector<exec::ViewObject> objects;
  add_entries(value, {{PathPartKind::kText, "common"}}, &objects);
  std::vector<std::pair<std::string, std::string>> entries;
  for (const exec::ViewObject& object : objects)
    entries.emplace_back(
        object.path,
        std::string(reinterpret_cast<const char*>(object.bytes.data()), object.bytes.size()));
  return entries;
}

TEST(ValueTree, IsTakenApartAtTheEndsOfDictsAndLists) {
  const auto value = value_of_json(R"({"a": [1, {"b": 2.5}], "c": {"$tuple": [3, 4]}, "d": {}})");
  ASSERT_TRUE(value.ok());
  const std::vector<std::pair<std::string, std::string>> expected = {
      {R"(["common","a",[0]])", "1"},
      {R"(["common","a",[1],"b"])", "2.5"},
      {R"(["common","c"])", R"({"$tuple":[3,4]})"},
      {R"(["common","d"])", "{}"}};
  EXPECT_EQ(entries_of(*value), expected);
}

TEST(ValueTree, KeepsIntegerKeys) {
  const auto value = value_of_json(R"({"$map": [[0, "x"], [1, "y"]]})");
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(entries_of(*value)[1].first, R"(["common",1])");
}

TEST(ValueTree, IsJsonAgain) {
  for (const char* text : {R"({"a": [1, {"b": 2.5}], "c": {"$tuple":[3,4]}, "d": {}})",
                           R"([{"$map": [[0, "x"], ["k", []]]}])"}) {
    const auto json = json_of_value(*value_of_json(text));
    ASSERT_TRUE(json.ok());
    EXPECT_EQ(*json, text);
  }
  Value pickle = Value::leaf("...");
  pickle.type = "application/python-pickle";
  EXPECT_FAILURE(json_of_value(pickle).status(), StatusCode::kUnimplemented);
}

TEST(ValueTree, SetsAndFinds) {
  Value dict = Value::dict();
  dict.set("a", Value::leaf("1"));
  dict.set("a", Value::leaf("2"));
  dict.set(7, Value::leaf("3"));
  ASSERT_NE(dict.find("a"), nullptr);
  EXPECT_EQ(dict.find("a")->json, "2");
  EXPECT_EQ(dict.find("7"), nullptr);
  EXPECT_EQ(dict.members.size(), 2U);
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

TEST(ValueTree, TakesPicklesApart) {
  format::archive::PickleWriter writer(format::archive::PickleProtocol::k2);
  writer.empty_dict().integer(0).empty_list().real(1.5).append().set_item();
  writer.text("args").global("argparse", "Namespace").empty_tuple().reduce();
  writer.empty_dict().text("lr").integer(3).set_item().build().set_item();
  const std::string pickle = std::move(writer).finish();
  const auto value = value_of_pickle(bytes_of(pickle));
  ASSERT_TRUE(value.ok()) << value.status().to_string();
  const auto entries = entries_of(*value);
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0], (std::pair<std::string, std::string>{R"(["common",0,[0]])", "1.5"}));
  const Value* const args = value->find("args");
  ASSERT_NE(args, nullptr);
  EXPECT_EQ(args->type, "application/python-pickle");
  EXPECT_NE(args->json.find("argparse"), std::string::npos);
}

TEST(ValueTree, RefusesPicklesThatAreDamagedOrHoldTensors) {
  EXPECT_FAILURE(value_of_pickle(bytes_of("\x80\x02")).status(), StatusCode::kDataLoss);
  format::archive::PickleWriter writer(format::archive::PickleProtocol::k2);
  writer.empty_list().text("storage").persistent_id().append();
  const std::string pickle = std::move(writer).finish();
  EXPECT_FAILURE(value_of_pickle(bytes_of(pickle)).status(), StatusCode::kUnimplemented,
                 "cannot be stored by itself");
}

TEST(ValueTree, RefusesWhatIsNoJson) {
  EXPECT_FAILURE(value_of_json("{").status(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace shardwright::reshard::test
