#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/lanes_avx2.h"
#include "kernels/stored_rows_avx2.h"

namespace ingot::kernels {
// Products with rows of values that lie anywhere, for files that are compiled for AVX2: dot
// products of rows with queries, and sums of rows weighted by query. Without a name, so that none
// of this becomes a weak symbol that the linker might give to the rest of the program.
//
// What one query gets does not depend on the queries beside it, nor on how many rows a call takes:
// every tile adds in the same order.
namespace {
// Several vectors of queries, one after another `stride` floats apart.
struct Queries {
  const float* data;
  int64_t stride;
  int64_t count;
};

// A lane's neighbours first: ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)) of each of four vectors.
inline __m128 add_lanes(__m256 a, __m256 b, __m256 c, __m256 d) {
  const __m256 fours = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
  return _mm_add_ps(_mm256_castps256_ps128(fours), _mm256_extractf128_ps(fours, 1));
}

// One of the tiles that queries are cut into.
struct QueryTile {
  int64_t first;
  int64_t count;
  int64_t index;
  int64_t of;  // tiles
};

// Dot products of kQueries queries with kRows rows, as out[query * kRows + row]. A sum has eight
// lanes, each ascending. REQUIRES: kQueries * kRows <= 12.
template <typename R, int kQueries, int kRows>
inline void dot_tile(const float* queries, int64_t stride, const typename R::Element* const* rows,
                     int64_t width, float (&out)[12]) {
  __m256 sum[12];
#pragma GCC unroll 12
  for (int i = 0; i < 12; ++i) sum[i] = _mm256_setzero_ps();
  const typename R::Element* row[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) row[r] = rows[r];
  const auto step = [&](const float* query, auto load) {
    // The fewer stay in registers while the others pass by.
    if constexpr (kQueries <= kRows) {
      __m256 factors[kQueries];
#pragma GCC unroll 8
      for (int q = 0; q < kQueries; ++q) factors[q] = _mm256_loadu_ps(query + q * stride);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const __m256 value = kQueries == 1 ? load(row[r]) : in_register(load(row[r]));
#pragma GCC unroll 8
        for (int q = 0; q < kQueries; ++q) {
          sum[q * kRows + r] = _mm256_fmadd_ps(factors[q], value, sum[q * kRows + r]);
        }
      }
    } else {
      __m256 values[kRows];
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) values[r] = load(row[r]);
#pragma GCC unroll 8
      for (int q = 0; q < kQueries; ++q) {
        const __m256 factor = in_register(_mm256_loadu_ps(query + q * stride));
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          sum[q * kRows + r] = _mm256_fmadd_ps(factor, values[r], sum[q * kRows + r]);
        }
      }
    }
  };
  for (int64_t k = 0; k < width; k += kRowStep) {
    step(queries + k, [k](const typename R::Element* p) { return R::first(p + k); });
    step(queries + k + 8, [k](const typename R::Element* p) { return R::second(p + k); });
  }
#pragma GCC unroll 3
  for (int i = 0; i < 12; i += 4) {
    _mm_storeu_ps(out + i, add_lanes(sum[i], sum[i + 1], sum[i + 2], sum[i + 3]));
  }
}

// Calls visit(tile) for each of the tiles that queries are cut into, of at most kMax and as even as
// can be.
template <int64_t kMax, typename Visit>
inline void for_query_tiles(int64_t queries, const Visit& visit) {
  const int64_t tiles = (queries + kMax - 1) / kMax;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const int64_t begin = queries * tile / tiles;
    const int64_t end = queries * (tile + 1) / tiles;
    visit(QueryTile{.first = begin, .count = end - begin, .index = tile, .of = tiles});
  }
}

// Dot products of all rows with all queries. That of query q and row i goes to
// out[q * out_stride + i].
template <typename R>
struct DotProducts {
  Queries queries;
  const typename R::Element* const* rows;
  int64_t num_rows;
  int64_t width;
  float* out;
  int64_t out_stride;
  Ahead ahead;
};

// Those of a tile of queries, kRows rows at a time. Each tile fetches its part of the rows ahead.
template <typename R, int kQueries, int kRows>
inline void dots_of_queries(const DotProducts<R>& args, const QueryTile& queries) {
  const float* query = args.queries.data + queries.first * args.queries.stride;
  float* out = args.out + queries.first * args.out_stride;
  const int64_t fetch_begin = args.ahead.row_bytes * queries.index / queries.of;
  const int64_t fetch_end = args.ahead.row_bytes * (queries.index + 1) / queries.of;
  float tile[12];
  for (int64_t i = 0; i < args.num_rows; i += kRows) {
    for (int64_t r = i; r < i + kRows && r < args.ahead.count; ++r) {
      fetch(args.ahead.rows[r], fetch_begin, fetch_end);
    }
    if (i + kRows <= args.num_rows) {
      dot_tile<R, kQueries, kRows>(query, args.queries.stride, args.rows + i, args.width, tile);
      for (int q = 0; q < kQueries; ++q) {
        for (int r = 0; r < kRows; ++r) out[q * args.out_stride + i + r] = tile[q * kRows + r];
      }
    } else {  // what is left, filled up with its last row
      const typename R::Element* last[kRows];
      for (int r = 0; r < kRows; ++r) {
        last[r] = args.rows[i + r < args.num_rows ? i + r : args.num_rows - 1];
      }
      dot_tile<R, kQueries, kRows>(query, args.queries.stride, last, args.width, tile);
      for (int q = 0; q < kQueries; ++q) {
        for (int r = 0; i + r < args.num_rows; ++r) {
          out[q * args.out_stride + i + r] = tile[q * kRows + r];
        }
      }
    }
  }
}

template <typename R>
inline void dots(const DotProducts<R>& args) {
  for_query_tiles<5>(args.queries.count, [&](const QueryTile& tile) {
    switch (tile.count) {
      case 1:
        return dots_of_queries<R, 1, 8>(args, tile);
      case 2:
        return dots_of_queries<R, 2, 4>(args, tile);
      case 3:
        return dots_of_queries<R, 3, 3>(args, tile);
      case 4:
        return dots_of_queries<R, 4, 2>(args, tile);
      default:
        return dots_of_queries<R, 5, 2>(args, tile);
    }
  });
}

// A sum of rows for each query: `weights` has [query][row], `sums` [query][value] in the rows'
// order. fresh: the sums begin at zero, otherwise at what they are.
template <typename R>
struct WeightedSums {
  Queries weights;
  const typename R::Element* const* rows;
  int64_t num_rows;
  bool fresh;
  float* sums;
  int64_t stride;
  Ahead ahead;
};

// Values [k, k + kSteps * 16) of the sums of kQueries queries from `query` on, rows ascending.
template <typename R, int kQueries, int kSteps>
inline void sum_tile(const WeightedSums<R>& args, int64_t query, int64_t k) {
  constexpr int kVectors = 2 * kSteps;
  const float* weights[kQueries];
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) {
    weights[q] = in_register(args.weights.data + (query + q) * args.weights.stride);
  }
  const int64_t stride = args.stride;
  float* sums = args.sums + query * stride + k;
  __m256 sum[kQueries][kVectors];
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      sum[q][v] = args.fresh ? _mm256_setzero_ps() : _mm256_loadu_ps(sums + q * stride + v * 8);
    }
  }
  const typename R::Element* const* rows = args.rows;
  const int64_t num_rows = args.num_rows;
  for (int64_t i = 0; i < num_rows; ++i) {
    const typename R::Element* row = rows[i] + k;
    __m256 values[kVectors];
#pragma GCC unroll 8
    for (int s = 0; s < kSteps; ++s) {
      values[2 * s] = R::first(row + s * kRowStep);
      values[2 * s + 1] = R::second(row + s * kRowStep);
    }
#pragma GCC unroll 8
    for (int q = 0; q < kQueries; ++q) {
      const __m256 weight = _mm256_broadcast_ss(weights[q] + i);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        sum[q][v] = _mm256_fmadd_ps(weight, values[v], sum[q][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int q = 0; q < kQueries; ++q) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      _mm256_storeu_ps(sums + q * stride + v * 8, sum[q][v]);
    }
  }
}

template <typename R, int kQueries, int kSteps>
inline void sum_columns(const WeightedSums<R>& args, int64_t query, int64_t begin, int64_t end) {
  int64_t k = begin;
  for (; k + kSteps * kRowStep <= end; k += kSteps * kRowStep) {
    sum_tile<R, kQueries, kSteps>(args, query, k);
  }
  for (; k < end; k += kRowStep) sum_tile<R, kQueries, 1>(args, query, k);
}

inline constexpr int64_t kSumColumns = 4 * kRowStep;

// What comes after columns up to `end`, of a tile's part of the rows: the next columns of the same
// rows, or the first of the rows ahead.
template <typename R>
inline void fetch_columns(const WeightedSums<R>& args, const QueryTile& tile, int64_t end,
                          int64_t width) {
  constexpr auto kBytes = static_cast<int64_t>(kSumColumns * sizeof(typename R::Element));
  const bool same = end < width;
  const int64_t count = same ? args.num_rows : args.ahead.count;
  const int64_t last = count * (tile.index + 1) / tile.of;
  for (int64_t i = count * tile.index / tile.of; i < last; ++i) {
    if (same) {
      fetch(args.rows[i] + end, 0, kBytes);
    } else {
      fetch(args.ahead.rows[i], 0, kBytes);
    }
  }
}

// Adds the rows, of `width` values, to the sums of all queries.
template <typename R>
inline void add_weighted(const WeightedSums<R>& args, int64_t width) {
  // All queries take a few columns before the next, so that these parts of the rows stay near.
  for (int64_t begin = 0; begin < width; begin += kSumColumns) {
    const int64_t end = begin + kSumColumns < width ? begin + kSumColumns : width;
    for_query_tiles<6>(args.weights.count, [&](const QueryTile& tile) {
      fetch_columns(args, tile, end, width);
      switch (tile.count) {
        case 1:
          return sum_columns<R, 1, 4>(args, tile.first, begin, end);
        case 2:
          return sum_columns<R, 2, 2>(args, tile.first, begin, end);
        case 3:
          return sum_columns<R, 3, 2>(args, tile.first, begin, end);
        case 4:
          return sum_columns<R, 4, 1>(args, tile.first, begin, end);
        case 5:
          return sum_columns<R, 5, 1>(args, tile.first, begin, end);
        default:
          return sum_columns<R, 6, 1>(args, tile.first, begin, end);
      }
    });
  }
}

}  // namespace
}  // namespace ingot::kernels
