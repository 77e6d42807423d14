#include "model/weights.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "base/check.h"
#include "tensor/float16.h"

namespace ingot::model {
namespace {

using kernels::WeightFormat;

// Bytes read in one piece when values must be converted.
constexpr size_t kPieceBytes = 1 << 20;

// Norms and biases are small and always multiplied in f32.
bool held_as_f32(const Parameter& parameter) { return parameter.shape.rank() == 1; }

uint64_t held_bytes(const PlanRow& row) {
  if (held_as_f32(row.parameter)) return static_cast<uint64_t>(row.parameter.shape[0]) * 4;
  return row.stored.data->size_bytes;
}

bool is_loaded(const PlanRow& row) { return row.parameter.module_class != ModuleClass::kMtp; }

// One tensor on its way into memory.
struct Destination {
  const PlanRow* row;
  std::byte* data;
};

template <typename T>
void widen(const std::byte* source, int64_t count, float* out) {
  const auto* values = reinterpret_cast<const T*>(source);
  for (int64_t i = 0; i < count; ++i) out[i] = tensor::to_f32(values[i]);
}

void convert_to_f32(WeightFormat format, const std::byte* source, int64_t count, float* out) {
  switch (format) {
    case WeightFormat::kF32:
      return widen<float>(source, count, out);
    case WeightFormat::kF16:
      return widen<tensor::Float16>(source, count, out);
    case WeightFormat::kBF16:
      return widen<tensor::BFloat16>(source, count, out);
    default:
      CHECK(false, "vectors are never quantized");
  }
}

// Reads one tensor to where it will stay and adds the bytes that it took to `done_bytes`.
base::Status read_tensor(const tensor::Checkpoint& checkpoint, const Destination& destination,
                         std::atomic<uint64_t>& done_bytes) {
  const PlanRow& row = *destination.row;
  const tensor::TensorInfo& source = *row.stored.data;
  if (held_as_f32(row.parameter)) {
    std::vector<std::byte> raw(source.size_bytes);
    TRY(checkpoint.read(source, 0, raw));
    convert_to_f32(row.stored.format, raw.data(), row.parameter.shape[0],
                   reinterpret_cast<float*>(destination.data));
    done_bytes += source.size_bytes;
  } else {
    for (uint64_t first = 0; first < source.size_bytes; first += kPieceBytes) {
      const size_t length = std::min<uint64_t>(kPieceBytes, source.size_bytes - first);
      TRY(checkpoint.read(source, first, {destination.data + first, length}));
      done_bytes += length;
    }
  }
  const WeightFormat held = held_as_f32(row.parameter) ? WeightFormat::kF32 : row.stored.format;
  const int64_t count = row.parameter.shape.num_elements().value();
  if (const auto index = find_non_finite(held, destination.data, count)) {
    return base::error(
        "{}: tensor {} has NaN or infinity at element {}; the file is damaged or was "
        "exported wrong, get it again",
        checkpoint.path_of(source).string(), source.name, *index);
  }
  checkpoint.drop_from_page_cache(source);
  return {};
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
      const base::Status status = read_tensor(checkpoint, destinations[i], done_bytes);
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

template <typename Bits>
std::optional<int64_t> find_exponent_all_ones(const void* data, int64_t count, Bits exponent) {
  const auto* bytes = static_cast<const std::byte*>(data);
  const auto all_ones = [&](int64_t i) {
    Bits value;
    std::memcpy(&value, bytes + static_cast<size_t>(i) * sizeof(Bits), sizeof(Bits));
    return (value & exponent) == exponent;
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

}  // namespace

std::optional<int64_t> find_non_finite(WeightFormat format, const void* data, int64_t count) {
  switch (format) {
    case WeightFormat::kF32:
      return find_exponent_all_ones<uint32_t>(data, count, 0x7F800000);
    case WeightFormat::kF16:
      return find_exponent_all_ones<uint16_t>(data, count, 0x7C00);
    case WeightFormat::kBF16:
      return find_exponent_all_ones<uint16_t>(data, count, 0x7F80);
    default:
      return std::nullopt;
  }
}

base::Result<Weights> Weights::shapes_of(const ModelConfig& config, const LoadPlan& plan) {
  TRY(plan.check());
  Weights weights;
  weights.layers_.resize(static_cast<size_t>(config.num_hidden_layers));
  for (const PlanRow& row : plan.rows) {
    if (!is_loaded(row)) continue;
    if (row.stored.scales != nullptr) {
      return base::error(
          "{}: stored as {}, which this build can inspect and not run; use a bf16, "
          "f16 or f32 checkpoint",
          row.parameter.name, name(row.stored.format));
    }
    const tensor::Shape& shape = row.parameter.shape;
    weights.slot(row.parameter) = {
        .format = held_as_f32(row.parameter) ? WeightFormat::kF32 : row.stored.format,
        .rows = shape.rank() == 1 ? 1 : shape[0],
        .cols = shape[shape.rank() - 1]};
  }
  return weights;
}

base::Result<Weights> Weights::load(const ModelConfig& config, const LoadPlan& plan,
                                    const tensor::Checkpoint& checkpoint, base::ThreadTeam& team,
                                    const base::Clock& clock) {
  Weights weights = TRY(shapes_of(config, plan));
  uint64_t capacity_bytes = 0;
  uint64_t source_bytes = 0;
  for (const PlanRow& row : plan.rows) {
    if (!is_loaded(row)) continue;
    capacity_bytes += base::Arena::padded(held_bytes(row));
    source_bytes += row.stored.data->size_bytes;
  }
  weights.arena_ = TRY(base::Arena::create(capacity_bytes, "weights"));
  std::vector<Destination> destinations;
  destinations.reserve(plan.rows.size());
  for (const PlanRow& row : plan.rows) {
    if (!is_loaded(row)) continue;
    std::byte* data = weights.arena_.allocate(held_bytes(row));
    weights.slot(row.parameter).data = data;
    destinations.push_back({.row = &row, .data = data});
  }
  TRY(read_all(checkpoint, destinations, source_bytes, team, clock));
  return weights;
}

Weight& Weights::slot(const Parameter& parameter) {
  if (parameter.role == Role::kEmbedding) return embedding_;
  if (parameter.role == Role::kFinalNorm) return final_norm_;
  if (parameter.role == Role::kLmHead) return lm_head_;
  LayerWeights& layer = layers_[static_cast<size_t>(parameter.layer)];
  const auto expert = [&]() -> MlpWeights& {
    const auto index = static_cast<size_t>(parameter.expert);
    if (layer.experts.size() <= index) layer.experts.resize(index + 1);
    return layer.experts[index];
  };
  switch (parameter.role) {
    case Role::kInputNorm:
      return layer.input_norm;
    case Role::kPostAttentionNorm:
      return layer.post_attention_norm;
    case Role::kQA:
      return layer.attention.q_a;
    case Role::kQANorm:
      return layer.attention.q_a_norm;
    case Role::kQB:
      return layer.attention.q_b;
    case Role::kKvA:
      return layer.attention.kv_a;
    case Role::kKvANorm:
      return layer.attention.kv_a_norm;
    case Role::kKvB:
      return layer.attention.kv_b;
    case Role::kO:
      return layer.attention.o;
    case Role::kIndexQB:
      return layer.attention.indexer.q_b;
    case Role::kIndexK:
      return layer.attention.indexer.k;
    case Role::kIndexKNormWeight:
      return layer.attention.indexer.k_norm;
    case Role::kIndexKNormBias:
      return layer.attention.indexer.k_norm_bias;
    case Role::kIndexGates:
      return layer.attention.indexer.gates;
    case Role::kDenseGate:
      return layer.dense.gate;
    case Role::kDenseUp:
      return layer.dense.up;
    case Role::kDenseDown:
      return layer.dense.down;
    case Role::kRouter:
      return layer.router;
    case Role::kRouterBias:
      return layer.router_bias;
    case Role::kExpertGate:
      return expert().gate;
    case Role::kExpertUp:
      return expert().up;
    case Role::kExpertDown:
      return expert().down;
    case Role::kSharedGate:
      return layer.shared.gate;
    case Role::kSharedUp:
      return layer.shared.up;
    case Role::kSharedDown:
      return layer.shared.down;
    default:
      break;
  }
  CHECK(false, "parameter without a slot");
  return embedding_;
}

}  // namespace ingot::model
