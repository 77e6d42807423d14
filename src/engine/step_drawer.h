#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "engine/model_runner.h"
#include "engine/sampler.h"
#include "engine/sampling_params.h"
#include "engine/token_grammar.h"
#include "engine/token_history.h"
#include "engine/token_logprobs.h"
#include "engine/token_mask.h"
#include "scheduler/batch.h"

namespace ingot::engine {

// What drawing a request's tokens takes, beside what its batches say.
struct DrawingOptions {
  SamplingParams sampling = {};
  int32_t min_tokens = 0;                    // before as many,
  std::vector<int32_t> stop_token_ids = {};  // these, which end the request, cannot be drawn
  bool wants_prompt_logprobs = false;        // with sampling.num_top_logprobs
  std::optional<TokenGrammar> grammar = {};  // REQUIRES: both functions
};

// What a step told beside its tokens, for a sequence of the batch.
struct StepLogprobs {
  std::vector<TokenLogprobs> drawn = {};   // of each drawn token
  std::vector<TokenLogprobs> prompt = {};  // of the prompt's tokens that follow the step's rows
};

// Draws the tokens that follow a step's sequences, verifies drafts by them, and keeps for each
// request what outlives its steps, preemptions included.
//
// A draft is accepted when it equals the token that would be drawn in its place, by the same
// logits, history and random number. So a request's tokens are the same whatever is drafted, and
// with whom it runs. The team shares out the sequences of a large step; who draws for a sequence
// changes nothing. One thread uses it, member 0 of the team.
class StepDrawer {
 public:
  // Logits of a step from which on the team draws. A greedy draw takes 1.4 ns a logit, others seven
  // times as much and more (Zen 3); so half of these take 45 us, about what waking a thread costs.
  static constexpr int64_t kSharedLogitsMin = 1 << 16;

  // `team` must outlive it. Ids outside of `drawable` are never drawn: padding of the vocabulary.
  //
  // With a simulated acceptance draft i of a chain is drawn in its place with that list's i-th
  // probability, 0 beyond its end, given that those before it were, whatever the model says; unless
  // it is an id that may not be drawn. What is drawn then is no text; it is for measurements on
  // weights that draft nothing right. It depends on the request's seed, the output position and the
  // position in the chain.
  // REQUIRES: probabilities in [0, 1].
  StepDrawer(int64_t vocab_size, TokenMask drawable, base::ThreadTeam& team,
             std::vector<double> simulated_acceptance = {});

  // Before the request's first batch. REQUIRES: check(options.sampling) passed, ids are in the
  // vocabulary.
  void add(scheduler::RequestId id, std::span<const int32_t> prompt, DrawingOptions options);
  // After its report.
  void remove(scheduler::RequestId id);

  // Draws for every sequence of the batch that the step computed. What goes wrong with one
  // (logits that are not finite, a mask that allows nothing, no memory) is its result's error.
  // REQUIRES: the requests were added; results and logprobs have an empty element a sequence.
  void draw(const scheduler::Batch& batch, const ComputedStep& step,
            std::span<scheduler::StepResult::Sequence> results, std::span<StepLogprobs> logprobs);

 private:
  struct Drawing {
    DrawingOptions options;
    std::vector<int32_t> prompt;  // where its logprobs are wanted
    TokenHistory history;
    std::optional<TokenMask> mask;  // while min_tokens is not reached
    int32_t num_drawn = 0;
    bool drew_stop = false;  // known where there is a grammar
  };

  // One sequence's part in the step.
  struct Part {
    const scheduler::Batch::Sequence& sequence;
    const ComputedStep::Sequence& computed;
    Drawing& drawing;
    scheduler::StepResult::Sequence& result;
    StepLogprobs& logprobs;
  };

  // A member's memory, on cache lines of its own: with every token that a draw keeps the end of a
  // list moves.
  struct alignas(64) Scratch {
    DrawScratch draw;
    TokenMask mask;
  };

  struct Draft {
    int32_t id;
    size_t index;  // in its chain
  };
  struct Drawn {
    DrawnToken token;
    bool is_draft;  // accepted: what follows it can be drawn as well
  };

  void draw_part(const Part& part, Scratch& scratch) noexcept;
  base::Status draw_tokens(const Part& part, Scratch& scratch);
  base::Status tell_prompt_logprobs(const Part& part, Scratch& scratch);
  std::span<const uint32_t> allowed_ids(Drawing& drawing, Scratch& scratch) const;
  base::Result<Drawn> draw_next(std::span<const float> logits, std::optional<Draft> draft,
                                Drawing& drawing, Scratch& scratch);
  bool simulates(const Draft& draft, std::span<const uint32_t> allowed,
                 const Drawing& drawing) const;
  std::span<const float> logit_row(int64_t row) const;

  const int64_t vocab_size_;
  const TokenMask drawable_;
  base::ThreadTeam& team_;
  const std::vector<double> simulated_acceptance_;
  std::unordered_map<scheduler::RequestId, Drawing> drawings_;
  std::vector<Scratch> scratch_;   // a member of the team
  std::span<const float> logits_;  // of the step
  std::vector<Part> parts_;        // of the step
};

}  // namespace ingot::engine
