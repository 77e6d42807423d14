#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/random.h"
#include "engine/token_mask.h"

namespace ingot::engine {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// The rank that every option goes by.
bool ranks_before(const WeightedToken& a, const WeightedToken& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

// The last token that is kept: any that ranks after it is not. At first, all but those of -inf.
constexpr WeightedToken kKeepAll = {.logit = kNever, .id = -1};

void mask(std::span<const uint32_t> allowed, std::span<float> logits) {
  for (size_t word = 0; word < allowed.size(); ++word) {
    uint32_t forbidden = ~allowed[word];
    if (forbidden == 0) continue;
    const size_t begin = word * TokenMask::kWordBits;
    const size_t end = std::min(begin + TokenMask::kWordBits, logits.size());
    for (size_t id = begin; id < end; ++id, forbidden >>= 1) {
      if ((forbidden & 1) != 0) logits[id] = kNever;
    }
  }
}

// Finite values stay finite, so that "never" is only what a mask or the caller said.
void set_finite(float& logit, double value) {
  constexpr double kMax = std::numeric_limits<float>::max();
  logit = static_cast<float>(std::clamp(value, -kMax, kMax));
}

void add_bias(const SamplingParams& params, std::span<float> logits) {
  for (const TokenBias& entry : params.logit_bias) {
    CHECK(entry.id >= 0 && static_cast<size_t>(entry.id) < logits.size());
    float& logit = logits[static_cast<size_t>(entry.id)];
    if (logit != kNever) set_finite(logit, logit + entry.bias);
  }
}

void penalise(const SamplingParams& params, const TokenHistory& history, std::span<float> logits) {
  for (const TokenHistory::Count& count : history.counts()) {
    CHECK(static_cast<size_t>(count.id) < logits.size());
    float& logit = logits[static_cast<size_t>(count.id)];
    if (logit == kNever) continue;
    double value = logit;
    value = value > 0 ? value / params.repetition_penalty : value * params.repetition_penalty;
    value -= params.frequency_penalty * count.in_output;
    if (count.in_output > 0) value -= params.presence_penalty;
    set_finite(logit, value);
  }
}

// The logits after mask, bias and penalties; the given ones where nothing of that applies.
std::span<const float> adjusted(std::span<const float> logits, const SamplingParams& params,
                                const TokenHistory& history, std::span<const uint32_t> allowed,
                                DrawScratch& scratch) {
  const bool penalised = uses_history(params) && !history.counts().empty();
  if (allowed.empty() && params.logit_bias.empty() && !penalised) return logits;
  scratch.logits.assign(logits.begin(), logits.end());
  mask(allowed, scratch.logits);
  add_bias(params, scratch.logits);
  if (penalised) penalise(params, history, scratch.logits);
  return scratch.logits;
}

// The k first-ranked tokens above -inf, or all that there are, into `ranked`, the last one at the
// end where there are k. One pass, since few tokens still enter once the shortlist was cut once.
void select_first(std::span<const float> logits, size_t k, std::vector<WeightedToken>& ranked) {
  constexpr size_t kShortlistMin = 1024;
  const size_t size_max = std::max(2 * k, kShortlistMin);
  ranked.clear();
  float threshold = kNever;
  const auto cut = [&] {
    std::ranges::nth_element(ranked, ranked.begin() + static_cast<ptrdiff_t>(k) - 1, ranks_before);
    ranked.resize(k);
    threshold = ranked.back().logit;
  };
  for (size_t id = 0; id < logits.size(); ++id) {
    // An equal of the threshold has a higher id than all before it, and so ranks after them.
    if (!(logits[id] > threshold)) continue;
    ranked.push_back({.logit = logits[id], .id = static_cast<int32_t>(id)});
    if (ranked.size() == size_max) cut();
  }
  if (ranked.size() >= k) cut();
}

// probability >= min_p * the largest one, without computing any of them.
WeightedToken last_of_min_p(double min_p, double temperature, double max) {
  const double floor = max + temperature * std::log(min_p);
  auto logit = static_cast<float>(floor);
  if (logit < floor) logit = std::nextafter(logit, std::numeric_limits<float>::infinity());
  return {.logit = logit, .id = std::numeric_limits<int32_t>::max()};
}

// Of the tokens in the list, the one in rank order at which their weights reach `weight_needed`;
// the last one where rounding keeps them below it. Halves the list by rank, in O(its size).
WeightedToken token_reaching(std::span<WeightedToken> list, double weight_needed) {
  constexpr size_t kSortedMax = 32;
  while (list.size() > kSortedMax) {
    const size_t half = list.size() / 2;
    std::ranges::nth_element(list, list.begin() + static_cast<ptrdiff_t>(half), ranks_before);
    double weight = 0;
    for (const WeightedToken& token : list.first(half)) weight += token.weight;
    if (weight >= weight_needed) {
      list = list.first(half);
    } else {
      weight_needed -= weight;
      list = list.subspan(half);
    }
  }
  std::ranges::sort(list, ranks_before);
  for (const WeightedToken& token : list) {
    weight_needed -= token.weight;
    if (weight_needed <= 0) return token;
  }
  return list.back();
}

double sum_of_weights(std::span<const WeightedToken> tokens) {
  double sum = 0;
  for (const WeightedToken& token : tokens) sum += token.weight;
  return sum;
}

// What the last kept token is by min_p and top_k, which need no weights. Each keeps a run of
// first-ranked tokens, so the order of the two does not matter.
WeightedToken last_by_logit(std::span<const float> logits, const SamplingParams& params, double max,
                            DrawScratch& scratch) {
  WeightedToken last = kKeepAll;
  if (params.min_p > 0) last = last_of_min_p(params.min_p, params.temperature, max);
  const auto k = static_cast<size_t>(params.top_k);
  if (k > 0 && k < logits.size()) {
    select_first(logits, k, scratch.ranked);
    if (scratch.ranked.size() == k) last = std::min(last, scratch.ranked.back(), ranks_before);
  }
  return last;
}

// Takes what top_p does not keep out of scratch.kept, whose weights sum to `weight`.
void keep_top_p(double top_p, double weight, DrawScratch& scratch) {
  // The tokens below this weight sum to less than half of what may be left out, so none of them is
  // needed; in a real row that is nearly all.
  const double least = 0.5 * (1 - top_p) * weight / static_cast<double>(scratch.kept.size());
  scratch.ranked.clear();
  for (const WeightedToken& token : scratch.kept) {
    if (token.weight >= least) scratch.ranked.push_back(token);
  }
  const WeightedToken last = token_reaching(scratch.ranked, top_p * weight);
  std::erase_if(scratch.kept, [&](const WeightedToken& t) { return ranks_before(last, t); });
}

std::span<const TokenLogprob> top_logprobs(std::span<const float> logits, size_t count,
                                           double normalizer, DrawScratch& scratch) {
  scratch.logprobs.clear();
  if (count == 0) return {};
  select_first(logits, count, scratch.ranked);
  std::ranges::sort(scratch.ranked, ranks_before);
  for (const WeightedToken& token : scratch.ranked) {
    scratch.logprobs.push_back({.id = token.id, .logprob = token.logit - normalizer});
  }
  return scratch.logprobs;
}

}  // namespace

int32_t argmax(std::span<const float> values) {
  CHECK(!values.empty());
  // std::max_element of g++ 12 reads the largest from memory at every step: three times as long.
  size_t best = 0;
  float largest = values[0];
  for (size_t i = 1; i < values.size(); ++i) {
    if (values[i] > largest) {
      largest = values[i];
      best = i;
    }
  }
  return static_cast<int32_t>(best);
}

double log_sum_exp(std::span<const float> values) {
  const double max = values[static_cast<size_t>(argmax(values))];
  double sum = 0;
  for (const float value : values) sum += std::exp(static_cast<double>(value) - max);
  return max + std::log(sum);
}

base::Status check_finite(std::span<const float> logits, std::string_view where) {
  if (std::ranges::all_of(logits, [](float v) { return std::isfinite(v); })) return {};
  return base::error(
      "the logits {} are not finite; the weights overflow in this arithmetic, try "
      "--activations f32",
      where);
}

DrawScratch::DrawScratch(int64_t vocab_size) {
  CHECK(vocab_size >= 0);
  const auto size = static_cast<size_t>(vocab_size);
  logits.reserve(size);
  kept.reserve(size);
  ranked.reserve(size);
  logprobs.reserve(kTopLogprobsMax);
}

base::Result<Distribution> distribution(std::span<const float> logits, const SamplingParams& params,
                                        const TokenHistory& history,
                                        std::span<const uint32_t> allowed, DrawScratch& scratch) {
  CHECK(logits.size() <= scratch.kept.capacity());
  CHECK(allowed.empty() || allowed.size() == TokenMask::num_words(logits.size()));
  const std::span<const float> values = adjusted(logits, params, history, allowed, scratch);
  const int32_t best = argmax(values);
  const float best_logit = values[static_cast<size_t>(best)];
  if (best_logit == kNever) {
    return base::error("no token may be drawn: the mask forbids all {} of them", logits.size());
  }
  scratch.kept.clear();
  if (params.temperature == 0) {
    scratch.kept.push_back({.logit = best_logit, .id = best, .weight = 1});
    return Distribution{.tokens = scratch.kept, .weight = 1};
  }
  const double max = best_logit;
  const WeightedToken last = last_by_logit(values, params, max, scratch);
  double weight = 0;
  for (size_t id = 0; id < values.size(); ++id) {
    WeightedToken token = {.logit = values[id], .id = static_cast<int32_t>(id)};
    if (ranks_before(last, token)) continue;
    token.weight = std::exp((static_cast<double>(token.logit) - max) / params.temperature);
    weight += token.weight;
    scratch.kept.push_back(token);
  }
  CHECK(std::isfinite(weight), "the logits are not finite");
  if (params.top_p < 1) {
    keep_top_p(params.top_p, weight, scratch);
    weight = sum_of_weights(scratch.kept);
  }
  return Distribution{.tokens = scratch.kept, .weight = weight};
}

Logprobs logprobs_of(std::span<const float> logits, int32_t id, int32_t num_top,
                     DrawScratch& scratch) {
  const double normalizer = log_sum_exp(logits);
  return {.logprob = logits[static_cast<size_t>(id)] - normalizer,
          .top = top_logprobs(logits, static_cast<size_t>(num_top), normalizer, scratch)};
}

base::Result<DrawnToken> draw(std::span<const float> logits, const SamplingParams& params,
                              const TokenHistory& history, int64_t output_position,
                              std::span<const uint32_t> allowed, DrawScratch& scratch) {
  const Distribution drawn_from = TRY(distribution(logits, params, history, allowed, scratch));
  const base::RandomStream stream = base::random_stream(params.seed, "sample");
  const double target = stream.uniform(static_cast<uint64_t>(output_position)) * drawn_from.weight;
  // Rounding can make the target the whole weight: then it is the first-ranked token.
  DrawnToken drawn;
  double sum = 0;
  const auto at = std::ranges::find_if(drawn_from.tokens, [&](const WeightedToken& token) {
    return (sum += token.weight) > target;
  });
  if (at != drawn_from.tokens.end()) {
    drawn.id = at->id;
  } else {
    drawn.id = std::ranges::min_element(drawn_from.tokens, ranks_before)->id;
  }
  if (params.num_top_logprobs) {
    const Logprobs logprobs = logprobs_of(logits, drawn.id, *params.num_top_logprobs, scratch);
    drawn.logprob = logprobs.logprob;
    drawn.top_logprobs = logprobs.top;
  }
  return drawn;
}

int32_t sample(std::span<const float> logits, const SamplingParams& params,
               int64_t output_position) {
  CHECK(!uses_history(params));
  DrawScratch scratch(std::ssize(logits));
  const base::Result<DrawnToken> drawn =
      draw(logits, params, TokenHistory{}, output_position, {}, scratch);
  CHECK(drawn.has_value(), "no token may be drawn");
  return drawn->id;
}

}  // namespace ingot::engine
