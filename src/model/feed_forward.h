#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"
#include "kernels/execution_context.h"
#include "model/kernel_selector.h"
#include "model/model_config.h"
#include "model/weights.h"
#include "model/workspace.h"

namespace ingot::model {

// down (silu(gate x) * up x), as dense layers and shared experts compute it.
class Mlp {
 public:
  // `what` names it in errors.
  static base::Result<Mlp> create(std::string_view what, const MlpWeights& weights,
                                  KernelSelector& selector);

  // out = or += mlp(x); out [rows, hidden]. Collective.
  void run(const kernels::ExecutionContext& context, int64_t rows, EncodedRows& x, float* out,
           kernels::Output output, Workspace& workspace) const;

 private:
  Mlp() = default;

  Linear gate_;
  Linear up_;
  Linear down_;
};

// A layer's feed-forward half: one MLP in dense layers, routed experts and a shared one in others.
class FeedForward {
 public:
  static base::Result<FeedForward> create(const ModelConfig& config, const LayerWeights& weights,
                                          KernelSelector& selector);

  bool has_experts() const { return !dense_.has_value(); }

  // workspace.hidden += feed_forward(workspace.normed) for `rows` rows. Collective.
  void run(const kernels::ExecutionContext& context, int64_t rows, Workspace& workspace) const;

 private:
  FeedForward() = default;
  void run_experts(const kernels::ExecutionContext& context, int64_t rows, EncodedRows& x,
                   Workspace& workspace) const;

  const ModelConfig* config_ = nullptr;
  std::optional<Mlp> dense_;  // or the following
  Linear router_;
  const float* router_bias_ = nullptr;
  std::span<const MlpWeights> experts_;
  KernelSelector::Moe moe_;
  std::optional<Mlp> shared_;
};

}  // namespace ingot::model
