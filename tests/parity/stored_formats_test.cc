#include <algorithm>
#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

#include "golden_model.h"
#include "model/quantized_fixture.h"
#include "model/synthetic_checkpoint.h"
#include "steps.h"

namespace ingot::parity {
namespace {

using kernels::WeightFormat;
using model::ActivationChoice;
using model::Parameter;
using model::Role;
using model::StoredForm;
using KvType = engine::NumericOptions::KvType;

bool is_expert(const Parameter& parameter) {
  return Role::kExpertGate <= parameter.role && parameter.role <= Role::kSharedDown;
}

// As the official FP8 releases: all but router, indexer gates, eh_proj and head.
bool is_fp8_in_releases(const Parameter& parameter) {
  return parameter.is_linear() && parameter.role != Role::kRouter &&
         parameter.role != Role::kIndexGates && parameter.role != Role::kMtpProjection &&
         parameter.role != Role::kLmHead;
}

StoredForm mixed(const Parameter& parameter) {
  if (!is_fp8_in_releases(parameter) || parameter.module_class == model::ModuleClass::kMtp) {
    return StoredForm::kBF16;
  }
  switch (parameter.module_class) {
    case model::ModuleClass::kRoutedExperts:
      return StoredForm::kMxfp4Quark;
    case model::ModuleClass::kSharedExperts:
      return StoredForm::kBF16;
    case model::ModuleClass::kDenseMlp:
      return StoredForm::kFp8ChannelVector;
    default:
      return StoredForm::kFp8BlockScale;
  }
}

// A way to store a whole model.
struct Release {
  const char* name;
  StoredForm (*form_of)(const Parameter& parameter);
};

constexpr Release kReleases[] = {
    {"Fp8Block",
     [](const Parameter& p) {
       return is_fp8_in_releases(p) ? StoredForm::kFp8BlockScaleInv : StoredForm::kBF16;
     }},
    {"Fp8Channel",
     [](const Parameter& p) {
       return is_fp8_in_releases(p) ? StoredForm::kFp8ChannelColumn : StoredForm::kBF16;
     }},
    // All experts and eh_proj, as Quark's template does without an entry for the MTP layer.
    {"Mxfp4Quark",
     [](const Parameter& p) {
       return is_expert(p) || p.role == Role::kMtpProjection ? StoredForm::kMxfp4Quark
                                                             : StoredForm::kBF16;
     }},
    // Everything that may be: router, kv_b_proj and head included.
    {"Mxfp4CompressedTensors",
     [](const Parameter& p) {
       return p.is_linear() ? StoredForm::kMxfp4CompressedTensors : StoredForm::kBF16;
     }},
    {"Mixed", mixed},
};

// The synthetic weights of a golden case in the forms of a release; or, as its twin, what these
// stand for in f32, with kv_b_proj rounded to bf16 where loading rounds it.
void write_release(const GoldenCase& golden, const Release& release, bool twin,
                   const std::filesystem::path& directory) {
  const std::filesystem::path config_file = golden_config_path(golden.name);
  const model::ModelConfig config = model::load_model_config(config_file).value();
  std::vector<model::StoredParameter> stored;
  for (const Parameter& parameter : model::list_parameters(config)) {
    if (parameter.optional) continue;
    std::vector<float> values;
    for (int64_t i = 0; i < parameter.shape.num_elements(); ++i) {
      values.push_back(static_cast<float>(
          model::SyntheticValues(parameter, golden.seed)[static_cast<uint64_t>(i)]));
    }
    stored.push_back(model::store(parameter, values, release.form_of(parameter)));
    if (!twin) continue;
    std::vector<float> decoded = stored.back().decoded;
    if (parameter.role == Role::kKvB) {
      for (float& value : decoded) value = tensor::to_f32(tensor::to_bf16(value));
    }
    stored.back() = model::store(parameter, decoded, StoredForm::kF32);
  }
  model::write_stored(directory, stored);
  std::filesystem::copy_file(config_file, directory / "config.json");
}

GoldenModel open_release(const GoldenCase& golden, const Release& release, bool twin,
                         const engine::NumericOptions& numeric, int threads = 1) {
  return GoldenModel(
      [&](const std::filesystem::path& directory) {
        write_release(golden, release, twin, directory);
      },
      {.threads = threads, .numeric = numeric});
}

// How far apart logits are.
struct Distance {
  double max = 0;
  double mean = 0;
};

Distance distance(const std::vector<std::vector<float>>& a,
                  const std::vector<std::vector<float>>& b) {
  Distance result;
  size_t count = 0;
  for (size_t s = 0; s < a.size(); ++s) {
    EXPECT_EQ(a[s].size(), b[s].size());
    for (size_t i = 0; i < a[s].size(); ++i, ++count) {
      const double difference = std::abs(static_cast<double>(a[s][i]) - b[s][i]);
      EXPECT_TRUE(std::isfinite(difference));
      result.max = std::max(result.max, difference);
      result.mean += difference;
    }
  }
  result.mean /= static_cast<double>(count);
  return result;
}

// Says a measurement in the output and in the test's XML.
void record(const std::string& what, const Distance& measured) {
  const std::string text = fmt::format("max {:.4f}, mean {:.4f}", measured.max, measured.mean);
  testing::Test::RecordProperty(what, text);
  fmt::print("{}: logits differ by {}\n", what, text);
}

class StoredFormats : public testing::TestWithParam<Release> {};

// Both sides compute with the same numbers; f32 sums in another order are all that differs.
TEST_P(StoredFormats, EqualTheirNumbersInF32) {
  for (const char* name : {"glm_moe_dsa/multiples_of_32", "glm_moe_dsa/odd_dims"}) {
    const GoldenCase golden = read_golden_case(name);
    const auto sequences = ids_of(golden, kLongest);
    const engine::NumericOptions f32{.activations = ActivationChoice::kF32,
                                     .kv_type = KvType::kF32};
    GoldenModel model = open_release(golden, GetParam(), /*twin=*/false, f32);
    GoldenModel twin = open_release(golden, GetParam(), /*twin=*/true, f32);
    const Outcome got = run_steps(model, sequences, one_by_one(sequences));
    const Outcome want = run_steps(twin, sequences, one_by_one(sequences));
    EXPECT_LT(distance(got.logits, want.logits).max, 5e-5) << name;
    EXPECT_TRUE(got.selected == want.selected) << name;
    EXPECT_EQ(got.drafts, want.drafts) << name;
  }
}

TEST_P(StoredFormats, StepsDoNotMatter) {
  const GoldenCase golden = read_golden_case("glm_moe_dsa/multiples_of_32");
  GoldenModel model = open_release(golden, GetParam(), /*twin=*/false, {}, 2);
  expect_steps_do_not_matter(model, golden);
}

TEST_P(StoredFormats, ThreadsDoNotMatter) {
  const GoldenCase golden = read_golden_case("glm_moe_dsa/odd_dims");
  const auto sequences = ids_of(golden, kLongest);
  GoldenModel one = open_release(golden, GetParam(), /*twin=*/false, {}, 1);
  GoldenModel two = open_release(golden, GetParam(), /*twin=*/false, {}, 2);
  const Outcome want = run_steps(one, sequences, in_company(sequences, 4));
  const Outcome got = run_steps(two, sequences, in_company(sequences, 4));
  EXPECT_TRUE(got.logits == want.logits);
  EXPECT_TRUE(got.selected == want.selected);
  EXPECT_EQ(got.drafts, want.drafts);
}

INSTANTIATE_TEST_SUITE_P(Releases, StoredFormats, testing::ValuesIn(kReleases),
                         [](const auto& release) { return std::string(release.param.name); });

TEST(StoredFormats, SayThatMxfp4MultipliesInInt8) {
  const GoldenCase golden = read_golden_case("glm_moe_dsa/multiples_of_32");
  const auto says_so = [&](const Release& release, ActivationChoice choice) {
    GoldenModel model = open_release(golden, release, /*twin=*/false, {.activations = choice});
    return std::ranges::any_of(model.loaded().notes(), [](const std::string& note) {
      return note.starts_with("MXFP4 layers multiply in int8");
    });
  };
  EXPECT_TRUE(says_so(kReleases[2], ActivationChoice::kAuto));
  EXPECT_FALSE(says_so(kReleases[2], ActivationChoice::kInt8));
  EXPECT_FALSE(says_so(kReleases[2], ActivationChoice::kBF16));
  EXPECT_FALSE(says_so(kReleases[0], ActivationChoice::kAuto));
}

// Narrow types lose something. In these models of random weights, whose logits spread by about 1.2,
// most of a large difference is another choice of expert or position that a small one brought
// about. The first index_topk positions of the case without experts leave nothing to choose: what
// is left there is rounding, and only that is bounded closely.
constexpr size_t kAllChosen = 11;

TEST(Precision, OfANarrowCache) {
  struct Measured {
    const char* name;
    size_t longest;
    double fp8_mean_max;
  };
  for (const auto& [name, longest, fp8_mean_max] :
       {Measured{"glm_moe_dsa/all_dense", kAllChosen, 0.1},
        Measured{"glm_moe_dsa/multiples_of_32", kLongest, 1.0},
        Measured{"glm_moe_dsa/long_context", kLongest, 1.0}}) {
    const GoldenCase golden = read_golden_case(name);
    const auto sequences = ids_of(golden, longest);
    const auto logits = [&](KvType type) {
      GoldenModel model(golden, {.numeric = {.kv_type = type}});
      return run_steps(model, sequences, one_by_one(sequences), 0).logits;
    };
    const auto want = logits(KvType::kF32);
    const Distance bf16 = distance(logits(KvType::kBF16), want);
    const Distance fp8 = distance(logits(KvType::kFp8), want);
    record(fmt::format("{}, bf16 cache", name), bf16);
    record(fmt::format("{}, fp8 cache", name), fp8);
    EXPECT_GT(bf16.mean, 0);
    EXPECT_GT(fp8.mean, bf16.mean);
    EXPECT_LT(fp8.mean, fp8_mean_max);
  }
}

// Every linear layer in MXFP4, against exact activations.
TEST(Precision, OfActivationsOnMxfp4) {
  const GoldenCase golden = read_golden_case("glm_moe_dsa/all_dense");
  const auto sequences = ids_of(golden, kAllChosen);
  const auto logits = [&](ActivationChoice choice) {
    GoldenModel model = open_release(golden, kReleases[3], /*twin=*/false,
                                     {.activations = choice, .kv_type = KvType::kF32});
    return run_steps(model, sequences, one_by_one(sequences), 0).logits;
  };
  const auto want = logits(ActivationChoice::kF32);
  const Distance int8 = distance(logits(ActivationChoice::kInt8), want);
  const Distance bf16 = distance(logits(ActivationChoice::kBF16), want);
  record("MXFP4 times int8", int8);
  record("MXFP4 times bf16", bf16);
  EXPECT_EQ(logits(ActivationChoice::kAuto), logits(ActivationChoice::kInt8));
  EXPECT_GT(int8.mean, bf16.mean);
  EXPECT_LT(int8.mean, 0.05);
}

}  // namespace
}  // namespace ingot::parity
