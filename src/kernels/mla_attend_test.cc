#include "kernels/mla_attend.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <ostream>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/cache_rows.h"
#include "kernels/latent_cache.h"
#include "kernels/test_team.h"
#include "kernels/weight_fixture.h"

namespace ingot::kernels {
namespace {

constexpr float kScale = 0.25f;

struct Shape {
  int64_t heads;
  int64_t nope;
  int64_t rope;
  int64_t value;
  int64_t latent;

  int64_t width() const { return latent + rope; }
  int64_t q_dim() const { return nope + rope; }
  int64_t out_dim() const { return heads * value; }
};
std::ostream& operator<<(std::ostream& out, const Shape& s) {
  return out << s.heads << " heads, " << s.nope << " + " << s.rope << ", " << s.value << ", latent "
             << s.latent;
}

// Rows that are whole vectors of 16, and rows that are not, also beyond a group of fp8.
constexpr Shape kWhole = {.heads = 3, .nope = 70, .rope = 16, .value = 67, .latent = 48};
constexpr Shape kOdd = {.heads = 3, .nope = 10, .rope = 6, .value = 14, .latent = 40};
constexpr Shape kWide = {.heads = 7, .nope = 9, .rope = 64, .value = 5, .latent = 144};
constexpr Shape kNarrow = {.heads = 1, .nope = 3, .rope = 2, .value = 1, .latent = 5};
constexpr Shape kOddGroup = {.heads = 2, .nope = 4, .rope = 10, .value = 6, .latent = 141};
constexpr Shape kManyHeads = {.heads = 37, .nope = 6, .rope = 16, .value = 4, .latent = 16};

constexpr int64_t kContext = 1200;  // more than two spans
const std::vector<int32_t> kPositions = {0, 1, 15, 16, 510, 511, 512, 513, 1023, 1024, 1199, 40};

// What a problem's sequence holds, and how its rows look at it.
struct Setting {
  Shape shape;
  std::vector<int32_t> positions = kPositions;
  int64_t topk = kContext;
  int32_t slot_offset = 0;
  std::vector<int32_t> key_counts = {};  // empty: all up to a row's position
  double q_scale = 1;
};

// A sequence's latents on scattered pages and queries at some of its positions.
class AttendProblem {
 public:
  explicit AttendProblem(Setting setting) : setting_(std::move(setting)) {
    const Shape& s = shape();
    const int64_t pages = (kContext + setting_.slot_offset) / kPageTokens + 1;
    for (int64_t page = 0; page < pages; ++page) {
      pages_.push_back(static_cast<int32_t>((page * 31 + 7) % pages));
    }
    const auto values = random_values("cache", pages * kPageTokens * s.width());
    for (const CacheType type : {CacheType::kF32, CacheType::kBF16, CacheType::kFp8}) {
      add_cache(type, values);
    }
    for (const WeightFormat format :
         {WeightFormat::kF32, WeightFormat::kF16, WeightFormat::kBF16}) {
      const int64_t kv_rows = s.heads * (s.nope + s.value);
      kv_b_.emplace_back(format, random_values("kv_b", kv_rows * s.latent, 0.3), kv_rows, s.latent);
    }
    q_ = random_values("q", rows() * s.heads * s.q_dim(), setting_.q_scale);
    for (int64_t row = 0; row < rows(); ++row) {  // the first half from the start, then the last
      for (int64_t i = 0; i < topk(); ++i) {
        selected_.push_back(static_cast<int32_t>(i < topk() / 2 ? i : i + num_keys(row) - topk()));
      }
    }
  }

  const Shape& shape() const { return setting_.shape; }
  int64_t topk() const { return setting_.topk; }
  int64_t rows() const { return static_cast<int64_t>(setting_.positions.size()); }

  // Makes every key the same, so that all scores are equal.
  void make_keys_equal() {
    const std::vector<float> row = random_values("key", shape().width());
    std::vector<float> values;
    for (size_t i = 0; i < pages_.size() * kPageTokens; ++i) {
      values.insert(values.end(), row.begin(), row.end());
    }
    caches_.clear();
    for (const CacheType type : {CacheType::kF32, CacheType::kBF16, CacheType::kFp8}) {
      add_cache(type, values);
    }
  }
  std::vector<float>& q() { return q_; }

  std::vector<float> run(const MlaAttendVariant& variant, int64_t first, int64_t count,
                         int threads) {
    const Shape& s = shape();
    const std::vector<const int32_t*> tables(setting_.positions.size(), pages_.data());
    std::vector<float> out(static_cast<size_t>(count * s.out_dim()), -77.0f);
    // Scratch holds what an earlier call left behind.
    std::vector<float> scratch(
        static_cast<size_t>(threads * mla_attend_scratch_floats(s.heads, s.latent, s.rope)),
        std::numeric_limits<float>::quiet_NaN());
    const std::vector<int32_t>& counts = setting_.key_counts;
    Cache& cache = cache_of(variant.kind.latents);
    run_on_team(threads, [&](const ExecutionContext& context) {
      variant.run(context,
                  {.rows = {.count = count,
                            .positions = setting_.positions.data() + first,
                            .page_tables = tables.data(),
                            .key_counts = counts.empty() ? nullptr : counts.data() + first,
                            .slot_offset = setting_.slot_offset},
                   .q = q_.data() + first * s.heads * s.q_dim(),
                   .kv_b = kv_b_of(variant.kind.kv_b).weight(),
                   .latents = cache.view(shape()),
                   .selection = {.topk = topk(), .positions = selected_.data() + first * topk()},
                   .scale = kScale,
                   .heads = s.heads,
                   .nope_dim = s.nope,
                   .rope_dim = s.rope,
                   .value_dim = s.value,
                   .latent_dim = s.latent,
                   .out = out.data(),
                   .scratch = scratch.data()});
    });
    return out;
  }

  // The naive form in double: keys and values of every selected position expanded per head.
  std::vector<double> naive(int64_t row, int64_t head, const MlaAttendVariant& variant) const {
    const Shape& s = shape();
    const std::vector<float>& cache = caches_[static_cast<size_t>(variant.kind.latents)].decoded;
    const std::vector<float>& kv_b = kv_b_of(variant.kind.kv_b).decoded();
    const float* q = q_.data() + (row * s.heads + head) * s.q_dim();
    const float* w = kv_b.data() + head * (s.nope + s.value) * s.latent;
    std::vector<double> scores;
    std::vector<std::vector<double>> values;
    for (const int64_t t : positions_of(row)) {
      const float* c = cache.data() + cache_row(t) * s.width();
      double score = 0;
      for (int64_t d = 0; d < s.nope; ++d) score += q[d] * product(w + d * s.latent, c);
      for (int64_t d = 0; d < s.rope; ++d) {
        score += static_cast<double>(q[s.nope + d]) * c[s.latent + d];
      }
      scores.push_back(score * kScale);
      std::vector<double>& value = values.emplace_back();
      for (int64_t d = 0; d < s.value; ++d) {
        value.push_back(product(w + (s.nope + d) * s.latent, c));
      }
    }
    const double max = std::ranges::max(scores);
    std::vector<double> out(static_cast<size_t>(s.value), 0);
    double sum = 0;
    for (size_t i = 0; i < scores.size(); ++i) {
      const double weight = std::exp(scores[i] - max);
      sum += weight;
      for (size_t d = 0; d < out.size(); ++d) out[d] += weight * values[i][d];
    }
    for (double& value : out) value /= sum;
    return out;
  }

 private:
  double product(const float* w, const float* c) const {
    double sum = 0;
    for (int64_t i = 0; i < shape().latent; ++i) sum += static_cast<double>(w[i]) * c[i];
    return sum;
  }
  int64_t num_keys(int64_t row) const {
    const auto index = static_cast<size_t>(row);
    return setting_.key_counts.empty() ? setting_.positions[index] + 1 : setting_.key_counts[index];
  }
  int64_t cache_row(int64_t t) const {
    const int64_t slot = t + setting_.slot_offset;
    return pages_[static_cast<size_t>(slot / kPageTokens)] * kPageTokens + slot % kPageTokens;
  }
  std::vector<int64_t> positions_of(int64_t row) const {
    const int64_t count = num_keys(row);
    std::vector<int64_t> result;
    for (int64_t i = 0; i < std::min(count, topk()); ++i) {
      result.push_back(count <= topk() ? i : selected_[static_cast<size_t>(row * topk() + i)]);
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

    CacheView view(const Shape& s) {
      return {.type = type, .data = bytes.data(), .width = s.width(), .latent_dim = s.latent};
    }
  };
  Cache& cache_of(CacheType type) { return caches_[static_cast<size_t>(type)]; }

  void add_cache(CacheType type, const std::vector<float>& values) {
    const Shape& s = shape();
    const int64_t cache_rows = static_cast<int64_t>(values.size()) / s.width();
    Cache& cache = caches_.emplace_back(Cache{.type = type, .bytes = {}, .decoded = values});
    const CacheView empty = cache.view(s);
    cache.bytes.resize(static_cast<size_t>(cache_rows * empty.row_bytes()));
    const CacheView view = cache.view(s);
    const StoreCacheRow store = row_operations(Target::kReference).store(type);
    for (int64_t row = 0; row < cache_rows; ++row) {
      store(view, row, values.data() + row * s.width());
      if (type == CacheType::kF32) continue;
      float* decoded = cache.decoded.data() + row * s.width();
      for (int64_t i = 0; i < s.width(); ++i) {
        decoded[i] = type == CacheType::kBF16 ? BF16CacheRow(view, row).value(i)
                                              : Fp8CacheRow(view, row).value(i);
      }
    }
  }

  Setting setting_;
  std::vector<int32_t> pages_;
  std::vector<Cache> caches_;  // by type
  std::vector<StoredMatrix> kv_b_;
  std::vector<float> q_;
  std::vector<int32_t> selected_;
};

// Calls check(variant) for every variant that this processor can run.
template <typename Check>
void for_variants(const Check& check) {
  for (const MlaAttendVariant& variant : mla_attend_variants()) {
    if (variant.target <= detect_target()) check(variant);
  }
}

// Of every variant, all rows and heads against the naive form; how far off a value of 1 may be.
void expect_naive(AttendProblem& problem, double tolerance) {
  const Shape& s = problem.shape();
  std::map<std::pair<WeightFormat, CacheType>, std::vector<double>> naive;  // by kind
  for_variants([&](const MlaAttendVariant& variant) {
    std::vector<double>& want = naive[{variant.kind.kv_b, variant.kind.latents}];
    if (want.empty()) {
      for (int64_t i = 0; i < problem.rows() * s.heads; ++i) {
        const auto values = problem.naive(i / s.heads, i % s.heads, variant);
        want.insert(want.end(), values.begin(), values.end());
      }
    }
    const auto out = problem.run(variant, 0, problem.rows(), 1);
    for (size_t i = 0; i < out.size(); ++i) {
      ASSERT_NEAR(out[i], want[i], tolerance * std::max(1.0, std::abs(want[i])))
          << variant.name << ", " << s << ", topk " << problem.topk() << ", row "
          << static_cast<int64_t>(i) / s.out_dim();
    }
  });
}

TEST(MlaAttend, AbsorbedEqualsNaive) {
  for (const Shape& shape : {kWhole, kOdd}) {
    for (const int64_t topk : {int64_t{5}, int64_t{600}, kContext}) {
      AttendProblem problem({.shape = shape, .topk = topk});
      expect_naive(problem, 2e-5);
    }
  }
}

TEST(MlaAttend, EveryShape) {
  for (const Shape& shape : {kWide, kNarrow, kOddGroup, kManyHeads}) {
    AttendProblem problem({.shape = shape, .positions = {0, 63, 64, 600, 511}, .topk = 520});
    expect_naive(problem, 3e-5);
  }
}

TEST(MlaAttend, KeyCountsAndSlotsOfDraftRows) {
  for (const Shape& shape : {kWhole, kOdd}) {
    AttendProblem problem({.shape = shape,
                           .positions = {700, 701, 702, 30},
                           .topk = 620,
                           .slot_offset = 1,
                           .key_counts = {701, 701, 513, 29}});
    expect_naive(problem, 2e-5);
  }
}

TEST(MlaAttend, ScoresThatAreFarApart) {
  // One key outweighs the others: its latent comes back as it is.
  for (const Shape& shape : {kWhole, kOdd}) {
    AttendProblem problem({.shape = shape, .positions = {1, 510, 1024}, .q_scale = 200});
    for_variants([&](const MlaAttendVariant& variant) {
      for (const float value : problem.run(variant, 0, problem.rows(), 1)) {
        ASSERT_TRUE(std::isfinite(value)) << variant.name;
      }
    });
    expect_naive(problem, 2e-2);
  }
}

// Equal addends are rounded the same way time after time: the sums are less exact than others.
TEST(MlaAttend, EqualScores) {
  for (const Shape& shape : {kWhole, kOdd}) {
    for (const double q_scale : {0.0, 1.0, 1e4}) {
      AttendProblem problem({.shape = shape, .positions = {1199, 520}, .q_scale = q_scale});
      problem.make_keys_equal();
      expect_naive(problem, 1e-4);
    }
  }
}

TEST(MlaAttend, NanStaysInItsRow) {
  AttendProblem problem({.shape = kWhole, .positions = {20, 21, 22}});
  const auto row_floats = static_cast<size_t>(kWhole.heads * kWhole.q_dim());
  problem.q()[row_floats] = std::numeric_limits<float>::quiet_NaN();  // head 0 of row 1
  for_variants([&](const MlaAttendVariant& variant) {
    const auto out = problem.run(variant, 0, 3, 1);
    for (size_t i = 0; i < out.size(); ++i) {
      const auto first = static_cast<size_t>(kWhole.out_dim());
      const bool spoiled = i >= first && i < first + static_cast<size_t>(kWhole.value);
      ASSERT_EQ(std::isnan(out[i]), spoiled) << variant.name << " at " << i;
    }
  });
}

TEST(MlaAttend, NeitherBatchNorThreadsMatter) {
  for (const Shape& shape : {kWhole, kOdd, kManyHeads}) {
    std::vector<int32_t> positions = kPositions;
    for (int32_t i = 0; i < 30; ++i) positions.push_back(550 + i);  // several tiles
    AttendProblem problem({.shape = shape, .positions = positions, .topk = 600});
    for_variants([&](const MlaAttendVariant& variant) {
      if (variant.target == Target::kReference && shape.heads > 7) return;  // long, and one path
      const auto together = problem.run(variant, 0, problem.rows(), 1);
      for (const int threads : {2, 3, 5}) {
        EXPECT_EQ(problem.run(variant, 0, problem.rows(), threads), together) << variant.name;
      }
      const auto part = [&](int64_t first, int64_t count) {
        return std::span(together).subspan(static_cast<size_t>(first * shape.out_dim()),
                                           static_cast<size_t>(count * shape.out_dim()));
      };
      for (int64_t row = 0; row < static_cast<int64_t>(kPositions.size()); ++row) {
        const auto alone = problem.run(variant, row, 1, 2);
        EXPECT_TRUE(std::ranges::equal(alone, part(row, 1))) << variant.name << " row " << row;
      }
      for (const int64_t count : {2, 3, 4, 5, 6, 7, 17}) {
        const auto few = problem.run(variant, 9, count, 1);
        EXPECT_TRUE(std::ranges::equal(few, part(9, count))) << variant.name << " of " << count;
      }
    });
  }
}

constexpr int64_t kHeads = kOdd.heads;
constexpr int64_t kNope = kOdd.nope;
constexpr int64_t kRope = kOdd.rope;
constexpr int64_t kLatent = kOdd.latent;
constexpr int64_t kWidth = kOdd.latent + kOdd.rope;

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
