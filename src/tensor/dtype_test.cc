#include "tensor/dtype.h"

#include <gtest/gtest.h>

namespace ingot::tensor {
namespace {

TEST(DType, NamesReadBack) {
  for (int i = 0; i <= static_cast<int>(DType::kF64); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_name(name(dtype)), dtype) << name(dtype);
  }
}

TEST(DType, SpellingAndSizeAreThoseOfSafetensors) {
  struct Row {
    DType dtype;
    std::string_view name;
    size_t size_bytes;
  };
  for (const Row& row :
       {Row{DType::kBool, "BOOL", 1}, Row{DType::kU8, "U8", 1}, Row{DType::kI8, "I8", 1},
        Row{DType::kF8E4M3, "F8_E4M3", 1}, Row{DType::kF8E5M2, "F8_E5M2", 1},
        Row{DType::kF8E8M0, "F8_E8M0", 1}, Row{DType::kU16, "U16", 2}, Row{DType::kI16, "I16", 2},
        Row{DType::kF16, "F16", 2}, Row{DType::kBF16, "BF16", 2}, Row{DType::kU32, "U32", 4},
        Row{DType::kI32, "I32", 4}, Row{DType::kF32, "F32", 4}, Row{DType::kU64, "U64", 8},
        Row{DType::kI64, "I64", 8}, Row{DType::kF64, "F64", 8}}) {
    EXPECT_EQ(name(row.dtype), row.name);
    EXPECT_EQ(size_bytes(row.dtype), row.size_bytes) << row.name;
  }
}

TEST(DType, OtherNamesAreUnknown) {
  for (const char* other : {"", "bf16", "BF16 ", "FLOAT32", "F4", "F6_E2M3", "F8_E4M3FN", "C64"}) {
    EXPECT_EQ(dtype_from_name(other), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace ingot::tensor
