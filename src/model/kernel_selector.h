#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kernels/activations.h"
#include "kernels/index_select.h"
#include "kernels/ledger.h"
#include "kernels/linear.h"
#include "kernels/mla_attend.h"
#include "kernels/moe.h"
#include "model/activation_choice.h"

namespace ingot::model {

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
  // Bytes of buffer that `rows` of `cols` need; smaller rows need no more.
  static int64_t buffer_bytes(int64_t rows, int64_t cols);

  // x [rows, cols]; `buffer` is aligned like pieces of an arena.
  EncodedRows(const kernels::ExecutionContext& context, const float* x, int64_t rows, int64_t cols,
              std::byte* buffer)
      : context_(context), x_(x), rows_(rows), cols_(cols), buffer_(buffer) {}

  const kernels::Activations& as(kernels::ActivationType type);

 private:
  const kernels::ExecutionContext& context_;
  const float* x_;
  int64_t rows_;
  int64_t cols_;
  std::byte* buffer_;                            // the bf16 rows, then the int8 rows
  std::array<kernels::Activations, 3> encoded_;  // by type; without data until wanted
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

  // The types chosen so far for linear layers and experts, "bf16" or "bf16, int8".
  std::string activations() const;

  kernels::Ledger take_ledger() { return std::move(ledger_); }

 private:
  base::Result<Linear> select_linear(std::string_view what, const kernels::Weight& weight,
                                     kernels::ActivationType activation);

  kernels::Target allowed_;
  ActivationChoice activations_;
  kernels::CacheType cache_;
  kernels::Ledger ledger_;
  std::set<kernels::ActivationType> used_;
};

}  // namespace ingot::model
