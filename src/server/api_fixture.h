#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/model_text.h"
#include "server/answer_collector.h"
#include "server/prepared_request.h"
#include "text/tokenizer_fixture.h"

namespace ingot::server {

// The small tokenizer with GLM's markers, and a template that reads the usual switches.
inline engine::ModelText small_model_text() {
  return {.tokenizer = text::tokenizer_of(text::small_glm_tokenizer_json()),
          .chat_template =
              text::ChatTemplate::parse(
                  "[gMASK]<sop>{% if tools %}<|system|>{{ tools | tojson }}{% endif %}"
                  "{% if reasoning_effort %}<|system|>{{ reasoning_effort }}{% endif %}"
                  "{% for m in messages %}"
                  "{% if m.role == 'bad' %}{{ raise_exception('no such role') }}{% endif %}"
                  "<|{{ m.role }}|>{{ m.content if m.content is string else m.content | tojson }}"
                  "{% for call in m.tool_calls or [] %}"
                  "<tool_call>{{ call.function.name }}{{ call.function.arguments | tojson }}"
                  "</tool_call>{% endfor %}{% endfor %}"
                  "{% if add_generation_prompt %}<|assistant|><think>"
                  "{% if enable_thinking is defined and not enable_thinking %}</think>{% endif %}"
                  "{% endif %}",
                  "small", {})
                  .value()};
}

inline ModelFacts small_model_facts() {
  return {.vocab_size = 280, .num_context_tokens = 500, .sampling = {}, .seed = 7};
}

// The engine's part: a prompt of `num_prompt_tokens`, then `tokens` in updates of `step`, each with
// the logprob -0.5 and beside it, likelier, the token 'A'.
struct FakeAnswer {
  std::vector<int32_t> tokens = {};
  engine::EngineReport report = {};
  size_t step = 1;
};

inline engine::TokenLogprobs fake_logprobs(int32_t id, int32_t num_top) {
  engine::TokenLogprobs logprobs{.token = {.id = id, .logprob = -0.5}, .top = {}};
  if (num_top > 0) logprobs.top.push_back({.id = 'A', .logprob = -0.25});
  if (num_top > 1) logprobs.top.push_back(logprobs.token);
  return logprobs;
}

// What the engine would send for a choice.
inline std::vector<engine::EngineUpdate> fake_updates(const engine::EngineRequest& request,
                                                      FakeAnswer answer) {
  std::vector<engine::EngineUpdate> updates;
  const auto num_top = request.sampling.num_top_logprobs;
  if (request.wants_prompt_logprobs) {
    engine::EngineUpdate& update = updates.emplace_back();
    for (size_t i = 1; i < request.prompt.size(); ++i) {
      update.prompt_logprobs.push_back(fake_logprobs(request.prompt[i], num_top.value()));
    }
  }
  for (size_t at = 0; at < answer.tokens.size(); at += answer.step) {
    engine::EngineUpdate& update = updates.emplace_back();
    for (size_t i = at; i < std::min(at + answer.step, answer.tokens.size()); ++i) {
      update.tokens.push_back(answer.tokens[i]);
      if (num_top) update.logprobs.push_back(fake_logprobs(answer.tokens[i], *num_top));
    }
  }
  answer.report.usage.num_prompt_tokens = static_cast<int32_t>(request.prompt.size());
  answer.report.usage.num_output_tokens = static_cast<int32_t>(answer.tokens.size());
  updates.push_back({.report = std::move(answer.report)});
  return updates;
}

// The whole way from a prepared request to its answer, choices one after another.
inline ApiResult<base::json::object> collect(const PreparedRequest& prepared,
                                             const std::vector<FakeAnswer>& answers) {
  AnswerCollector collector(prepared.form,
                            {.id = "17", .model = "small", .created = 1'700'000'000});
  for (size_t i = 0; i < answers.size(); ++i) {
    for (engine::EngineUpdate& update : fake_updates(prepared.choices.at(i), answers[i])) {
      collector.add(i, std::move(update));
    }
  }
  return collector.body();
}

// Ids of a text with its markers.
inline std::vector<int32_t> ids_of(const engine::ModelText& model_text, std::string_view text) {
  return model_text.tokenizer.encode(text, text::ControlTokens::kRecognise).value();
}

}  // namespace ingot::server
