#include "tensor/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <exception>
#include <optional>
#include <tuple>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <boost/json/basic_parser_impl.hpp>

#include "base/check.h"
#include "base/grouped.h"

namespace ingot::tensor {
namespace {

namespace js = boost::json;
using ErrorCode = boost::system::error_code;

static_assert(std::endian::native == std::endian::little, "files are read as they lie");

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kHeaderBytesMax = 100'000'000;  // the limit of the reference implementation

// Fills TensorInfos from the header's events, offsets still relative to the data. Returning false
// from an event stops the parser; refusal() then says why.
class HeaderHandler {
 public:
  static constexpr size_t max_object_size = kHeaderBytesMax;
  static constexpr size_t max_array_size = kHeaderBytesMax;
  static constexpr size_t max_key_size = kHeaderBytesMax;
  static constexpr size_t max_string_size = kHeaderBytesMax;

  const std::string& refusal() const { return refusal_; }
  std::vector<TensorInfo> release() { return std::move(tensors_); }

  bool on_document_begin(ErrorCode&) { return true; }
  bool on_document_end(ErrorCode&) { return true; }

  bool on_object_begin(ErrorCode& code) {
    switch (place_) {
      case Place::kStart:
        place_ = Place::kTensors;
        return true;
      case Place::kTensors:
        if (key_ == kMetadata) return begin_metadata(code);
        tensors_.emplace_back().name = key_;
        fields_ = 0;
        place_ = Place::kTensor;
        return true;
      default:
        return unexpected("an object", code);
    }
  }

  bool on_object_end(size_t, ErrorCode& code) {
    if (place_ == Place::kTensors) {
      place_ = Place::kEnd;
      return true;
    }
    const bool complete = place_ == Place::kMetadata || finish_tensor(code);
    place_ = Place::kTensors;
    return complete;
  }

  bool on_array_begin(ErrorCode& code) {
    if (place_ != Place::kTensor || field_ == kDType) return unexpected("an array", code);
    num_numbers_ = 0;
    place_ = Place::kNumbers;
    return true;
  }

  bool on_array_end(size_t, ErrorCode& code) {
    place_ = Place::kTensor;
    return field_ == kShape ? finish_shape(code) : finish_offsets(code);
  }

  bool on_key_part(js::string_view part, size_t, ErrorCode&) {
    append(key_, part);
    return true;
  }

  bool on_key(js::string_view part, size_t, ErrorCode& code) {
    append(key_, part);
    text_ended_ = true;
    return place_ != Place::kTensor || begin_field(code);
  }

  bool on_string_part(js::string_view part, size_t, ErrorCode&) {
    append(string_, part);
    return true;
  }

  bool on_string(js::string_view part, size_t, ErrorCode& code) {
    append(string_, part);
    text_ended_ = true;
    if (place_ == Place::kMetadata) return true;
    if (place_ != Place::kTensor || field_ != kDType) return unexpected("a string", code);
    const std::optional<DType> dtype = dtype_from_name(string_);
    if (!dtype) return refuse(code, "dtype {:?} is not one that Ingot reads", string_);
    tensors_.back().dtype = *dtype;
    return true;
  }

  bool on_number_part(js::string_view, ErrorCode&) { return true; }

  bool on_int64(int64_t value, js::string_view digits, ErrorCode& code) {
    if (place_ != Place::kNumbers) return unexpected("a number", code);
    if (value < 0 || digits.starts_with('-')) {
      return refuse(code, "{} has a negative number", kFieldNames[field_]);
    }
    const size_t count_max = field_ == kShape ? Shape::kRankMax : 2;
    if (num_numbers_ == count_max) {
      return refuse(code, "{} has more than {} numbers", kFieldNames[field_], count_max);
    }
    numbers_[num_numbers_++] = value;
    return true;
  }

  bool on_uint64(uint64_t value, js::string_view, ErrorCode& code) {
    if (place_ != Place::kNumbers) return unexpected("a number", code);
    return refuse(code, "{} has {}, which does not fit 63 bits", kFieldNames[field_], value);
  }

  bool on_double(double, js::string_view, ErrorCode& code) {
    if (place_ != Place::kNumbers) return unexpected("a number", code);
    return refuse(code, "{} has a number that is not an integer of 63 bits", kFieldNames[field_]);
  }

  bool on_bool(bool, ErrorCode& code) { return unexpected("a boolean", code); }
  bool on_null(ErrorCode& code) { return unexpected("null", code); }
  bool on_comment_part(js::string_view, ErrorCode&) { return true; }
  bool on_comment(js::string_view, ErrorCode&) { return true; }

 private:
  enum class Place { kStart, kTensors, kMetadata, kTensor, kNumbers, kEnd };
  enum Field : unsigned { kDType, kShape, kOffsets };
  static constexpr std::array<std::string_view, 3> kFieldNames = {"dtype", "shape", "data_offsets"};
  static constexpr std::string_view kMetadata = "__metadata__";

  // Keys and strings arrive in parts.
  void append(std::string& text, js::string_view part) {
    if (text_ended_) text.clear();
    text_ended_ = false;
    text.append(part.data(), part.size());
  }

  template <typename... Args>
  bool refuse(ErrorCode& code, fmt::format_string<Args...> format, Args&&... args) {
    refusal_ = fmt::format(format, std::forward<Args>(args)...);
    if (place_ == Place::kTensor || place_ == Place::kNumbers) {
      refusal_ = fmt::format("tensor {:?}: {}", tensors_.back().name, refusal_);
    }
    code = js::error::syntax;
    return false;
  }

  bool unexpected(std::string_view what, ErrorCode& code) {
    switch (place_) {
      case Place::kTensors:
        return refuse(code, "{:?} is {}, not an object", key_, what);
      case Place::kMetadata:
        return refuse(code, "__metadata__ holds {}, not strings", what);
      case Place::kTensor:
        return refuse(code, "{} is {}", kFieldNames[field_], what);
      case Place::kNumbers:
        return refuse(code, "{} holds {}, not numbers", kFieldNames[field_], what);
      default:
        return refuse(code, "the header is {}, not an object", what);
    }
  }

  bool begin_metadata(ErrorCode& code) {
    if (has_metadata_) return refuse(code, "__metadata__ appears twice");
    has_metadata_ = true;
    place_ = Place::kMetadata;
    return true;
  }

  bool begin_field(ErrorCode& code) {
    const auto* found = std::ranges::find(kFieldNames, std::string_view(key_));
    if (found == kFieldNames.end()) return refuse(code, "unknown key {:?}", key_);
    field_ = static_cast<Field>(found - kFieldNames.begin());
    if ((fields_ >> field_ & 1) != 0) return refuse(code, "key {:?} appears twice", key_);
    fields_ |= 1u << field_;
    return true;
  }

  bool finish_shape(ErrorCode& code) {
    const std::span<const int64_t> extents(numbers_.data(), num_numbers_);
    const std::optional<Shape> shape = Shape::create(extents);
    CHECK(shape.has_value());
    if (!shape->num_elements()) return refuse(code, "shape {} is too large", shape->to_string());
    tensors_.back().shape = *shape;
    return true;
  }

  bool finish_offsets(ErrorCode& code) {
    if (num_numbers_ != 2) return refuse(code, "data_offsets has not two numbers");
    if (numbers_[1] < numbers_[0]) return refuse(code, "data_offsets end before they begin");
    TensorInfo& tensor = tensors_.back();
    tensor.offset = static_cast<uint64_t>(numbers_[0]);
    tensor.size_bytes = static_cast<uint64_t>(numbers_[1] - numbers_[0]);
    return true;
  }

  bool finish_tensor(ErrorCode& code) {
    for (const Field field : {kDType, kShape, kOffsets}) {
      if ((fields_ >> field & 1) == 0) return refuse(code, "{} is missing", kFieldNames[field]);
    }
    const TensorInfo& current = tensors_.back();
    const auto elements = static_cast<uint64_t>(*current.shape.num_elements());
    uint64_t needed = 0;
    if (__builtin_mul_overflow(elements, tensor::size_bytes(current.dtype), &needed) ||
        needed != current.size_bytes) {
      return refuse(code, "{} of shape {} does not take the {} bytes that data_offsets give it",
                    tensor::name(current.dtype), current.shape.to_string(),
                    base::grouped(current.size_bytes));
    }
    return true;
  }

  std::vector<TensorInfo> tensors_;
  std::string refusal_;
  std::string key_;
  std::string string_;
  bool text_ended_ = false;
  bool has_metadata_ = false;
  Place place_ = Place::kStart;
  Field field_ = kDType;
  unsigned fields_ = 0;  // a bit a Field that the current tensor had
  std::array<int64_t, Shape::kRankMax> numbers_{};
  size_t num_numbers_ = 0;
};

uint64_t header_length(std::span<const std::byte> head) {
  uint64_t length = 0;
  std::memcpy(&length, head.data(), kLengthBytes);
  return length;
}

base::Result<std::vector<TensorInfo>> parse_header_json(std::string_view text,
                                                        std::string_view source) {
  if (!text.starts_with('{')) {
    return base::error("{}: the header does not begin with '{{'; this is not a safetensors file",
                       source);
  }
  js::basic_parser<HeaderHandler> parser{js::parse_options{}};
  ErrorCode code;
  size_t consumed = 0;
  try {
    consumed = parser.write_some(false, text.data(), text.size(), code);
  } catch (const std::exception& failure) {
    return base::error("{}: header not readable: {}", source, failure.what());
  }
  if (const std::string& refusal = parser.handler().refusal(); !refusal.empty()) {
    return base::error("{}: {}; the file is damaged or of a newer kind, download it again", source,
                       refusal);
  }
  if (code) {
    return base::error("{}: byte {} of the header: not valid JSON: {}; download the file again",
                       source, consumed, code.message());
  }
  if (text.find_first_not_of(" \t\r\n", consumed) != std::string_view::npos) {
    return base::error("{}: text after the end of the header's JSON; download the file again",
                       source);
  }
  return parser.handler().release();
}

base::Status check_names(std::span<const TensorInfo> tensors, std::string_view source) {
  std::unordered_set<std::string_view> names;
  names.reserve(tensors.size());
  for (const TensorInfo& tensor : tensors) {
    if (!names.insert(tensor.name).second) {
      return base::error("{}: tensor {:?} appears twice in the header; write the file again",
                         source, tensor.name);
    }
  }
  return {};
}

// REQUIRES: tensors are in the order of their offsets, which count from the start of the data.
base::Status check_layout(std::span<const TensorInfo> tensors, uint64_t data_bytes,
                          std::string_view source) {
  uint64_t end = 0;
  std::string_view before = "the header";
  for (const TensorInfo& tensor : tensors) {
    if (tensor.offset != end) {
      return base::error("{}: tensor {:?} {} {:?}; the file is damaged, download it again", source,
                         tensor.name, tensor.offset < end ? "overlaps" : "leaves a gap after",
                         before);
    }
    end += tensor.size_bytes;
    before = tensor.name;
  }
  if (end > data_bytes) {
    return base::error(
        "{}: header says {} bytes of data and the file has {}; the file is truncated, download it "
        "again",
        source, base::grouped(end), base::grouped(data_bytes));
  }
  if (end < data_bytes) {
    return base::error(
        "{}: header says {} bytes of data and the file has {}; the rest belongs to no tensor, "
        "download the file again",
        source, base::grouped(end), base::grouped(data_bytes));
  }
  return {};
}

}  // namespace

base::Result<uint64_t> safetensors_head_bytes(std::span<const std::byte> first_eight,
                                              uint64_t file_size_bytes, std::string_view source) {
  if (file_size_bytes < kLengthBytes) {
    return base::error("{}: only {} bytes; the file is truncated, download it again", source,
                       file_size_bytes);
  }
  CHECK(first_eight.size() >= kLengthBytes);
  if (std::memcmp(first_eight.data(), "version ", kLengthBytes) == 0) {
    return base::error("{}: a Git LFS pointer instead of the file itself; run git lfs pull",
                       source);
  }
  const uint64_t length = header_length(first_eight);
  if (length < 2 || length > kHeaderBytesMax) {
    return base::error(
        "{}: a header of {} bytes, where 2 to {} are possible; this is not a safetensors file, or "
        "it is damaged: download it again",
        source, base::grouped(length), base::grouped(kHeaderBytesMax));
  }
  return std::min(kLengthBytes + length, file_size_bytes);
}

base::Result<std::vector<TensorInfo>> parse_safetensors_header(std::span<const std::byte> head,
                                                               uint64_t file_size_bytes,
                                                               std::string_view source) {
  const uint64_t head_bytes = TRY(safetensors_head_bytes(head, file_size_bytes, source));
  CHECK(head.size() >= head_bytes, "head holds less than the header");
  const uint64_t length = header_length(head);
  if (length > file_size_bytes - kLengthBytes) {
    return base::error(
        "{}: a header of {} bytes in a file of {}; the file is truncated, download it again",
        source, base::grouped(length), base::grouped(file_size_bytes));
  }
  const std::string_view text(reinterpret_cast<const char*>(head.data()) + kLengthBytes, length);
  std::vector<TensorInfo> tensors = TRY(parse_header_json(text, source));
  TRY(check_names(tensors, source));
  // An empty tensor stands before the one that begins where it does.
  const auto position = [](const TensorInfo& t) {
    return std::tuple(t.offset, t.size_bytes, std::string_view(t.name));
  };
  if (!std::ranges::is_sorted(tensors, {}, position)) {
    std::ranges::sort(tensors, {}, position);
  }
  TRY(check_layout(tensors, file_size_bytes - head_bytes, source));
  for (TensorInfo& tensor : tensors) tensor.offset += head_bytes;
  return tensors;
}

}  // namespace ingot::tensor
