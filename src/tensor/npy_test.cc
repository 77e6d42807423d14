#include "tensor/npy.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/mapped_file.h"
#include "base/scratch_directory.h"

namespace ingot::tensor {
namespace {

constexpr std::string_view kMagic("\x93NUMPY\x01\x00", 8);

// numpy 2.4 wrote this: np.save of [[1, 2, 3], [-4, 0.5, 65504]] as <f4.
std::string numpy_matrix() {
  std::string file(kMagic);
  file += std::string_view("v\0", 2);
  file += "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  file.append(58, ' ');
  file += '\n';
  file += std::string_view(
      "\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x80\xc0\x00\x00\x00?\x00\xe0\x7fG", 24);
  return file;
}

// A file whose header is `dictionary` as numpy pads it.
std::string file_of(std::string_view dictionary, size_t data_bytes) {
  std::string header(dictionary);
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string file(kMagic);
  file += static_cast<char>(header.size() & 0xFF);
  file += static_cast<char>(header.size() >> 8);
  return file + header + std::string(data_bytes, '\0');
}

std::string file_of_shape(std::string_view shape, size_t data_bytes) {
  return file_of("{'descr': '<f4', 'fortran_order': False, 'shape': " + std::string(shape) + ", }",
                 data_bytes);
}

class NpyTest : public ::testing::Test {
 protected:
  base::Result<NpyArray> read(std::string_view file) const {
    TRY(base::write_text_file(path_, file));
    return read_npy(path_);
  }

  base::Status write(const Shape& shape, std::span<const float> values, size_t piece) const {
    NpyWriter writer = TRY(NpyWriter::create(path_, shape));
    for (; !values.empty(); values = values.subspan(std::min(piece, values.size()))) {
      TRY(writer.append(values.first(std::min(piece, values.size()))));
    }
    return writer.finish();
  }

  void expect_refused(std::string_view file, std::string_view because) const {
    const auto array = read(file);
    ASSERT_FALSE(array.has_value()) << because;
    const std::string& message = array.error().message;
    EXPECT_TRUE(message.starts_with(path_.string() + ": ")) << message;
    EXPECT_TRUE(message.contains(because)) << message << "\nshould say: " << because;
  }

  base::ScratchDirectory directory_;
  std::filesystem::path path_ = directory_ / "logits.npy";
};

TEST_F(NpyTest, ReadsWhatNumpyWrites) {
  const auto array = read(numpy_matrix());
  ASSERT_TRUE(array.has_value()) << array.error().message;
  EXPECT_EQ(array->shape, (Shape{2, 3}));
  EXPECT_EQ(array->values, (std::vector<float>{1, 2, 3, -4, 0.5f, 65504}));
}

TEST_F(NpyTest, WritesWhatNumpyWrites) {
  const std::vector<float> values = {1, 2, 3, -4, 0.5f, 65504};
  for (const size_t piece : {1u, 4u, 6u}) {
    ASSERT_TRUE(write({2, 3}, values, piece).has_value());
    EXPECT_EQ(base::read_text_file(path_, 1000), numpy_matrix());
  }
  // The other forms of a Python tuple, as numpy wrote them.
  ASSERT_TRUE(write({}, std::vector<float>{0}, 1).has_value());
  EXPECT_EQ(base::read_text_file(path_, 1000), file_of_shape("()", 4));
  ASSERT_TRUE(write({2}, std::vector<float>{0, 0}, 1).has_value());
  EXPECT_EQ(base::read_text_file(path_, 1000), file_of_shape("(2,)", 8));
}

TEST_F(NpyTest, RoundTripsEveryRankAndBits) {
  const float nan = std::nanf("");
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{3}, Shape{0}, Shape{2, 0}, Shape{2, 3, 4},
                             Shape{1, 2, 1, 2, 1, 2, 1, 2}}) {
    std::vector<float> values(static_cast<size_t>(*shape.num_elements()));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 0.25f;
    if (!values.empty()) values.back() = nan;
    ASSERT_TRUE(write(shape, values, 5).has_value());
    const auto array = read_npy(path_);
    ASSERT_TRUE(array.has_value()) << array.error().message;
    EXPECT_EQ(array->shape, shape);
    EXPECT_EQ(base::read_text_file(path_, 1000)->size() % 64, values.size() * 4 % 64);
    ASSERT_EQ(array->values.size(), values.size());
    if (values.empty()) continue;
    EXPECT_TRUE(std::isnan(array->values.back()));
    EXPECT_TRUE(std::equal(values.begin(), values.end() - 1, array->values.begin()));
  }
}

TEST_F(NpyTest, RefusesEveryTruncation) {
  const std::string file = numpy_matrix();
  for (size_t length = 0; length < file.size(); ++length) {
    EXPECT_FALSE(read(file.substr(0, length)).has_value()) << length;
  }
  expect_refused(file + "x", "shape [2, 3] does not take the 25 bytes that follow");
}

TEST_F(NpyTest, RefusesOtherFormats) {
  std::string version_two = numpy_matrix();
  version_two[6] = 2;
  expect_refused(version_two, "not a numpy file of format 1.0");
  expect_refused("PK\x03\x04 an .npz of some length", "not a numpy file");
  expect_refused("short", "only 5 bytes");
  for (const char* dictionary :
       {"{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }",
        "{'fortran_order': False, 'descr': '<f4', 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x", "{}", ""}) {
    expect_refused(file_of(dictionary, 4), "not a little-endian float32 array in C order");
  }
}

TEST_F(NpyTest, RefusesBadShapes) {
  for (const char* shape :
       {"(1)", "(1, )", "(,)", "(1,1)", "(1, 1,)", "( 1,)", "(1,  1)", "(-1,)", "(01,)", "(+1,)",
        "(1.0,)", "(1L,)", "(x,)", "(1, 1, 1, 1, 1, 1, 1, 1, 1)", "(9223372036854775808,)"}) {
    expect_refused(file_of_shape(shape, 4), "not a little-endian float32 array");
  }
  expect_refused(file_of_shape("(1099511627776, 1099511627776)", 4), "does not take the 4 bytes");
  expect_refused(file_of_shape("(4611686018427387905,)", 4), "does not take the 4 bytes");
  expect_refused(file_of_shape("(2,)", 4), "does not take the 4 bytes");
}

using NpyDeathTest = NpyTest;

TEST_F(NpyDeathTest, StopsOnABrokenPromise) {
  auto writer = NpyWriter::create(path_, {2});
  ASSERT_TRUE(writer.has_value());
  EXPECT_DEATH(static_cast<void>(writer->append(std::vector<float>(3))), "more values");
  EXPECT_DEATH(static_cast<void>(writer->finish()), "values are missing");
}

}  // namespace
}  // namespace ingot::tensor
