#pragma once

#include <cstdint>

#include "kernels/execution_context.h"
#include "kernels/paged_cache.h"

namespace ingot::kernels {

// How pairs of values are rotated (Su et al. 2021): neighbours (2j, 2j+1), or halves (j, j +
// dim/2).
enum class RopeStyle : uint8_t { kInterleaved, kHalfSplit };

// amplitude times cos and sin of position * frequencies[j], computed in double: out [rows, dim],
// first the dim/2 cosines of a row, then its sines. Collective.
void rope_table(const ExecutionContext& context, const BatchRows& rows, const double* frequencies,
                double amplitude, int64_t dim, float* out);

// Rotates `dim` values in place by one row of the table.
using RotateRow = void (*)(float* values, const float* table, int64_t dim, RopeStyle style);
void rotate_row_reference(float* values, const float* table, int64_t dim, RopeStyle style);
void rotate_row_avx2(float* values, const float* table, int64_t dim, RopeStyle style);

}  // namespace ingot::kernels
