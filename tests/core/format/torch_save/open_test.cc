// SPDX-License-Identifier: Apache-2.0
//
// Files of torch.save as checkpoints: what they become, and what is refused and how.
#include <functional>

#include <gtest/gtest.h>

#include "core/format/format.h"
#include "core/integrity/crc32.h"
#include "core/storage/backends.h"
#include "tests/core/format/safetensors/sample_files.h"
#include "tests/core/format/torch_save/sample_values.h"
#include "tests/support/expect_failure.h"

namespace shardwright::format::torch_save {
namespace {

using archive::PickleProtocol;
using archive::PickleWriter;
using test::file_of;
using test::old_file_of;
using test::pickle_of;
using test::SampleTensor;

const std::string kFourNumbers(16, 'x');

class TorchSaveOpen : public testing::Test {
 protected:
  void put(std::string_view bytes) { safetensors::test::store(storage_.get(), "p/v.pt", bytes); }
  auto open() { return FormatTable().open({storage_, "p/v.pt"}); }
  auto open(std::string_view bytes) {
    put(bytes);
    return open();
  }
  void expect_refused(std::string_view bytes, std::string_view says,
                      StatusCode code = StatusCode::kDataLoss) {
    const Status status = open(bytes).status();
    EXPECT_EQ(status.code(), code) << says << ": " << status.to_string();
    EXPECT_EQ(status.detail("file"), "v.pt") << says << ": " << status.to_string();
    EXPECT_NE(status.to_string().find(says), std::string::npos)
        << says << ": " << status.to_string();
  }
  void expect_refused_tensor(const SampleTensor& tensor, std::string_view says,
                             StatusCode code = StatusCode::kDataLoss) {
    expect_refused(file_of(pickle_of("w", tensor), {kFourNumbers}), says, code);
    expect_refused(old_file_of(pickle_of("w", tensor), {kFourNumbers}), says, code);
  }

  std::shared_ptr<storage::Storage> storage_ = storage::make_memory_storage();
};

// The pickle of what make adds.
std::string pickled(const std::function<void(PickleWriter*)>& make) {
  PickleWriter pickle(PickleProtocol::k2);
  make(&pickle);
  return std::move(pickle).finish();
}

TEST_F(TorchSaveOpen, AFileIsACheckpointOfOneRank) {
  for (const std::string& file : {file_of(pickle_of("w", {}), {kFourNumbers}),
                                  old_file_of(pickle_of("w", {}), {kFourNumbers})}) {
    const auto opened = open(file);
    ASSERT_TRUE(opened.ok()) << opened.status().to_string();
    const OpenedCheckpoint& checkpoint = **opened;
    EXPECT_EQ(checkpoint.format_name(), "torch-save");
    EXPECT_EQ(checkpoint.world_size(), 1);
    ASSERT_EQ(checkpoint.files().size(), 1U);
    EXPECT_EQ(checkpoint.files()[0].size_bytes, file.size());
    EXPECT_EQ(checkpoint.catalog().tensor_name(0), "w");
    EXPECT_EQ(checkpoint.catalog().texts.at(checkpoint.catalog().tensors[0].path), "[\"w\"]");
    const Extent extent = *checkpoint.chunk_extent(0);
    EXPECT_EQ(file.substr(extent.offset, extent.size_bytes), kFourNumbers);
    EXPECT_TRUE(checkpoint.check_file(0).ok());
    EXPECT_TRUE(checkpoint.check_checksums(0).ok());
    EXPECT_TRUE(checkpoint.prepare_file(0).ok());
  }
}

TEST_F(TorchSaveOpen, ViewsOfOneStorageAreTensorsOfTheirOwn) {
  const std::string pickle = pickled([](PickleWriter* out) {
    out->empty_list();
    test::add_tensor({"0", 4, 0, {2, 2}, {2, 1}}, out);
    out->append();
    test::add_tensor({"0", 4, 0, {2, 2}, {1, 2}}, out);
    out->append();
    test::add_tensor({"0", 4, 3, {}, {}}, out);
    out->append();
    test::add_tensor({"0", 4, 1, {3, 2}, {0, 2}}, out);
    out->append();
  });
  const auto opened = open(file_of(pickle, {"aaaabbbbccccdddd"}));
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  const OpenedCheckpoint& checkpoint = **opened;
  EXPECT_EQ(checkpoint.catalog().tensor_name(3), "3");
  EXPECT_EQ(checkpoint.chunk_extent(0)->file, 0U);
  EXPECT_EQ(checkpoint.chunk_extent(1)->file, checkpoint.derived_file());
  EXPECT_EQ(checkpoint.chunk_extent(2)->offset, checkpoint.chunk_extent(0)->offset + 12);
  const auto derived = *checkpoint.open_derived();
  std::string bytes(16, '?');
  const auto at = [&](size_t chunk) { return checkpoint.chunk_extent(chunk)->offset; };
  ASSERT_TRUE(derived->read_at(at(1), std::as_writable_bytes(std::span(bytes))).ok());
  EXPECT_EQ(bytes, "aaaaccccbbbbdddd");
  bytes.resize(24);
  ASSERT_TRUE(derived->read_at(at(3), std::as_writable_bytes(std::span(bytes))).ok());
  EXPECT_EQ(bytes, "bbbbddddbbbbddddbbbbdddd");
}

TEST_F(TorchSaveOpen, AttributesOfAStateDictAreMetadata) {
  const std::string pickle = pickled([](PickleWriter* out) {
    out->empty_dict().text("model").global("collections", "OrderedDict").empty_tuple().reduce();
    out->text("w");
    test::add_tensor({}, out);
    out->set_item();
    out->empty_dict().text("_metadata").empty_dict().text("").empty_dict();
    out->text("version").integer(1).set_item().set_item().set_item().build().set_item();
  });
  const auto opened = open(file_of(pickle, {kFourNumbers}));
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  EXPECT_EQ((*opened)->catalog().tensor_name(0), "model.w");
  EXPECT_TRUE((*opened)->catalog().objects.empty());
  EXPECT_EQ((*opened)->metadata().at("model._metadata"), R"({"":{"version":1}})");
}

TEST_F(TorchSaveOpen, AnotherRankOpensWhatWasReadForAll) {
  for (const std::string& file : {file_of(pickle_of("w", {}), {kFourNumbers}),
                                  old_file_of(pickle_of("w", {}), {kFourNumbers})}) {
    put(file);
    StoredMetadata metadata;
    const auto opened = FormatTable().open({storage_, "p/v.pt"}, &metadata);
    const Location nowhere{storage::make_memory_storage(), "p/v.pt"};
    const auto shared = FormatTable().open_shared(nowhere, metadata);
    ASSERT_TRUE(shared.ok()) << shared.status().to_string();
    EXPECT_EQ((*shared)->identity(), (*opened)->identity());
    EXPECT_EQ((*shared)->chunk_extent(0)->offset, (*opened)->chunk_extent(0)->offset);
    for (size_t size = 0; size < metadata.bytes.size(); ++size) {
      StoredMetadata cut{metadata.format_name, {}};
      cut.bytes.assign(metadata.bytes.begin(), metadata.bytes.begin() + static_cast<int>(size));
      EXPECT_FALSE(FormatTable().open_shared(nowhere, cut).ok()) << size;
    }
  }
}

TEST_F(TorchSaveOpen, AFileThatWasReplacedOrIsGoneIsNotRead) {
  const auto opened = open(file_of(pickle_of("w", {}), {kFourNumbers}));
  put(file_of(pickle_of("v", {}), {kFourNumbers}));
  EXPECT_EQ((*opened)->prepare_file(0).code(), StatusCode::kAborted);
  EXPECT_EQ((*opened)->check_file(0).code(), StatusCode::kDataLoss);
  ASSERT_TRUE(storage_->remove("p/v.pt").ok());
  EXPECT_EQ((*opened)->prepare_file(0).code(), StatusCode::kDataLoss);
  EXPECT_EQ((*opened)->check_file(0).code(), StatusCode::kDataLoss);
  EXPECT_EQ((*opened)->check_checksums(0).code(), StatusCode::kDataLoss);
}

TEST_F(TorchSaveOpen, RefusesFilesThatWereCutAnywhere) {
  for (const std::string& file : {file_of(pickle_of("w", {}), {kFourNumbers}),
                                  old_file_of(pickle_of("w", {}), {kFourNumbers})}) {
    for (size_t size = 4; size < file.size(); ++size) {
      const Status status = open(file.substr(0, size)).status();
      const bool is_magic_whole = file[0] == 'P' || size >= 15;
      EXPECT_EQ(status.code(), is_magic_whole ? StatusCode::kDataLoss : StatusCode::kUnimplemented)
          << size << status.to_string();
    }
  }
}

TEST_F(TorchSaveOpen, RefusesTensorsThatDoNotLieInTheirStorage) {
  expect_refused_tensor({"0", 4, 1, {4}, {1}}, "ends at byte 20 of a storage of 16");
  expect_refused_tensor({"0", 4, 0, {2, 3}, {2, 1}}, "ends at byte 20");
  expect_refused_tensor({"0", 4, -1, {4}, {1}}, "in front of its storage");
  expect_refused_tensor({"0", 4, 0, {4}, {-1}}, "is negative");
  expect_refused_tensor({"0", 4, 0, {-4}, {1}}, "never writes");
  expect_refused_tensor({"0", 4, 0, {4, 1}, {1}}, "different lengths");
  expect_refused_tensor({"0", 4, INT64_MAX, {4}, {1}}, "beyond what can be counted");
  expect_refused_tensor({"0", 4, 0, {2}, {INT64_MAX}}, "beyond what can be counted");
  expect_refused_tensor({"0", 4, 0, std::vector<int64_t>(65, 1), std::vector<int64_t>(65, 1)},
                        "65 dimensions");
  expect_refused_tensor({"0", -4, 0, {4}, {1}}, "impossible size");
  expect_refused_tensor({"0", 8, 0, {4}, {1}}, "of 32 bytes, and the file has 16");
  // Nothing has no place.
  EXPECT_TRUE(open(file_of(pickle_of("w", {"0", 4, 99, {0}, {1}}), {kFourNumbers})).ok());
}

TEST_F(TorchSaveOpen, RefusesStoragesThatAreNotThere) {
  expect_refused(file_of(pickle_of("w", {"1"}), {kFourNumbers}), "storage '1', which the file");
  expect_refused(old_file_of(pickle_of("w", {"1"}), {kFourNumbers}),
                 "storage '0', which nothing in its value names");
  expect_refused(old_file_of(pickle_of("w", {}), {}), "which the file does not have");
}

TEST_F(TorchSaveOpen, RefusesMoreThanSmallFilesCanSay) {
  // One number, said to be 2^40.
  expect_refused(file_of(pickle_of("w", {"0", 4, 0, {int64_t{1} << 40}, {0}}), {kFourNumbers}),
                 "too many bytes for a file of", StatusCode::kResourceExhausted);
  EXPECT_TRUE(open(file_of(pickle_of("w", {"0", 4, 0, {1 << 20}, {0}}), {kFourNumbers})).ok());
  const std::string bomb = pickled([](PickleWriter* out) {
    out->text("leaf");
    archive::PickleMemo last = out->memoize();
    for (int level = 0; level < 12; ++level) {
      out->empty_list().mark();
      for (int i = 0; i < 10; ++i) out->get(last);
      out->appends_to_mark();
      last = out->memoize();
    }
  });
  expect_refused(file_of(bomb, {}), "again and again", StatusCode::kResourceExhausted);
}

TEST_F(TorchSaveOpen, ElementsOfLessThanAByteAreNamedAndNotGiven) {
  const auto value = [](std::string_view dtype) {
    return pickled([dtype](PickleWriter* out) {
      out->empty_dict().text("w").global("torch._utils", "_rebuild_tensor_v3").mark();
      out->mark().text("storage").global("torch", "UntypedStorage").text("0").text("cpu");
      out->integer(16).tuple_to_mark().persistent_id().integer(1 << 20);
      out->integer(16).tuple(1).integer(1).tuple(1).boolean(false);
      out->global("collections", "OrderedDict").empty_tuple().reduce().global("torch", dtype);
      out->tuple_to_mark().reduce().set_item();
    });
  };
  for (const char* const dtype : {"uint4", "int4", "float6_e3m2fn", "float4_e2m1fn"}) {
    const auto opened = open(file_of(value(dtype), {kFourNumbers}));
    ASSERT_TRUE(opened.ok()) << opened.status().to_string();
    EXPECT_TRUE((*opened)->catalog().tensors.empty());
    ASSERT_EQ((*opened)->notes().size(), 1U);
    EXPECT_NE((*opened)->notes()[0].find(dtype), std::string::npos);
  }
  expect_refused(file_of(value("float4_e2m1fn_x2"), {kFourNumbers}), "of a storage of 16");
}

// Neither what makes a dict unfit for paths nor its other attributes are looked for each time.
TEST_F(TorchSaveOpen, SharedDictsAreLookedAtOnce) {
  constexpr int kMany = 60000;
  const std::string pickle = pickled([](PickleWriter* out) {
    out->empty_list().mark().empty_dict().mark();
    out->text("first").global("os", "system").empty_tuple().reduce().persistent_id();
    for (int i = 0; i < kMany; ++i) out->text(std::to_string(i)).none();
    out->real(0.5).none().set_items_to_mark();
    const archive::PickleMemo shared = out->memoize();
    for (int i = 0; i < kMany; ++i) out->get(shared);
    out->appends_to_mark();
  });
  const auto opened = open(file_of(pickle, {}));
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  EXPECT_EQ((*opened)->catalog().objects.size(), static_cast<size_t>(kMany) + 1);
}

// OrderedDict([["w", tensor]]) with another entry set: all of it or none.
TEST_F(TorchSaveOpen, NothingOfADictVanishesWithoutANote) {
  const auto value = [](bool has_tensor) {
    return pickled([has_tensor](PickleWriter* out) {
      out->global("collections", "OrderedDict").empty_list().empty_list().text("w").append();
      if (has_tensor) {
        test::add_tensor({}, out);
      } else {
        out->integer(7);
      }
      out->append().append().tuple(1).reduce().text("k").integer(1).set_item();
    });
  };
  const auto opened = open(file_of(value(true), {kFourNumbers}));
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  ASSERT_EQ((*opened)->notes().size(), 1U);
  EXPECT_NE((*opened)->notes()[0].find("tensors inside of it are not listed"), std::string::npos);
  const auto plain = open(file_of(value(false), {}));
  ASSERT_TRUE(plain.ok()) << plain.status().to_string();
  const plan::Catalog& catalog = (*plain)->catalog();
  ASSERT_EQ(catalog.objects.size(), 1U);
  EXPECT_EQ(catalog.texts.at(catalog.objects[0].content_type), "application/python-pickle");
  const auto attributes = open(file_of(pickled([](PickleWriter* out) {
                                         out->global("collections", "OrderedDict").empty_tuple();
                                         out->reduce().text("k").integer(1).set_item();
                                         out->empty_dict().text("other").integer(1).set_item();
                                         out->build();
                                       }),
                                       {}));
  ASSERT_TRUE(attributes.ok()) << attributes.status().to_string();
  ASSERT_EQ((*attributes)->notes().size(), 1U);
  EXPECT_NE((*attributes)->notes()[0].find("with attributes"), std::string::npos);
}

TEST_F(TorchSaveOpen, RefusesAValueThatHoldsItself) {
  const std::string pickle = pickled([](PickleWriter* out) {
    out->empty_list();
    const archive::PickleMemo itself = out->memoize();
    out->get(itself).append();
  });
  expect_refused(file_of(pickle, {}), "or holds itself");
}

TEST_F(TorchSaveOpen, RefusesTwoEntriesOfOneName) {
  const std::string pickle = pickled([](PickleWriter* out) {
    out->empty_dict().text("a.b").integer(1).set_item();
    out->text("a").empty_dict().text("b").integer(2).set_item().set_item();
  });
  expect_refused(file_of(pickle, {}), "name 'a.b'", StatusCode::kUnimplemented);
}

TEST_F(TorchSaveOpen, RefusesArchivesOfOthers) {
  using archive::test::archive_of;
  expect_refused(archive_of({{"a.npy", "x"}}), "is a numpy archive", StatusCode::kUnimplemented);
  expect_refused(archive_of({{"a/b", "x"}}), "without a pickle", StatusCode::kInvalidArgument);
  auto entries = test::entries_of(pickle_of("w", {}), {kFourNumbers});
  entries[1].payload = "big";
  expect_refused(archive_of(entries), "in the order 'big'", StatusCode::kUnimplemented);
  entries[1].payload = "little";
  entries.back().payload = "11\n";
  expect_refused(archive_of(entries), "of version '11", StatusCode::kUnimplemented);
  entries.pop_back();
  entries.push_back({"archive/constants.pkl", "x"});
  EXPECT_EQ((*open(archive_of(entries)))->notes().size(), 1U);
}

TEST_F(TorchSaveOpen, RefusesRecordsThatAreCompressedOrDamaged) {
  std::string file = file_of(pickle_of("w", {}), {kFourNumbers});
  archive::test::patch(&file, archive::test::kCentral, 2, 10, uint16_t{8});
  archive::test::patch(&file, archive::test::kLocal, 2, 8, uint16_t{8});
  expect_refused(file, "is deflated", StatusCode::kUnimplemented);
  file = file_of(pickle_of("w", {}), {kFourNumbers});
  file[file.find("xxxx")] = 'y';
  const auto opened = open(file);
  ASSERT_TRUE(opened.ok());
  EXPECT_TRUE((*opened)->check_file(0).ok());
  const auto expected = (*opened)->item_checksum({StoredItem::Kind::kChunk, 0});
  EXPECT_EQ(**expected, integrity::crc32(0, std::as_bytes(std::span(kFourNumbers))));
  EXPECT_TRUE((*opened)->check_checksums(0).ok()) << "of what no chunk is";
  file = file_of(pickle_of("weight", {}), {kFourNumbers});
  file[file.find("weight")] = 'y';
  expect_refused(file, "CRC-32 of entry 'archive/data.pkl'");
}

// As the code of a model is.
TEST_F(TorchSaveOpen, OtherRecordsThatAreCompressedAreNotChecked) {
  auto entries = test::entries_of(pickle_of("w", {}), {kFourNumbers});
  entries.push_back({"archive/code/a.py", "code"});
  std::string file = archive::test::archive_of(entries);
  archive::test::patch(&file, archive::test::kCentral, 4, 10, uint16_t{8});
  archive::test::patch(&file, archive::test::kLocal, 4, 8, uint16_t{8});
  const auto opened = open(file);
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  ASSERT_EQ((*opened)->notes().size(), 1U);
  EXPECT_NE((*opened)->notes()[0].find("1 records of the archive are compressed"),
            std::string::npos);
  const Status checked = (*opened)->check_checksums(0);
  EXPECT_TRUE(checked.ok()) << checked.to_string();
  file[file.find("little")] = 'y';
  EXPECT_FAILURE(open(file).status(), StatusCode::kDataLoss, "CRC-32 of entry 'archive/byteorder'");
}

TEST_F(TorchSaveOpen, NothingIsCalledAndTheRestIsRead) {
  const std::string pickle = pickled([](PickleWriter* out) {
    out->empty_dict().text("bad").global("os", "system").text("touch /tmp/x").tuple(1).reduce();
    out->set_item().text("w");
    test::add_tensor({}, out);
    out->set_item();
  });
  const auto opened = open(file_of(pickle, {kFourNumbers}));
  ASSERT_TRUE(opened.ok()) << opened.status().to_string();
  EXPECT_EQ((*opened)->catalog().tensor_name(0), "w");
  const plan::Catalog& catalog = (*opened)->catalog();
  EXPECT_EQ(catalog.texts.at(catalog.objects[0].content_type), "application/python-pickle");
}

}  // namespace
}  // namespace shardwright::format::torch_save
