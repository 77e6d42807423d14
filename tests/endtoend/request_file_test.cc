// `ingot generate --requests`: a file of requests in OpenAI's batch format, answered by the bundled
// model. What a line is answered depends on that line alone, whatever happens to the job.

#include <csignal>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <boost/json/serialize.hpp>

#include "base/clock.h"
#include "base/scratch_directory.h"
#include "endtoend/program.h"
#include "model/config_fixture.h"

namespace ingot::endtoend {
namespace {

namespace fs = std::filesystem;
namespace json = base::json;
using model::json_of;

const std::string kModel = INGOT_SOURCE_DIR "/models/ingot-3m";
constexpr double kSecondsMax = 60;

std::string line(const std::string& id, const std::string& url, const json::object& body) {
  return json::serialize(
             json::object{{"custom_id", id}, {"method", "POST"}, {"url", url}, {"body", body}}) +
         "\n";
}

json::object chat(const std::string& message) {
  return {{"model", "ingot-3m"},
          {"messages", json::array{json::object{{"role", "user"}, {"content", message}}}},
          {"max_tokens", 40}};
}

// Requests of both kinds, greedy and drawn, some with several choices or a common beginning.
std::string some_requests(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    const std::string id = fmt::format("request {}", i);
    json::object body = chat(
        fmt::format("Tom has {} apples and buys {} more. How many apples does he have?", i, 7));
    if (i % 4 == 1) body["temperature"] = 0;
    if (i % 4 == 2) body["n"] = 2;
    if (i % 4 == 3) {
      body = {{"prompt", json::array{1, 2, 3, 40 + i}}, {"max_tokens", 30}, {"logprobs", 2}};
      text += line(id, "/v1/completions", body);
      continue;
    }
    text += line(id, "/v1/chat/completions", body);
  }
  return text;
}

std::vector<json::object> lines_of(const fs::path& path) {
  std::vector<json::object> lines;
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) lines.push_back(json_of(text).as_object());
  return lines;
}

// What was said, without what depends on company: tokens found in the cache, drafts, times.
std::vector<std::string> choices_of(const fs::path& path) {
  std::vector<std::string> choices;
  for (const json::object& answer : lines_of(path)) {
    choices.push_back(std::string(answer.at("custom_id").as_string()) + ": " +
                      json::serialize(answer.at("response").at("body").at("choices")));
  }
  return choices;
}

class RequestFile : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (scratch_ / name).string(); }

  std::vector<std::string> command(const std::string& out,
                                   const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"generate", kModel,    "--requests", path("in.jsonl"),
                                      "--out",    path(out), "--threads",  "1"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  // Starts a job, and sends it the signal once so many lines are answered. False: it was done
  // before.
  bool interrupt(const std::string& out, int num_lines, int signal, int* status) const {
    const pid_t child = ::fork();
    if (child == 0) {
      const int null = ::open("/dev/null", O_WRONLY);
      ::dup2(null, STDOUT_FILENO);
      ::dup2(null, STDERR_FILENO);
      execute_ingot(command(out, {"--max-running", "2"}));
    }
    const base::SystemClock clock;
    const auto begin = clock.now();
    const auto is_far_enough = [&] {
      const std::string text =
          fs::exists(path(out) + ".partial") ? contents(path(out) + ".partial") : "";
      return std::ranges::count(text, '\n') >= num_lines;
    };
    while (!is_far_enough() && !fs::exists(path(out))) {
      EXPECT_LT(base::seconds(clock.now() - begin), kSecondsMax);
      if (base::seconds(clock.now() - begin) > kSecondsMax) break;
      ::usleep(2000);
    }
    ::kill(child, signal);
    EXPECT_EQ(::waitpid(child, status, 0), child);
    return !fs::exists(path(out));
  }

  base::ScratchDirectory scratch_;
};

TEST_F(RequestFile, EachLineHasItsAnswerInOrder) {
  json::object stops{{"prompt", "[gMASK]<sop>Tom has"}, {"max_tokens", 30}, {"stop", "o"}};
  json::object unknown = chat("Hello!");
  unknown["telepathy"] = true;
  json::object other = chat("Hello!");
  other["model"] = "gpt-4o";
  json::object long_one = chat("Hello!");
  long_one["max_tokens"] = 1 << 20;
  const std::string chats = "/v1/chat/completions";
  write_file(path("in.jsonl"), line("a", chats, chat("Hello!")) + "\n" +
                                   line("b", "/v1/completions", stops) + "this is no JSON\n" +
                                   line("c", "/v1/embeddings", {}) + line("d", chats, unknown) +
                                   line("a", chats, chat("Hello!")) + line("e", chats, other) +
                                   line("f", chats, long_one));
  const Outcome outcome = run_ingot(command("out.jsonl", {"--json"}));
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  EXPECT_TRUE(outcome.err.contains("6 of 8 lines have an error")) << outcome.err;
  EXPECT_TRUE(outcome.err.contains("memory: ")) << outcome.err;
  const json::object summary = json_of(outcome.out).as_object();
  EXPECT_EQ(summary.at("schema"), "ingot.batch/1");
  EXPECT_EQ(summary.at("failed"), 6);
  const std::vector<json::object> answers = lines_of(path("out.jsonl"));
  ASSERT_EQ(answers.size(), 8u);
  const auto status = [&](size_t i) { return answers[i].at("response").at("status_code"); };
  const auto message = [&](size_t i) {
    return json::serialize(answers[i].at("response").at("body").at("error").at("message"));
  };
  const json::value& said = answers[0].at("response").at("body");
  EXPECT_EQ(said.at("object"), "chat.completion");
  EXPECT_EQ(said.at("choices").at(0).at("message").at("role"), "assistant");
  EXPECT_EQ(said.at("usage").at("prompt_tokens").as_int64() +
                said.at("usage").at("completion_tokens").as_int64(),
            said.at("usage").at("total_tokens").as_int64());
  const json::value& stopped = answers[1].at("response").at("body").at("choices").at(0);
  EXPECT_EQ(stopped.at("finish_reason"), "stop");
  EXPECT_FALSE(std::string_view(stopped.at("text").as_string()).contains('o'));
  EXPECT_TRUE(answers[2].at("response").is_null());
  EXPECT_TRUE(answers[2].at("error").is_object());
  EXPECT_TRUE(json::serialize(answers[3].at("error")).contains("/v1/embeddings"));
  EXPECT_EQ(status(4), 400);
  EXPECT_TRUE(message(4).contains("telepathy"));
  EXPECT_EQ(answers[5].at("error").at("code"), "duplicate_custom_id");
  EXPECT_EQ(status(6), 404);
  EXPECT_TRUE(message(6).contains("gpt-4o"));
  EXPECT_EQ(status(7), 400);
  const Outcome again = run_ingot(command("out.jsonl"));
  EXPECT_EQ(again.status, 2);
  EXPECT_TRUE(again.err.contains("exists already")) << again.err;
}

TEST_F(RequestFile, AnAnswerIsWhatGenerateSaysToTheSamePrompt) {
  json::object greedy{{"prompt", json::array{1, 2, 3, 43}}, {"max_tokens", 30}, {"temperature", 0}};
  json::object drawn = greedy;
  drawn["temperature"] = 0.8;
  drawn["top_p"] = 0.9;
  drawn["seed"] = 12;
  write_file(path("in.jsonl"),
             line("greedy", "/v1/completions", greedy) + line("drawn", "/v1/completions", drawn));
  ASSERT_EQ(run_ingot(command("out.jsonl")).status, 0);
  const std::vector<json::object> answers = lines_of(path("out.jsonl"));
  write_file(path("ids.json"), "[1, 2, 3, 43]");
  std::vector<std::string> words = {"generate",       kModel,         "--token-ids",
                                    path("ids.json"), "--max-tokens", "30",
                                    "--json",         "--threads",    "1"};
  const auto expect_same = [&](const json::object& answer) {
    const Outcome alone = run_ingot(words);
    EXPECT_EQ(answer.at("response").at("body").at("choices").at(0).at("token_ids"),
              json_of(alone.out).at("token_ids"));
  };
  expect_same(answers[0]);
  words.insert(words.end(), {"--temperature", "0.8", "--top-p", "0.9", "--seed", "12"});
  expect_same(answers[1]);
}

TEST_F(RequestFile, EveryAnswerHasAnIdOfItsOwnThatItsPlaceDoesNotDecide) {
  write_file(path("in.jsonl"), some_requests(5));
  const auto ids_of = [&](const std::string& out, const std::vector<std::string>& more) {
    EXPECT_EQ(run_ingot(command(out, more)).status, 0);
    std::set<std::string> ids;
    for (const json::object& answer : lines_of(path(out))) {
      ids.emplace(answer.at("response").at("body").at("id").as_string());
    }
    return ids;
  };
  const std::set<std::string> ids = ids_of("a.jsonl", {});
  EXPECT_EQ(ids.size(), 5u);
  EXPECT_EQ(ids_of("b.jsonl", {"--max-running", "1"}), ids);
  EXPECT_NE(ids_of("c.jsonl", {"--seed", "2"}), ids);
}

// A line that is no request has its custom_id all the same, whether or not the job was interrupted
// after it.
TEST_F(RequestFile, AnIdThatABadLineHadIsNotFreeAgain) {
  const std::string chats = "/v1/chat/completions";
  write_file(path("in.jsonl"), line("a", "/v1/embeddings", {}) + line("a", chats, chat("Hello!")));
  EXPECT_EQ(run_ingot(command("whole.jsonl")).status, 1);
  const std::string whole = contents(path("whole.jsonl"));
  EXPECT_EQ(lines_of(path("whole.jsonl"))[1].at("error").at("code"), "duplicate_custom_id");
  fs::rename(path("whole.jsonl.job.json"), path("again.jsonl.job.json"));
  write_file(path("again.jsonl.partial"), whole.substr(0, whole.find('\n') + 1));
  EXPECT_EQ(run_ingot(command("again.jsonl")).status, 1);
  EXPECT_EQ(contents(path("again.jsonl")), whole);
}

TEST_F(RequestFile, CompanyCacheDraftsAndThreadsChangeNothing) {
  write_file(path("in.jsonl"), some_requests(12));
  ASSERT_EQ(run_ingot(command("plain.jsonl", {"--speculative-tokens", "0", "--max-running", "1",
                                              "--no-prefix-cache"}))
                .status,
            0);
  const std::vector<std::string> plain = choices_of(path("plain.jsonl"));
  int run = 0;
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--speculative-tokens", "3"},
        {"--max-running", "3", "--max-step-tokens", "16", "--speculative-tokens", "0"},
        {"--kv-tokens", "480", "--speculative-tokens", "2", "--threads", "2"}}) {
    const std::string out = fmt::format("out{}.jsonl", ++run);
    std::vector<std::string> words = command(out);
    if (options.back() == "2") words.resize(words.size() - 2);
    words.insert(words.end(), options.begin(), options.end());
    words.emplace_back("--json");
    const Outcome outcome = run_ingot(words);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(choices_of(path(out)), plain) << out;
    const json::object summary = json_of(outcome.out).as_object();
    EXPECT_GT(summary.at("cached_tokens").as_int64(), 0);
    EXPECT_EQ(summary.at("accepted_tokens").as_int64() > 0, run != 2);
    EXPECT_TRUE(run != 3 || summary.at("preemptions").as_int64() > 0);
  }
}

TEST_F(RequestFile, AKilledJobGoesOnWhereItWas) {
  write_file(path("in.jsonl"), some_requests(28));
  ASSERT_EQ(run_ingot(command("whole.jsonl")).status, 0);
  int status = 0;
  int num_interruptions = 0;
  for (const int num_lines : {1, 7, 16, 22}) {
    if (interrupt("killed.jsonl", num_lines, SIGKILL, &status)) ++num_interruptions;
  }
  EXPECT_GT(num_interruptions, 0);
  if (!fs::exists(path("killed.jsonl"))) {
    const Outcome last = run_ingot(command("killed.jsonl", {"--json"}));
    EXPECT_EQ(last.status, 0) << last.err;
    EXPECT_GT(json_of(last.out).at("found").as_int64(), 0);
  }
  EXPECT_EQ(choices_of(path("killed.jsonl")), choices_of(path("whole.jsonl")));
}

TEST_F(RequestFile, CtrlCEndsItWithWhatIsDone) {
  write_file(path("in.jsonl"), some_requests(40));
  int status = 0;
  ASSERT_TRUE(interrupt("out.jsonl", 2, SIGINT, &status)) << "it was done before the signal";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
  const Outcome other = run_ingot(command("out.jsonl", {"--seed", "5"}));
  EXPECT_EQ(other.status, 2);
  EXPECT_TRUE(other.err.contains("seed = 0, and now it is 5")) << other.err;
  EXPECT_EQ(run_ingot(command("out.jsonl")).status, 0);
  EXPECT_EQ(lines_of(path("out.jsonl")).size(), 40u);
}

TEST_F(RequestFile, AFullDiskIsOneLineAndTheJobGoesOn) {
  write_file(path("in.jsonl"), some_requests(20));
  const Outcome full = run_ingot(command("out.jsonl"), {.file_size_bytes_max = 6000});
  EXPECT_EQ(full.status, 2);
  EXPECT_TRUE(full.err.contains("out.jsonl.partial: cannot be written")) << full.err;
  EXPECT_FALSE(fs::exists(path("out.jsonl")));
  const size_t num_written = lines_of(path("out.jsonl.partial")).size();
  EXPECT_GT(num_written, 0u);
  const Outcome outcome = run_ingot(command("out.jsonl", {"--json"}));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(json_of(outcome.out).at("found"), num_written);
}

// What could not be gone on with stays as it is, and the right command still goes on.
TEST_F(RequestFile, ARefusedCommandLosesNoAnswer) {
  write_file(path("in.jsonl"), some_requests(40));
  int status = 0;
  ASSERT_TRUE(interrupt("out.jsonl", 3, SIGKILL, &status)) << "it was done before the signal";
  const std::string partial = contents(path("out.jsonl.partial"));
  const auto expect_refused = [&](const std::vector<std::string>& more, const char* phrase) {
    const Outcome outcome = run_ingot(command("out.jsonl", more));
    EXPECT_EQ(outcome.status, 2);
    EXPECT_TRUE(outcome.err.contains(phrase)) << outcome.err;
    EXPECT_EQ(contents(path("out.jsonl.partial")), partial);
  };
  expect_refused({"--kv-tokens", "640"}, "context_tokens = 32768, and now it is 640");
  expect_refused({"--activations", "f32"}, "activations = \"bf16\"");
  write_file(path("in.jsonl"), some_requests(1));
  expect_refused({}, "input_bytes = ");
  write_file(path("in.jsonl"), some_requests(40));
  EXPECT_EQ(run_ingot(command("out.jsonl")).status, 0);
}

TEST_F(RequestFile, WhatIsMissingIsSaid) {
  write_file(path("in.jsonl"), some_requests(1));
  const auto expect_refused = [&](const std::vector<std::string>& words, const char* phrase) {
    const Outcome outcome = run_ingot(words);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_TRUE(outcome.err.contains(phrase)) << outcome.err;
  };
  expect_refused({"generate", kModel, "--requests", path("in.jsonl")}, "--out");
  expect_refused({"generate", kModel, "--requests", path("none"), "--out", path("o")}, "none");
  expect_refused(command("o", {"--temperature", "1"}), "--temperature");
  expect_refused(command("o", {"--kv-tokens", "1000000000"}), "a cache of 1000000000 tokens");
  expect_refused(command("o", {"--simulate-acceptance", "0.9,0.8"}), "these are real");
  expect_refused(command("none/o"), "none/o.partial: cannot be written");
  write_file(path("s.partial"), "precious");
  expect_refused(command("s"), "not begun by this command");
  EXPECT_EQ(contents(path("s.partial")), "precious");
  write_file(path("in.jsonl"), "\n");
  expect_refused(command("o"), "there is no request in it");
  EXPECT_FALSE(fs::exists(path("o.partial")));
}

}  // namespace
}  // namespace ingot::endtoend
