#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ingot::tensor {

// Element types that safetensors files name. Files with others are refused by name.
enum class DType : uint8_t {
  kBool,
  kU8,
  kI8,
  kF8E4M3,
  kF8E5M2,
  kF8E8M0,
  kU16,
  kI16,
  kF16,
  kBF16,
  kU32,
  kI32,
  kF32,
  kU64,
  kI64,
  kF64,
};

// The safetensors spelling: "BF16", "F8_E4M3".
std::string_view name(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);

// Bytes of one element.
size_t size_bytes(DType dtype);

}  // namespace ingot::tensor
