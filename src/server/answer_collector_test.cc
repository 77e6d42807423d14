#include "server/answer_collector.h"

#include <gtest/gtest.h>

#include "base/mapped_file.h"
#include "base/output_file.h"
#include "server/api_fixture.h"
#include "server/batch_line.h"

namespace ingot::server {
namespace {

namespace json = base::json;
using scheduler::FinishReason;

constexpr const char* kGoldenFile = INGOT_SOURCE_DIR "/tests/golden/server/answers.jsonl";

base::Instant at(int64_t milliseconds) {
  return base::Instant(std::chrono::milliseconds(milliseconds));
}

engine::EngineReport report_of(FinishReason reason) {
  return {.reason = reason,
          .usage = {.num_cached_tokens = 1, .num_draft_tokens = 6, .num_accepted_tokens = 4},
          .timings = {.arrived = at(1000),
                      .admitted = at(1250),
                      .first_token = at(1500),
                      .finished = at(3500)}};
}

class AnswerCollectors : public testing::Test {
 protected:
  PreparedRequest chat(std::string_view fields) const {
    return prepare(parse_chat_request(
                       fmt::format(R"({{"messages": [{{"role": "user", "content": "hi"}}]{}{}}})",
                                   fields.empty() ? "" : ", ", fields))
                       .value(),
                   &text_, small_model_facts(), {})
        .value();
  }
  PreparedRequest completion(std::string_view fields, const engine::ModelText* model_text) const {
    return prepare(parse_completion_request(fmt::format("{{{}}}", fields)).value(), model_text,
                   small_model_facts())
        .value();
  }
  FakeAnswer says(std::string_view text, FinishReason reason = FinishReason::kStop) const {
    return {.tokens = ids_of(text_, text), .report = report_of(reason)};
  }

  const engine::ModelText text_ = small_model_text();
};

constexpr std::string_view kTool =
    R"("tools": [{"type": "function", "function": {"name": "find", "parameters": {"properties":
       {"query": {"type": "string"}, "limit": {"type": "integer"}}}}}])";

TEST_F(AnswerCollectors, AChat) {
  FakeAnswer answer = says("thoughts</think>\nhello é");
  const json::object body = collect(chat(""), {answer}).value();
  const json::value& choice = body.at("choices").at(0);
  EXPECT_EQ(body.at("id"), "chatcmpl-17");
  EXPECT_EQ(choice.at("message").at("content"), "hello é");
  EXPECT_EQ(choice.at("message").at("reasoning_content"), "thoughts");
  EXPECT_FALSE(choice.at("message").get_object().contains("tool_calls"));
  EXPECT_EQ(choice.at("finish_reason"), "stop");
  EXPECT_TRUE(choice.at("stop_reason").is_null());
  EXPECT_TRUE(choice.at("logprobs").is_null());
  EXPECT_EQ(base::compact_json(body.at("usage")),
            R"({"prompt_tokens":7,"completion_tokens":14,"total_tokens":21,)"
            R"("prompt_tokens_details":{"cached_tokens":1},"completion_tokens_details":)"
            R"({"reasoning_tokens":8,"draft_tokens":6,"accepted_tokens":4}})");
  EXPECT_EQ(base::compact_json(body.at("timings")),
            R"({"queue_seconds":0.25,"prefill_seconds":0.25,"first_token_seconds":0.5,)"
            R"("decode_seconds":2.0,"total_seconds":2.5})");
}

// Drafts make the engine tell several tokens at once.
TEST_F(AnswerCollectors, HoweverTheUpdatesAreCut) {
  const PreparedRequest prepared = chat(R"("logprobs": true, "top_logprobs": 1, "stop": "x")");
  FakeAnswer answer = says("a</think>é hello x");
  answer.report.stopped_by_string = 0;
  const json::object whole = collect(prepared, {answer}).value();
  for (const size_t step : {2, 3, 100}) {
    answer.step = step;
    EXPECT_EQ(collect(prepared, {answer}).value(), whole) << step;
  }
  EXPECT_EQ(whole.at("choices").at(0).at("message").at("content"), "é hello ");
  EXPECT_EQ(whole.at("choices").at(0).at("stop_reason"), "x");
}

TEST_F(AnswerCollectors, ToolCalls) {
  const PreparedRequest prepared = chat(kTool);
  const std::string call =
      "</think><tool_call>find<arg_key>limit</arg_key><arg_value>3</arg_value></tool_call>";
  const auto choice = [&](const FakeAnswer& answer) {
    return collect(prepared, {answer}).value().at("choices").at(0);
  };
  const json::value whole = choice(says(call));
  EXPECT_EQ(whole.at("finish_reason"), "tool_calls");
  EXPECT_TRUE(whole.at("message").at("content").is_null());
  const json::value& made = whole.at("message").at("tool_calls").at(0);
  EXPECT_EQ(made.at("function").at("name"), "find");
  EXPECT_EQ(made.at("function").at("arguments"), R"({"limit": 3})");
  EXPECT_TRUE(std::string_view(made.at("id").as_string()).starts_with("call_"));
  // Cut off within a second call.
  const json::value cut = choice(says(call + "<tool_call>find<arg_key>", FinishReason::kLength));
  EXPECT_EQ(cut.at("finish_reason"), "length");
  EXPECT_EQ(cut.at("message").at("tool_calls").as_array().size(), 1u);
  // A call that nobody offered is text.
  const json::value text = collect(chat(""), {says(call)}).value().at("choices").at(0);
  EXPECT_EQ(text.at("finish_reason"), "stop");
  EXPECT_EQ(text.at("message").at("content"), json::value(call.substr(8)));
}

TEST_F(AnswerCollectors, WhatStoppedIt) {
  const PreparedRequest prepared =
      completion(R"("prompt": "p", "stop": ["zz", "END"], "stop_token_ids": [65])", &text_);
  const auto stop_reason = [&](FakeAnswer answer, auto... stop) {
    (stop(answer.report), ...);
    return collect(prepared, {answer}).value().at("choices").at(0).at("stop_reason");
  };
  EXPECT_EQ(stop_reason(says("some END"), [](auto& report) { report.stopped_by_string = 1; }),
            "END");
  EXPECT_EQ(stop_reason(says("some"), [](auto& report) { report.stopped_by_id = 65; }), 65);
  // The model's own end.
  EXPECT_TRUE(
      stop_reason(says("some"), [](auto& report) { report.stopped_by_id = 260; }).is_null());
  EXPECT_TRUE(stop_reason(says("some", FinishReason::kLength)).is_null());
}

TEST_F(AnswerCollectors, UsageOfSeveralChoices) {
  const PreparedRequest prepared = completion(R"("prompt": ["abc", "de"], "n": 2)", &text_);
  std::vector<FakeAnswer> answers(4, says("xyz"));
  answers[0].report.usage.num_cached_tokens = 0;
  answers[1].report.usage.num_cached_tokens = 3;
  answers[1].report.timings.finished = at(4000);
  const json::object body = collect(prepared, answers).value();
  EXPECT_EQ(body.at("choices").as_array().size(), 4u);
  EXPECT_EQ(body.at("choices").at(3).at("index"), 3);
  EXPECT_EQ(body.at("usage").at("prompt_tokens"), 3 + 2);
  EXPECT_EQ(body.at("usage").at("completion_tokens"), 4 * 3);
  EXPECT_EQ(body.at("usage").at("prompt_tokens_details").at("cached_tokens"), 0 + 1);
  EXPECT_EQ(body.at("timings").at("total_seconds"), 3.0);
}

TEST_F(AnswerCollectors, LogprobsOfATextWithItsPrompt) {
  const PreparedRequest prepared =
      completion(R"("prompt": "éa", "echo": true, "logprobs": 1)", &text_);
  // The second byte of a character does not come.
  FakeAnswer answer{.tokens = {'b', 0xC3, 'A'}, .report = report_of(FinishReason::kLength)};
  const json::object body = collect(prepared, {answer}).value();
  const json::value& choice = body.at("choices").at(0);
  EXPECT_EQ(choice.at("text"), "éab\uFFFDA");
  EXPECT_EQ(base::compact_json(choice.at("logprobs")),
            R"({"tokens":["bytes:\\xc3","bytes:\\xa9","a","b","bytes:\\xc3","A"],)"
            R"("token_logprobs":[null,-0.5,-0.5,-0.5,-0.5,-0.5],)"
            R"("top_logprobs":[null,{"A":-0.25,"bytes:\\xa9":-0.5},{"A":-0.25,"a":-0.5},)"
            R"({"A":-0.25,"b":-0.5},{"A":-0.25,"bytes:\\xc3":-0.5},{"A":-0.25}],)"
            R"("text_offset":[0,0,1,2,3,3]})");
}

// Some tokenizers put a token before every text, which an echo does not show.
TEST_F(AnswerCollectors, AnEchoWithoutThePrefix) {
  json::object description = text::small_glm_tokenizer_json();
  description["post_processor"] = base::parse_json(R"({"type": "TemplateProcessing", "pair": [],
      "single": [{"SpecialToken": {"id": "<sop>"}}, {"Sequence": {"id": "A"}}],
      "special_tokens": {"<sop>": {"id": "<sop>", "ids": [262], "tokens": ["<sop>"]}}})",
                                                   "post_processor")
                                      .value();
  const engine::ModelText with_prefix{.tokenizer = text::tokenizer_of(description),
                                      .chat_template = {}};
  const PreparedRequest prepared =
      completion(R"("prompt": "ab", "echo": true, "logprobs": 0)", &with_prefix);
  EXPECT_EQ(prepared.choices.at(0).prompt, (std::vector<int32_t>{262, 'a', 'b'}));
  const json::object body = collect(prepared, {says("c")}).value();
  EXPECT_EQ(body.at("choices").at(0).at("text"), "abc");
  EXPECT_EQ(base::compact_json(body.at("choices").at(0).at("logprobs").at("text_offset")),
            "[0,0,1,2]");
}

TEST_F(AnswerCollectors, LogprobsOfAPromptAsVllmHasThem) {
  const PreparedRequest prepared =
      completion(R"("prompt": [97, 65, 98], "prompt_logprobs": 1)", &text_);
  const json::object body = collect(prepared, {says("x")}).value();
  EXPECT_EQ(base::compact_json(body.at("choices").at(0).at("prompt_logprobs")),
            R"([null,{"65":{"logprob":-0.25,"rank":1,"decoded_token":"A"}},)"
            R"({"65":{"logprob":-0.25,"rank":1,"decoded_token":"A"},)"
            R"("98":{"logprob":-0.5,"rank":null,"decoded_token":"b"}}])");
  EXPECT_TRUE(body.at("choices").at(0).at("logprobs").is_null());
}

TEST_F(AnswerCollectors, AFailureIsThatOfTheWholeRequest) {
  const PreparedRequest prepared = completion(R"("prompt": "p", "n": 3)", &text_);
  const auto error = [&](FinishReason second, FinishReason third) {
    std::vector<FakeAnswer> answers = {says("a"), says("b", second), says("c", third)};
    answers[2].report.error = "out of luck";
    const auto body = collect(prepared, answers);
    return body ? "none"
                : fmt::format("{} {} {}: {}", body.error().status, body.error().type,
                              body.error().code, body.error().message);
  };
  using enum FinishReason;
  EXPECT_EQ(error(kStop, kLength), "none");
  EXPECT_EQ(error(kCancelled, kError), "500 server_error engine_error: out of luck");
  EXPECT_EQ(error(kStop, kDeadline),
            "504 timeout deadline_exceeded: the request was not finished by its deadline");
  EXPECT_EQ(error(kCancelled, kStop), "499 cancelled cancelled: the request was cancelled");
}

TEST_F(AnswerCollectors, AChoiceThatTheEngineRefuses) {
  const PreparedRequest prepared = completion(R"("prompt": "p", "n": 2)", &text_);
  AnswerCollector collector(prepared.form, {});
  EXPECT_EQ(collector.error(), nullptr);
  collector.refuse(1, {.status = 429, .message = "full"});
  ASSERT_NE(collector.error(), nullptr);
  EXPECT_FALSE(collector.done());
  collector.add(0, {.report = report_of(FinishReason::kCancelled)});
  ASSERT_TRUE(collector.done());
  EXPECT_EQ(collector.body().error().status, 429);
}

// tools/check_responses_with_openai.py reads the file with the package of OpenAI's clients.
TEST_F(AnswerCollectors, GoldenLines) {
  std::string lines;
  const auto add = [&](std::string_view custom_id, const PreparedRequest& prepared,
                       const std::vector<FakeAnswer>& answers) {
    const auto body = collect(prepared, answers);
    lines += body ? batch_answer_line("batch-1", custom_id, "17", *body)
                  : batch_answer_line("batch-1", custom_id, "17", body.error());
  };
  FakeAnswer stopped = says("first</think>one é END");
  stopped.report.stopped_by_string = 0;
  add("chat", chat(R"("n": 2, "stop": "END", "logprobs": true, "top_logprobs": 2)"),
      {stopped, says("second", FinishReason::kLength)});
  add("tools", chat(kTool),
      {says("hm</think>I look.<tool_call>find<arg_key>query</arg_key><arg_value>a \"b\"</arg_value>"
            "<arg_key>limit</arg_key><arg_value>2</arg_value></tool_call>")});
  add("chat with prompt_logprobs", chat(R"("prompt_logprobs": 1)"), {says("</think>x")});
  add("echo",
      completion(R"("prompt": ["hello", "é"], "echo": true, "logprobs": 2, "prompt_logprobs": 0)",
                 &text_),
      {says(" you"), {.tokens = {0xC3, 0xC3}, .report = report_of(FinishReason::kLength)}});
  add("ids", completion(R"("prompt": [5, 6], "logprobs": 1)", nullptr), {says("ab")});
  FakeAnswer failed = says("", FinishReason::kError);
  failed.report.error = "logits of step 3 are not finite";
  add("failed", completion(R"("prompt": "p")", &text_), {failed});
  for (const char* line :
       {R"({"custom_id": "refused", "method": "POST", "url": "/v1/completions",
                               "body": {"prompt": "p", "beam_width": 3}})",
        R"({"custom_id": "other", "method": "POST", "url": "/v1/embeddings"})", "no JSON"}) {
    const auto request = parse_batch_line(line);
    lines += request
                 ? batch_answer_line("batch-1", request->custom_id, "17", request->request.error())
                 : batch_error_line("batch-1", request.error());
  }
  const std::string golden = base::read_text_file(kGoldenFile, 1 << 20).value();
  if (lines == golden) return;
  const std::string written = testing::TempDir() + "/answers.jsonl";
  EXPECT_TRUE(base::write_text_file(written, lines).has_value());
  FAIL() << "compare " << written << " with " << kGoldenFile;
}

}  // namespace
}  // namespace ingot::server
