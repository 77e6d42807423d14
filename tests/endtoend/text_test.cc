// Commands that deal in text, on a model of random weights: what they say is gibberish, and how
// they say it is what counts here.

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <boost/json/serialize.hpp>

#include "base/scratch_directory.h"
#include "endtoend/program.h"
#include "endtoend/terminal.h"
#include "model/config_fixture.h"
#include "text/tokenizer_fixture.h"
#include "text/utf8.h"

namespace ingot::endtoend {
namespace {

namespace fs = std::filesystem;
namespace json = base::json;
using model::json_of;

// In GLM's manner, with a refusal to be passed on.
constexpr std::string_view kTemplate =
    R"([gMASK]<sop>{% for m in messages -%}
{% if m.role == 'system' %}<|system|>{{ m.content }}
{%- elif m.role == 'user' -%}
{% if m.content == 'forbidden' %}{{ raise_exception('not this') }}{% endif -%}
<|user|>{{ m.content }}
{%- else %}<|assistant|></think>{{ m.content }}{% endif %}
{%- endfor %}<|assistant|>
{{- '<think>' if enable_thinking is undefined or enable_thinking else '</think>' }})";

class Text : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = new base::ScratchDirectory;
    json::object config = model::small_config();
    config["vocab_size"] = 288;  // a few more than the tokenizer has
    config["eos_token_id"] = json::array{260, 264};
    config["max_position_embeddings"] = 4096;
    write_file(*scratch_ / "config.json", json::serialize(config));
    const Outcome synth = run_ingot(
        {"synth", model(), "--config", path("config.json"), "--dtype", "f32", "--seed", "5"});
    CHECK(synth.status == 0, synth.err);
    write_file(*scratch_ / "model" / "tokenizer.json",
               json::serialize(text::small_glm_tokenizer_json()));
    write_file(*scratch_ / "model" / "chat_template.jinja", kTemplate);
  }
  static void TearDownTestSuite() { delete scratch_; }

  static std::string model() { return (*scratch_ / "model").string(); }
  static std::string path(const char* name) { return (*scratch_ / name).string(); }

  // The model without one of its files.
  static std::string model_without(const char* file) {
    const fs::path directory = *scratch_ / (std::string("without_") + file);
    if (fs::exists(directory)) return directory.string();
    fs::create_directory(directory);
    for (const auto& entry : fs::directory_iterator(model())) {
      if (entry.path().filename() != file) {
        fs::create_symlink(entry.path(), directory / entry.path().filename());
      }
    }
    return directory.string();
  }

  // The model without a token that ends an answer, and with room for a long one.
  static std::string endless_model() {
    const std::string directory = model_without("config.json");
    json::object config = json_of(contents(*scratch_ / "config.json")).as_object();
    config.erase("eos_token_id");
    config["max_position_embeddings"] = 65536;
    write_file(fs::path(directory) / "config.json", json::serialize(config));
    return directory;
  }

  static std::vector<int64_t> ids_of(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"tokenize", model(), "--json"});
    const Outcome outcome = run_ingot(arguments);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    std::vector<int64_t> ids;
    const json::value result = json_of(outcome.out);
    for (const json::value& id : result.at("token_ids").as_array()) {
      ids.push_back(id.as_int64());
    }
    return ids;
  }

  static base::ScratchDirectory* scratch_;
};

base::ScratchDirectory* Text::scratch_ = nullptr;

using Ids = std::vector<int64_t>;

TEST_F(Text, TokenizeThereAndBack) {
  EXPECT_EQ(ids_of({"--text", "hello é"}), (Ids{259, ' ', 0xC3, 0xA9}));
  EXPECT_EQ(ids_of({"--text", "<|user|>"}), (Ids{'<', '|', 'u', 's', 'e', 'r', '|', '>'}));
  EXPECT_EQ(ids_of({"--text", "<|user|>", "--control-tokens"}), Ids{264});
  EXPECT_EQ(ids_of({"--text", ""}), Ids{});
  write_file(*scratch_ / "text", "he\n");
  EXPECT_EQ(ids_of({"--file", path("text")}), (Ids{256, '\n'}));

  write_file(*scratch_ / "lines", "\"hello\"\n\"\\u00e9 <sop>\"\n\"\"\n");
  const Outcome lines =
      run_ingot({"tokenize", model(), "--jsonl", path("lines"), "--control-tokens"});
  EXPECT_EQ(lines.out, "[259]\n[195,169,32,262]\n[]\n") << lines.err;

  write_file(*scratch_ / "ids", "[259, 32, 195, 169, 264]");
  EXPECT_EQ(run_ingot({"tokenize", model(), "--token-ids", path("ids")}).out, "hello é<|user|>\n");
  const Outcome table =
      run_ingot({"tokenize", model(), "--text", "hello <sop>", "--control-tokens"});
  EXPECT_EQ(table.out,
            "     259  \"hello\"\n      32  \" \"\n     262  \"<sop>\"  control token\n"
            "3 tokens, 11 bytes\n");
}

// Nobody ends a turn by writing a marker into a message.
TEST_F(Text, ControlTokensComeFromTheTemplateAlone) {
  write_file(*scratch_ / "messages",
             R"({"messages": [{"role": "user", "content": "<|user|>"}],
                 "chat_template_kwargs": {"enable_thinking": false}})");
  EXPECT_EQ(ids_of({"--messages", path("messages")}),
            (Ids{261, 262, 264, '<', '|', 'u', 's', 'e', 'r', '|', '>', 265, 268}));
}

TEST_F(Text, GenerateFromAPrompt) {
  const Outcome plain =
      run_ingot({"generate", model(), "--prompt", "hello end", "--max-tokens", "6"});
  ASSERT_EQ(plain.status, 0) << plain.err;
  EXPECT_TRUE(plain.err.contains("5 prompt tokens in ")) << plain.err;
  const Outcome outcome =
      run_ingot({"generate", model(), "--prompt", "hello end", "--max-tokens", "6", "--json"});
  const json::value result = json_of(outcome.out);
  EXPECT_EQ(std::string(result.at("text").as_string()) + "\n", plain.out);
  write_file(*scratch_ / "ids", "[259, 32, 101, 110, 100]");
  const json::value by_ids = json_of(
      run_ingot({"generate", model(), "--token-ids", path("ids"), "--max-tokens", "6", "--json"})
          .out);
  EXPECT_EQ(by_ids.at("token_ids"), result.at("token_ids"));
  EXPECT_TRUE(by_ids.at("text").is_null());
  write_file(*scratch_ / "prompt", "hello end");
  const json::value by_file = json_of(run_ingot({"generate", model(), "--prompt-file",
                                                 path("prompt"), "--max-tokens", "6", "--json"})
                                          .out);
  EXPECT_EQ(by_file.at("token_ids"), result.at("token_ids"));
  const Outcome empty = run_ingot({"generate", model(), "--prompt", ""});
  EXPECT_EQ(empty.status, 2);
  EXPECT_TRUE(empty.err.contains("--prompt: empty; there is nothing to continue")) << empty.err;
  const Outcome none = run_ingot({"generate", model()});
  EXPECT_EQ(none.status, 2);
  EXPECT_TRUE(none.err.contains("give one of --prompt, --prompt-file, --token-ids and --requests"));
}

TEST_F(Text, ChatAnswersWhatIsPiped) {
  const Outcome chat = run_ingot(
      {"chat", model(), "--max-tokens", "5", "--system", "be brief"},
      {.in = "hello\n/tokens\n\nmore \\\nlines\n/nonsense\n/reset\n/tokens\n/exit\nnever read\n"});
  ASSERT_EQ(chat.status, 0) << chat.err;
  EXPECT_TRUE(chat.out.starts_with("<think>\n")) << chat.out;
  EXPECT_TRUE(chat.err.contains("15 prompt tokens in ")) << chat.err;
  EXPECT_TRUE(chat.err.contains("then 5 tokens at ")) << chat.err;
  EXPECT_TRUE(chat.err.contains("no command /nonsense; /help lists them")) << chat.err;
  // Without messages: [gMASK]<sop><|system|>be brief<|assistant|><think>.
  EXPECT_TRUE(chat.out.ends_with("\n13 tokens of 4096\n")) << chat.out;
}

TEST_F(Text, ChatInJsonKeepsTheConversation) {
  const Outcome chat =
      run_ingot({"chat", model(), "--max-tokens", "5", "--json", "--thinking", "off"},
                {.in = "hello hello hello hello hello hello hello hello\nthe same\n"});
  ASSERT_EQ(chat.status, 0) << chat.err;
  EXPECT_EQ(chat.err, "");
  const size_t end = chat.out.find('\n');
  const json::value first = json_of(chat.out.substr(0, end));
  const json::value second = json_of(chat.out.substr(end + 1));
  EXPECT_EQ(first.at("schema"), "ingot.chat/1");
  EXPECT_GT(first.at("usage").at("prompt_tokens").as_int64(), 16);
  EXPECT_EQ(first.at("usage").at("cached_tokens"), 0);
  EXPECT_EQ(first.at("finish_reason"), "length");
  EXPECT_EQ(first.at("reasoning_content"), "");
  // The turn before is in the cache, in whole pages; of its answer as much as has the same tokens
  // once it is text.
  EXPECT_GE(second.at("usage").at("cached_tokens").as_int64(), 16);
}

TEST_F(Text, ChatPassesOnWhatFails) {
  const Outcome forbidden = run_ingot({"chat", model()}, {.in = "forbidden\n"});
  EXPECT_EQ(forbidden.status, 2);
  EXPECT_TRUE(forbidden.err.contains("not this")) << forbidden.err;
  const Outcome full =
      run_ingot({"chat", model(), "--kv-tokens", "16"}, {.in = "a longer message\n"});
  EXPECT_EQ(full.status, 2);
  EXPECT_TRUE(
      full.err.contains("the conversation has 21 tokens, which leaves no room for an answer among "
                        "the 16 of the cache"))
      << full.err;
}

// A template that prints nothing must not bring the program down.
TEST_F(Text, ChatWithATemplateThatSaysNothing) {
  const std::string directory = model_without("chat_template.jinja");
  write_file(fs::path(directory) / "chat_template.jinja", "{# nothing #}");
  const Outcome chat = run_ingot({"chat", directory}, {.in = "hello\n"});
  fs::remove(fs::path(directory) / "chat_template.jinja");
  EXPECT_EQ(chat.status, 2);
  EXPECT_TRUE(chat.err.contains("makes nothing of this conversation")) << chat.err;
}

TEST_F(Text, ChatNoticesThatNobodyCanReadIt) {
  const Outcome chat = run_ingot({"chat", model(), "--max-tokens", "3"},
                                 {.out_file = "/dev/full", .in = "hello\nagain\n"});
  EXPECT_EQ(chat.status, 2);
  EXPECT_TRUE(chat.err.contains("cannot write to standard output")) << chat.err;
}

TEST_F(Text, ChatTakesMessagesInManyForms) {
  const Outcome once = run_ingot({"chat", model(), "hello", "--max-tokens", "3", "--json"});
  ASSERT_EQ(once.status, 0) << once.err;
  EXPECT_EQ(json_of(once.out).at("usage").at("prompt_tokens"), 6);
  const Outcome lines =
      run_ingot({"chat", model(), "--max-tokens", "3", "--json"},
                {.in = "\"\"\"he\nhe\"\"\"\r\n/tokens\n   \nhe\\\nhe\n/reset\nhello\r\n"});
  ASSERT_EQ(lines.status, 0) << lines.err;
  EXPECT_EQ(std::ranges::count(lines.out, '\n'), 3) << "nothing but JSON: " << lines.out;
  EXPECT_EQ(json_of(lines.out.substr(0, lines.out.find('\n'))).at("usage").at("prompt_tokens"), 8);
  const Outcome bad = run_ingot({"chat", model(), "a\xFF"});
  EXPECT_EQ(bad.status, 2);
  EXPECT_TRUE(bad.err.contains("byte 1 of the message is not UTF-8")) << bad.err;
}

TEST_F(Text, ChatNeedsATemplateThatListens) {
  const Outcome none = run_ingot({"chat", model_without("chat_template.jinja")});
  EXPECT_EQ(none.status, 2);
  EXPECT_TRUE(none.err.contains("no chat template")) << none.err;
  const Outcome effort = run_ingot({"chat", model(), "--reasoning-effort", "high"});
  EXPECT_EQ(effort.status, 2);
  EXPECT_TRUE(effort.err.contains("this model's chat template does not read it")) << effort.err;
  const Outcome no_tokenizer = run_ingot({"chat", model_without("tokenizer.json")});
  EXPECT_EQ(no_tokenizer.status, 2);
  EXPECT_TRUE(no_tokenizer.err.contains("tokenizer.json: missing")) << no_tokenizer.err;
}

constexpr std::string_view kPrompt = "> ";
constexpr std::string_view kControlC = "\x03";
constexpr std::string_view kControlD = "\x04";
// Without messages: [gMASK]<sop><|assistant|><think>.
constexpr std::string_view kEmptyConversation = "\n4 tokens of ";

// Types keys at the prompt and waits until `text` has been shown `count` times.
testing::AssertionResult brings(Terminal& terminal, std::string_view keys, std::string_view text,
                                size_t count = 1) {
  if (!terminal.wait_for_prompt(kPrompt)) {
    return testing::AssertionFailure() << "no prompt\n" << terminal.shown();
  }
  terminal.type(keys);
  if (!terminal.wait_for(text, count)) {
    return testing::AssertionFailure() << keys << "\n" << terminal.shown();
  }
  return testing::AssertionSuccess();
}

// Types keys without Enter and Ctrl-C once they are shown; waits for the count-th ^C and the
// prompt.
testing::AssertionResult gives_up(Terminal& terminal, std::string_view keys, size_t count) {
  terminal.type(keys);
  const bool is_shown = keys.empty() || terminal.wait_for_prompt(keys);
  terminal.type(kControlC);
  if (is_shown && terminal.wait_for("^C", count) && terminal.wait_for_prompt(kPrompt)) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << keys << "\n" << terminal.shown();
}

testing::AssertionResult ends_at_control_d(Terminal& terminal) {
  if (!terminal.wait_for_prompt(kPrompt)) return testing::AssertionFailure() << terminal.shown();
  terminal.type(kControlD);
  const int status = terminal.wait_for_end();
  if (status == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "status " << status << "\n" << terminal.shown();
}

TEST_F(Text, ChatInATerminal) {
  if (!Terminal::available()) GTEST_SKIP() << "no pseudo-terminals here; mount devpts";
  Terminal terminal({"chat", model(), "--max-tokens", "4"});
  ASSERT_TRUE(brings(terminal, "grüße\n", "finished: length"));
  EXPECT_TRUE(terminal.shown().contains("\x1b[2m")) << "reasoning is dimmed: " << terminal.shown();
  ASSERT_TRUE(brings(terminal, "grüße\n", "finished: length", 2));
  ASSERT_TRUE(brings(terminal, "forbidden\n", "not this"));
  ASSERT_TRUE(brings(terminal, "/tokens\n", "tokens of 4096"));
  ASSERT_TRUE(brings(terminal, "\x1b[A\n", "tokens of 4096", 2));  // the last line again
  EXPECT_TRUE(ends_at_control_d(terminal));
}

TEST_F(Text, ControlCAtAnEmptyPromptAsksAnew) {
  if (!Terminal::available()) GTEST_SKIP() << "no pseudo-terminals here; mount devpts";
  Terminal terminal({"chat", model(), "--max-tokens", "4"});
  ASSERT_TRUE(terminal.wait_for_prompt(kPrompt)) << terminal.shown();
  for (size_t count = 1; count <= 3; ++count) ASSERT_TRUE(gives_up(terminal, "", count));
  EXPECT_TRUE(brings(terminal, "/tokens\n", kEmptyConversation));
  EXPECT_TRUE(brings(terminal, "hello\n", ": 6 prompt tokens in "));
  EXPECT_TRUE(ends_at_control_d(terminal));
}

TEST_F(Text, ControlCGivesUpTheLineThatIsTyped) {
  if (!Terminal::available()) GTEST_SKIP() << "no pseudo-terminals here; mount devpts";
  Terminal terminal({"chat", model(), "--max-tokens", "4"});
  ASSERT_TRUE(terminal.wait_for_prompt(kPrompt)) << terminal.shown();
  ASSERT_TRUE(gives_up(terminal, "half a line", 1));
  EXPECT_TRUE(brings(terminal, "/tokens\n", kEmptyConversation));
  ASSERT_TRUE(terminal.wait_for_prompt(kPrompt)) << terminal.shown();
  ASSERT_TRUE(gives_up(terminal, "grüße", 2));
  EXPECT_TRUE(brings(terminal, "hello\n", ": 6 prompt tokens in "));
  EXPECT_TRUE(ends_at_control_d(terminal));
}

TEST_F(Text, ControlCGivesUpAMessageOfSeveralLines) {
  if (!Terminal::available()) GTEST_SKIP() << "no pseudo-terminals here; mount devpts";
  Terminal terminal({"chat", model(), "--max-tokens", "4"});
  size_t count = 0;
  for (const std::string_view first : {"\"\"\"one\n", "one \\\n"}) {
    for (const std::string_view second : {"", "two"}) {
      ASSERT_TRUE(terminal.wait_for_prompt(kPrompt)) << terminal.shown();
      terminal.type(first);
      ASSERT_TRUE(terminal.wait_for_prompt("\n  ")) << terminal.shown();
      ASSERT_TRUE(gives_up(terminal, second, ++count));
      EXPECT_TRUE(brings(terminal, "/tokens\n", kEmptyConversation, count));
    }
  }
  // Neither the lines nor the quotes that opened them are left.
  EXPECT_TRUE(brings(terminal, "hello\n", ": 6 prompt tokens in "));
  EXPECT_TRUE(ends_at_control_d(terminal));
}

TEST_F(Text, ControlCStopsTheAnswerAndNotTheProgram) {
  if (!Terminal::available()) GTEST_SKIP() << "no pseudo-terminals here; mount devpts";
  Terminal terminal({"chat", endless_model(), "--max-tokens", "60000", "--kv-tokens", "65536",
                     "--temperature", "1"});
  for (size_t count = 1; count <= 2; ++count) {
    ASSERT_TRUE(brings(terminal, "go on for ever\n", "\x1b[2m", count));
    terminal.type(kControlC);
    ASSERT_TRUE(terminal.wait_for("finished: cancelled", count)) << terminal.shown();
  }
  ASSERT_TRUE(brings(terminal, "/reset\n", "the conversation is forgotten"));
  EXPECT_TRUE(brings(terminal, "/tokens\n", kEmptyConversation));
  EXPECT_TRUE(ends_at_control_d(terminal));
  // The terminal shows ^C by itself while an answer comes, and be it within a character.
  std::string shown = terminal.shown();
  for (size_t at = shown.find("^C"); at != std::string::npos; at = shown.find("^C", at)) {
    shown.erase(at, 2);
  }
  EXPECT_FALSE(text::find_invalid_utf8(shown)) << shown;
  EXPECT_GT(shown.rfind("\x1b[0m"), shown.rfind("\x1b[2m")) << "still dimmed: " << shown;
}

TEST_F(Text, InspectComparesTextWithModel) {
  const Outcome outcome = run_ingot({"inspect", model()});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const char* words :
       {"byte-level BPE, 277 ids, 17 of them added tokens", "template    knows enable_thinking",
        "11 of the model's 288 ids stand for no token"}) {
    EXPECT_TRUE(outcome.out.contains(words)) << words << "\n" << outcome.out;
  }
  const Outcome bare = run_ingot({"inspect", model_without("tokenizer.json")});
  EXPECT_EQ(bare.status, 0);
  EXPECT_FALSE(bare.out.contains("byte-level BPE")) << bare.out;
}

}  // namespace
}  // namespace ingot::endtoend
