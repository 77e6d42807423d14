#include "tensor/safetensors.h"

#include <cstdint>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace ingot::tensor {
namespace {

constexpr std::string_view kSource = "model-00007-of-00141.safetensors";

// A file with a header of this length and text, followed by `data_bytes` zeros.
std::string file_with_length(uint64_t length, std::string_view header, size_t data_bytes) {
  std::string file(reinterpret_cast<const char*>(&length), sizeof length);
  file += header;
  file.append(data_bytes, '\0');
  return file;
}

std::string file_of(std::string_view header, size_t data_bytes) {
  return file_with_length(header.size(), header, data_bytes);
}

base::Result<std::vector<TensorInfo>> parse(std::string_view file) {
  return parse_safetensors_header(std::as_bytes(std::span(file)), file.size(), kSource);
}

// The error without the file's name in front of it, which every error has.
std::string refusal(std::string_view file) {
  const auto tensors = parse(file);
  if (tensors) return "accepted";
  const std::string& message = tensors.error().message;
  EXPECT_TRUE(message.starts_with(std::string(kSource) + ": ")) << message;
  EXPECT_FALSE(message.contains('\n')) << message;
  return message.substr(std::min(message.size(), kSource.size() + 2));
}

void expect_refused(std::string_view file, std::string_view because) {
  const std::string message = refusal(file);
  EXPECT_TRUE(message.contains(because)) << message << "\nshould say: " << because;
}

void expect_header_refused(std::string_view header, std::string_view because) {
  expect_refused(file_of(header, 16), because);
}

// The header of one tensor "x" with this object, in a file of 16 bytes of data.
void expect_tensor_refused(std::string_view object, std::string_view because) {
  expect_header_refused(R"({"x":)" + std::string(object) + "}", because);
}

TEST(SafetensorsHeader, ReadsWhatTheReferenceLibraryWrites) {
  // safetensors.numpy.save of {b: float32 0 1 2, a: four uint8 ones, empty: float16 [0, 4]}.
  const std::string file = file_of(
      R"({"__metadata__":{"format":"np"},"b":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},)"
      R"("empty":{"dtype":"F16","shape":[0,4],"data_offsets":[12,12]},)"
      R"("a":{"dtype":"U8","shape":[2,2],"data_offsets":[12,16]}}     )",
      16);
  const auto tensors = parse(file);
  ASSERT_TRUE(tensors.has_value()) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 3u);
  const TensorInfo& b = (*tensors)[0];
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(b.dtype, DType::kF32);
  EXPECT_EQ(b.shape, (Shape{3}));
  EXPECT_EQ(b.file, 0u);
  EXPECT_EQ(b.offset, 8u + 208u);
  EXPECT_EQ(b.size_bytes, 12u);
  EXPECT_EQ((*tensors)[1].name, "empty");
  EXPECT_EQ((*tensors)[1].shape, (Shape{0, 4}));
  EXPECT_EQ((*tensors)[1].size_bytes, 0u);
  EXPECT_EQ((*tensors)[2].name, "a");
  EXPECT_EQ((*tensors)[2].offset, 8u + 208u + 12u);
}

TEST(SafetensorsHeader, OrdersByOffset) {
  const auto tensors = parse(file_of(
      R"({"second":{"data_offsets":[4,8],"shape":[],"dtype":"I32"},)"
      R"("none":{"shape":[0],"dtype":"F64","data_offsets":[4,4]},)"
      R"( "first" : { "dtype" : "BF16" , "shape" : [ 2 , 1 ] , "data_offsets" : [ 0 , 4 ] } })",
      8));
  ASSERT_TRUE(tensors.has_value()) << tensors.error().message;
  ASSERT_EQ(tensors->size(), 3u);
  EXPECT_EQ((*tensors)[0].name, "first");
  EXPECT_EQ((*tensors)[1].name, "none") << "an empty tensor stands before the one it touches";
  EXPECT_EQ((*tensors)[2].name, "second");
  EXPECT_EQ((*tensors)[2].shape, Shape{});
}

TEST(SafetensorsHeader, AcceptsNoTensorsAndEmptyMetadata) {
  EXPECT_EQ(refusal(file_of("{}", 0)), "accepted");
  EXPECT_EQ(refusal(file_of(R"({"__metadata__":{}})", 0)), "accepted");
}

TEST(SafetensorsHeader, UnescapesNames) {
  const auto tensors =
      parse(file_of(R"({"a\u00e9\"\\\n":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1));
  ASSERT_TRUE(tensors.has_value()) << tensors.error().message;
  EXPECT_EQ(tensors->front().name, "aé\"\\\n");
}

TEST(SafetensorsHeader, ReadsLongNamesWhole) {
  const std::string name(100'000, 'n');
  const auto tensors =
      parse(file_of("{\"" + name + R"(":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1));
  ASSERT_TRUE(tensors.has_value()) << tensors.error().message;
  EXPECT_EQ(tensors->front().name, name);
}

TEST(SafetensorsHeader, RefusesEveryTruncation) {
  const std::string file = file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                                   R"("b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})",
                                   11);
  ASSERT_EQ(refusal(file), "accepted");
  for (size_t length = 0; length < file.size(); ++length) {
    expect_refused(std::string_view(file).substr(0, length), "the file is truncated, download it");
  }
  expect_refused(std::string_view(file).substr(0, file.size() - 3),
                 "header says 11 bytes of data and the file has 8; the file is truncated");
}

TEST(SafetensorsHeader, NamesSizesOfAPartialDownload) {
  const std::string file =
      file_of(R"({"a":{"dtype":"U8","shape":[1234],"data_offsets":[0,1234]}})", 1000);
  EXPECT_EQ(refusal(file),
            "header says 1,234 bytes of data and the file has 1,000; the file is truncated, "
            "download it again");
}

TEST(SafetensorsHeader, RefusesDataThatBelongToNoTensor) {
  expect_refused(file_of(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})", 5),
                 "header says 4 bytes of data and the file has 5; the rest belongs to no tensor");
  expect_refused(file_of("{}", 1), "header says 0 bytes of data and the file has 1");
}

TEST(SafetensorsHeader, RefusesImpossibleHeaderLengths) {
  for (const uint64_t length :
       {uint64_t{0}, uint64_t{1}, uint64_t{100'000'001}, uint64_t{1} << 32, uint64_t{1} << 63,
        (uint64_t{1} << 63) - 1, ~uint64_t{0}, ~uint64_t{0} - 7}) {
    expect_refused(file_with_length(length, "{}", 0), "this is not a safetensors file");
  }
  expect_refused(file_with_length(3, "{}", 0), "a header of 3 bytes in a file of 10; the file is");
  expect_refused(file_with_length(100'000'000, "{}", 0), "the file is truncated");
}

TEST(SafetensorsHeader, RecognisesAGitLfsPointer) {
  expect_refused("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 5\n",
                 "Git LFS pointer");
}

TEST(SafetensorsHeader, RefusesWhatIsNotAnObject) {
  for (const char* header : {"[]", "  {}", "null", "12", "\"text\"", "\0\0\0\0", "PK\3\4"}) {
    expect_header_refused(header + std::string("    "), "does not begin with '{'");
  }
}

TEST(SafetensorsHeader, RefusesBrokenJson) {
  for (const char* header :
       {"{\"x\"", "{]", "{\"x\":}", "{,}", "{\"x\":{\"dtype\":\"U8\",}}", "{x:1}", "{\"\\q\":{}}",
        "{\"x\":{\"shape\":[01]}}", "{\"x\":{\"shape\":[1,]}}", "{\"x\":{\"shape\":[+1]}}",
        "{/* */}", "{\"x\":{\"shape\":[1 2]}}"}) {
    expect_header_refused(header, "not valid JSON");
  }
  expect_header_refused("{\"\xFF\":{}}", "not valid JSON");
  expect_header_refused("{\"\xED\xA0\x80\":{}}", "not valid JSON");
  expect_header_refused("{\"__metadata__\":{\"a\":\"\xC0\xAF\"}}", "not valid JSON");
  expect_header_refused("{\"\\ud800\":{}}", "not valid JSON");
}

TEST(SafetensorsHeader, RefusesTextAfterTheObject) {
  expect_header_refused("{}{}", "text after the end");
  expect_header_refused(std::string_view("{} \0", 4), "text after the end");
  expect_header_refused("{}  x", "text after the end");
}

TEST(SafetensorsHeader, RefusesUnknownKeysAndTypes) {
  expect_tensor_refused(R"({"dtype":"U8","shape":[16],"data_offsets":[0,16],"strides":[1]})",
                        R"(tensor "x": unknown key "strides")");
  expect_tensor_refused(R"({"dtype":"F4","shape":[16],"data_offsets":[0,16]})",
                        R"(tensor "x": dtype "F4" is not one that Ingot reads)");
  expect_tensor_refused(R"({"dtype":"","shape":[16],"data_offsets":[0,16]})", "dtype \"\"");
  for (const char* value : {"1", "null", "true", "[\"U8\"]", "{\"U8\":1}", "1.5", "-1"}) {
    expect_tensor_refused(
        R"({"shape":[16],"data_offsets":[0,16],"dtype":)" + std::string(value) + "}",
        "tensor \"x\": dtype is ");
  }
}

TEST(SafetensorsHeader, RefusesMissingAndRepeatedKeys) {
  expect_tensor_refused("{}", "dtype is missing");
  expect_tensor_refused(R"({"shape":[16],"data_offsets":[0,16]})", "dtype is missing");
  expect_tensor_refused(R"({"dtype":"U8","data_offsets":[0,16]})", "shape is missing");
  expect_tensor_refused(R"({"dtype":"U8","shape":[16]})", "data_offsets is missing");
  expect_tensor_refused(R"({"dtype":"U8","dtype":"U8","shape":[16],"data_offsets":[0,16]})",
                        "key \"dtype\" appears twice");
  expect_tensor_refused(R"({"dtype":"U8","shape":[16],"data_offsets":[0,16],"shape":[16]})",
                        "key \"shape\" appears twice");
}

TEST(SafetensorsHeader, RefusesOtherValuesThanTensors) {
  for (const char* value :
       {"1", "-1", "18446744073709551615", "1.5", "null", "false", "\"U8\"", "[]", "[{}]"}) {
    expect_tensor_refused(value, "\"x\" is ");
  }
}

TEST(SafetensorsHeader, RefusesBadShapes) {
  const auto refuse = [](std::string_view shape, std::string_view because) {
    expect_tensor_refused(
        R"({"dtype":"U8","data_offsets":[0,16],"shape":)" + std::string(shape) + "}", because);
  };
  refuse("16", "shape is a number");
  refuse("null", "shape is null");
  refuse("\"16\"", "shape is a string");
  refuse("{}", "shape is an object");
  refuse("[[16]]", "shape holds an array");
  refuse("[{}]", "shape holds an object");
  refuse("[null]", "shape holds null");
  refuse("[true]", "shape holds a boolean");
  refuse("[\"16\"]", "shape holds a string");
  refuse("[-16]", "negative");
  refuse("[-0]", "negative");
  refuse("[-9223372036854775808]", "negative");
  refuse("[16.0]", "not an integer");
  refuse("[1.6e1]", "not an integer");
  refuse("[1e99]", "not an integer");
  refuse("[9223372036854775808]", "does not fit 63 bits");
  refuse("[18446744073709551616]", "not an integer of 63 bits");
  refuse("[1,1,1,1,1,1,1,1,16]", "more than 8 numbers");
  refuse("[1099511627776,1099511627776]", "[1099511627776, 1099511627776] is too large");
  refuse("[9223372036854775807,2]", "too large");
  refuse("[4294967296,4294967296]", "too large");  // would wrap to 0
  refuse("[15]", "U8 of shape [15] does not take the 16 bytes");
  refuse("[17]", "does not take the 16 bytes");
  refuse("[]", "does not take the 16 bytes");
  refuse("[0]", "does not take the 16 bytes");
}

TEST(SafetensorsHeader, RefusesSizesThatWrap) {
  // 2^61 elements of 8 bytes are 2^64: nothing, were it computed modulo 2^64.
  expect_tensor_refused(R"({"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]})",
                        "does not take");
  expect_tensor_refused(
      R"({"dtype":"U8","shape":[9223372036854775807],"data_offsets":[0,9223372036854775807]})",
      "the file is truncated");
  // Two tensors that end at 2^63 - 1 in all.
  expect_header_refused(
      R"({"a":{"dtype":"U8","shape":[9223372036854775806],"data_offsets":[0,9223372036854775806]},)"
      R"("b":{"dtype":"U8","shape":[1],"data_offsets":[9223372036854775806,9223372036854775807]}})",
      "the file is truncated");
}

TEST(SafetensorsHeader, RefusesBadOffsets) {
  const auto refuse = [](std::string_view offsets, std::string_view because) {
    expect_tensor_refused(
        R"({"dtype":"U8","shape":[16],"data_offsets":)" + std::string(offsets) + "}", because);
  };
  refuse("16", "data_offsets is a number");
  refuse("{}", "data_offsets is an object");
  refuse("[]", "has not two numbers");
  refuse("[0]", "has not two numbers");
  refuse("[0,16,16]", "more than 2 numbers");
  refuse("[-16,0]", "negative");
  refuse("[0,16.0]", "not an integer");
  refuse("[0,18446744073709551615]", "does not fit 63 bits");
  refuse("[16,0]", "end before they begin");
  refuse("[0,15]", "does not take the 15 bytes");
  refuse("[1,17]", "leaves a gap after \"the header\"");
  refuse("[9223372036854775791,9223372036854775807]", "leaves a gap");
}

TEST(SafetensorsHeader, RefusesOverlapsAndGaps) {
  const auto two = [](std::string_view a, std::string_view b) {
    return R"({"a":{"dtype":"U8","shape":[8],"data_offsets":)" + std::string(a) +
           R"(},"b":{"dtype":"U8","shape":[8],"data_offsets":)" + std::string(b) + "}}";
  };
  EXPECT_EQ(refusal(file_of(two("[0,8]", "[8,16]"), 16)), "accepted");
  EXPECT_EQ(refusal(file_of(two("[8,16]", "[0,8]"), 16)), "accepted");
  expect_header_refused(two("[0,8]", "[7,15]"), R"(tensor "b" overlaps "a")");
  expect_header_refused(two("[7,15]", "[0,8]"), R"(tensor "a" overlaps "b")");
  expect_header_refused(two("[0,8]", "[0,8]"), R"(tensor "b" overlaps "a")");
  expect_header_refused(two("[0,8]", "[9,17]"), R"(tensor "b" leaves a gap after "a")");
}

TEST(SafetensorsHeader, RefusesEmptyTensorsInsideOthers) {
  expect_header_refused(R"({"a":{"dtype":"U8","shape":[16],"data_offsets":[0,16]},)"
                        R"("b":{"dtype":"U8","shape":[0],"data_offsets":[8,8]}})",
                        R"(tensor "b" overlaps "a")");
  expect_header_refused(R"({"a":{"dtype":"U8","shape":[16],"data_offsets":[0,16]},)"
                        R"("b":{"dtype":"U8","shape":[0],"data_offsets":[17,17]}})",
                        R"(tensor "b" leaves a gap after "a")");
}

TEST(SafetensorsHeader, RefusesRepeatedNames) {
  expect_header_refused(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},)"
                        R"("\u0061":{"dtype":"U8","shape":[8],"data_offsets":[8,16]}})",
                        R"(tensor "a" appears twice)");
  expect_header_refused(R"({"a":{"dtype":"U8","shape":[16],"data_offsets":[0,16]},)"
                        R"("a":{"dtype":"U8","shape":[0],"data_offsets":[16,16]}})",
                        R"(tensor "a" appears twice)");
}

TEST(SafetensorsHeader, ChecksMetadata) {
  for (const char* value : {"1", "null", "[]", "\"pt\"", "true"}) {
    expect_header_refused(R"({"__metadata__":)" + std::string(value) + "}", "__metadata__");
  }
  for (const char* value : {"1", "null", "[]", "{}", "true", "1.5"}) {
    expect_header_refused(R"({"__metadata__":{"format":)" + std::string(value) + "}}",
                          "__metadata__ holds ");
  }
  expect_header_refused(R"({"__metadata__":{},"__metadata__":{}})", "__metadata__ appears twice");
  // Only at the top is the name special, and a tensor elsewhere is none.
  expect_header_refused(R"({"__metadata__":{"dtype":"U8","shape":[16]}})", "__metadata__ holds");
}

TEST(SafetensorsHeader, RefusesDeepNesting) {
  expect_header_refused("{\"x\":" + std::string(10'000, '['), "\"x\" is an array");
  std::string objects;
  for (int i = 0; i < 10'000; ++i) objects += "{\"x\":";
  expect_header_refused(objects, "unknown key \"x\"");
}

TEST(SafetensorsHeader, NeedsOnlyTheHeadOfTheFile) {
  const std::string file =
      file_of(R"({"a":{"dtype":"F32","shape":[1000],"data_offsets":[0,4000]}})", 0);
  const auto bytes = std::as_bytes(std::span(file));
  const auto head = safetensors_head_bytes(bytes.first(8), file.size() + 4000, kSource);
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(*head, file.size());
  const auto tensors = parse_safetensors_header(bytes, file.size() + 4000, kSource);
  ASSERT_TRUE(tensors.has_value()) << tensors.error().message;
  EXPECT_EQ(tensors->front().offset, file.size());
}

TEST(SafetensorsHeader, HeadIsCutToTheFile) {
  const std::string file = file_with_length(1000, "{}", 0);
  EXPECT_EQ(safetensors_head_bytes(std::as_bytes(std::span(file)), file.size(), kSource), 10u);
}

}  // namespace
}  // namespace ingot::tensor
