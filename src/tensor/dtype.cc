#include "tensor/dtype.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace ingot::tensor {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  size_t size_bytes;
};

// In the order of the enumeration, so that a DType is its row's index.
constexpr std::array kRows = {
    Row{DType::kBool, "BOOL", 1},      Row{DType::kU8, "U8", 1},
    Row{DType::kI8, "I8", 1},          Row{DType::kF8E4M3, "F8_E4M3", 1},
    Row{DType::kF8E5M2, "F8_E5M2", 1}, Row{DType::kF8E8M0, "F8_E8M0", 1},
    Row{DType::kU16, "U16", 2},        Row{DType::kI16, "I16", 2},
    Row{DType::kF16, "F16", 2},        Row{DType::kBF16, "BF16", 2},
    Row{DType::kU32, "U32", 4},        Row{DType::kI32, "I32", 4},
    Row{DType::kF32, "F32", 4},        Row{DType::kU64, "U64", 8},
    Row{DType::kI64, "I64", 8},        Row{DType::kF64, "F64", 8},
};

constexpr bool in_enumeration_order() {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].dtype != static_cast<DType>(i)) return false;
  }
  return true;
}
static_assert(in_enumeration_order());

const Row& row(DType dtype) {
  const auto index = static_cast<size_t>(dtype);
  CHECK(index < kRows.size(), "no such dtype");
  return kRows[index];
}

}  // namespace

std::string_view name(DType dtype) { return row(dtype).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  const auto* found = std::ranges::find(kRows, name, &Row::name);
  if (found == kRows.end()) return std::nullopt;
  return found->dtype;
}

size_t size_bytes(DType dtype) { return row(dtype).size_bytes; }

}  // namespace ingot::tensor
