#include "tensor/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "base/mapped_file.h"

namespace ingot::tensor {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read as they lie");

// "\x93NUMPY", version 1.0, then 16 bits of header length: ten bytes before the header.
constexpr std::string_view kMagic("\x93NUMPY\x01\x00", 8);
constexpr size_t kPreambleBytes = 10;
constexpr size_t kAlignment = 64;
constexpr std::string_view kBeforeShape = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
constexpr std::string_view kAfterShape = "), }";

std::optional<uint64_t> data_bytes(const Shape& shape) {
  const std::optional<int64_t> elements = shape.num_elements();
  int64_t bytes = 0;
  if (!elements || __builtin_mul_overflow(*elements, int64_t{sizeof(float)}, &bytes)) {
    return std::nullopt;
  }
  return static_cast<uint64_t>(bytes);
}

// As Python writes a tuple: "3, 4", but "3," for one element.
std::string tuple_elements(const Shape& shape) {
  return fmt::format("{}{}", fmt::join(shape.extents(), ", "), shape.rank() == 1 ? "," : "");
}

std::string make_head(const Shape& shape) {
  std::string header = fmt::format("{}{}{}", kBeforeShape, tuple_elements(shape), kAfterShape);
  while ((kPreambleBytes + header.size() + 1) % kAlignment != 0) header += ' ';
  header += '\n';
  std::string head(kMagic);
  head += static_cast<char>(header.size() & 0xFF);
  head += static_cast<char>(header.size() >> 8);
  return head + header;
}

std::optional<Shape> parse_tuple_elements(const std::string_view text) {
  std::array<int64_t, Shape::kRankMax> extents{};
  size_t rank = 0;
  for (std::string_view rest = text; !rest.empty();) {
    if (rank == Shape::kRankMax) return std::nullopt;
    const char* const end_of_text = rest.data() + rest.size();
    const auto [end, failure] = std::from_chars(rest.data(), end_of_text, extents[rank++]);
    if (failure != std::errc{}) return std::nullopt;
    rest = {end, end_of_text};
    rest.remove_prefix(std::min(rest.find_first_not_of(", "), rest.size()));
  }
  // Writing it again settles every question of commas, spaces and signs.
  const std::optional<Shape> shape = Shape::create({extents.data(), rank});
  if (!shape || tuple_elements(*shape) != text) return std::nullopt;
  return shape;
}

std::optional<Shape> parse_header(std::string_view header) {
  if (!header.starts_with(kBeforeShape)) return std::nullopt;
  header.remove_prefix(kBeforeShape.size());
  const size_t end = header.find(kAfterShape);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view padding = header.substr(end + kAfterShape.size());
  if (padding.find_first_not_of(' ') != padding.size() - 1 || !padding.ends_with('\n')) {
    return std::nullopt;
  }
  return parse_tuple_elements(header.substr(0, end));
}

}  // namespace

base::Result<NpyWriter> NpyWriter::create(const std::filesystem::path& path, const Shape& shape) {
  CHECK(data_bytes(shape).has_value(), "array too large");
  base::OutputFile file = TRY(base::OutputFile::create(path));
  TRY(file.write(make_head(shape)));
  return NpyWriter(std::move(file), static_cast<uint64_t>(*shape.num_elements()));
}

base::Status NpyWriter::append(std::span<const float> values) {
  CHECK(values.size() <= remaining_, "more values than the shape has");
  remaining_ -= values.size();
  return file_.write(std::as_bytes(values));
}

base::Status NpyWriter::finish() {
  CHECK(remaining_ == 0, "values are missing");
  return file_.finish();
}

base::Result<NpyArray> read_npy(const std::filesystem::path& path) {
  const base::InputFile file = TRY(base::InputFile::open(path));
  std::string preamble(kPreambleBytes, '\0');
  if (file.size_bytes() < kPreambleBytes) {
    return base::error("{}: only {} bytes, not a numpy file", path.string(), file.size_bytes());
  }
  TRY(file.read_at(0, std::as_writable_bytes(std::span(preamble))));
  if (!preamble.starts_with(kMagic)) {
    return base::error("{}: not a numpy file of format 1.0", path.string());
  }
  const size_t length = static_cast<unsigned char>(preamble[8]) |
                        static_cast<size_t>(static_cast<unsigned char>(preamble[9])) << 8;
  if (length > file.size_bytes() - kPreambleBytes) {
    return base::error("{}: truncated in its header; write it again", path.string());
  }
  std::string header(length, '\0');
  TRY(file.read_at(kPreambleBytes, std::as_writable_bytes(std::span(header))));
  const std::optional<Shape> shape = parse_header(header);
  if (!shape) {
    return base::error(
        "{}: not a little-endian float32 array in C order; save it as "
        "numpy.ascontiguousarray(x, dtype='<f4')",
        path.string());
  }
  const uint64_t rest = file.size_bytes() - kPreambleBytes - length;
  if (data_bytes(*shape) != rest) {
    return base::error(
        "{}: shape {} does not take the {} bytes that follow; the file is truncated "
        "or damaged, write it again",
        path.string(), shape->to_string(), rest);
  }
  NpyArray array{.shape = *shape, .values = std::vector<float>(rest / sizeof(float))};
  TRY(file.read_at(kPreambleBytes + length, std::as_writable_bytes(std::span(array.values))));
  return array;
}

}  // namespace ingot::tensor
