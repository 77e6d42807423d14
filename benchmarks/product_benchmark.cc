// Linear layers and experts at the shapes of GLM-4.7-Flash, by one thread, with every kernel that
// the processor can run: multiplications and bytes of weights a second of the thread's time. M rows
// of activations; experts are drawn at random.

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/random.h"
#include "base/thread_team.h"
#include "kernels/linear.h"
#include "kernels/moe.h"
#include "kernels/panels.h"
#include "kernels/row_operations.h"

namespace ingot::kernels {
namespace {

// A matrix of random codes; scales are about one in every format.
class RandomMatrix {
 public:
  RandomMatrix(WeightFormat format, WeightLayout layout, int64_t rows, int64_t cols)
      : weight_{.format = format, .layout = layout, .rows = rows, .cols = cols} {
    const auto data_bytes = static_cast<size_t>(held_data_bytes(weight_));
    const auto scale_bytes = static_cast<size_t>(held_scale_bytes(weight_));
    bytes_.resize(data_bytes + scale_bytes + 64);
    const base::RandomStream random = base::random_stream(1, "matrix");
    for (size_t i = 0; i + 8 <= data_bytes; i += 8) {
      // Clears the highest bits of exponents: neither infinite nor NaN in any format.
      const uint64_t word = random.word(i) & 0xBFBFBFBFBFBFBFBFu;
      std::memcpy(bytes_.data() + i, &word, 8);
    }
    std::byte* scales = bytes_.data() + data_bytes;
    if (format == WeightFormat::kMxfp4) {
      std::memset(scales, 127, scale_bytes);
    } else {
      for (size_t i = 0; i < scale_bytes / 4; ++i) std::memcpy(scales + i * 4, &kOne, 4);
    }
    weight_.data = bytes_.data();
    weight_.scales = scale_bytes > 0 ? scales : nullptr;
  }
  const Weight& weight() const { return weight_; }
  double size_bytes() const { return static_cast<double>(bytes_.size()); }

 private:
  static constexpr float kOne = 1;
  Weight weight_;
  std::vector<std::byte> bytes_;
};

std::vector<float> random_rows(int64_t count) {
  const base::RandomStream random = base::random_stream(2, "rows");
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(random.normal(i));
  return values;
}

void report(benchmark::State& state, double macs, double bytes) {
  using benchmark::Counter;
  state.counters["GMAC/s"] = Counter(macs * 1e-9, Counter::kIsIterationInvariantRate);
  state.counters["GB/s"] = Counter(bytes * 1e-9, Counter::kIsIterationInvariantRate);
}

void linear(benchmark::State& state, const LinearVariant& variant, int64_t out, int64_t in) {
  const int64_t rows = state.range(0);
  base::ThreadTeam team(1);
  const ExecutionContext context(team, 0, row_operations(detect_target()));
  const RandomMatrix matrix(variant.kind.weight, variant.kind.layout, out, in);
  const auto x = random_rows(rows * in);
  std::vector<std::byte> encoded(static_cast<size_t>(rows * encoded_row_bytes_max(in)));
  std::vector<float> y(static_cast<size_t>(rows * out));
  const Activations input =
      encode_activations(context, x.data(), rows, in, variant.kind.activation, encoded.data());
  for (auto _ : state) {
    variant.run(context, {.x = input, .weight = matrix.weight(), .y = y.data(), .y_stride = out});
    benchmark::ClobberMemory();
  }
  report(state, static_cast<double>(rows * out * in), matrix.size_bytes());
}

constexpr int64_t kHidden = 2048;
constexpr int64_t kIntermediate = 1536;
constexpr int64_t kExperts = 64;
constexpr int64_t kTopk = 4;

void moe(benchmark::State& state, const MoeVariant& variant) {
  const int64_t rows = state.range(0);
  const int64_t pairs = rows * kTopk;
  base::ThreadTeam team(1);
  const ExecutionContext context(team, 0, row_operations(detect_target()));
  std::vector<std::unique_ptr<RandomMatrix>> matrices;
  std::vector<MlpWeights> experts;
  const auto add = [&](int64_t out, int64_t in) {
    matrices.push_back(
        std::make_unique<RandomMatrix>(variant.kind.weight, variant.kind.layout, out, in));
    return matrices.back()->weight();
  };
  for (int64_t e = 0; e < kExperts; ++e) {
    const Weight gate = add(kIntermediate, kHidden);
    const Weight up = add(kIntermediate, kHidden);
    experts.push_back({.gate = gate, .up = up, .down = add(kHidden, kIntermediate)});
  }
  const auto x = random_rows(rows * kHidden);
  std::vector<std::byte> input(static_cast<size_t>(rows * encoded_row_bytes_max(kHidden)));
  const base::RandomStream random = base::random_stream(3, "experts");
  std::vector<int32_t> chosen;
  std::vector<bool> read(static_cast<size_t>(kExperts));
  for (int64_t i = 0; i < pairs; ++i) {
    // Different ones for one row: steps of an odd number through a power of two.
    const uint64_t start = random.word(static_cast<uint64_t>(i / kTopk));
    chosen.push_back(
        static_cast<int32_t>((start + static_cast<uint64_t>(i % kTopk) * 17) % kExperts));
    read[static_cast<size_t>(chosen.back())] = true;
  }
  double bytes = 0;
  for (const bool expert : read) bytes += expert ? 3 * matrices[0]->size_bytes() : 0;
  const std::vector<float> weights(static_cast<size_t>(pairs), 0.25f);
  std::vector<float> gated(static_cast<size_t>(pairs * 2 * kIntermediate));
  std::vector<std::byte> middle(static_cast<size_t>(pairs * encoded_row_bytes_max(kIntermediate)));
  std::vector<int32_t> order(static_cast<size_t>(pairs + kExperts + 1));
  std::vector<float> sums(static_cast<size_t>(pairs * kMoeSlabColumns));
  std::vector<float> out(static_cast<size_t>(rows * kHidden));
  const MoeArgs args{.x = encode_activations(context, x.data(), rows, kHidden,
                                             variant.kind.activation, input.data()),
                     .routing = {.experts_per_token = kTopk,
                                 .experts = chosen.data(),
                                 .weights = const_cast<float*>(weights.data())},
                     .experts = experts,
                     .out = out.data(),
                     .gated = gated.data(),
                     .encoded = middle.data(),
                     .order = order.data(),
                     .sums = sums.data()};
  for (auto _ : state) {
    variant.run(context, args);
    benchmark::ClobberMemory();
  }
  report(state, static_cast<double>(pairs * 3 * kHidden * kIntermediate), bytes);
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const LinearVariant& variant : linear_variants()) {
    if (variant.target > detect_target()) continue;
    for (const auto& [what, out, in] : {std::tuple{"o_proj", 2048, 5120}, {"q_b", 5120, 768}}) {
      auto* bench = benchmark::RegisterBenchmark(
          (std::string(variant.name) + "/" + what).c_str(),
          [&variant, out, in](benchmark::State& state) { linear(state, variant, out, in); });
      for (const int64_t rows : {1, 2, 4, 8, 16, 64, 512}) bench->Arg(rows);
    }
  }
  for (const MoeVariant& variant : moe_variants()) {
    if (variant.target > detect_target()) continue;
    auto* bench =
        benchmark::RegisterBenchmark(std::string(variant.name).c_str(),
                                     [&variant](benchmark::State& state) { moe(state, variant); });
    for (const int64_t rows : {1, 4, 16, 64, 512}) bench->Arg(rows);
  }
  return true;
}();

}  // namespace
}  // namespace ingot::kernels
