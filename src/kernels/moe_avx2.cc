#include "kernels/moe_avx2.h"

#include <cstring>

#include "kernels/encode_avx2.h"
#include "kernels/exp_avx2.h"
#include "kernels/float_product_avx2.h"
#include "kernels/integer_product_avx2.h"

namespace ingot::kernels {
namespace {

// Columns of the middle that one item of work computes: a block of an encoded row.
constexpr int64_t kGroupColumns = kPanelBlockColumns;
constexpr int64_t kGroupPanels = kGroupColumns / kPanelRows;
constexpr int64_t kSlabPanels = kMoeSlabColumns / kPanelRows;

// The pairs of (row, chosen expert), sorted by expert.
struct PairsByExpert {
  const int32_t* pairs;
  const int32_t* begins;  // [experts + 1]

  int64_t count(int64_t expert) const { return begins[expert + 1] - begins[expert]; }
  const int32_t* of(int64_t expert) const { return pairs + begins[expert]; }
};

// Collective; one member sorts, which takes a microsecond or two of a step.
PairsByExpert sort_pairs(const ExecutionContext& context, const MoeArgs& args, int64_t num_pairs,
                         int64_t num_experts) {
  int32_t* begins = args.order + num_pairs;
  if (context.member() == 0) {
    for (int64_t e = 0; e <= num_experts; ++e) begins[e] = 0;
    // Counted one place further on, so that filling in moves each begin to where it belongs.
    int32_t* ends = begins + 1;
    for (int64_t pair = 0; pair < num_pairs; ++pair) ++ends[args.routing.experts[pair]];
    int32_t sum = 0;
    for (int64_t e = 0; e < num_experts; ++e) {
      const int32_t count = ends[e];
      ends[e] = sum;
      sum += count;
    }
    for (int64_t pair = 0; pair < num_pairs; ++pair) {
      args.order[ends[args.routing.experts[pair]]++] = static_cast<int32_t>(pair);
    }
  }
  context.barrier();
  return {args.order, begins};
}

int64_t ceil_div(int64_t a, int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; }

// Calls work(expert, first group, end of groups) for a member's share of all (expert, group), cut
// by cost: reading a group's weights is as much as multiplying a few rows with them.
template <typename Work>
void share_groups(const ExecutionContext& context, const PairsByExpert& pairs, int64_t num_experts,
                  int64_t num_groups, const Work& work) {
  constexpr int64_t kCostOfReading = 2;
  int64_t total = 0;
  for (int64_t e = 0; e < num_experts; ++e) {
    if (pairs.count(e) > 0) total += num_groups * (pairs.count(e) + kCostOfReading);
  }
  const int64_t low = total * context.member() / context.team_size();
  const int64_t high = total * (context.member() + 1) / context.team_size();
  int64_t begin = 0;
  for (int64_t e = 0; e < num_experts && begin < high; ++e) {
    if (pairs.count(e) == 0) continue;
    const int64_t cost = pairs.count(e) + kCostOfReading;
    const int64_t first = ceil_div(low - begin, cost);
    const int64_t bound = ceil_div(high - begin, cost);
    const int64_t last = bound < num_groups ? bound : num_groups;
    if (first < last) work(e, first, last);
    begin += num_groups * cost;
  }
}

template <typename Product>
class Moe {
 public:
  Moe(const ExecutionContext& context, const MoeArgs& args)
      : context_(context),
        args_(args),
        topk_(args.routing.experts_per_token),
        num_pairs_(args.x.rows * topk_),
        num_experts_(static_cast<int64_t>(args.experts.size())),
        intermediate_(args.experts[0].gate.rows),
        hidden_(args.x.cols) {}

  void run() {
    pairs_ = sort_pairs(context_, args_, num_pairs_, num_experts_);
    share_groups(context_, pairs_, num_experts_, panel_blocks(intermediate_),
                 [&](int64_t expert, int64_t first, int64_t last) {
                   for (int64_t group = first; group < last; ++group) middle(expert, group);
                 });
    context_.barrier();
    // A member owns columns of the output, so that it can sum them without waiting.
    const base::IndexRange range = context_.share(num_panels(hidden_));
    for (int64_t panel = range.begin; panel < range.end; panel += kSlabPanels) {
      const int64_t left = range.end - panel;
      output(panel, left < kSlabPanels ? left : kSlabPanels);
    }
    context_.barrier();
  }

 private:
  using Encoder = EncoderOf<Product::kActivation>;

  std::byte* middle_rows() const {
    if (Product::kActivation == ActivationType::kF32) {
      return reinterpret_cast<std::byte*>(args_.gated);
    }
    return static_cast<std::byte*>(args_.encoded);
  }

  // silu(gate) * up of one group of columns for every row of an expert, encoded.
  void middle(int64_t expert, int64_t group) const {
    const MlpWeights& weights = args_.experts[static_cast<size_t>(expert)];
    const int32_t* pairs = pairs_.of(expert);
    const int64_t row_bytes = activation_row_bytes(Product::kActivation, intermediate_);
    alignas(32) float gate[kProductRows * kGroupColumns];
    alignas(32) float up[kProductRows * kGroupColumns];
    for (int64_t done = 0; done < pairs_.count(expert); done += kProductRows) {
      const int64_t left = pairs_.count(expert) - done;
      const int64_t count = left < kProductRows ? left : kProductRows;
      RowList x = rows_of(args_.x);
      x.index = pairs + done;
      x.divisor = topk_;
      const int64_t first = group * kGroupPanels;
      const int64_t panels_left = num_panels(intermediate_) - first;
      const int64_t panels = panels_left < kGroupPanels ? panels_left : kGroupPanels;
      const auto into = [&](float* values) {
        return [values, first](int64_t row, int64_t panel, __m256 eight) {
          _mm256_store_ps(values + row * kGroupColumns + (panel - first) * kPanelRows, eight);
        };
      };
      Product::product(weights.gate, first, panels, x, count, into(gate));
      Product::product(weights.up, first, panels, x, count, into(up));
      for (int64_t row = 0; row < count; ++row) {
        // Columns past the last are zeros of panels that were filled up, or have no panel.
        __m256 values[kGroupPanels] = {};
        for (int64_t i = 0; i < panels; ++i) {
          const int64_t at = row * kGroupColumns + i * kPanelRows;
          values[i] = _mm256_mul_ps(silu_lanes(_mm256_load_ps(gate + at)), _mm256_load_ps(up + at));
        }
        store_middle(values, group, middle_rows() + pairs[done + row] * row_bytes);
      }
    }
  }

  // A block of an encoded row; one that the row has only in part must not write past it.
  void store_middle(const __m256 (&values)[kGroupPanels], int64_t group, std::byte* row) const {
    std::byte* out = row + group * Encoder::kBlockBytes;
    const int64_t columns = intermediate_ - group * kGroupColumns;
    if (columns >= kGroupColumns || Product::kActivation == ActivationType::kInt8) {
      Encoder::store(values, out);
      return;
    }
    alignas(32) std::byte block[Encoder::kBlockBytes];
    Encoder::store(values, block);
    std::memcpy(out, block, static_cast<size_t>(columns * Encoder::kBlockBytes / kGroupColumns));
  }

  // Columns of `count` panels of the output: every expert's rows first, then each row's sum in the
  // order of its routing.
  void output(int64_t panel, int64_t count) const {
    float* sums = args_.sums + context_.member() * num_pairs_ * kMoeSlabColumns;
    RowList x{.data = middle_rows(),
              .row_bytes = activation_row_bytes(Product::kActivation, intermediate_),
              .index = nullptr,
              .divisor = 1};
    for (int64_t expert = 0; expert < num_experts_; ++expert) {
      const Weight& down = args_.experts[static_cast<size_t>(expert)].down;
      for (int64_t done = 0; done < pairs_.count(expert); done += kProductRows) {
        const int64_t left = pairs_.count(expert) - done;
        const int32_t* pairs = pairs_.of(expert) + done;
        x.index = pairs;
        Product::product(down, panel, count, x, left < kProductRows ? left : kProductRows,
                         [&](int64_t row, int64_t at, __m256 eight) {
                           _mm256_storeu_ps(
                               sums + pairs[row] * kMoeSlabColumns + (at - panel) * kPanelRows,
                               eight);
                         });
      }
    }
    for (int64_t row = 0; row < args_.x.rows; ++row) {
      const float* weights = args_.routing.weights + row * topk_;
      for (int64_t p = 0; p < count; ++p) {
        __m256 total = _mm256_setzero_ps();
        for (int64_t k = 0; k < topk_; ++k) {
          const float* eight = sums + (row * topk_ + k) * kMoeSlabColumns + p * kPanelRows;
          total = _mm256_fmadd_ps(_mm256_broadcast_ss(weights + k), _mm256_loadu_ps(eight), total);
        }
        store_output(total, row, panel + p);
      }
    }
  }

  void store_output(__m256 eight, int64_t row, int64_t panel) const {
    float* out = args_.out + row * hidden_ + panel * kPanelRows;
    const int64_t columns = hidden_ - panel * kPanelRows;
    if (columns >= kPanelRows) {
      _mm256_storeu_ps(out, eight);
      return;
    }
    alignas(32) float values[kPanelRows];
    _mm256_store_ps(values, eight);
    std::memcpy(out, values, static_cast<size_t>(columns) * sizeof(float));
  }

  const ExecutionContext& context_;
  const MoeArgs& args_;
  const int64_t topk_;
  const int64_t num_pairs_;
  const int64_t num_experts_;
  const int64_t intermediate_;
  const int64_t hidden_;
  PairsByExpert pairs_ = {};
};

template <typename Product>
void moe(const ExecutionContext& context, const MoeArgs& args) {
  Moe<Product>(context, args).run();
}

}  // namespace

void moe_f32_f32_avx2(const ExecutionContext& context, const MoeArgs& args) {
  moe<FloatProduct<F32Panel, F32Input>>(context, args);
}
void moe_f32_bf16_avx2(const ExecutionContext& context, const MoeArgs& args) {
  moe<FloatProduct<F32Panel, BF16Input>>(context, args);
}
void moe_f16_f32_avx2(const ExecutionContext& context, const MoeArgs& args) {
  moe<FloatProduct<F16Panel, F32Input>>(context, args);
}
void moe_f16_bf16_avx2(const ExecutionContext& context, const MoeArgs& args) {
  moe<FloatProduct<F16Panel, BF16Input>>(context, args);
}
void moe_bf16_f32_avx2(const ExecutionContext& context, const MoeArgs& args) {
  moe<FloatProduct<BF16Panel, F32Input>>(context, args);
}
void moe_bf16_bf16_avx2(const ExecutionContext& context, const MoeArgs& args) {
  moe<FloatProduct<BF16Panel, BF16Input>>(context, args);
}
void moe_fp8_block_f32_avx2(const ExecutionContext& context, const MoeArgs& args) {
  moe<FloatProduct<Fp8BlockPanel, F32Input>>(context, args);
}
void moe_fp8_block_bf16_avx2(const ExecutionContext& context, const MoeArgs& args) {
  moe<FloatProduct<Fp8BlockPanel, BF16Input>>(context, args);
}
void moe_fp8_channel_f32_avx2(const ExecutionContext& context, const MoeArgs& args) {
  moe<FloatProduct<Fp8ChannelPanel, F32Input>>(context, args);
}
void moe_fp8_channel_bf16_avx2(const ExecutionContext& context, const MoeArgs& args) {
  moe<FloatProduct<Fp8ChannelPanel, BF16Input>>(context, args);
}
void moe_mxfp4_f32_avx2(const ExecutionContext& context, const MoeArgs& args) {
  moe<FloatProduct<Mxfp4Panel, F32Input>>(context, args);
}
void moe_mxfp4_bf16_avx2(const ExecutionContext& context, const MoeArgs& args) {
  moe<FloatProduct<Mxfp4Panel, BF16Input>>(context, args);
}
void moe_mxfp4_int8_avx2(const ExecutionContext& context, const MoeArgs& args) {
  moe<IntegerProduct>(context, args);
}

}  // namespace ingot::kernels
