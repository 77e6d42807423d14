#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "kernels/activations.h"
#include "kernels/index_select.h"
#include "kernels/ledger.h"
#include "kernels/linear.h"
#include "kernels/mla_attend.h"
#include "kernels/moe.h"

namespace ingot::model {

// In what type linear layers multiply: kAuto follows the weight's stored format.
enum class ActivationChoice : uint8_t { kAuto, kF32, kBF16 };

// The type that a choice gives for weights of a format: with kAuto f32 for f32 and f16 weights and
// bf16 for bf16 ones.
kernels::ActivationType activation_type(ActivationChoice choice, kernels::WeightFormat format);

// A weight with the kernel that was chosen for it.
struct Linear {
  kernels::Weight weight;
  kernels::ActivationType activation = kernels::ActivationType::kF32;
  kernels::LinearFunction function = nullptr;

  // y = x W^T or y += x W^T; y [x.rows, out], dense. Collective.
  void operator()(const kernels::ExecutionContext& context, const kernels::Activations& x, float* y,
                  kernels::Output output = kernels::Output::kStore) const {
    function(context,
             {.x = x, .weight = weight, .y = y, .y_stride = weight.rows, .output = output});
  }
};

// Encodes the same rows in the type that each of several linear layers wants, once a type. Lives on
// the stack of one member; all members make the same calls.
class EncodedRows {
 public:
  // x [rows, cols]; `buffer` holds rows x activation_row_bytes of the widest type that is encoded.
  EncodedRows(const kernels::ExecutionContext& context, const float* x, int64_t rows, int64_t cols,
              void* buffer)
      : context_(context), x_(x), rows_(rows), cols_(cols), buffer_(buffer) {}

  const kernels::Activations& as(kernels::ActivationType type);

 private:
  const kernels::ExecutionContext& context_;
  const float* x_;
  int64_t rows_;
  int64_t cols_;
  void* buffer_;
  kernels::Activations f32_;
  kernels::Activations bf16_;
};

// Chooses a variant for every use of an operation while a model is put together, and writes the
// ledger. Errors name the use for which no kernel exists.
class KernelSelector {
 public:
  KernelSelector(kernels::Target allowed, ActivationChoice activations, kernels::CacheType cache)
      : allowed_(allowed), activations_(activations), cache_(cache) {}

  // `what` names the module class for errors ("attention").
  base::Result<Linear> linear(std::string_view what, const kernels::Weight& weight);
  // With f32 activations whatever the choice, as routing needs.
  base::Result<Linear> linear_f32(std::string_view what, const kernels::Weight& weight);

  struct Moe {
    kernels::MoeFunction function = nullptr;
    kernels::ActivationType activation = kernels::ActivationType::kF32;
  };
  base::Result<Moe> moe(std::span<const kernels::MlpWeights> experts, int64_t experts_per_token);

  base::Result<kernels::MlaAttendFunction> mla_attend(const kernels::Weight& kv_b, int64_t heads,
                                                      int64_t rope_dim);
  base::Result<kernels::IndexSelectFunction> index_select(int64_t heads, int64_t dim);

  kernels::Ledger take_ledger() { return std::move(ledger_); }

 private:
  base::Result<Linear> select_linear(std::string_view what, const kernels::Weight& weight,
                                     kernels::ActivationType activation);

  kernels::Target allowed_;
  ActivationChoice activations_;
  kernels::CacheType cache_;
  kernels::Ledger ledger_;
};

}  // namespace ingot::model
