#include "simulation/workload.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "simulation/continuation.h"

namespace ingot::simulation {
namespace {

constexpr int32_t kNumSharedPrefixes = 8;
constexpr size_t kNumEarlier = 48;
constexpr int32_t kLongPrompt = 300;

}  // namespace

Workload::Workload(const Setup& setup, int64_t num_requests)
    : setup_(setup), num_left_(num_requests), dice_(base::random_stream(setup.seed, "workload")) {
  for (int32_t i = 0; i < kNumSharedPrefixes; ++i) {
    shared_prefixes_.push_back(draw_tokens(dice_.between(16, 200)));
  }
}

std::optional<RequestPlan> Workload::next() {
  if (num_left_ == 0) return std::nullopt;
  --num_left_;
  RequestPlan plan;
  plan.request.id = ++last_id_;
  // Bursts: of some arrivals nothing is known but that they come together.
  if (!dice_.chance(0.3)) {
    const double gap =
        -std::log(1 - dice_.uniform()) * static_cast<double>(setup_.mean_gap.count());
    last_arrival_ += base::Duration(static_cast<int64_t>(gap));
  }
  plan.arrival = last_arrival_;
  constexpr std::array<const char*, 4> kSalts = {"", "", "blue", "red"};
  plan.request.cache_salt = kSalts[static_cast<size_t>(dice_.between(0, 3))];
  draw_prompt(plan.request);
  draw_limits(plan);
  draw_mishaps(plan);

  earlier_.push_back({plan.request.prompt, plan.request.cache_salt, plan.request.max_tokens});
  if (earlier_.size() > kNumEarlier) earlier_.pop_front();
  return plan;
}

std::vector<int32_t> Workload::draw_tokens(int32_t count) {
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  for (int32_t& token : tokens) token = dice_.between(0, kVocabulary - 1);
  return tokens;
}

void Workload::draw_prompt(scheduler::Request& request) {
  std::vector<int32_t>& prompt = request.prompt;
  const double kind = dice_.uniform();
  if (kind < 0.4) {  // a system prompt, whole or cut anywhere, and a question
    prompt = shared_prefixes_[static_cast<size_t>(dice_.between(0, kNumSharedPrefixes - 1))];
    if (dice_.chance(0.4)) {
      prompt.resize(static_cast<size_t>(dice_.between(1, static_cast<int32_t>(prompt.size()))));
    }
    const std::vector<int32_t> question = draw_tokens(dice_.between(0, 40));
    prompt.insert(prompt.end(), question.begin(), question.end());
  } else if (kind < 0.65 && !earlier_.empty()) {
    const auto last = static_cast<int32_t>(earlier_.size()) - 1;
    const Earlier earlier = earlier_[static_cast<size_t>(dice_.between(0, last))];
    if (kind < 0.5) {
      prompt = earlier.prompt;
      if (dice_.chance(0.7)) request.cache_salt = earlier.salt;
    } else {
      continue_conversation(earlier, request);
    }
  } else {
    prompt = draw_tokens(dice_.chance(0.1) ? dice_.between(1, kLongPrompt) : dice_.between(1, 48));
  }
  if (prompt.size() > kLongPrompt) prompt.resize(kLongPrompt);
}

void Workload::continue_conversation(const Earlier& earlier, scheduler::Request& request) {
  request.cache_salt = earlier.salt;
  request.prompt = earlier.prompt;
  Continuation truth(setup_.seed, earlier.salt, earlier.prompt);
  const auto num_prompt_tokens = static_cast<int32_t>(earlier.prompt.size());
  const int32_t num_answered = dice_.between(0, earlier.max_tokens);
  for (int32_t i = 0; i < num_answered; ++i) {
    request.prompt.push_back(truth.token(num_prompt_tokens + i));
  }
  const std::vector<int32_t> question = draw_tokens(dice_.between(1, 24));
  request.prompt.insert(request.prompt.end(), question.begin(), question.end());
}

void Workload::draw_limits(RequestPlan& plan) {
  scheduler::Request& request = plan.request;
  const double length = dice_.uniform();
  request.max_tokens = length < 0.04   ? 0
                       : length < 0.1  ? 1
                       : length < 0.92 ? dice_.between(2, setup_.usual_max_tokens)
                                       : dice_.between(25, 100);
  if (dice_.chance(0.4)) {
    request.stop_token_ids = draw_tokens(dice_.between(1, 2));
    if (dice_.chance(0.3)) request.min_tokens = dice_.between(0, request.max_tokens);
  }
  if (dice_.chance(0.15)) request.priority = dice_.between(-1, 2);
  if (dice_.chance(0.05)) {
    request.deadline = plan.arrival + setup_.step_cost * dice_.between(0, 200);
  }
  if (dice_.chance(0.05)) {
    request.reads_prefix_cache = false;
    request.wants_prompt_logits = dice_.chance(0.7);
  }
  if (dice_.chance(0.15)) request.max_draft_tokens = dice_.between(0, 3);
  plan.draft_acceptance = dice_.chance(0.2) ? dice_.between(0, 1) : dice_.uniform();
}

void Workload::draw_mishaps(RequestPlan& plan) {
  const auto draw_moment = [this] {
    return dice_.chance(0.5) ? Moment::kUnderWay : Moment::kCommitted;
  };
  if (dice_.chance(0.12)) {
    plan.cancel = dice_.chance(0.2) ? Moment::kWaiting : draw_moment();
    plan.cancel_count = dice_.chance(0.5) ? dice_.between(1, 3) : dice_.between(1, 20);
  }
  if (dice_.chance(0.08)) {
    plan.stop = draw_moment();
    plan.stop_length = dice_.between(0, 12);
    plan.stop_surplus = dice_.between(0, 3);
  }
  if (dice_.chance(0.02)) {
    plan.failing_batch = dice_.chance(0.5) ? dice_.between(1, 2) : dice_.between(1, 12);
    plan.fails_whole_step = dice_.chance(0.2);
  }
}

}  // namespace ingot::simulation
