#include "soak/plan_pool.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "simulation/dice.h"

namespace ingot::soak {
namespace {

using simulation::Dice;

// What people write, and what the model continues at length or ends soon; several begin alike.
std::string draw_text(Dice& dice) {
  const int32_t a = dice.between(2, 99), b = dice.between(2, 99);
  const std::array<std::string, 6> questions = {
      fmt::format("Tom has {} apples and buys {} more. How many apples does he have?", a, b),
      fmt::format("What is {} + {}?", a, b),
      "Tell me a story about a cat.",
      fmt::format("Tell me a story about {} dogs.", a),
      "Hello!",
      fmt::format("Lily had {} red balls. She gave {} to Ben. How many are left?", a + b, b)};
  const std::array<std::string, 3> beginnings = {
      "[gMASK]<sop><|user|>", "[gMASK]<sop><|system|>You are a helpful assistant.<|user|>",
      "[gMASK]<sop><|system|>You answer in one short sentence, and you never use a word that a "
      "child of five would not know.<|user|>"};
  const auto pick = [&](const auto& list) {
    return list[static_cast<size_t>(dice.between(0, static_cast<int32_t>(list.size()) - 1))];
  };
  std::string text = pick(beginnings) + pick(questions);
  text += dice.chance(0.5) ? "<|assistant|><think></think>" : "<|assistant|><think>";
  return text;
}

std::vector<int32_t> encode(const text::Tokenizer& tokenizer, const std::string& text) {
  base::Result<std::vector<int32_t>> ids = tokenizer.encode(text, text::ControlTokens::kRecognise);
  CHECK(ids, "a plan's text has no tokens");
  return *std::move(ids);
}

void append_noise(Dice& dice, const PlanLimits& limits, int32_t count, std::vector<int32_t>& ids) {
  for (int32_t i = 0; i < count; ++i) ids.push_back(dice.between(0, limits.vocab_size - 1));
}

engine::SamplingParams draw_sampling(Dice& dice, const PlanLimits& limits) {
  engine::SamplingParams sampling;
  sampling.seed = static_cast<uint64_t>(dice.between(0, 1 << 30));
  if (dice.chance(0.6)) sampling.temperature = 0.2 + 1.3 * dice.uniform();
  if (dice.chance(0.2)) sampling.top_k = dice.between(1, 60);
  if (dice.chance(0.2)) sampling.top_p = 0.5 + 0.5 * dice.uniform();
  if (dice.chance(0.15)) sampling.min_p = 0.1 * dice.uniform();
  if (dice.chance(0.15)) sampling.repetition_penalty = 0.8 + 0.8 * dice.uniform();
  if (dice.chance(0.15)) sampling.presence_penalty = -1 + 2 * dice.uniform();
  if (dice.chance(0.15)) sampling.frequency_penalty = -1 + 2 * dice.uniform();
  if (dice.chance(0.15)) {
    const int32_t id = dice.between(0, limits.vocab_size / 2);
    sampling.logit_bias = {{.id = id, .bias = 5}, {.id = 2 * id + 1, .bias = -100}};
    if (2 * id + 1 >= limits.vocab_size) sampling.logit_bias.pop_back();
  }
  if (dice.chance(0.3)) sampling.num_top_logprobs = dice.between(0, 5);
  return sampling;
}

void draw_ends(Dice& dice, const PlanLimits& limits, engine::EngineRequest& request) {
  const int32_t room = limits.max_request_tokens - static_cast<int32_t>(request.prompt.size());
  const double length = dice.uniform();
  if (length >= 0.03) {
    const int32_t usual = length < 0.08   ? 0
                          : length < 0.13 ? 1
                          : length < 0.9  ? dice.between(2, 60)
                                          : dice.between(60, 200);
    request.max_tokens = std::min(usual, room);
  }
  request.ignore_eos = request.max_tokens && dice.chance(0.25);
  if (dice.chance(0.15)) request.min_tokens = dice.between(0, request.max_tokens.value_or(room));
  if (dice.chance(0.2)) append_noise(dice, limits, dice.between(1, 4), request.stop_token_ids);
  if (dice.chance(0.25)) {
    const std::array<const char*, 7> strings = {".", " the", "\n", "cat", "1", "</think>", "?!"};
    for (int32_t i = dice.between(1, 3); i > 0; --i) {
      request.stop_strings.emplace_back(strings[static_cast<size_t>(dice.between(0, 6))]);
    }
  }
  request.wants_prompt_logprobs = dice.chance(0.12);
}

Dice dice_of(uint64_t seed, size_t number) {
  return Dice(base::random_stream(base::random_stream(seed, "plans").word(number), "plan"));
}

}  // namespace

engine::EngineRequest draw_request(uint64_t seed, size_t number, const text::Tokenizer& tokenizer,
                                   const PlanLimits& limits) {
  Dice dice = dice_of(seed, number);
  engine::EngineRequest request;
  const double kind = dice.uniform();
  if (kind < 0.75) {
    request.prompt = encode(tokenizer, draw_text(dice));
  } else {
    // Half of these are longer than what the model's index selects.
    const int32_t longest = limits.max_request_tokens * 3 / 4;
    append_noise(dice, limits, dice.between(1, kind < 0.95 ? longest / 8 : longest),
                 request.prompt);
  }
  const auto longest = static_cast<size_t>(limits.max_request_tokens - 1);
  if (request.prompt.size() > longest) request.prompt.resize(longest);
  request.sampling = draw_sampling(dice, limits);
  draw_ends(dice, limits, request);
  return request;
}

engine::EngineRequest draw_next_turn(uint64_t seed, size_t number,
                                     const engine::EngineRequest& turn, const Answer& answer,
                                     const text::Tokenizer& tokenizer, const PlanLimits& limits) {
  Dice dice = dice_of(seed, number);
  engine::EngineRequest request;
  request.prompt = turn.prompt;
  std::ranges::copy(answer.tokens, std::back_inserter(request.prompt));
  std::ranges::copy(encode(tokenizer, "<|user|>And then?<|assistant|><think></think>"),
                    std::back_inserter(request.prompt));
  const auto longest = static_cast<size_t>(limits.max_request_tokens - 1);
  if (request.prompt.size() > longest) request.prompt.resize(longest);
  request.sampling = draw_sampling(dice, limits);
  draw_ends(dice, limits, request);
  return request;
}

void PlanPool::add(engine::EngineRequest request, std::optional<Answer> alone) {
  plans_.push_back({.request = std::move(request), .whole = std::move(alone)});
}

base::Status PlanPool::check(size_t plan, const Answer& answer) {
  Plan& planned = plans_[plan];
  std::string wrong = fault_of(answer, planned.request);
  const std::scoped_lock lock(mutex_);
  if (wrong.empty() && planned.whole) {
    wrong = difference(answer, *planned.whole);
    if (is_whole(answer)) ++planned.num_confirmations;
  } else if (wrong.empty() && is_whole(answer)) {
    planned.whole = answer;
  }
  if (wrong.empty()) return {};
  return base::error("plan {}: {}", plan, wrong);
}

int64_t PlanPool::num_confirmed() const {
  const std::scoped_lock lock(mutex_);
  return std::ranges::count_if(plans_, [](const Plan& plan) { return plan.num_confirmations > 0; });
}

}  // namespace ingot::soak
