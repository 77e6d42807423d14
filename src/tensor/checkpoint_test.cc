#include "tensor/checkpoint.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/output_file.h"
#include "base/scratch_directory.h"
#include "tensor/safetensors_writer.h"

namespace ingot::tensor {
namespace {

constexpr const char* kFirst = "model-00001-of-00002.safetensors";
constexpr const char* kSecond = "model-00002-of-00002.safetensors";

class CheckpointTest : public ::testing::Test {
 protected:
  // A shard of tensors of three bytes, each filled with the last letter of its name.
  void write_shard(const std::string& file, const std::vector<std::string>& names) const {
    std::vector<TensorSpec> specs;
    std::string data;
    for (const std::string& name : names) {
      specs.push_back({name, DType::kU8, {3}});
      data.append(3, name.back());
    }
    auto writer = SafetensorsWriter::create(directory_ / file, specs);
    ASSERT_TRUE(writer.has_value()) << writer.error().message;
    ASSERT_TRUE(writer->append(std::as_bytes(std::span(data))).has_value());
    ASSERT_TRUE(writer->finish().has_value());
  }

  void write_file(const std::string& file, std::string_view text) const {
    ASSERT_TRUE(base::write_text_file(directory_ / file, text).has_value());
  }

  void write_index(const std::vector<std::pair<std::string, std::string>>& entries) const {
    std::string map;
    for (const auto& [tensor, shard] : entries) {
      map += (map.empty() ? "\"" : ", \"") + tensor + "\": \"" + shard + "\"";
    }
    write_file("model.safetensors.index.json",
               R"({"metadata": {"total_size": 9}, "weight_map": {)" + map + "}}");
  }

  void write_two_shards() const {
    write_shard(kFirst, {"layer.a", "layer.b"});
    write_shard(kSecond, {"layer.c"});
    write_index({{"layer.c", kSecond}, {"layer.a", kFirst}, {"layer.b", kFirst}});
  }

  std::string refusal() const {
    const auto checkpoint = Checkpoint::open(directory_.path());
    if (checkpoint) return "accepted";
    EXPECT_FALSE(checkpoint.error().message.contains('\n')) << checkpoint.error().message;
    EXPECT_TRUE(checkpoint.error().message.starts_with(directory_.path().string()))
        << checkpoint.error().message;
    return checkpoint.error().message;
  }

  void expect_refused(std::string_view because) const {
    const std::string message = refusal();
    EXPECT_TRUE(message.contains(because)) << message << "\nshould say: " << because;
  }

  base::ScratchDirectory directory_;
};

TEST_F(CheckpointTest, OpensShards) {
  write_two_shards();
  auto opened = Checkpoint::open(directory_.path());
  ASSERT_TRUE(opened.has_value()) << opened.error().message;
  const Checkpoint checkpoint = std::move(*opened);  // names must survive a move
  ASSERT_EQ(checkpoint.files().size(), 2u);
  EXPECT_EQ(checkpoint.files()[0].path(), directory_ / kFirst);
  ASSERT_EQ(checkpoint.tensors().size(), 3u);
  EXPECT_EQ(checkpoint.size_bytes(), 9u);
  EXPECT_EQ(checkpoint.tensors()[0].name, "layer.a");
  EXPECT_EQ(checkpoint.tensors()[2].file, 1u);
  for (const char* name : {"layer.a", "layer.b", "layer.c"}) {
    const TensorInfo* tensor = checkpoint.find(name);
    ASSERT_NE(tensor, nullptr) << name;
    EXPECT_EQ(tensor->name, name);
    std::string data(3, '\0');
    ASSERT_TRUE(checkpoint.read(*tensor, 0, std::as_writable_bytes(std::span(data))).has_value());
    EXPECT_EQ(data, std::string(3, name[6]));
    checkpoint.drop_from_page_cache(*tensor);
  }
  EXPECT_EQ(checkpoint.path_of(*checkpoint.find("layer.c")), directory_ / kSecond);
  EXPECT_EQ(checkpoint.find("layer"), nullptr);
  EXPECT_EQ(checkpoint.find(""), nullptr);
}

TEST_F(CheckpointTest, OpensASingleFile) {
  write_shard("model.safetensors", {"x", "y"});
  const auto checkpoint = Checkpoint::open(directory_.path());
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->tensors().size(), 2u);
  write_index({{"x", "model.safetensors"}, {"y", "model.safetensors"}});
  EXPECT_EQ(refusal(), "accepted");
}

TEST_F(CheckpointTest, ReadsPiecesOfATensor) {
  write_shard("model.safetensors", {"x", "y"});
  const auto checkpoint = Checkpoint::open(directory_.path());
  ASSERT_TRUE(checkpoint.has_value());
  const TensorInfo& y = *checkpoint->find("y");
  std::string data(2, '\0');
  EXPECT_TRUE(checkpoint->read(y, 1, std::as_writable_bytes(std::span(data))).has_value());
  EXPECT_EQ(data, "yy");
  EXPECT_TRUE(checkpoint->read(y, 3, {}).has_value());
}

using CheckpointDeathTest = CheckpointTest;

TEST_F(CheckpointDeathTest, NeverReadsOutsideATensor) {
  write_shard("model.safetensors", {"x", "y"});
  const auto checkpoint = Checkpoint::open(directory_.path());
  ASSERT_TRUE(checkpoint.has_value());
  const TensorInfo& x = *checkpoint->find("x");
  std::vector<std::byte> data(3);
  EXPECT_DEATH(static_cast<void>(checkpoint->read(x, 1, data)), "outside the tensor");
  EXPECT_DEATH(static_cast<void>(checkpoint->read(x, ~uint64_t{0}, data)), "outside the tensor");
}

TEST_F(CheckpointTest, HeaderHashFollowsHeadersOnly) {
  const auto hash = [&] { return Checkpoint::open(directory_.path()).value().header_hash(); };
  write_shard("model.safetensors", {"x", "y"});
  const std::string before = hash();
  EXPECT_EQ(before.size(), 16u);
  EXPECT_EQ(before.find_first_not_of("0123456789abcdef"), std::string::npos) << before;
  EXPECT_EQ(hash(), before);
  write_shard("model.safetensors", {"x", "z"});
  EXPECT_NE(hash(), before);
}

TEST_F(CheckpointTest, RefusesADirectoryWithoutSafetensors) {
  expect_refused("neither model.safetensors nor model.safetensors.index.json is here");
  const auto missing = Checkpoint::open(directory_ / "absent");
  ASSERT_FALSE(missing.has_value());
  EXPECT_TRUE(missing.error().message.contains("not a directory")) << missing.error().message;
  write_shard("model.safetensors", {"x"});
  EXPECT_FALSE(Checkpoint::open(directory_ / "model.safetensors").has_value());
}

TEST_F(CheckpointTest, NamesAllMissingShards) {
  write_shard("b", {"x"});
  write_index({{"x", "b"}, {"y", "c"}, {"z", "a"}});
  EXPECT_EQ(refusal(),
            directory_.path().string() + ": 2 of 3 shards are missing, download them: a, c");
}

TEST_F(CheckpointTest, ADanglingLinkIsAMissingShard) {
  write_two_shards();
  std::filesystem::remove(directory_ / kSecond);
  std::filesystem::create_symlink("blobs/0123", directory_ / kSecond);
  expect_refused("1 of 2 shards are missing");
}

TEST_F(CheckpointTest, RefusesATruncatedShard) {
  write_two_shards();
  const auto size = std::filesystem::file_size(directory_ / kSecond);
  std::filesystem::resize_file(directory_ / kSecond, size - 1);
  expect_refused(std::string(kSecond) + ": header says 3 bytes of data and the file has 2");
  std::filesystem::resize_file(directory_ / kSecond, 0);
  expect_refused(std::string(kSecond) + ": only 0 bytes");
}

TEST_F(CheckpointTest, RefusesATensorThatTheIndexDoesNotList) {
  write_two_shards();
  write_index({{"layer.c", kSecond}, {"layer.a", kFirst}});
  expect_refused(R"(tensor "layer.b" is in model-00001-of-00002.safetensors and the index does)");
}

TEST_F(CheckpointTest, RefusesATensorThatNoShardHas) {
  write_two_shards();
  write_index({{"layer.c", kSecond},
               {"layer.a", kFirst},
               {"layer.b", kFirst},
               {"z", kSecond},
               {"d", kFirst}});
  expect_refused(R"(2 of its 5 tensors are in no shard, "d" is one that model-00001)");
}

TEST_F(CheckpointTest, RefusesATensorInAnotherShard) {
  write_two_shards();
  write_index({{"layer.c", kFirst}, {"layer.a", kFirst}, {"layer.b", kSecond}});
  expect_refused(R"(tensor "layer.b" is in model-00001-of-00002.safetensors and the index says)");
}

TEST_F(CheckpointTest, RefusesATensorInTwoShards) {
  write_two_shards();
  write_shard(kSecond, {"layer.c", "layer.a"});
  expect_refused(R"(tensor "layer.a" is in both model-00001)");
}

TEST_F(CheckpointTest, RefusesALeftOverSingleFile) {
  write_two_shards();
  write_shard("model.safetensors", {"x"});
  expect_refused("does not list it; remove the one that is left over");
}

TEST_F(CheckpointTest, IgnoresFilesThatTheIndexDoesNotName) {
  write_two_shards();
  write_file("consolidated.safetensors", "not even safetensors");
  EXPECT_EQ(refusal(), "accepted");
}

}  // namespace
}  // namespace ingot::tensor
