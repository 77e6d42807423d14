#pragma once

#include "kernels/panels_avx2.h"
#include "kernels/row_list_avx2.h"

namespace ingot::kernels {
// Products in integers of encoded rows and panels; without a name, as in panels_avx2.h.
namespace {

// MXFP4 by int8 in integers: a block of 32 products is exact, then scaled and added in f32.
struct IntegerProduct {
  static constexpr WeightFormat kWeight = WeightFormat::kMxfp4;
  static constexpr ActivationType kActivation = ActivationType::kInt8;

  template <typename Emit>
  static void product(const Weight& weight, int64_t first, int64_t num, const RowList& x,
                      int64_t count, const Emit& emit) {
    int64_t row = 0;
    for (; row + 4 <= count; row += 4) tile<4>(weight, first, num, x, row, emit);
    switch (count - row) {
      case 1:
        return tile<1>(weight, first, num, x, row, emit);
      case 2:
        return tile<2>(weight, first, num, x, row, emit);
      case 3:
        return tile<3>(weight, first, num, x, row, emit);
      default:
        return;
    }
  }

 private:
  // Codes as 2 v + 12: unsigned, as the instruction wants one of its factors. Sums of four pairs of
  // products are at most 4 * 2 * 24 * 127 and fit 16 bits.
  [[gnu::always_inline]] static __m256i unsigned_codes(__m256i nibbles) {
    const __m256i table =
        _mm256_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0, 12, 13, 14, 15,
                         16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
    return _mm256_shuffle_epi8(table, nibbles);
  }

  [[gnu::always_inline]] static __m256i four_products(const __m256i (&codes)[8], const Int8Block& x,
                                                      int first) {
    const auto one = [&](int i) __attribute__((always_inline)) {
      const auto* word = reinterpret_cast<const float*>(x.values) + i;
      return _mm256_maddubs_epi16(codes[i], _mm256_castps_si256(_mm256_broadcast_ss(word)));
    };
    return _mm256_add_epi16(_mm256_add_epi16(one(first), one(first + 1)),
                            _mm256_add_epi16(one(first + 2), one(first + 3)));
  }

  template <int kRows, typename Emit>
  static void tile(const Weight& weight, int64_t first, int64_t num, const RowList& x, int64_t row,
                   const Emit& emit) {
    const Int8Block* rows[kRows];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      rows[r] = reinterpret_cast<const Int8Block*>(x.row(row + r));
    }
    const int64_t blocks = panel_blocks(weight.cols);
    for (int64_t panel = first; panel < first + num; ++panel) {
      const std::byte* data = static_cast<const std::byte*>(weight.data) + panel * blocks * 128;
      __m256 sum[kRows] = {};
      for (int64_t block = 0; block < blocks; ++block) {
        __m256i codes[8];
#pragma GCC unroll 16
        for (int group = 0; group < 4; ++group) {
          const __m256i bytes = load_bytes(data + block * 128 + group * 32);
          const __m256i low = _mm256_set1_epi8(15);
          codes[group * 2] = unsigned_codes(_mm256_and_si256(bytes, low));
          codes[group * 2 + 1] = unsigned_codes(_mm256_and_si256(_mm256_srli_epi16(bytes, 4), low));
        }
        const __m256 scale = e8m0_of_panel(weight, panel, block);
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r) {
          // Loads of another row would push codes out of registers.
          asm volatile("" ::: "memory");
          add_block(codes, scale, rows[r][block], sum[r]);
        }
      }
      // The codes were doubled.
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        emit(row + r, panel, _mm256_mul_ps(sum[r], _mm256_set1_ps(0.5f)));
      }
    }
  }

  [[gnu::always_inline]] static void add_block(const __m256i (&codes)[8], __m256 scale,
                                               const Int8Block& x, __m256& sum) {
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i dot = _mm256_madd_epi16(four_products(codes, x, 0), ones);
    dot = _mm256_add_epi32(dot, _mm256_madd_epi16(four_products(codes, x, 4), ones));
    dot = _mm256_sub_epi32(dot, _mm256_set1_epi32(x.excess));
    const __m256 scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(dot), scale);
    sum = _mm256_fmadd_ps(scaled, _mm256_broadcast_ss(&x.scale), sum);
  }
};

}  // namespace
}  // namespace ingot::kernels
