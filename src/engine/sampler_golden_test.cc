// The cases that tools/check_sampling_with_numpy.py made.

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "base/json.h"
#include "base/random.h"
#include "engine/sampler.h"
#include "engine/token_mask.h"

namespace ingot::engine {
namespace {

namespace json = boost::json;

json::array golden_cases(const std::string& file) {
  std::ifstream stream(std::filesystem::path(INGOT_SOURCE_DIR) / "tests/golden/sampling" / file);
  std::ostringstream text;
  text << stream.rdbuf();
  auto value = base::parse_json(text.str(), file);
  EXPECT_TRUE(value.has_value()) << file;
  return value ? value->as_array() : json::array();
}

double number(const json::value& value) { return value.to_number<double>(); }
int32_t id_in(const json::value& value) { return value.to_number<int32_t>(); }

std::vector<int32_t> ids_in(const json::value& value) {
  std::vector<int32_t> ids;
  for (const json::value& id : value.as_array()) ids.push_back(id_in(id));
  return ids;
}

SamplingParams params_in(const json::object& fields) {
  SamplingParams params;
  for (const auto& [key, value] : fields) {
    if (key == "temperature") {
      params.temperature = number(value);
    } else if (key == "top_k") {
      params.top_k = id_in(value);
    } else if (key == "top_p") {
      params.top_p = number(value);
    } else if (key == "min_p") {
      params.min_p = number(value);
    } else if (key == "repetition_penalty") {
      params.repetition_penalty = number(value);
    } else if (key == "presence_penalty") {
      params.presence_penalty = number(value);
    } else if (key == "frequency_penalty") {
      params.frequency_penalty = number(value);
    } else if (key == "logit_bias") {
      for (const json::value& entry : value.as_array()) {
        params.logit_bias.push_back({id_in(entry.at(0)), number(entry.at(1))});
      }
    } else if (key == "seed") {
      params.seed = value.to_number<uint64_t>();
    } else if (key == "num_top_logprobs") {
      params.num_top_logprobs = id_in(value);
    } else {
      ADD_FAILURE() << "unknown field " << key;
    }
  }
  return params;
}

// One golden case as the arguments of a draw.
struct Row {
  explicit Row(const json::object& golden)
      : params(params_in(golden.at("params").as_object())),
        history(ids_in(golden.at("prompt"))),
        position(golden.at("position").to_number<int64_t>()) {
    for (const int32_t id : ids_in(golden.at("output"))) history.append_output(id);
    if (golden.contains("logits")) {
      for (const json::value& logit : golden.at("logits").as_array()) {
        logits.push_back(static_cast<float>(number(logit)));
      }
    } else {
      const json::object& spec = golden.at("random_logits").as_object();
      const base::RandomStream random =
          base::random_stream(spec.at("seed").to_number<uint64_t>(), "logits");
      logits.resize(spec.at("count").to_number<size_t>());
      for (size_t i = 0; i < logits.size(); ++i) {
        logits[i] = static_cast<float>(number(spec.at("deviation")) * random.normal(i));
      }
    }
    if (!golden.at("allowed").is_null()) set_allowed(golden.at("allowed"));
    scratch = DrawScratch(std::ssize(logits));
  }

  void set_allowed(const json::value& ids) {
    TokenMask mask(std::ssize(logits));
    const auto size = static_cast<int32_t>(logits.size());
    for (int32_t id = 0; id < size; ++id) mask.forbid(id);
    if (ids.is_string()) {
      ASSERT_EQ(ids.as_string(), "every third");
      for (int32_t id = 0; id < size; id += 3) mask.allow(id);
    } else {
      for (const int32_t id : ids_in(ids)) mask.allow(id);
    }
    allowed.assign(mask.words().begin(), mask.words().end());
  }

  SamplingParams params;
  TokenHistory history;
  int64_t position = 0;
  std::vector<float> logits;
  std::vector<uint32_t> allowed;
  DrawScratch scratch{0};
};

void expect_draw(Row& row, const json::object& golden) {
  EXPECT_EQ(
      base::random_stream(row.params.seed, "sample").uniform(static_cast<uint64_t>(row.position)),
      number(golden.at("uniform")));
  const auto drawn =
      draw(row.logits, row.params, row.history, row.position, row.allowed, row.scratch);
  ASSERT_TRUE(drawn.has_value()) << drawn.error().message;
  EXPECT_EQ(drawn->id, id_in(golden.at("id")));
  ASSERT_EQ(drawn->logprob.has_value(), golden.contains("logprob"));
  if (!drawn->logprob) return;
  EXPECT_NEAR(*drawn->logprob, number(golden.at("logprob")), 1e-8);
  const json::array& top = golden.at("top_logprobs").as_array();
  ASSERT_EQ(drawn->top_logprobs.size(), top.size());
  for (size_t i = 0; i < top.size(); ++i) {
    EXPECT_EQ(drawn->top_logprobs[i].id, id_in(top[i].at(0)));
    EXPECT_NEAR(drawn->top_logprobs[i].logprob, number(top[i].at(1)), 1e-8);
  }
}

TEST(SamplerGolden, EveryProbabilityAndDrawIsThatOfNumpy) {
  const json::array cases = golden_cases("cases.json");
  EXPECT_GE(cases.size(), 170);
  for (const json::value& value : cases) {
    const json::object& golden = value.as_object();
    SCOPED_TRACE(std::string(golden.at("name").as_string()));
    Row row(golden);
    EXPECT_TRUE(check(row.params, std::ssize(row.logits)).has_value());
    const auto got = distribution(row.logits, row.params, row.history, row.allowed, row.scratch);
    ASSERT_TRUE(got.has_value()) << got.error().message;
    // A weight may have underflowed to 0: kept, and never drawn.
    std::vector<WeightedToken> drawable;
    for (const WeightedToken& token : got->tokens) {
      if (token.weight > 0) drawable.push_back(token);
    }
    const json::array& expected = golden.at("probabilities").as_array();
    ASSERT_EQ(drawable.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(drawable[i].id, id_in(expected[i].at(0)));
      const double probability = number(expected[i].at(1));
      EXPECT_NEAR(drawable[i].weight / got->weight, probability, 2e-9 * probability);
    }
    expect_draw(row, golden);
  }
}

TEST(SamplerGolden, LargeRowsAreThoseOfNumpy) {
  const json::array cases = golden_cases("large_rows.json");
  EXPECT_GE(cases.size(), 50);
  for (const json::value& value : cases) {
    const json::object& golden = value.as_object();
    SCOPED_TRACE(std::string(golden.at("name").as_string()));
    Row row(golden);
    const auto got = distribution(row.logits, row.params, row.history, row.allowed, row.scratch);
    ASSERT_TRUE(got.has_value()) << got.error().message;
    int64_t sum_of_ids = 0;
    double probability = 0;
    for (const WeightedToken& token : got->tokens) {
      sum_of_ids += token.id;
      if (token.id == id_in(golden.at("id"))) probability = token.weight / got->weight;
    }
    EXPECT_EQ(got->tokens.size(), golden.at("num_drawable").to_number<size_t>());
    EXPECT_EQ(sum_of_ids, golden.at("sum_of_drawable_ids").to_number<int64_t>());
    const double expected = number(golden.at("probability"));
    EXPECT_NEAR(probability, expected, 2e-9 * expected);
    expect_draw(row, golden);
  }
}

}  // namespace
}  // namespace ingot::engine
