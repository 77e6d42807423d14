// What a step does beside matrices and attention, one row of tokens at a time and one thread, for
// each instruction set, at the shapes of GLM-4.7-Flash and GLM-5.2. Rows are in the nearer caches,
// as they are in a step. The column to read is the thread's processor time.

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/random.h"
#include "base/thread_team.h"
#include "kernels/activations.h"
#include "kernels/embed.h"
#include "kernels/index_select.h"
#include "kernels/latent_cache.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "kernels/route.h"
#include "kernels/row_operations.h"

namespace ingot::kernels {
namespace {

struct Shape {
  std::string model;
  int64_t hidden;
  int64_t experts;
  int64_t experts_per_token;
  int64_t heads;
  int64_t nope_dim;
  int64_t index_heads;  // 0: none
};
const Shape kShapes[] = {
    {.model = "GLM-4.7-Flash",
     .hidden = 2048,
     .experts = 64,
     .experts_per_token = 4,
     .heads = 20,
     .nope_dim = 192,
     .index_heads = 0},
    {.model = "GLM-5.2",
     .hidden = 6144,
     .experts = 256,
     .experts_per_token = 8,
     .heads = 64,
     .nope_dim = 192,
     .index_heads = 32},
};
constexpr int64_t kRopeDim = 64;
constexpr int64_t kLatentDim = 512;
constexpr int64_t kIndexDim = 128;
constexpr int64_t kTopk = 2048;

std::vector<float> normal_values(int64_t count) {
  const base::RandomStream random = base::random_stream(1, "values");
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(random.normal(static_cast<uint64_t>(i))));
  }
  return values;
}

// One row at `position`, whose pages follow each other.
class OneRow {
 public:
  explicit OneRow(int32_t position) : position_(position) {
    for (int32_t page = 0; page <= position / kPageTokens; ++page) pages_.push_back(page);
    table_ = pages_.data();
  }
  OneRow(const OneRow&) = delete;
  OneRow& operator=(const OneRow&) = delete;

  BatchRows rows() const {
    return {.count = 1, .positions = &position_, .page_tables = &table_, .writes = &writes_};
  }
  int64_t cache_rows() const { return static_cast<int64_t>(pages_.size()) * kPageTokens; }

 private:
  int32_t position_;
  std::vector<int32_t> pages_;
  const int32_t* table_;
  uint8_t writes_ = 1;
};

using Operation = std::function<void(const ExecutionContext& context)>;

void measure(const std::string& name, const RowOperations& rows, Operation operation) {
  benchmark::RegisterBenchmark((name + "/" + std::string(kernels::name(rows.target))).c_str(),
                               [&rows, operation = std::move(operation)](benchmark::State& state) {
                                 base::ThreadTeam team(1);
                                 const ExecutionContext context(team, 0, rows);
                                 for (auto _ : state) {
                                   operation(context);
                                   benchmark::ClobberMemory();
                                 }
                               });
}

void measure_norms(const Shape& shape, const RowOperations& rows) {
  const auto weight = normal_values(shape.hidden);
  std::vector<float> out(weight.size());
  measure(shape.model + "/rms_norm", rows, [=](const ExecutionContext& context) mutable {
    rms_norm(context, {.x = weight.data(),
                       .weight = weight.data(),
                       .out = out.data(),
                       .source = nullptr,
                       .rows = 1,
                       .cols = shape.hidden,
                       .eps = 1e-5f});
  });
  measure(shape.model + "/add", rows, [=](const ExecutionContext& context) mutable {
    add(context, out.data(), weight.data(), shape.hidden);
  });
  const std::vector<tensor::BFloat16> table(weight.size(), tensor::to_bf16(0.5f));
  measure(shape.model + "/embed", rows, [=](const ExecutionContext& context) mutable {
    const int32_t token = 0;
    embed(context,
          {.format = WeightFormat::kBF16, .rows = 1, .cols = shape.hidden, .data = table.data()},
          &token, 1, out.data());
  });
}

void measure_activations(const Shape& shape, const RowOperations& rows) {
  const auto values = normal_values(shape.hidden);
  std::vector<std::byte> buffer(
      static_cast<size_t>(encoded_row_bytes_max(static_cast<int64_t>(values.size()))));
  for (const ActivationType type : {ActivationType::kBF16, ActivationType::kInt8}) {
    const std::string of_type = "_" + std::string(name(type));
    measure(shape.model + "/encode" + of_type, rows, [=](const ExecutionContext& context) mutable {
      encode_activations(context, values.data(), 1, shape.hidden, type, buffer.data());
    });
    measure(shape.model + "/silu_multiply" + of_type, rows,
            [=, gate = values](const ExecutionContext& context) mutable {
              silu_multiply(context, gate.data(), values.data(), 1, shape.hidden, type,
                            buffer.data());
            });
  }
}

void measure_rope(const Shape& shape, const RowOperations& rows) {
  measure(shape.model + "/rope_table", rows,
          [row = std::make_shared<OneRow>(30'000), frequencies = std::vector<double>(32, 0.37),
           out = std::vector<float>(kRopeDim)](const ExecutionContext& context) mutable {
            rope_table(context, row->rows(), frequencies.data(), 1, kRopeDim, out.data());
          });
  const int64_t width = kLatentDim + kRopeDim;
  for (const CacheType type : {CacheType::kBF16, CacheType::kFp8}) {
    measure(shape.model + "/rope_and_cache_write_" + std::string(name(type)), rows,
            [=, row = std::make_shared<OneRow>(15), kv = normal_values(width),
             q = normal_values(shape.heads * (shape.nope_dim + kRopeDim)),
             scratch = std::vector<float>(static_cast<size_t>(width)),
             cache = std::vector<std::byte>(static_cast<size_t>(16 * width * 4)),
             table = std::vector<float>(kRopeDim, std::sqrt(0.5f))](
                const ExecutionContext& context) mutable {
              rope_and_cache_write(context, {.rows = row->rows(),
                                             .rope = table.data(),
                                             .style = RopeStyle::kInterleaved,
                                             .q = q.data(),
                                             .heads = shape.heads,
                                             .nope_dim = shape.nope_dim,
                                             .rope_dim = kRopeDim,
                                             .kv = kv.data(),
                                             .norm_weight = kv.data(),
                                             .eps = 1e-5f,
                                             .latent_dim = kLatentDim,
                                             .latents = {.type = type,
                                                         .data = cache.data(),
                                                         .width = width,
                                                         .latent_dim = kLatentDim},
                                             .scratch = scratch.data()});
            });
  }
}

// Without the router's matrix: logits are what is measured from.
void measure_route(const Shape& shape, const RowOperations& rows) {
  const auto values = normal_values(shape.experts);
  measure(shape.model + "/route", rows,
          [=, choices = values, affinities = values,
           experts = std::vector<int32_t>(static_cast<size_t>(shape.experts_per_token)),
           weights = std::vector<float>(static_cast<size_t>(shape.experts_per_token))](
              const ExecutionContext& context) mutable {
            route(context, {.x = values.data(),
                            .rows = 1,
                            .gate = {.rows = shape.experts, .cols = shape.hidden},
                            .linear = [](const ExecutionContext&, const LinearArgs&) {},
                            .bias = values.data(),
                            .num_groups = 1,
                            .topk_groups = 1,
                            .normalize = true,
                            .scale = 2.5f,
                            .choices = choices.data(),
                            .affinities = affinities.data(),
                            .routing = {.experts_per_token = shape.experts_per_token,
                                        .experts = experts.data(),
                                        .weights = weights.data()}});
          });
}

void measure_index_key(const Shape& shape, const RowOperations& rows) {
  measure(
      shape.model + "/index_key_write", rows,
      [=, row = std::make_shared<OneRow>(15), q = normal_values(shape.index_heads * kIndexDim),
       key = normal_values(kIndexDim), scratch = normal_values(kIndexDim),
       cache = std::vector<std::byte>(16 * kIndexDim * 2),
       table =
           std::vector<float>(kRopeDim, std::sqrt(0.5f))](const ExecutionContext& context) mutable {
        index_key_write(
            context, {.rows = row->rows(),
                      .rope = table.data(),
                      .style = RopeStyle::kInterleaved,
                      .rope_dim = kRopeDim,
                      .q = q.data(),
                      .heads = shape.index_heads,
                      .dim = kIndexDim,
                      .key = key.data(),
                      .norm_weight = key.data(),
                      .norm_bias = key.data(),
                      .keys = {.type = CacheType::kBF16, .data = cache.data(), .width = kIndexDim},
                      .scratch = scratch.data()});
      });
}

void measure_index_select(const Shape& shape, const RowOperations& rows, int64_t context_tokens) {
  const std::string keys = std::to_string(context_tokens / 1024) + "k";
  const auto row = std::make_shared<OneRow>(static_cast<int32_t>(context_tokens - 1));
  std::vector<tensor::BFloat16> cache;
  for (const float value : normal_values(row->cache_rows() * kIndexDim)) {
    cache.push_back(tensor::to_bf16(value));
  }
  const auto scores = normal_values(context_tokens);
  std::vector<uint64_t> order(scores.size());
  std::vector<int32_t> positions(kTopk);
  const Target target = rows.target;
  for (const IndexSelectVariant& variant : index_select_variants()) {
    if (variant.target != target || variant.kind.keys != CacheType::kBF16) continue;
    measure(shape.model + "/index_select_" + keys, rows,
            [=, q = normal_values(shape.index_heads * kIndexDim),
             gates = normal_values(shape.index_heads),
             all_scores = std::vector<float>(scores.size() * kIndexRowsPerPass)](
                const ExecutionContext& context) mutable {
              variant.run(
                  context,
                  {.rows = row->rows(),
                   .q = q.data(),
                   .gates = gates.data(),
                   .heads = shape.index_heads,
                   .dim = kIndexDim,
                   .keys = {.type = CacheType::kBF16, .data = cache.data(), .width = kIndexDim},
                   .scores = all_scores.data(),
                   .order = order.data(),
                   .context_max = context_tokens,
                   .selection = {.topk = kTopk, .positions = positions.data()}});
            });
  }
  measure(shape.model + "/select_topk_" + keys, rows, [=](const ExecutionContext& context) mutable {
    context.rows().select_topk(scores.data(), context_tokens, kTopk, order.data(),
                               positions.data());
  });
}

}  // namespace

void measure_all() {
  for (const RowOperations& rows : all_row_operations()) {
    if (rows.target > detect_target()) continue;
    for (const Shape& shape : kShapes) {
      measure_norms(shape, rows);
      measure_activations(shape, rows);
      measure_rope(shape, rows);
      measure_route(shape, rows);
      if (shape.index_heads == 0) continue;
      measure_index_key(shape, rows);
      for (const int64_t tokens : {32 * 1024, 128 * 1024}) {
        measure_index_select(shape, rows, tokens);
      }
    }
  }
}

}  // namespace ingot::kernels

int main(int argc, char** argv) {
  ingot::kernels::measure_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
