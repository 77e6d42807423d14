#include "tensor/safetensors_writer.h"

#include <bit>
#include <cstring>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/json/serialize.hpp>

#include "base/check.h"

namespace ingot::tensor {
namespace {

static_assert(std::endian::native == std::endian::little, "files are written as memory lies");

constexpr uint64_t kHeaderBytesMax = 100'000'000;  // more is refused by all readers
constexpr size_t kHeaderAlignment = 8;

uint64_t tensor_bytes(const TensorSpec& tensor) {
  const std::optional<int64_t> elements = tensor.shape.num_elements();
  CHECK(elements.has_value(), "tensor too large");
  int64_t bytes = 0;
  CHECK(!__builtin_mul_overflow(*elements, static_cast<int64_t>(size_bytes(tensor.dtype)), &bytes),
        "tensor too large");
  return static_cast<uint64_t>(bytes);
}

struct Header {
  std::string text;
  std::vector<uint64_t> offsets = {};  // of each tensor in the data, then the end
};

Header make_header(const std::vector<TensorSpec>& tensors) {
  // Python loaders refuse a file whose metadata does not name a framework.
  Header header{.text = R"({"__metadata__":{"format":"pt"})"};
  uint64_t begin = 0;
  std::unordered_set<std::string_view> names;
  for (const TensorSpec& tensor : tensors) {
    CHECK(tensor.name != "__metadata__" && names.insert(tensor.name).second, tensor.name);
    int64_t end = 0;
    CHECK(!__builtin_add_overflow(static_cast<int64_t>(begin),
                                  static_cast<int64_t>(tensor_bytes(tensor)), &end),
          "file too large");
    fmt::format_to(std::back_inserter(header.text),
                   R"(,{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                   boost::json::serialize(boost::json::string(tensor.name)), name(tensor.dtype),
                   fmt::join(tensor.shape.extents(), ","), begin, end);
    header.offsets.push_back(begin);
    begin = static_cast<uint64_t>(end);
  }
  header.offsets.push_back(begin);
  header.text += '}';
  // So that data begin aligned.
  header.text.resize(
      (header.text.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment, ' ');
  return header;
}

}  // namespace

base::Result<SafetensorsWriter> SafetensorsWriter::create(const std::filesystem::path& path,
                                                          std::vector<TensorSpec> tensors) {
  Header header = make_header(tensors);
  const uint64_t length = header.text.size();
  if (length > kHeaderBytesMax) {
    return base::error(
        "{}: {} tensors need a header of {} bytes and {} are allowed; use more shards",
        path.string(), tensors.size(), length, kHeaderBytesMax);
  }
  base::OutputFile file = TRY(base::OutputFile::create(path));
  TRY(file.write(std::as_bytes(std::span(&length, 1))));
  TRY(file.write(header.text));
  for (uint64_t& offset : header.offsets) offset += sizeof length + length;
  return SafetensorsWriter(std::move(file), std::move(header.offsets));
}

base::Status SafetensorsWriter::append(std::span<const std::byte> bytes) {
  CHECK(bytes.size() <= remaining_bytes_, "more data than the tensors hold");
  remaining_bytes_ -= bytes.size();
  return file_.write(bytes);
}

base::Status SafetensorsWriter::reserve() { return file_.reserve(offsets_.back()); }

base::Status SafetensorsWriter::write_at(size_t tensor, uint64_t first,
                                         std::span<const std::byte> bytes) {
  CHECK(tensor + 1 < offsets_.size());
  const uint64_t size_bytes = offsets_[tensor + 1] - offsets_[tensor];
  CHECK(first <= size_bytes && bytes.size() <= size_bytes - first, "write outside the tensor");
  const uint64_t remaining_bytes = remaining_bytes_.fetch_sub(bytes.size());
  CHECK(bytes.size() <= remaining_bytes, "more data than the tensors hold");
  return file_.write_at(offsets_[tensor] + first, bytes);
}

uint64_t SafetensorsWriter::file_bytes(const std::vector<TensorSpec>& tensors) {
  const Header header = make_header(tensors);
  return sizeof(uint64_t) + header.text.size() + header.offsets.back();
}

base::Status SafetensorsWriter::finish() {
  CHECK(remaining_bytes_ == 0, "tensors are incomplete");
  return file_.finish();
}

}  // namespace ingot::tensor
