// How numbers are held and multiplied: --activations and --kv-dtype, on plain and quantized
// weights.

#include <set>
#include <string>

#include <gtest/gtest.h>
#include <boost/json/serialize.hpp>

#include "base/random.h"
#include "base/scratch_directory.h"
#include "endtoend/program.h"
#include "model/config_fixture.h"
#include "model/quantized_fixture.h"

namespace ingot::endtoend {
namespace {

using model::Parameter;
using model::StoredForm;

constexpr std::string_view kInt8Note = "MXFP4 layers multiply in int8";

// A small model whose experts have one form and all else another.
class NumericOptions : public testing::Test {
 protected:
  std::string write_model(StoredForm experts, StoredForm others) {
    std::filesystem::remove(scratch_ / "model.safetensors");
    const base::json::object config = model::small_config();
    write_file(scratch_ / "config.json", base::json::serialize(config));
    std::vector<model::StoredParameter> stored;
    for (const Parameter& parameter : model::list_parameters(model::parsed(config))) {
      if (parameter.optional) continue;
      const base::RandomStream stream = base::random_stream(3, parameter.name);
      std::vector<float> values;
      for (int64_t i = 0; i < parameter.shape.num_elements(); ++i) {
        values.push_back(static_cast<float>(0.2 * stream.normal(static_cast<uint64_t>(i))));
      }
      const bool expert = parameter.name.contains(".experts.");
      const bool bias = parameter.role == model::Role::kRouterBias;
      const StoredForm form = bias ? StoredForm::kF32 : expert ? experts : others;
      stored.push_back(model::store(parameter, values, form));
    }
    model::write_stored(scratch_.path(), stored);
    write_file(scratch_ / "ids.json", "[5, 90, 3, 77, 12, 140, 8, 8, 31]");
    return scratch_.path().string();
  }

  // `score` with these options; it has to succeed.
  Outcome score(const std::string& directory, std::vector<std::string> options) {
    options.insert(options.begin(),
                   {"score", directory, "--token-ids", (scratch_ / "ids.json").string(), "--json"});
    const Outcome outcome = run_ingot(options);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome;
  }

  double nll(const std::string& directory, const std::vector<std::string>& options) {
    return model::json_of(score(directory, options).out).at("nll").to_number<double>();
  }

  base::ScratchDirectory scratch_;
};

TEST_F(NumericOptions, EveryChoiceIsADifferentRounding) {
  const std::string directory = write_model(StoredForm::kF32, StoredForm::kF32);
  const double exact = nll(directory, {});
  EXPECT_EQ(nll(directory, {"--activations", "f32", "--kv-dtype", "f32"}), exact);
  std::set<double> found = {exact};
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{"--activations", "bf16"},
                                             {"--activations", "int8"},
                                             {"--kv-dtype", "bf16"},
                                             {"--kv-dtype", "fp8"}}) {
    const double value = nll(directory, options);
    EXPECT_NEAR(value, exact, 0.2) << options[0] << " " << options[1];
    found.insert(value);
  }
  EXPECT_EQ(found.size(), 5U);
}

TEST_F(NumericOptions, AutomaticOnesFollowTheStoredFormats) {
  const std::string f16 = write_model(StoredForm::kF16, StoredForm::kF16);
  EXPECT_EQ(nll(f16, {}), nll(f16, {"--activations", "f32", "--kv-dtype", "bf16"}));
  const std::string fp8 = write_model(StoredForm::kFp8ChannelColumn, StoredForm::kBF16);
  EXPECT_EQ(nll(fp8, {}), nll(fp8, {"--activations", "bf16", "--kv-dtype", "bf16"}));
  const std::string mxfp4 = write_model(StoredForm::kMxfp4Quark, StoredForm::kF32);
  EXPECT_NE(nll(mxfp4, {}), nll(mxfp4, {"--activations", "f32"}));
  EXPECT_NE(nll(mxfp4, {}), nll(mxfp4, {"--activations", "int8"}));  // f32 layers stay f32
}

TEST_F(NumericOptions, Int8IsSaidUnlessItWasAskedFor) {
  const std::string mxfp4 = write_model(StoredForm::kMxfp4CompressedTensors, StoredForm::kBF16);
  EXPECT_TRUE(score(mxfp4, {}).err.contains(kInt8Note));
  EXPECT_FALSE(score(mxfp4, {"--activations", "int8"}).err.contains(kInt8Note));
  EXPECT_FALSE(score(mxfp4, {"--activations", "bf16"}).err.contains(kInt8Note));
  const Outcome kernels = run_ingot({"inspect", mxfp4, "--kernels"});
  EXPECT_TRUE(kernels.out.contains("mxfp4 x int8")) << kernels.out;
  EXPECT_TRUE(kernels.out.contains("bf16 x bf16")) << kernels.out;
}

}  // namespace
}  // namespace ingot::endtoend
