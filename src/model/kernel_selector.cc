#include "model/kernel_selector.h"

#include <fmt/format.h>

#include "base/arena.h"
#include "base/check.h"
#include "kernels/panels.h"

namespace ingot::model {
namespace {

using base::error;
using kernels::ActivationType;
using kernels::LedgerEntry;
using kernels::Weight;
using kernels::WeightFormat;

double weight_bytes(const Weight& weight) {
  return static_cast<double>(kernels::held_data_bytes(weight) + kernels::held_scale_bytes(weight));
}

double multiplications(const Weight& weight) {
  return static_cast<double>(weight.rows) * static_cast<double>(weight.cols);
}

uint64_t bf16_bytes(int64_t rows, int64_t cols) {
  const int64_t bytes = rows * kernels::activation_row_bytes(ActivationType::kBF16, cols);
  return base::Arena::padded(static_cast<uint64_t>(bytes));
}

bool same_kind(const Weight& a, const Weight& b) {
  return a.format == b.format && a.layout == b.layout && a.rows == b.rows && a.cols == b.cols;
}

}  // namespace

int64_t EncodedRows::buffer_bytes(int64_t rows, int64_t cols) {
  return static_cast<int64_t>(bf16_bytes(rows, cols)) +
         rows * kernels::activation_row_bytes(ActivationType::kInt8, cols);
}

const kernels::Activations& EncodedRows::as(ActivationType type) {
  kernels::Activations& encoded = encoded_[static_cast<size_t>(type)];
  if (encoded.data == nullptr) {
    std::byte* out = buffer_ + (type == ActivationType::kInt8 ? bf16_bytes(rows_, cols_) : 0);
    encoded = kernels::encode_activations(context_, x_, rows_, cols_, type, out);
  }
  return encoded;
}

std::string KernelSelector::activations() const {
  std::string list;
  for (const ActivationType type : used_) {
    if (!list.empty()) list += ", ";
    list += name(type);
  }
  return list;
}

base::Result<Linear> KernelSelector::linear(std::string_view what, const Weight& weight) {
  const ActivationType activation = activation_type(activations_, weight.format);
  used_.insert(activation);
  return select_linear(what, weight, activation);
}

base::Result<Linear> KernelSelector::linear_f32(std::string_view what, const Weight& weight) {
  return select_linear(what, weight, ActivationType::kF32);
}

base::Result<Linear> KernelSelector::select_linear(std::string_view what, const Weight& weight,
                                                   ActivationType activation) {
  CHECK(weight.present());
  LedgerEntry entry{.operation = "linear",
                    .formats = fmt::format("{} x {}", name(weight.format), name(activation)),
                    .shape = fmt::format("[{}, {}]", weight.rows, weight.cols),
                    .bytes_per_token = weight_bytes(weight),
                    .macs_per_token = multiplications(weight)};
  const auto* variant = kernels::select_variant(
      kernels::linear_variants(),
      {.kind = {weight.format, activation, weight.layout}, .out = weight.rows, .in = weight.cols},
      allowed_, entry);
  if (variant == nullptr) {
    return error(
        "{}: no kernel multiplies {} weights with {} activations; choose another "
        "--activations",
        what, name(weight.format), name(activation));
  }
  ledger_.add(std::move(entry));
  return Linear{.weight = weight, .activation = activation, .function = variant->run};
}

base::Result<KernelSelector::Moe> KernelSelector::moe(std::span<const kernels::MlpWeights> experts,
                                                      int64_t experts_per_token) {
  const kernels::MlpWeights& first = experts.front();
  for (const kernels::MlpWeights& expert : experts) {
    if (!same_kind(expert.gate, first.gate) || !same_kind(expert.up, first.gate) ||
        !same_kind(expert.down, first.down) || expert.down.format != first.gate.format) {
      return error(
          "routed experts: the experts of one layer are stored in different formats; "
          "quantize them alike");
    }
  }
  const WeightFormat format = first.gate.format;
  const ActivationType activation = activation_type(activations_, format);
  used_.insert(activation);
  const double expert_bytes = 2 * weight_bytes(first.gate) + weight_bytes(first.down);
  LedgerEntry entry{
      .operation = "moe",
      .formats = fmt::format("{} x {}", name(format), name(activation)),
      .shape = fmt::format("{} x [{}, {}], top {}", experts.size(), first.gate.rows,
                           first.gate.cols, experts_per_token),
      .bytes_per_token = expert_bytes * static_cast<double>(experts_per_token),
      .macs_per_token = 3 * multiplications(first.gate) * static_cast<double>(experts_per_token)};
  const auto* variant =
      kernels::select_variant(kernels::moe_variants(),
                              {.kind = {format, activation, first.gate.layout},
                               .hidden = first.gate.cols,
                               .intermediate = first.gate.rows,
                               .num_experts = static_cast<int64_t>(experts.size())},
                              allowed_, entry);
  if (variant == nullptr) {
    return error(
        "routed experts: no kernel multiplies {} weights with {} activations; choose "
        "another --activations",
        name(format), name(activation));
  }
  ledger_.add(std::move(entry));
  return Moe{.function = variant->run, .activation = activation};
}

base::Result<kernels::MlaAttendFunction> KernelSelector::mla_attend(const Weight& kv_b,
                                                                    int64_t heads,
                                                                    int64_t rope_dim) {
  LedgerEntry entry{.operation = "mla_attend",
                    .formats = fmt::format("{} x {} cache", name(kv_b.format), name(cache_)),
                    .shape = fmt::format("{} heads x [{} + {}]", heads, kv_b.cols, rope_dim),
                    .bytes_per_token = weight_bytes(kv_b),
                    .macs_per_token = multiplications(kv_b) +
                                      static_cast<double>(heads * (2 * kv_b.cols + rope_dim) *
                                                          kernels::kLedgerKeys)};
  const auto* variant = kernels::select_variant(kernels::mla_attend_variants(),
                                                {.kind = {kv_b.format, cache_},
                                                 .heads = heads,
                                                 .latent_dim = kv_b.cols,
                                                 .rope_dim = rope_dim},
                                                allowed_, entry);
  if (variant == nullptr) {
    return error(
        "attention: no kernel attends with kv_b_proj as {} over a {} cache; choose another "
        "--kv-dtype",
        name(kv_b.format), name(cache_));
  }
  ledger_.add(std::move(entry));
  return variant->run;
}

base::Result<kernels::IndexSelectFunction> KernelSelector::index_select(int64_t heads,
                                                                        int64_t dim) {
  const kernels::CacheType keys = kernels::index_key_type(cache_);
  LedgerEntry entry{.operation = "index_select",
                    .formats = fmt::format("{} cache", name(keys)),
                    .shape = fmt::format("{} heads x {}", heads, dim),
                    .macs_per_token = static_cast<double>(heads * dim * kernels::kLedgerKeys)};
  const auto* variant =
      kernels::select_variant(kernels::index_select_variants(),
                              {.kind = {keys}, .heads = heads, .dim = dim}, allowed_, entry);
  if (variant == nullptr) {
    return error("indexer: no kernel scores keys in a {} cache; choose another --kv-dtype",
                 name(keys));
  }
  ledger_.add(std::move(entry));
  return variant->run;
}

}  // namespace ingot::model
