#include "tensor/safetensors_writer.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/mapped_file.h"
#include "base/random.h"
#include "base/scratch_directory.h"
#include "tensor/checkpoint.h"

namespace ingot::tensor {
namespace {

std::vector<std::byte> random_bytes(size_t count) {
  const base::RandomStream stream = base::random_stream(1, "data");
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(stream.word(i));
  return bytes;
}

class SafetensorsWriterTest : public ::testing::Test {
 protected:
  // Writes in pieces of `piece` bytes.
  base::Status write(const std::vector<TensorSpec>& specs, std::span<const std::byte> data,
                     size_t piece) const {
    SafetensorsWriter writer = TRY(SafetensorsWriter::create(path_, specs));
    while (!data.empty()) {
      const size_t count = std::min(piece, data.size());
      TRY(writer.append(data.first(count)));
      data = data.subspan(count);
    }
    return writer.finish();
  }

  base::ScratchDirectory directory_;
  std::filesystem::path path_ = directory_ / "model.safetensors";
};

TEST_F(SafetensorsWriterTest, WritesThisFile) {
  const std::vector<std::byte> data(5, std::byte{'.'});
  ASSERT_TRUE(write({{"a", DType::kU8, {3}}, {"b", DType::kF16, {}}}, data, 5).has_value());
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
      R"("b":{"dtype":"F16","shape":[],"data_offsets":[3,5]}})";
  const std::string padding((8 - header.size() % 8) % 8, ' ');
  const std::string length{static_cast<char>(header.size() + padding.size()), 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(base::read_text_file(path_, 1000), length + header + padding + ".....");
}

TEST_F(SafetensorsWriterTest, TakesTensorsInAnyOrder) {
  const std::vector<TensorSpec> specs = {
      {"a", DType::kBF16, {3, 5}}, {"empty", DType::kU8, {0}}, {"b", DType::kF32, {4}}};
  const std::vector<std::byte> data = random_bytes(30 + 16);
  ASSERT_TRUE(write(specs, data, 46).has_value());
  const auto expected = base::read_text_file(path_, 1000);
  EXPECT_EQ(SafetensorsWriter::file_bytes(specs), expected->size());

  auto writer = SafetensorsWriter::create(path_, specs);
  ASSERT_TRUE(writer.has_value());
  const std::span<const std::byte> bytes(data);
  ASSERT_TRUE(writer->reserve().has_value());
  ASSERT_TRUE(writer->write_at(2, 4, bytes.subspan(34, 12)).has_value());
  ASSERT_TRUE(writer->write_at(0, 10, bytes.subspan(10, 20)).has_value());
  ASSERT_TRUE(writer->write_at(1, 0, {}).has_value());
  ASSERT_TRUE(writer->write_at(2, 0, bytes.subspan(30, 4)).has_value());
  ASSERT_TRUE(writer->write_at(0, 0, bytes.first(10)).has_value());
  ASSERT_TRUE(writer->finish().has_value());
  EXPECT_EQ(base::read_text_file(path_, 1000).value(), *expected);
}

TEST_F(SafetensorsWriterTest, WritesNothingOutsideATensor) {
  auto writer = SafetensorsWriter::create(path_, {{"a", DType::kU8, {3}}, {"b", DType::kU8, {3}}});
  ASSERT_TRUE(writer.has_value());
  const std::vector<std::byte> four(4);
  EXPECT_DEATH(static_cast<void>(writer->write_at(0, 0, four)), "write outside the tensor");
  EXPECT_DEATH(static_cast<void>(writer->write_at(0, 4, {})), "write outside the tensor");
  EXPECT_DEATH(static_cast<void>(writer->finish()), "tensors are incomplete");
}

TEST_F(SafetensorsWriterTest, RoundTripsThroughTheReader) {
  const std::vector<TensorSpec> specs = {
      {"model.embed_tokens.weight", DType::kBF16, {7, 5}},
      {"empty", DType::kF64, {4, 0, 2}},
      {"scalar", DType::kF32, {}},
      {"odd", DType::kU8, {3}},
      {"name with \"quotes\", \\ and é\n", DType::kF8E4M3, {2, 2, 2, 2, 2, 2, 2, 2}},
      {"last", DType::kI64, {1}},
  };
  const std::vector<std::byte> data = random_bytes(70 + 0 + 4 + 3 + 256 + 8);
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{64}, data.size()}) {
    const base::Status written = write(specs, data, piece);
    ASSERT_TRUE(written.has_value()) << written.error().message;
    const auto checkpoint = Checkpoint::open(directory_.path());
    ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
    ASSERT_EQ(checkpoint->tensors().size(), specs.size());
    EXPECT_EQ(checkpoint->size_bytes(), data.size());
    size_t first = 0;
    for (size_t i = 0; i < specs.size(); ++i) {
      const TensorInfo& info = checkpoint->tensors()[i];
      EXPECT_EQ(info.name, specs[i].name);
      EXPECT_EQ(info.dtype, specs[i].dtype);
      EXPECT_EQ(info.shape, specs[i].shape);
      std::vector<std::byte> read(info.size_bytes);
      ASSERT_TRUE(checkpoint->read(info, 0, read).has_value());
      EXPECT_TRUE(std::ranges::equal(read, std::span(data).subspan(first, read.size())));
      first += read.size();
    }
    EXPECT_EQ(checkpoint->tensors().front().offset % 8, 0u) << "data begin aligned";
  }
}

TEST_F(SafetensorsWriterTest, MayHoldNothing) {
  ASSERT_TRUE(write({}, {}, 1).has_value());
  const auto checkpoint = Checkpoint::open(directory_.path());
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  EXPECT_TRUE(checkpoint->tensors().empty());
}

TEST_F(SafetensorsWriterTest, AppearsOnlyWhenFinished) {
  {
    auto writer = SafetensorsWriter::create(path_, {{"a", DType::kU8, {4}}});
    ASSERT_TRUE(writer.has_value());
    ASSERT_TRUE(writer->append(random_bytes(2)).has_value());
    EXPECT_FALSE(std::filesystem::exists(path_));
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

TEST_F(SafetensorsWriterTest, ReportsAFullDiskAndLeavesNothing) {
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{.rlim_cur = 5000, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  const base::Status status = write({{"a", DType::kU8, {10'000}}}, random_bytes(10'000), 1000);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(status.has_value());
  EXPECT_TRUE(status.error().message.starts_with(path_.string() + ": write failed"))
      << status.error().message;
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

using SafetensorsWriterDeathTest = SafetensorsWriterTest;

TEST_F(SafetensorsWriterDeathTest, StopsOnABrokenPromise) {
  const auto create = [&](std::vector<TensorSpec> specs) {
    return SafetensorsWriter::create(path_, std::move(specs)).has_value();
  };
  const TensorSpec tensor = {"a", DType::kU8, {4}};
  EXPECT_DEATH(create({tensor, tensor}), "names.insert");
  EXPECT_DEATH(create({{"a", DType::kF64, {int64_t{1} << 60}}}), "tensor too large");
  const TensorSpec half = {"a", DType::kU8, {int64_t{1} << 62}};
  const TensorSpec other_half = {"b", DType::kU8, {int64_t{1} << 62}};
  EXPECT_DEATH(create({half, other_half}), "file too large");

  auto writer = SafetensorsWriter::create(path_, {tensor});
  ASSERT_TRUE(writer.has_value());
  EXPECT_DEATH(static_cast<void>(writer->append(random_bytes(5))), "more data than");
  EXPECT_DEATH(static_cast<void>(writer->finish()), "tensors are incomplete");
}

}  // namespace
}  // namespace ingot::tensor
