// The header of a safetensors file, twice: the input as a whole file, and the input as the JSON of
// a header whose length and file size are right, so that mutations reach past the first checks.

#include <charconv>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "base/check.h"
#include "tensor/safetensors.h"

namespace {

namespace json = boost::json;
using ingot::tensor::TensorInfo;

constexpr std::string_view kSource = "model.safetensors";

// Tensors lie side by side from the header's end to the file's, each as large as its type and
// shape make it, under names of their own.
void check_layout(const std::vector<TensorInfo>& tensors, uint64_t head_bytes,
                  uint64_t file_size_bytes) {
  std::set<std::string_view> names;
  uint64_t end = head_bytes;
  for (const TensorInfo& tensor : tensors) {
    CHECK(names.insert(tensor.name).second, tensor.name);
    CHECK(tensor.offset == end, tensor.name);
    unsigned __int128 size = ingot::tensor::size_bytes(tensor.dtype);
    for (const int64_t extent : tensor.shape.extents()) {
      CHECK(extent >= 0);
      size *= static_cast<uint64_t>(extent);
      if (size == 0) break;
    }
    CHECK(size == tensor.size_bytes, tensor.name);
    CHECK(tensor.size_bytes <= file_size_bytes - end, tensor.name);
    end += tensor.size_bytes;
  }
  CHECK(end == file_size_bytes);
}

// A slow twin: what the library's own document says of each tensor.
void check_against_document(const std::vector<TensorInfo>& tensors, std::string_view text,
                            uint64_t head_bytes) {
  const json::value document = json::parse(text);
  const json::object& members = document.as_object();
  CHECK(members.size() == tensors.size() + members.count("__metadata__"));
  for (const TensorInfo& tensor : tensors) {
    const json::object& member = members.at(tensor.name).as_object();
    CHECK(member.size() == 3, tensor.name);
    CHECK(member.at("dtype").as_string() == ingot::tensor::name(tensor.dtype), tensor.name);
    const json::array& shape = member.at("shape").as_array();
    CHECK(shape.size() == tensor.shape.rank(), tensor.name);
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      CHECK(shape[axis].as_int64() == tensor.shape[axis], tensor.name);
    }
    const json::array& offsets = member.at("data_offsets").as_array();
    CHECK(offsets.size() == 2, tensor.name);
    const uint64_t begin = tensor.offset - head_bytes;
    CHECK(offsets[0].to_number<uint64_t>() == begin, tensor.name);
    CHECK(offsets[1].to_number<uint64_t>() == begin + tensor.size_bytes, tensor.name);
  }
}

void check_message(std::string_view message) {
  CHECK(message.starts_with(kSource), message);
  CHECK(message.find('\n') == std::string_view::npos, message);
}

// `head` is the file up to the end of its header at least, or all of it.
void check_file(std::string_view head, uint64_t file_size_bytes) {
  const auto bytes = std::as_bytes(std::span(head));
  const auto head_bytes = ingot::tensor::safetensors_head_bytes(bytes, file_size_bytes, kSource);
  const auto tensors = ingot::tensor::parse_safetensors_header(bytes, file_size_bytes, kSource);
  if (!head_bytes) {
    check_message(head_bytes.error().message);
    CHECK(!tensors.has_value());
    return;
  }
  CHECK(*head_bytes <= file_size_bytes);
  if (!tensors) return check_message(tensors.error().message);
  check_layout(*tensors, *head_bytes, file_size_bytes);
  check_against_document(*tensors, head.substr(8, *head_bytes - 8), *head_bytes);
}

// Most often where the last tensor ends: the last number in the text, or 0.
uint64_t last_number(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  const size_t last = text.find_last_of(kDigits);
  if (last == std::string_view::npos) return 0;
  const size_t before = text.find_last_not_of(kDigits, last);
  const size_t first = before == std::string_view::npos ? 0 : before + 1;
  uint64_t number = 0;
  std::from_chars(text.data() + first, text.data() + last + 1, number);
  return number;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  check_file(input, input.size());

  const uint64_t length = input.size();
  std::string head(reinterpret_cast<const char*>(&length), sizeof length);
  head += input;
  const uint64_t data_bytes = last_number(input);
  if (data_bytes <= UINT64_MAX - head.size()) check_file(head, head.size() + data_bytes);
  return 0;
}
