#include "server/prepared_request.h"

#include <algorithm>
#include <limits>

#include "server/chat_prompt.h"

namespace ingot::server {
namespace {

using text::TemplateValue;

// A prompt in ids, and what is shown of it.
struct EncodedPrompt {
  std::vector<int32_t> ids;
  ShownPrompt shown;
};

// The request's fields where it has them, else the model's.
ApiResult<engine::SamplingParams> sampling_params(const AnswerFields& answer,
                                                  const ModelFacts& facts) {
  const SamplingDefaults& defaults = facts.sampling;
  engine::SamplingParams params{
      .temperature = answer.temperature.value_or(defaults.temperature),
      .top_k = answer.top_k.value_or(defaults.top_k),
      .top_p = answer.top_p.value_or(defaults.top_p),
      .min_p = answer.min_p.value_or(defaults.min_p),
      .repetition_penalty = answer.repetition_penalty.value_or(defaults.repetition_penalty),
      .presence_penalty = answer.presence_penalty,
      .frequency_penalty = answer.frequency_penalty,
      .logit_bias = answer.logit_bias,
      .seed = answer.seed.value_or(facts.seed)};
  // The engine counts once for both.
  if (answer.top_logprobs || answer.prompt_logprobs) {
    params.num_top_logprobs =
        std::max(answer.top_logprobs.value_or(0), answer.prompt_logprobs.value_or(0));
  }
  if (const base::Status status = engine::check(params, facts.vocab_size); !status) {
    // Its errors begin with the field.
    const std::string& message = status.error().message;
    return refuse(message.substr(0, message.find(' ')), "{}", message);
  }
  return params;
}

ApiResult<void> check_ids(std::string_view field, const std::vector<int32_t>& ids,
                          const ModelFacts& facts) {
  const auto wrong = std::ranges::find_if(ids, [&](int32_t id) { return id >= facts.vocab_size; });
  if (wrong == ids.end()) return {};
  return refuse(field, "{} has token {}; ids are from 0 to {}", field, *wrong,
                facts.vocab_size - 1);
}

ApiResult<void> check_room(std::string_view field, size_t num_prompt_tokens,
                           const AnswerFields& answer, const ModelFacts& facts) {
  const int64_t room = facts.num_context_tokens - static_cast<int64_t>(num_prompt_tokens);
  if (answer.max_tokens.value_or(1) > room) {
    ApiError error{
        .message = fmt::format(
            "the prompt has {} tokens{}; a request can have {} here, answer "
            "included",
            num_prompt_tokens,
            answer.max_tokens ? fmt::format(" and max_tokens is {}", *answer.max_tokens) : "",
            facts.num_context_tokens),
        .param = std::string(field),
        .code = "context_length_exceeded"};
    return std::unexpected(std::move(error));
  }
  const int64_t max_tokens = answer.max_tokens ? *answer.max_tokens : room;
  if (answer.min_tokens <= max_tokens) return {};
  return refuse("min_tokens", "min_tokens is {}, more than the {} that {}", answer.min_tokens,
                max_tokens, answer.max_tokens ? "max_tokens allows" : "the context leaves");
}

AnswerForm form_of(Endpoint endpoint, const AnswerFields& answer,
                   const engine::ModelText* model_text) {
  return {.endpoint = endpoint,
          .tokenizer = model_text == nullptr ? nullptr : &model_text->tokenizer,
          .num_choices_per_prompt = answer.n,
          .stops = {.strings = answer.stop, .min_tokens = answer.min_tokens},
          .stop_token_ids = answer.stop_token_ids,
          .top_logprobs = answer.top_logprobs,
          .prompt_logprobs = answer.prompt_logprobs,
          .stream = answer.stream,
          .include_usage = answer.include_usage};
}

// Adds the choices of one prompt.
ApiResult<void> add_prompt(std::string_view field, EncodedPrompt prompt, const AnswerFields& answer,
                           const ModelFacts& facts, PreparedRequest& prepared) {
  AnswerForm& form = prepared.form;
  TRY(check_ids(field, prompt.ids, facts));
  TRY(check_room(field, prompt.ids.size(), answer, facts));
  const bool wants_prompt_logprobs =
      form.prompt_logprobs.has_value() || (form.echo && form.top_logprobs.has_value());
  if (form.echo || form.prompt_logprobs) {
    prompt.shown.ids = prompt.ids;
    form.prompts.push_back(std::move(prompt.shown));
  }
  engine::SamplingParams sampling = TRY(sampling_params(answer, facts));
  const uint64_t seed = sampling.seed;
  engine::EngineRequest request{.prompt = std::move(prompt.ids),
                                .max_tokens = answer.max_tokens,
                                .min_tokens = answer.min_tokens,
                                .sampling = std::move(sampling),
                                .ignore_eos = answer.ignore_eos,
                                .stop_token_ids = answer.stop_token_ids,
                                .stop_strings = answer.stop,
                                .wants_prompt_logprobs = wants_prompt_logprobs,
                                .priority = answer.priority,
                                .cache_salt = answer.cache_salt};
  for (int32_t i = 0; i < answer.n; ++i) {
    engine::EngineRequest& choice = prepared.choices.emplace_back(request);
    choice.sampling.seed = seed + static_cast<uint64_t>(i);
    choice.wants_prompt_logprobs = wants_prompt_logprobs && i == 0;
  }
  form.num_choices = static_cast<int32_t>(prepared.choices.size());
  return {};
}

ApiResult<void> check_answer(const AnswerFields& answer, const engine::ModelText* model_text,
                             const ModelFacts& facts) {
  if (!answer.stop.empty() && model_text == nullptr) {
    return refuse("stop",
                  "stop needs the model's tokenizer, which it does not have; use "
                  "stop_token_ids");
  }
  return check_ids("stop_token_ids", answer.stop_token_ids, facts);
}

// A field whose value the template would pass over.
ApiResult<void> check_read(const text::ChatTemplate& chat_template, std::string_view field,
                           std::string_view variable) {
  if (reads(chat_template, variable)) return {};
  return std::unexpected(ApiError{
      .message =
          fmt::format("{}: this model's chat template does not read {}", field, shown(variable)),
      .param = std::string(field),
      .code = "unsupported_parameter"});
}

// The request's inputs, with its effort among the template's variables.
ApiResult<text::ChatInputs> chat_inputs(const ChatRequest& request,
                                        const text::ChatTemplate& chat_template) {
  for (const auto& [name, value] : request.inputs.extra) {
    TRY(check_read(chat_template, "chat_template_kwargs", name));
  }
  if (!request.inputs.tools.is_none()) TRY(check_read(chat_template, "tools", "tools"));
  if (!request.inputs.documents.is_none()) TRY(check_read(chat_template, "documents", "documents"));
  text::ChatInputs inputs = request.inputs;
  if (request.reasoning_effort.empty()) return inputs;
  if (request.reasoning_effort != "none") {
    TRY(check_read(chat_template, "reasoning_effort", "reasoning_effort"));
    inputs.extra.emplace_back("reasoning_effort", TemplateValue::data(request.reasoning_effort));
    return inputs;
  }
  // The switch has one of two names.
  const size_t num_given = inputs.extra.size();
  for (const char* name : {"enable_thinking", "thinking"}) {
    const bool given = std::ranges::any_of(
        request.inputs.extra, [&](const auto& argument) { return argument.first == name; });
    if (given) {
      return refuse("reasoning_effort",
                    "reasoning_effort is \"none\" and chat_template_kwargs has {}; give one of "
                    "them",
                    name);
    }
    if (reads(chat_template, name)) inputs.extra.emplace_back(name, TemplateValue::boolean(false));
  }
  if (inputs.extra.size() == num_given) {
    return refuse("reasoning_effort",
                  "reasoning_effort is \"none\", and this model's chat template has no switch for "
                  "its reasoning");
  }
  return inputs;
}

ApiResult<EncodedPrompt> encode(const CompletionPrompt& prompt, const engine::ModelText* model_text,
                                bool is_shown) {
  EncodedPrompt encoded;
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) {
    encoded.ids = *ids;
    if (!is_shown || model_text == nullptr) return encoded;
    auto decoded = model_text->tokenizer.decode(*ids, text::SpecialTokens::kKeep);
    if (!decoded) return refuse("prompt", "prompt: {}", decoded.error().message);
    encoded.shown.text = std::move(*decoded);
    return encoded;
  }
  if (model_text == nullptr) {
    return refuse("prompt", "prompt is text, and the model has no tokenizer; give token ids");
  }
  const std::string& text = std::get<std::string>(prompt);
  auto ids = model_text->tokenizer.encode(text, text::ControlTokens::kAsText);
  if (!ids) return refuse("prompt", "prompt: {}", ids.error().message);
  const auto prefix = model_text->tokenizer.prefix_ids();
  ids->insert(ids->begin(), prefix.begin(), prefix.end());
  encoded.ids = std::move(*ids);
  if (is_shown) encoded.shown = {.num_prefix_ids = prefix.size(), .text = text};
  return encoded;
}

}  // namespace

ApiResult<PreparedRequest> prepare(const ChatRequest& request, const engine::ModelText* model_text,
                                   const ModelFacts& facts, const std::tm& now) {
  if (model_text == nullptr || !model_text->chat_template) {
    return refuse("messages", "the model has no {}; only /v1/completions can be used{}",
                  model_text == nullptr ? "tokenizer" : "chat template",
                  model_text == nullptr ? ", with token ids" : "");
  }
  TRY(check_answer(request.answer, model_text, facts));
  const text::ChatInputs inputs = TRY(chat_inputs(request, *model_text->chat_template));
  auto prompt = render_chat(*model_text, inputs, now);
  if (!prompt) return refuse("messages", "{}", prompt.error().message);
  PreparedRequest prepared;
  prepared.form = form_of(Endpoint::kChatCompletions, request.answer, model_text);
  prepared.form.parser = {.starts_in_reasoning = prompt->ends_in_reasoning,
                          .tool_calls = !request.tools.empty(),
                          .tools = request.tools};
  EncodedPrompt encoded{.ids = std::move(prompt->ids), .shown = {}};
  TRY(add_prompt("messages", std::move(encoded), request.answer, facts, prepared));
  return prepared;
}

ApiResult<PreparedRequest> prepare(const CompletionRequest& request,
                                   const engine::ModelText* model_text, const ModelFacts& facts) {
  TRY(check_answer(request.answer, model_text, facts));
  PreparedRequest prepared;
  prepared.form = form_of(Endpoint::kCompletions, request.answer, model_text);
  prepared.form.echo = request.echo;
  const bool is_shown = request.echo || request.answer.prompt_logprobs.has_value();
  for (const CompletionPrompt& prompt : request.prompts) {
    EncodedPrompt encoded = TRY(encode(prompt, model_text, is_shown));
    TRY(add_prompt("prompt", std::move(encoded), request.answer, facts, prepared));
  }
  return prepared;
}

const AnswerFields& answer_fields(const ApiRequest& request) {
  return std::visit([](const auto& any) -> const AnswerFields& { return any.answer; }, request);
}

ApiResult<PreparedRequest> prepare(const ApiRequest& request, const engine::ModelText* model_text,
                                   const ModelFacts& facts, const std::tm& now) {
  if (const auto* chat = std::get_if<ChatRequest>(&request)) {
    return prepare(*chat, model_text, facts, now);
  }
  return prepare(std::get<CompletionRequest>(request), model_text, facts);
}

}  // namespace ingot::server
