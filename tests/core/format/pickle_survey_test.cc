// SPDX-License-Identifier: Apache-2.0
//
// What pickles of a place would import, whichever file they lie in, and files without it.
#include "core/format/pickle_survey.h"

#include <functional>

#include <gtest/gtest.h>

#include "core/format/archive/pickle_writer.h"
#include "core/format/format.h"
#include "core/format/pickle_cleaning.h"
#include "core/storage/backends.h"
#include "tests/core/format/safetensors/sample_files.h"
#include "tests/core/format/torch_dcp/sample_checkpoint.h"
#include "tests/core/format/torch_save/sample_values.h"
#include "tests/support/expect_failure.h"

namespace shardwright::format {
namespace {

using archive::PickleProtocol;
using archive::PickleWriter;
using torch_dcp::test::packed;
using torch_dcp::test::SampleDirectory;
using torch_dcp::test::tensor_item;
using torch_dcp::test::value_item;

std::string pickled(const std::function<void(PickleWriter*)>& make,
                    PickleProtocol protocol = PickleProtocol::k2) {
  PickleWriter pickle(protocol);
  make(&pickle);
  return std::move(pickle).finish();
}

void add_command(PickleWriter* pickle) {
  pickle->global("posix", "system").text("touch /tmp/x").tuple(1).reduce();
}

// {"lr": 0.5, "when": <a call>}
std::string attacking() {
  return pickled([](PickleWriter* pickle) {
    pickle->empty_dict().text("lr").real(0.5).set_item().text("when");
    add_command(pickle);
    pickle->set_item();
  });
}

SampleDirectory sample_directory() {
  SampleDirectory directory;
  directory.tensors.push_back({"w", {2}, {{{0}, {2}, {tensor_item({2}, "aaaabbbb")}}}});
  directory.objects.push_back(
      {"step", {value_item(pickled([](PickleWriter* pickle) { pickle->integer(7); }))}});
  return directory;
}

class Survey : public testing::Test {
 protected:
  void put(const std::string& key, std::string_view bytes) {
    safetensors::test::store(storage_.get(), key, bytes);
  }
  PickleSurvey survey(const std::string& path = "p") {
    const auto found = survey_pickles({storage_, path});
    EXPECT_TRUE(found.ok()) << found.status().to_string();
    return found.ok() ? *found : PickleSurvey();
  }
  static std::vector<std::string> unknown(const PickleSurvey& survey) {
    std::vector<std::string> names;
    for (const SurveyedGlobal& global : survey.globals) {
      if (!global.is_known) names.push_back(global.module + "." + global.name);
    }
    return names;
  }
  std::string get(const std::string& key) {
    const auto bytes = storage::read_all(*storage_, key, 1 << 20);
    EXPECT_TRUE(bytes.ok()) << bytes.status().to_string();
    return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
  }

  std::shared_ptr<storage::Storage> storage_ = storage::make_memory_storage();
};

TEST_F(Survey, OfASoundDirectoryKnowsEverything) {
  torch_dcp::test::place_and_store(storage_.get(), "p", sample_directory());
  const PickleSurvey found = survey();
  EXPECT_EQ(found.files, 2U);
  EXPECT_EQ(found.pickles, 3U);  // of the index, the tensor and the object
  EXPECT_EQ(found.unknown_count, 0U);
  EXPECT_EQ(found.failure_count, 0U);
  EXPECT_NE(found.to_json().find("\"name\":\"_rebuild_tensor_v2\",\"known\":true"),
            std::string::npos)
      << found.to_json();
}

TEST_F(Survey, NamesFileEntryAndOffsetOfWhatIsNotKnown) {
  SampleDirectory directory = sample_directory();
  directory.objects.push_back({"schedule", {value_item(attacking())}});
  torch_dcp::test::place_and_store(storage_.get(), "p", directory);
  const PickleSurvey found = survey();
  ASSERT_EQ(found.unknown_count, 1U);
  const SurveyedGlobal& global = found.globals[0];
  EXPECT_EQ(global.module + "." + global.name, "posix.system");
  EXPECT_EQ(global.calls, 1U);
  EXPECT_EQ(global.place.file, "__0_0.distcp");
  EXPECT_EQ(global.place.record, "schedule, archive/data.pkl");
  const std::string file = get("p/__0_0.distcp");
  EXPECT_EQ(file.substr(global.place.offset, 13), "cposix\nsystem");
}

// Whoever made the index has made the items, too.
TEST_F(Survey, LooksIntoItemsOfTensorsAndBehindTransforms) {
  SampleDirectory directory = sample_directory();
  directory.tensors[0].chunks[0].item.bytes = value_item(attacking());
  directory.objects[0].item.bytes = packed(attacking());  // torch takes a bare pickle as well
  directory.objects[0].item.transforms = {"stream.zstd/1"};
  torch_dcp::test::place_and_store(storage_.get(), "p", directory);
  EXPECT_EQ(survey().unknown_count, 2U);
}

TEST_F(Survey, OfAnIndexThatCallsSomethingListsItThoughItDoesNotOpen) {
  torch_dcp::test::place_and_store(storage_.get(), "p", sample_directory());
  put("p/.metadata", attacking());
  EXPECT_FALSE(FormatTable().open({storage_, "p"}).ok());
  const PickleSurvey found = survey();
  EXPECT_EQ(unknown(found), std::vector<std::string>{"posix.system"});
  EXPECT_EQ(found.globals[0].place.file, ".metadata");
  ASSERT_EQ(found.notes.size(), 1U);
  EXPECT_NE(found.notes[0].find("'__0_0.distcp'"), std::string::npos) << found.notes[0];
}

TEST_F(Survey, FindsPicklesOfEveryKindOfFile) {
  const auto entries = [] {
    auto made = torch_save::test::entries_of("N.", {});
    made.push_back({"archive/constants.pkl", attacking()});
    return made;
  }();
  const std::pair<const char*, std::string> files[] = {
      {"model.pt", torch_save::test::file_of(attacking(), {})},
      {"weights", torch_save::test::file_of(attacking(), {})},
      {"old.bin", torch_save::test::old_file_of(attacking(), {})},
      {"value.pkl", attacking()},
      {"without_mark.pkl", "cposix\nsystem\n(S'id'\ntR."},
      {"rng_state", attacking()},
      {"script.pt", archive::test::archive_of(entries)},
  };
  for (const auto& [name, bytes] : files) {
    const std::string key = std::string("one/") + name;
    put(key, bytes);
    EXPECT_EQ(survey(key).unknown_count, 1U) << name;
  }
  put("one/notes.txt", "cat");
  put("one/weights.safetensors", safetensors::test::file_of("{}", 0));
  const PickleSurvey all = survey("one");
  EXPECT_EQ(all.files, 9U);
  EXPECT_EQ(all.unknown_count, 7U);
  EXPECT_EQ(all.failure_count, 0U);
}

TEST_F(Survey, CountsCallsThatNoNameTells) {
  put("v.pkl",
      "\x80\x02"
      "cbuiltins\ngetattr\ncos\nsystem\nU\x02id\x86R)R.");
  const PickleSurvey found = survey("v.pkl");
  EXPECT_EQ(unknown(found),
            (std::vector<std::string>{"builtins.getattr", "os.system", "(computed value)."}));
}

TEST_F(Survey, SaysWhatItCouldNotReadToItsEnd) {
  put("cut.pt", torch_save::test::file_of(attacking(), {}).substr(0, 300));
  put("cut.pkl", attacking().substr(0, attacking().size() - 2));
  for (const char* key : {"cut.pt", "cut.pkl"}) {
    const PickleSurvey found = survey(key);
    ASSERT_EQ(found.failure_count, 1U) << key;
    EXPECT_EQ(found.failures[0].place.file, key);
  }
  EXPECT_EQ(unknown(survey("cut.pkl")), std::vector<std::string>{"posix.system"});
  EXPECT_FAILURE(survey_pickles({storage_, "nowhere"}).status(), StatusCode::kNotFound, "nowhere");
}

// Names that only look like those of torch or numpy are none of theirs.
TEST_F(Survey, KnowsNamesAsAWhole) {
  for (const auto& [module, name] : {std::pair{"torch", "os.system"},
                                     {"torch", "load"},
                                     {"torch", "int_repr"},
                                     {"torch.storage", "_load_from_bytes"},
                                     {"numpy", "load"},
                                     {"numpy.core.multiarray", "fromfile"},
                                     {"builtins", "eval"},
                                     {"functools", "partial"},
                                     {"collections", "namedtuple"}}) {
    put("v.pkl", pickled([&](PickleWriter* pickle) { pickle->global(module, name); }));
    EXPECT_EQ(survey("v.pkl").unknown_count, 1U) << module << "." << name;
  }
  for (const auto& [module, name] : {std::pair{"torch", "float32"},
                                     {"torch", "BFloat16Storage"},
                                     {"torch.storage", "UntypedStorage"},
                                     {"numpy", "ndarray"},
                                     {"pathlib._local", "PosixPath"}}) {
    put("v.pkl", pickled([&](PickleWriter* pickle) { pickle->global(module, name); }));
    EXPECT_EQ(survey("v.pkl").unknown_count, 0U) << module << "." << name;
  }
}

// ---- the same without it ----

using Cleaning = Survey;

TEST_F(Cleaning, OfAnIndexKeepsWhatIsKnownAndLeavesOutUncleanObjects) {
  SampleDirectory directory = sample_directory();
  directory.objects.push_back({"schedule", {value_item(attacking())}});
  torch_dcp::test::place_and_store(storage_.get(), "p", directory);
  const std::string before = get("p/.metadata");
  const auto cleaned = clean_pickles({storage_, "p"}, {storage_, "clean"});
  ASSERT_TRUE(cleaned.ok()) << cleaned.status().to_string();
  ASSERT_EQ(cleaned->files.size(), 1U);
  EXPECT_EQ(cleaned->files[0].left_out, std::vector<std::string>{"schedule"});
  EXPECT_EQ(get("p/.metadata"), before);
  // Beside the data files it is a checkpoint in which everything is known.
  put("clean/__0_0.distcp", get("p/__0_0.distcp"));
  const auto opened = FormatTable().open({storage_, "clean"});
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  EXPECT_EQ((*opened)->catalog().tensor_name(0), "w");
  ASSERT_EQ((*opened)->catalog().objects.size(), 1U);
  EXPECT_EQ((*opened)->catalog().object_name(0), "step");
  EXPECT_EQ(survey("clean").unknown_count, 0U);
  EXPECT_FAILURE(clean_pickles({storage_, "p"}, {storage_, "clean"}).status(),
                 StatusCode::kAlreadyExists, ".metadata");
}

TEST_F(Cleaning, OfAnArchiveIsAWholeFile) {
  const std::string pickle = pickled([](PickleWriter* out) {
    out->empty_dict().text("w");
    torch_save::test::add_tensor({}, out);
    out->set_item().text("n").integer(int64_t{1} << 40).set_item().text("when");
    add_command(out);
    out->set_item().text("b").bytes(std::as_bytes(std::span("\x01\xFF", 2))).set_item();
  });
  put("model.pt", torch_save::test::file_of(pickle, {std::string(16, 'x')}));
  const auto cleaned = clean_pickles({storage_, "model.pt"}, {storage_, "clean.pt"});
  ASSERT_TRUE(cleaned.ok()) << cleaned.status().to_string();
  EXPECT_EQ(cleaned->files[0].replaced, 1U);
  EXPECT_EQ(survey("clean.pt").unknown_count, 0U);
  const auto opened = FormatTable().open({storage_, "clean.pt"});
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  EXPECT_TRUE((*opened)->check_checksums(0).ok());
  EXPECT_EQ((*opened)->catalog().tensor_name(0), "w");
  ASSERT_EQ((*opened)->catalog().objects.size(), 3U);
  const Extent extent = *(*opened)->chunk_extent(0);
  EXPECT_EQ(get("clean.pt").substr(extent.offset, extent.size_bytes), std::string(16, 'x'));
}

TEST_F(Cleaning, OfAnOldFileChangesThePickleThatHasSomething) {
  const std::string pickle = pickled([](PickleWriter* out) {
    out->empty_dict().text("w");
    torch_save::test::add_tensor({}, out);
    out->set_item().text("when");
    add_command(out);
    out->set_item();
  });
  put("old.pt", torch_save::test::old_file_of(pickle, {std::string(16, 'x')}));
  const auto cleaned = clean_pickles({storage_, "old.pt"}, {storage_, "clean.pt"});
  ASSERT_TRUE(cleaned.ok()) << cleaned.status().to_string();
  const auto opened = FormatTable().open({storage_, "clean.pt"});
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  EXPECT_EQ((*opened)->catalog().tensor_name(0), "w");
  EXPECT_EQ(survey("clean.pt").unknown_count, 0U);
}

TEST_F(Cleaning, OfNothingIsRefused) {
  put("p/notes.txt", "cat");
  EXPECT_FAILURE(clean_pickles({storage_, "p"}, {storage_, "clean"}).status(),
                 StatusCode::kUnimplemented, "nothing to clean");
  EXPECT_FAILURE(clean_pickles({storage_, "nowhere"}, {storage_, "clean"}).status(),
                 StatusCode::kNotFound, "nowhere");
}

}  // namespace
}  // namespace shardwright::format
