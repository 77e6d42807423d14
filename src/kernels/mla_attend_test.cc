#include "kernels/mla_attend.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "kernels/cache_rows.h"
#include "kernels/latent_cache.h"
#include "kernels/test_team.h"
#include "kernels/weight_fixture.h"

namespace ingot::kernels {
namespace {

constexpr int64_t kHeads = 3;
constexpr int64_t kNope = 10;
constexpr int64_t kRope = 6;
constexpr int64_t kValue = 14;
constexpr int64_t kLatent = 40;
constexpr int64_t kWidth = kLatent + kRope;
constexpr int64_t kContext = 1200;  // more than two spans
constexpr int64_t kPages = (kContext + kPageTokens - 1) / kPageTokens;
constexpr float kScale = 0.25f;

// A sequence's latents on scattered pages and queries at some of its positions.
class AttendProblem {
 public:
  AttendProblem(std::vector<int32_t> positions, int64_t topk)
      : positions_(std::move(positions)), topk_(topk) {
    for (int32_t page = 0; page < kPages; ++page) pages_.push_back((page * 31 + 7) % kPages);
    for (const CacheType type : {CacheType::kF32, CacheType::kBF16, CacheType::kFp8}) {
      add_cache(type, random_values("cache", kPages * kPageTokens * kWidth));
    }
    for (const WeightFormat format :
         {WeightFormat::kF32, WeightFormat::kF16, WeightFormat::kBF16}) {
      const int64_t kv_rows = kHeads * (kNope + kValue);
      kv_b_.emplace_back(format, random_values("kv_b", kv_rows * kLatent, 0.3), kv_rows, kLatent);
    }
    q_ = random_values("q", rows() * kHeads * (kNope + kRope));
    for (const int32_t position : positions_) {  // the first half from the start, then the last
      for (int32_t i = 0; i < topk_; ++i) {
        const int32_t skipped = position + 1 - static_cast<int32_t>(topk_);
        selected_.push_back(i < topk_ / 2 ? i : i + skipped);
      }
    }
  }

  int64_t rows() const { return static_cast<int64_t>(positions_.size()); }

  std::vector<float> run(const MlaAttendVariant& variant, int64_t first, int64_t count,
                         int threads) {
    std::vector<const int32_t*> tables(positions_.size(), pages_.data());
    std::vector<float> out(static_cast<size_t>(count * kHeads * kValue));
    std::vector<float> scratch(
        static_cast<size_t>(threads * mla_attend_scratch_floats(kHeads, kLatent, kRope)));
    Cache& cache = cache_of(variant.kind.latents);
    run_on_team(threads, [&](const ExecutionContext& context) {
      variant.run(context,
                  {.rows = {.count = count,
                            .positions = positions_.data() + first,
                            .page_tables = tables.data()},
                   .q = q_.data() + first * kHeads * (kNope + kRope),
                   .kv_b = kv_b_of(variant.kind.kv_b).weight(),
                   .latents = cache.view(),
                   .selection = {.topk = topk_, .positions = selected_.data() + first * topk_},
                   .scale = kScale,
                   .heads = kHeads,
                   .nope_dim = kNope,
                   .rope_dim = kRope,
                   .value_dim = kValue,
                   .latent_dim = kLatent,
                   .out = out.data(),
                   .scratch = scratch.data()});
    });
    return out;
  }

  // The naive form in double: keys and values of every selected position expanded per head.
  std::vector<double> naive(int64_t row, int64_t head, const MlaAttendVariant& variant) const {
    const std::vector<float>& cache = caches_[static_cast<size_t>(variant.kind.latents)].decoded;
    const std::vector<float>& kv_b = kv_b_of(variant.kind.kv_b).decoded();
    const float* q = q_.data() + (row * kHeads + head) * (kNope + kRope);
    const float* w = kv_b.data() + head * (kNope + kValue) * kLatent;
    std::vector<double> scores;
    std::vector<std::vector<double>> values;
    for (const int64_t t : positions_of(row)) {
      const float* c = cache.data() + cache_row(t) * kWidth;
      double score = 0;
      for (int64_t d = 0; d < kNope; ++d) score += q[d] * product(w + d * kLatent, c);
      for (int64_t d = 0; d < kRope; ++d)
        score += static_cast<double>(q[kNope + d]) * c[kLatent + d];
      scores.push_back(score * kScale);
      std::vector<double>& value = values.emplace_back();
      for (int64_t d = 0; d < kValue; ++d) value.push_back(product(w + (kNope + d) * kLatent, c));
    }
    const double max = std::ranges::max(scores);
    std::vector<double> out(kValue, 0);
    double sum = 0;
    for (size_t i = 0; i < scores.size(); ++i) {
      const double weight = std::exp(scores[i] - max);
      sum += weight;
      for (size_t d = 0; d < kValue; ++d) out[d] += weight * values[i][d];
    }
    for (double& value : out) value /= sum;
    return out;
  }

 private:
  static double product(const float* w, const float* c) {
    double sum = 0;
    for (int64_t i = 0; i < kLatent; ++i) sum += static_cast<double>(w[i]) * c[i];
    return sum;
  }
  int64_t cache_row(int64_t t) const {
    return pages_[static_cast<size_t>(t / kPageTokens)] * kPageTokens + t % kPageTokens;
  }
  std::vector<int64_t> positions_of(int64_t row) const {
    const int64_t count = positions_[static_cast<size_t>(row)] + 1;
    std::vector<int64_t> result;
    for (int64_t i = 0; i < std::min(count, topk_); ++i) {
      result.push_back(count <= topk_ ? i : selected_[static_cast<size_t>(row * topk_ + i)]);
    }
    return result;
  }
  const StoredMatrix& kv_b_of(WeightFormat format) const {
    return *std::ranges::find(kv_b_, format,
                              [](const StoredMatrix& m) { return m.weight().format; });
  }

  // A cache of one type, and what its bytes stand for.
  struct Cache {
    CacheType type;
    std::vector<std::byte> bytes;
    std::vector<float> decoded;

    CacheView view() {
      return {.type = type, .data = bytes.data(), .width = kWidth, .latent_dim = kLatent};
    }
  };
  Cache& cache_of(CacheType type) { return caches_[static_cast<size_t>(type)]; }

  void add_cache(CacheType type, const std::vector<float>& values) {
    constexpr int64_t kCacheRows = kPages * kPageTokens;
    Cache& cache = caches_.emplace_back(Cache{.type = type, .bytes = {}, .decoded = values});
    cache.bytes.resize(static_cast<size_t>(kCacheRows * cache_row_bytes(type, kWidth, kLatent)));
    const StoreCacheRow store = row_operations(Target::kReference).store(type);
    for (int64_t row = 0; row < kCacheRows; ++row) {
      store(cache.view(), row, values.data() + row * kWidth);
      if (type == CacheType::kF32) continue;
      float* decoded = cache.decoded.data() + row * kWidth;
      for (int64_t i = 0; i < kWidth; ++i) {
        decoded[i] = type == CacheType::kBF16 ? BF16CacheRow(cache.view(), row).value(i)
                                              : Fp8CacheRow(cache.view(), row).value(i);
      }
    }
  }

  std::vector<int32_t> positions_;
  int64_t topk_;
  std::vector<int32_t> pages_;
  std::vector<Cache> caches_;  // by type
  std::vector<StoredMatrix> kv_b_;
  std::vector<float> q_;
  std::vector<int32_t> selected_;
};

const std::vector<int32_t> kPositions = {0, 1, 15, 16, 510, 511, 512, 513, 1023, 1024, 1199, 40};

TEST(MlaAttend, AbsorbedEqualsNaive) {
  for (const int64_t topk : {int64_t{5}, int64_t{600}, kContext}) {
    AttendProblem problem(kPositions, topk);
    for (const MlaAttendVariant& variant : mla_attend_variants()) {
      if (variant.target > detect_target()) continue;
      const auto out = problem.run(variant, 0, problem.rows(), 1);
      for (int64_t row = 0; row < problem.rows(); ++row) {
        for (int64_t head = 0; head < kHeads; ++head) {
          const auto want = problem.naive(row, head, variant);
          for (size_t d = 0; d < kValue; ++d) {
            EXPECT_NEAR(out[static_cast<size_t>((row * kHeads + head) * kValue) + d], want[d], 2e-5)
                << variant.name << " topk " << topk << " row " << row;
          }
        }
      }
    }
  }
}

TEST(MlaAttend, NeitherBatchNorThreadsMatter) {
  AttendProblem problem(kPositions, 600);
  for (const MlaAttendVariant& variant : mla_attend_variants()) {
    if (variant.target > detect_target()) continue;
    const auto together = problem.run(variant, 0, problem.rows(), 1);
    EXPECT_EQ(problem.run(variant, 0, problem.rows(), 2), together);
    EXPECT_EQ(problem.run(variant, 0, problem.rows(), 3), together);
    for (int64_t row = 0; row < problem.rows(); ++row) {
      const auto alone = problem.run(variant, row, 1, 2);
      EXPECT_TRUE(std::ranges::equal(
          alone, std::span(together).subspan(static_cast<size_t>(row * kHeads * kValue),
                                             static_cast<size_t>(kHeads * kValue))));
    }
  }
}

TEST(RopeAndCacheWrite, StoresNormedLatentAndRotatedKey) {
  const std::vector<int32_t> positions = {17, 3};
  const std::vector<int32_t> pages = {2, 0};
  const std::vector<const int32_t*> tables(2, pages.data());
  const std::vector<uint8_t> writes = {1, 0};
  const auto kv = random_values("kv", 2 * kWidth);
  const std::vector<float> weight(kLatent, 2.0f);
  // A quarter turn: cosines 0, sines 1.
  std::vector<float> rope(2 * kRope, 0.0f);
  for (int64_t row = 0; row < 2; ++row) {
    std::fill_n(rope.begin() + row * kRope + kRope / 2, kRope / 2, 1.0f);
  }
  auto q = random_values("q", 2 * kHeads * (kNope + kRope));
  const auto q_before = q;
  std::vector<float> cache(3 * kPageTokens * kWidth, -7.0f);
  std::vector<float> scratch(2 * kWidth);
  run_on_team(2, [&](const ExecutionContext& context) {
    rope_and_cache_write(
        context, {.rows = {.count = 2,
                           .positions = positions.data(),
                           .page_tables = tables.data(),
                           .writes = writes.data()},
                  .rope = rope.data(),
                  .style = RopeStyle::kInterleaved,
                  .q = q.data(),
                  .heads = kHeads,
                  .nope_dim = kNope,
                  .rope_dim = kRope,
                  .kv = kv.data(),
                  .norm_weight = weight.data(),
                  .eps = 0,
                  .latent_dim = kLatent,
                  .latents = {.type = CacheType::kF32, .data = cache.data(), .width = kWidth},
                  .scratch = scratch.data()});
  });
  double squares = 0;
  for (int64_t i = 0; i < kLatent; ++i)
    squares += static_cast<double>(kv[static_cast<size_t>(i)]) * kv[static_cast<size_t>(i)];
  const double scale = 2 / std::sqrt(squares / kLatent);
  const float* stored = cache.data() + 1 * kWidth;  // position 17: second page, which is page 0
  for (int64_t i = 0; i < kLatent; ++i)
    EXPECT_NEAR(stored[i], kv[static_cast<size_t>(i)] * scale, 1e-5);
  for (int64_t j = 0; j < kRope / 2; ++j) {
    EXPECT_EQ(stored[kLatent + 2 * j], -kv[static_cast<size_t>(kLatent + 2 * j + 1)]);
    EXPECT_EQ(stored[kLatent + 2 * j + 1], kv[static_cast<size_t>(kLatent + 2 * j)]);
  }
  // Row 1 is read only: nothing but row 0's place was touched, and its query was rotated all the
  // same.
  EXPECT_EQ(std::ranges::count(cache, -7.0f), static_cast<int64_t>(cache.size()) - kWidth);
  EXPECT_EQ(q[static_cast<size_t>(kHeads * (kNope + kRope) + kNope)],
            -q_before[static_cast<size_t>(kHeads * (kNope + kRope) + kNope + 1)]);
  EXPECT_EQ(q[0], q_before[0]);
}

}  // namespace
}  // namespace ingot::kernels
