#include "model/activation_choice.h"

namespace ingot::model {

using kernels::ActivationType;
using kernels::WeightFormat;

ActivationType activation_type(ActivationChoice choice, WeightFormat format) {
  switch (choice) {
    case ActivationChoice::kF32:
      return ActivationType::kF32;
    case ActivationChoice::kBF16:
      return ActivationType::kBF16;
    case ActivationChoice::kInt8:
      return ActivationType::kInt8;
    case ActivationChoice::kAuto:
      break;
  }
  switch (format) {
    case WeightFormat::kF32:
    case WeightFormat::kF16:
      return ActivationType::kF32;
    case WeightFormat::kBF16:
    case WeightFormat::kFp8Block:
    case WeightFormat::kFp8Channel:
      return ActivationType::kBF16;
    case WeightFormat::kMxfp4:
      return ActivationType::kInt8;
  }
  return ActivationType::kF32;
}

}  // namespace ingot::model
