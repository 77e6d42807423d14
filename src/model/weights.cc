#include "model/weights.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "base/check.h"
#include "kernels/dequantize.h"
#include "kernels/linear.h"
#include "kernels/panels.h"
#include "tensor/float16.h"

namespace ingot::model {
namespace {

using kernels::WeightFormat;

// Bytes read in one piece, so that the count of bytes done moves inside large tensors too.
constexpr size_t kPieceBytes = 1 << 20;

// Bytes of stored rows that are packed at a time.
constexpr int64_t kSlabBytes = 4 << 20;

// The MTP layer's copies of embedding and head are never loaded: the main ones serve both.
bool is_loaded(const PlanRow& row, MtpChoice mtp) {
  if (row.parameter.module_class != ModuleClass::kMtp) return true;
  return mtp == MtpChoice::kLoad && !row.parameter.optional;
}

Weight shape_of(const PlanRow& row, WeightFormat format) {
  const tensor::Shape& shape = row.parameter.shape;
  return {
      .format = format, .rows = shape.rank() == 1 ? 1 : shape[0], .cols = shape[shape.rank() - 1]};
}

uint64_t data_bytes(const Weight& weight) {
  return static_cast<uint64_t>(kernels::held_data_bytes(weight));
}

uint64_t scale_bytes(const Weight& weight) {
  return static_cast<uint64_t>(kernels::held_scale_bytes(weight));
}

// One parameter on its way to where it will stay.
struct Destination {
  const PlanRow* row;
  Weight held;
  std::byte* data;
  std::byte* scales;
};

// Bytes [first, first + count) of a tensor.
base::Status read_bytes(const tensor::Checkpoint& checkpoint, const tensor::TensorInfo& source,
                        uint64_t first, uint64_t count, std::byte* out,
                        std::atomic<uint64_t>& done_bytes) {
  for (uint64_t done = 0; done < count; done += kPieceBytes) {
    const size_t length = std::min<uint64_t>(kPieceBytes, count - done);
    TRY(checkpoint.read(source, first + done, {out + done, length}));
    done_bytes += length;
  }
  return {};
}

base::Status read_whole(const tensor::Checkpoint& checkpoint, const tensor::TensorInfo& source,
                        std::byte* out, std::atomic<uint64_t>& done_bytes) {
  TRY(read_bytes(checkpoint, source, 0, source.size_bytes, out, done_bytes));
  checkpoint.drop_from_page_cache(source);
  return {};
}

base::Status not_finite(const tensor::Checkpoint& checkpoint, const tensor::TensorInfo& tensor,
                        int64_t index) {
  return base::error(
      "{}: tensor {} has NaN or infinity at element {}; the file is damaged or was "
      "exported wrong, get it again",
      checkpoint.path_of(tensor).string(), tensor.name, index);
}

// Values from element `first` on.
base::Status check_values(const tensor::Checkpoint& checkpoint, const tensor::TensorInfo& tensor,
                          WeightFormat format, const void* values, int64_t first, int64_t count) {
  const auto index = find_non_finite(format, values, count);
  return index ? not_finite(checkpoint, tensor, first + *index) : base::Status();
}

base::Status check_scales(const tensor::Checkpoint& checkpoint, const tensor::TensorInfo& tensor,
                          WeightFormat format, const void* scales) {
  const int64_t count = tensor.shape.num_elements().value();
  const auto index = find_non_finite_scale(format, scales, count);
  return index ? not_finite(checkpoint, tensor, *index) : base::Status();
}

base::Status check_finite(const tensor::Checkpoint& checkpoint, const StoredTensor& stored,
                          const Weight& weight) {
  TRY(check_values(checkpoint, *stored.data, weight.format, weight.data, 0,
                   weight.rows * weight.cols));
  if (weight.scales == nullptr) return {};
  return check_scales(checkpoint, *stored.scales, weight.format, weight.scales);
}

// Reads a parameter that is held as stored.
base::Status read_stored(const tensor::Checkpoint& checkpoint, const Destination& destination,
                         std::atomic<uint64_t>& done_bytes) {
  const StoredTensor& stored = destination.row->stored;
  TRY(read_whole(checkpoint, *stored.data, destination.data, done_bytes));
  if (stored.scales != nullptr) {
    TRY(read_whole(checkpoint, *stored.scales, destination.scales, done_bytes));
  }
  return check_finite(checkpoint, stored, destination.held);
}

// Reads a parameter that is held in panels, some rows at a time.
base::Status read_packed(const tensor::Checkpoint& checkpoint, const Destination& destination,
                         std::atomic<uint64_t>& done_bytes) {
  const StoredTensor& stored = destination.row->stored;
  const Weight& held = destination.held;
  if (stored.scales != nullptr) {
    std::vector<std::byte> scales(stored.scales->size_bytes);
    TRY(read_whole(checkpoint, *stored.scales, scales.data(), done_bytes));
    TRY(check_scales(checkpoint, *stored.scales, held.format, scales.data()));
    kernels::pack_scales(scales.data(), held, destination.scales);
  }
  const int64_t row_bytes = kernels::weight_data_bytes(held.format, 1, held.cols);
  const int64_t rows_at_once = std::max<int64_t>(kSlabBytes / row_bytes, kernels::kPanelRows) /
                               kernels::kPanelRows * kernels::kPanelRows;
  std::vector<std::byte> slab(static_cast<size_t>(std::min(rows_at_once, held.rows) * row_bytes));
  for (int64_t row = 0; row < held.rows; row += rows_at_once) {
    const int64_t count = std::min(rows_at_once, held.rows - row);
    TRY(read_bytes(checkpoint, *stored.data, static_cast<uint64_t>(row * row_bytes),
                   static_cast<uint64_t>(count * row_bytes), slab.data(), done_bytes));
    TRY(check_values(checkpoint, *stored.data, held.format, slab.data(), row * held.cols,
                     count * held.cols));
    kernels::pack_rows(slab.data(), row, count, held, destination.data);
  }
  checkpoint.drop_from_page_cache(*stored.data);
  return {};
}

// Reads a parameter that is held in another format than stored.
base::Status read_converted(const tensor::Checkpoint& checkpoint, const Destination& destination,
                            std::atomic<uint64_t>& done_bytes) {
  const StoredTensor& stored = destination.row->stored;
  CHECK(destination.held.layout == kernels::WeightLayout::kRows);
  Weight weight = shape_of(*destination.row, stored.format);
  std::vector<std::byte> raw(data_bytes(weight) + scale_bytes(weight));
  TRY(read_whole(checkpoint, *stored.data, raw.data(), done_bytes));
  weight.data = raw.data();
  if (stored.scales != nullptr) {
    std::byte* scales = raw.data() + data_bytes(weight);
    TRY(read_whole(checkpoint, *stored.scales, scales, done_bytes));
    weight.scales = scales;
  }
  TRY(check_finite(checkpoint, stored, weight));
  if (destination.held.format == WeightFormat::kF32) {
    kernels::dequantize(weight, reinterpret_cast<float*>(destination.data));
    return {};
  }
  CHECK(destination.held.format == WeightFormat::kBF16);
  kernels::dequantize(weight, reinterpret_cast<tensor::BFloat16*>(destination.data));
  // A product may be too large.
  return check_values(checkpoint, *stored.data, destination.held.format, destination.data, 0,
                      weight.rows * weight.cols);
}

base::Status read_parameter(const tensor::Checkpoint& checkpoint, const Destination& destination,
                            std::atomic<uint64_t>& done_bytes) {
  if (destination.held.format != destination.row->stored.format) {
    return read_converted(checkpoint, destination, done_bytes);
  }
  if (destination.held.layout == kernels::WeightLayout::kPanels8) {
    return read_packed(checkpoint, destination, done_bytes);
  }
  return read_stored(checkpoint, destination, done_bytes);
}

// Reads all tensors on all members of the team; the first error in plan order wins.
base::Status read_all(const tensor::Checkpoint& checkpoint,
                      const std::vector<Destination>& destinations, uint64_t total_bytes,
                      base::ThreadTeam& team, const base::Clock& clock) {
  base::Progress progress("loading", total_bytes, base::Progress::Unit::kBytes, clock);
  std::atomic<uint64_t> done_bytes{0};
  std::atomic<size_t> next{0};
  std::mutex mutex;
  size_t failed_index = destinations.size();
  base::Error failure;
  team.run([&](int member) {
    for (size_t i = next++; i < destinations.size(); i = next++) {
      const base::Status status = read_parameter(checkpoint, destinations[i], done_bytes);
      if (!status) {
        const std::scoped_lock lock(mutex);
        if (i < failed_index) {
          failed_index = i;
          failure = status.error();
        }
        next = destinations.size();
      }
      if (member == 0) progress.update(done_bytes);
    }
  });
  if (failed_index < destinations.size()) return std::unexpected(failure);
  return {};
}

// Index of the first word that has all bits of `mask`.
template <typename Word>
std::optional<int64_t> find_all_ones(const void* data, int64_t count, Word mask) {
  const auto* bytes = static_cast<const std::byte*>(data);
  const auto all_ones = [&](int64_t i) {
    Word word;
    std::memcpy(&word, bytes + static_cast<size_t>(i) * sizeof(Word), sizeof(Word));
    return (word & mask) == mask;
  };
  constexpr int64_t kBlock = 1024;
  for (int64_t first = 0; first < count; first += kBlock) {
    const int64_t last = std::min(first + kBlock, count);
    bool found = false;
    for (int64_t i = first; i < last; ++i) found |= all_ones(i);
    for (int64_t i = first; found && i < last; ++i) {
      if (all_ones(i)) return i;
    }
  }
  return std::nullopt;
}

// Where a parameter belongs among those of one kind; null when it is of another kind.
Weight* mtp_slot(MtpWeights& mtp, Role role) {
  switch (role) {
    case Role::kMtpEmbeddingNorm:
      return &mtp.embedding_norm;
    case Role::kMtpHiddenNorm:
      return &mtp.hidden_norm;
    case Role::kMtpProjection:
      return &mtp.projection;
    case Role::kMtpHeadNorm:
      return &mtp.head_norm;
    default:
      return nullptr;
  }
}

Weight* attention_slot(LayerWeights& layer, Role role) {
  AttentionWeights& attention = layer.attention;
  switch (role) {
    case Role::kInputNorm:
      return &layer.input_norm;
    case Role::kPostAttentionNorm:
      return &layer.post_attention_norm;
    case Role::kQA:
      return &attention.q_a;
    case Role::kQANorm:
      return &attention.q_a_norm;
    case Role::kQB:
      return &attention.q_b;
    case Role::kKvA:
      return &attention.kv_a;
    case Role::kKvANorm:
      return &attention.kv_a_norm;
    case Role::kKvB:
      return &attention.kv_b;
    case Role::kO:
      return &attention.o;
    case Role::kIndexQB:
      return &attention.indexer.q_b;
    case Role::kIndexK:
      return &attention.indexer.k;
    case Role::kIndexKNormWeight:
      return &attention.indexer.k_norm;
    case Role::kIndexKNormBias:
      return &attention.indexer.k_norm_bias;
    case Role::kIndexGates:
      return &attention.indexer.gates;
    default:
      return nullptr;
  }
}

Weight* feed_forward_slot(LayerWeights& layer, const Parameter& parameter) {
  const auto expert = [&]() -> MlpWeights& {
    const auto number = static_cast<size_t>(parameter.expert);
    if (layer.experts.size() <= number) layer.experts.resize(number + 1);
    return layer.experts[number];
  };
  switch (parameter.role) {
    case Role::kDenseGate:
      return &layer.dense.gate;
    case Role::kDenseUp:
      return &layer.dense.up;
    case Role::kDenseDown:
      return &layer.dense.down;
    case Role::kRouter:
      return &layer.router;
    case Role::kRouterBias:
      return &layer.router_bias;
    case Role::kExpertGate:
      return &expert().gate;
    case Role::kExpertUp:
      return &expert().up;
    case Role::kExpertDown:
      return &expert().down;
    case Role::kSharedGate:
      return &layer.shared.gate;
    case Role::kSharedUp:
      return &layer.shared.up;
    case Role::kSharedDown:
      return &layer.shared.down;
    default:
      return nullptr;
  }
}

}  // namespace

WeightFormat held_format(const PlanRow& row) {
  if (row.parameter.shape.rank() == 1) return WeightFormat::kF32;
  const bool kv_b = row.parameter.role == Role::kKvB;
  return kv_b && kernels::is_quantized(row.stored.format) ? WeightFormat::kBF16 : row.stored.format;
}

kernels::WeightLayout held_layout(const PlanRow& row, const HeldFor& held_for) {
  const Role role = row.parameter.role;
  const tensor::Shape& shape = row.parameter.shape;
  const bool is_multiplied = shape.rank() == 2 && role != Role::kEmbedding && role != Role::kKvB;
  if (!is_multiplied) return kernels::WeightLayout::kRows;
  const WeightFormat format = held_format(row);
  const kernels::ActivationType activation = role == Role::kRouter
                                                 ? kernels::ActivationType::kF32
                                                 : activation_type(held_for.activations, format);
  return kernels::fastest_layout(format, activation, held_for.target);
}

std::optional<int64_t> find_non_finite(WeightFormat format, const void* data, int64_t count) {
  switch (format) {
    case WeightFormat::kF32:
      return find_all_ones<uint32_t>(data, count, 0x7F800000);
    case WeightFormat::kF16:
      return find_all_ones<uint16_t>(data, count, 0x7C00);
    case WeightFormat::kBF16:
      return find_all_ones<uint16_t>(data, count, 0x7F80);
    case WeightFormat::kFp8Block:
    case WeightFormat::kFp8Channel:
      return find_all_ones<uint8_t>(data, count, 0x7F);
    case WeightFormat::kMxfp4:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<int64_t> find_non_finite_scale(WeightFormat format, const void* scales,
                                             int64_t count) {
  if (format == WeightFormat::kMxfp4) return find_all_ones<uint8_t>(scales, count, 0xFF);
  return find_non_finite(WeightFormat::kF32, scales, count);
}

base::Result<Weights> Weights::shapes_of(const ModelConfig& config, const LoadPlan& plan,
                                         MtpChoice mtp, const HeldFor& held_for) {
  TRY(plan.check());
  Weights weights;
  weights.layers_.resize(static_cast<size_t>(config.num_hidden_layers));
  if (mtp == MtpChoice::kLoad) {
    CHECK(plan.has_mtp);
    weights.mtp_.emplace();
  }
  for (const PlanRow& row : plan.rows) {
    if (!is_loaded(row, mtp)) continue;
    Weight& weight = weights.slot(row.parameter);
    weight = shape_of(row, held_format(row));
    weight.layout = held_layout(row, held_for);
  }
  return weights;
}

base::Result<Weights> Weights::load(const ModelConfig& config, const LoadPlan& plan, MtpChoice mtp,
                                    const HeldFor& held_for, const tensor::Checkpoint& checkpoint,
                                    base::ThreadTeam& team, const base::Clock& clock) {
  Weights weights = TRY(shapes_of(config, plan, mtp, held_for));
  uint64_t capacity_bytes = 0;
  uint64_t source_bytes = 0;
  for (const PlanRow& row : plan.rows) {
    if (!is_loaded(row, mtp)) continue;
    const Weight& weight = weights.slot(row.parameter);
    capacity_bytes +=
        base::Arena::padded(data_bytes(weight)) + base::Arena::padded(scale_bytes(weight));
    source_bytes += row.stored.size_bytes();
  }
  weights.arena_ = TRY(base::Arena::create(capacity_bytes, "weights"));
  std::vector<Destination> destinations;
  destinations.reserve(plan.rows.size());
  for (const PlanRow& row : plan.rows) {
    if (!is_loaded(row, mtp)) continue;
    Weight& weight = weights.slot(row.parameter);
    std::byte* data = weights.arena_.allocate(data_bytes(weight));
    std::byte* scales =
        scale_bytes(weight) > 0 ? weights.arena_.allocate(scale_bytes(weight)) : nullptr;
    weight.data = data;
    weight.scales = scales;
    destinations.push_back({.row = &row, .held = weight, .data = data, .scales = scales});
  }
  TRY(read_all(checkpoint, destinations, source_bytes, team, clock));
  return weights;
}

Weight& Weights::slot(const Parameter& parameter) {
  if (parameter.role == Role::kEmbedding) return embedding_;
  if (parameter.role == Role::kFinalNorm) return final_norm_;
  if (parameter.role == Role::kLmHead) return lm_head_;
  if (Weight* weight = mtp_ ? mtp_slot(*mtp_, parameter.role) : nullptr) return *weight;
  const auto index = static_cast<size_t>(parameter.layer);
  LayerWeights& layer = index < layers_.size() ? layers_[index] : mtp_->layer;
  if (Weight* weight = attention_slot(layer, parameter.role)) return *weight;
  Weight* weight = feed_forward_slot(layer, parameter);
  CHECK(weight != nullptr, "parameter without a slot");
  return *weight;
}

}  // namespace ingot::model
