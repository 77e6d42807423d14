// Attention over cached latents, on one thread, at the shapes of GLM-4.7-Flash (20 heads) and GLM-5
// (64 heads): one row that decodes, with all its keys or with 2,048 selected ones, and a chunk of
// 512 rows of a prompt. kv_b is bf16.
//
// Times are processor time of the thread. After each call, bare multiplications and bare reading
// are timed too: `of_macs` and `of_reads` are the medians of the ratios to their rates, and the
// larger is the share of the floor. Bytes are kv_b, and every selected key once a row. Layers take
// turns, so that what a call reads is in no cache.

#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/random.h"
#include "base/thread_team.h"
#include "kernels/ledger.h"
#include "kernels/mla_attend.h"
#include "kernels/paged_cache.h"
#include "kernels/row_operations.h"
#include "kernels/target.h"
#include "tensor/float16.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ingot::kernels {
namespace {

constexpr int64_t kNope = 192;
constexpr int64_t kRope = 64;
constexpr int64_t kValue = 256;
constexpr int64_t kLatent = 512;
constexpr int64_t kLayerBytes = int64_t{192} << 20;  // of all layers together, at least

double thread_seconds() {
  timespec time;
  CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

#if defined(__x86_64__)
// Multiply-accumulates a second of ten independent chains.
[[gnu::target("avx2,fma")]] double macs_per_second() {
  constexpr int64_t kRounds = 50'000;
  const __m256 factor = _mm256_set1_ps(0.999f);
  __m256 a = factor, b = a, c = a, d = a, e = a, f = a, g = a, h = a, i = a, j = a;
  const auto chain = [factor](__m256 & sum) __attribute__((always_inline, target("avx2,fma"))) {
    asm volatile("vfmadd213ps %1, %1, %0" : "+x"(sum) : "x"(factor));
  };
  const double begin = thread_seconds();
  for (int64_t round = 0; round < kRounds; ++round) {
    chain(a), chain(b), chain(c), chain(d), chain(e);
    chain(f), chain(g), chain(h), chain(i), chain(j);
  }
  return kRounds * 10 * 8 / (thread_seconds() - begin);
}
#else
double macs_per_second() { return 0; }
#endif

// Bytes a second that are read from memory, going on where the last call stopped.
double bytes_per_second() {
  constexpr size_t kWords = (size_t{256} << 20) / sizeof(uint64_t);
  constexpr size_t kSliceWords = kWords / 64;
  static const std::vector<uint64_t> words(kWords, 1);
  static size_t position = 0;
  uint64_t sums[8] = {};
  const double begin = thread_seconds();
  for (size_t i = 0; i < kSliceWords; i += 8) {
    for (size_t lane = 0; lane < 8; ++lane) sums[lane] += words[position + i + lane];
  }
  const double seconds = thread_seconds() - begin;
  benchmark::DoNotOptimize(sums);
  position = (position + kSliceWords) % kWords;
  return kSliceWords * sizeof(uint64_t) / seconds;
}

double median(std::vector<double>& values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

std::vector<float> random_floats(std::string_view name, int64_t count, double scale) {
  const base::RandomStream random = base::random_stream(1, name);
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(scale * random.normal(static_cast<uint64_t>(i))));
  }
  return values;
}

// One model's attention layers; every layer has the same numbers.
class Layers {
 public:
  Layers(CacheType type, int64_t heads, int64_t context) : heads_(heads) {
    const int64_t pages = (context + kPageTokens - 1) / kPageTokens;
    for (int64_t page = 0; page < pages; ++page) {  // scattered
      pages_.push_back(static_cast<int32_t>((page * 7919 + 3) % pages));
    }
    constexpr int64_t kWidth = kLatent + kRope;
    const int64_t rows = pages * kPageTokens;
    const int64_t cache_bytes = rows * cache_row_bytes(type, kWidth, kLatent);
    const int64_t kv_b_values = heads * (kNope + kValue) * kLatent;
    const int64_t count = kLayerBytes / (cache_bytes + kv_b_values * 2) + 1;
    const std::vector<float> values = random_floats("values", 256 * kWidth, 1);
    view_ = {.type = type, .width = kWidth, .latent_dim = kLatent};
    kv_b_bytes_ = kv_b_values * 2;
    auto arena = base::Arena::create(
        static_cast<uint64_t>(count) * (base::Arena::padded(static_cast<uint64_t>(cache_bytes)) +
                                        base::Arena::padded(static_cast<uint64_t>(kv_b_bytes_))),
        "layers");
    CHECK(arena.has_value());
    arena_ = std::move(*arena);
    for (int64_t layer = 0; layer < count; ++layer) {
      view_.data = caches_.emplace_back(arena_.allocate(static_cast<uint64_t>(cache_bytes)));
      for (int64_t row = 0; row < rows; ++row) {
        row_operations(detect_target()).store(type)(view_, row, values.data() + row % 256 * kWidth);
      }
      auto* kv_b = arena_.allocate_array<tensor::BFloat16>(static_cast<uint64_t>(kv_b_values));
      for (int64_t i = 0; i < kv_b_values; ++i) {
        kv_b[i] = tensor::to_bf16(0.05f * values[static_cast<size_t>(i) % values.size()]);
      }
      kv_bs_.push_back(kv_b);
    }
  }

  int64_t heads() const { return heads_; }
  const std::vector<int32_t>& pages() const { return pages_; }
  int64_t kv_b_bytes() const { return kv_b_bytes_; }
  int64_t row_bytes() const { return view_.row_bytes(); }

  void next(MlaAttendArgs& args) {
    const size_t layer = turn_++ % caches_.size();
    args.latents = view_;
    args.latents.data = caches_[layer];
    args.kv_b = {.format = WeightFormat::kBF16,
                 .rows = heads_ * (kNope + kValue),
                 .cols = kLatent,
                 .data = kv_bs_[layer]};
  }

 private:
  int64_t heads_;
  std::vector<int32_t> pages_;
  CacheView view_;
  int64_t kv_b_bytes_;
  base::Arena arena_;
  std::vector<std::byte*> caches_;  // by layer
  std::vector<tensor::BFloat16*> kv_bs_;
  size_t turn_ = 0;
};

const MlaAttendVariant& fastest(CacheType type, int64_t heads) {
  LedgerEntry entry;
  const auto* variant = select_variant(mla_attend_variants(),
                                       {.kind = {WeightFormat::kBF16, type},
                                        .heads = heads,
                                        .latent_dim = kLatent,
                                        .rope_dim = kRope},
                                       detect_target(), entry);
  CHECK(variant != nullptr);
  return *variant;
}

// The last `rows` positions of a context.
void attend(benchmark::State& state, CacheType type, int64_t heads, int64_t topk) {
  const int64_t rows = state.range(0);
  const int64_t context = state.range(1);
  Layers layers(type, heads, context);
  std::vector<int32_t> positions;
  std::vector<int32_t> selected;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t position = context - rows + row;
    positions.push_back(static_cast<int32_t>(position));
    for (int64_t i = 0; i < topk && topk < context; ++i) {
      selected.push_back(static_cast<int32_t>(i * (position + 1) / topk));
    }
  }
  const std::vector<const int32_t*> tables(static_cast<size_t>(rows), layers.pages().data());
  const std::vector<float> q = random_floats("q", rows * heads * (kNope + kRope), 1);
  std::vector<float> out(static_cast<size_t>(rows * heads * kValue));
  const auto scratch_floats =
      static_cast<uint64_t>(mla_attend_scratch_floats(heads, kLatent, kRope));
  auto scratch = base::Arena::create(scratch_floats * sizeof(float), "scratch");
  CHECK(scratch.has_value());
  MlaAttendArgs args{
      .rows = {.count = rows, .positions = positions.data(), .page_tables = tables.data()},
      .q = q.data(),
      .selection = {.topk = topk, .positions = selected.data()},
      .scale = 0.0625f,
      .heads = heads,
      .nope_dim = kNope,
      .rope_dim = kRope,
      .value_dim = kValue,
      .latent_dim = kLatent,
      .out = out.data(),
      .scratch = scratch->allocate_array<float>(scratch_floats)};
  int64_t keys = 0;
  for (int64_t row = 0; row < rows; ++row) keys += std::min(args.rows.num_keys(row), topk);
  const auto macs = static_cast<double>(
      heads * (keys * (2 * kLatent + kRope) + rows * (kNope + kValue) * kLatent));
  const auto bytes = static_cast<double>(layers.kv_b_bytes() + keys * layers.row_bytes());
  const MlaAttendVariant& variant = fastest(type, heads);
  base::ThreadTeam team(1);
  std::vector<double> of_macs;
  std::vector<double> of_reads;
  double seconds = 0;
  for (auto _ : state) {
    layers.next(args);
    const double begin = thread_seconds();
    team.run([&](int member) {
      variant.run(ExecutionContext(team, member, row_operations(detect_target())), args);
    });
    const double time = thread_seconds() - begin;
    state.SetIterationTime(time);
    seconds += time;
    if (detect_target() >= Target::kAvx2) of_macs.push_back(macs / time / macs_per_second());
    of_reads.push_back(bytes / time / bytes_per_second());
  }
  const auto calls = static_cast<double>(state.iterations());
  state.counters["GMAC/s"] = 1e-9 * macs * calls / seconds;
  state.counters["GB/s"] = 1e-9 * bytes * calls / seconds;
  if (!of_macs.empty()) state.counters["of_macs"] = median(of_macs);
  state.counters["of_reads"] = median(of_reads);
}

constexpr int64_t kEverything = int64_t{1} << 40;

void decode(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"rows", "context"})->UseManualTime()->Unit(benchmark::kMillisecond);
  for (const int64_t context : {1024, 8192, 32768}) benchmark->Args({1, context});
}

void prefill(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"rows", "context"})->UseManualTime()->Unit(benchmark::kMillisecond);
  benchmark->Iterations(5);
  for (const int64_t context : {512, 2048 + 512}) benchmark->Args({512, context});
}

BENCHMARK_CAPTURE(attend, decode_flash_bf16, CacheType::kBF16, 20, kEverything)->Apply(decode);
BENCHMARK_CAPTURE(attend, decode_flash_fp8, CacheType::kFp8, 20, kEverything)->Apply(decode);
BENCHMARK_CAPTURE(attend, decode_glm5_bf16, CacheType::kBF16, 64, kEverything)->Apply(decode);
BENCHMARK_CAPTURE(attend, decode_glm5_bf16_2048, CacheType::kBF16, 64, 2048)->Apply(decode);
BENCHMARK_CAPTURE(attend, decode_glm5_fp8_2048, CacheType::kFp8, 64, 2048)->Apply(decode);
BENCHMARK_CAPTURE(attend, prefill_flash_bf16, CacheType::kBF16, 20, kEverything)->Apply(prefill);
BENCHMARK_CAPTURE(attend, prefill_flash_fp8, CacheType::kFp8, 20, kEverything)->Apply(prefill);
BENCHMARK_CAPTURE(attend, prefill_glm5_bf16, CacheType::kBF16, 64, 2048)->Apply(prefill);

}  // namespace
}  // namespace ingot::kernels
