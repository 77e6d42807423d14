// Bad input of every kind: exit status 2, one line on stderr that names the thing and the remedy,
// nothing on stdout and no file left behind.

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <boost/json/serialize.hpp>

#include "base/check.h"
#include "base/scratch_directory.h"
#include "endtoend/program.h"
#include "model/config_fixture.h"

namespace ingot::endtoend {
namespace {

namespace fs = std::filesystem;
namespace json = base::json;
using model::json_of;
using Words = std::vector<std::string>;

// A whole model and ids for it, of which each test spoils one thing.
class BadInput : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    made_ = new base::ScratchDirectory;
    write_file(*made_ / "small.json", json::serialize(model::small_config()));
    const Outcome synth = run_ingot({"synth", (*made_ / "model").string(), "--config",
                                     (*made_ / "small.json").string(), "--dtype", "f32"});
    CHECK(synth.status == 0, synth.err);
  }
  static void TearDownTestSuite() { delete made_; }

  void SetUp() override {
    fs::create_directory(scratch_ / "model");
    for (const char* name : {"config.json", "model.safetensors"}) {
      fs::copy_file(*made_ / "model" / name, scratch_ / "model" / name);
    }
    write_file(scratch_ / "ids.json", "[1, 2, 3]");
  }

  std::string path(const char* name) const { return (scratch_ / name).string(); }
  fs::path weights() const { return scratch_ / "model" / "model.safetensors"; }

  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::recursive_directory_iterator(scratch_.path())) {
      all.push_back(entry.path());
    }
    std::ranges::sort(all);
    return all;
  }

  void expect_refused(const Words& arguments, const Words& because, const Start& start = {}) const {
    const auto before = files();
    const Outcome outcome = run_ingot(arguments, start);
    std::string command;
    for (const std::string& word : arguments) command += word + " ";
    SCOPED_TRACE(command);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_TRUE(outcome.err.starts_with("ingot: error: ")) << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_TRUE(outcome.err.ends_with('\n')) << outcome.err;
    EXPECT_LT(outcome.err.size(), 1000U) << outcome.err;
    for (const std::string& words : because) {
      EXPECT_TRUE(outcome.err.contains(words)) << "should say: " << words << "\n" << outcome.err;
    }
    EXPECT_EQ(files(), before);
  }

  // The commands that run a model all refuse it.
  void expect_model_refused(const Words& because) const {
    expect_refused(
        {"score", path("model"), "--token-ids", path("ids.json"), "--logits", path("logits.npy")},
        because);
    expect_refused({"generate", path("model"), "--token-ids", path("ids.json")}, because);
  }

  void expect_ids_refused(std::string_view ids, const Words& because) const {
    write_file(scratch_ / "ids.json", ids);
    Words with_file = because;
    with_file.push_back(path("ids.json"));
    expect_model_refused(with_file);
  }

  void change_config(const std::function<void(json::object&)>& change) const {
    const fs::path file = scratch_ / "model" / "config.json";
    json::object config = json_of(contents(file)).get_object();
    change(config);
    write_file(file, json::serialize(config));
  }

  // Changes the tensors' header; the bytes behind it stay.
  void change_header(const std::function<void(json::object&)>& change) const {
    const std::string file = contents(weights());
    uint64_t length = 0;
    std::memcpy(&length, file.data(), sizeof length);
    json::object header = json_of(file.substr(8, length)).get_object();
    change(header);
    write_weights(json::serialize(header), file.substr(8 + length));
  }

  void write_weights(std::string_view header, std::string_view data) const {
    const uint64_t length = header.size();
    std::string file(reinterpret_cast<const char*>(&length), sizeof length);
    file += header;
    file += data;
    write_file(weights(), file);
  }

  const base::ScratchDirectory scratch_;
  static base::ScratchDirectory* made_;
};

base::ScratchDirectory* BadInput::made_ = nullptr;

json::object& tensor(json::object& header, std::string_view name) {
  return header.at(name).get_object();
}

constexpr const char* kNorm = "model.norm.weight";
constexpr const char* kExpert = "model.layers.1.mlp.experts.2.up_proj.weight";

TEST_F(BadInput, FilesThatAreNoSafetensors) {
  const std::string whole = contents(weights());
  const auto with_length = [&](uint64_t length) {
    std::string file = whole;
    std::memcpy(file.data(), &length, sizeof length);
    return file;
  };
  const std::pair<std::string, const char*> cases[] = {
      {"", "model.safetensors"},
      {"abc", "model.safetensors"},
      {with_length(0), "model.safetensors"},
      {with_length(whole.size()), "model.safetensors"},
      {with_length(UINT64_MAX), "model.safetensors"},
      {with_length(uint64_t{1} << 63), "model.safetensors"},
      {whole.substr(0, whole.size() / 2), "model.safetensors"},
      {whole.substr(0, whole.size() - 1), "model.safetensors"},
      {whole.substr(0, 100), "model.safetensors"},
      {whole + "x", "model.safetensors"},
      {std::string(1000, '\0'), "model.safetensors"},
      {std::string(1000, '\xFF'), "model.safetensors"},
  };
  for (const auto& [file, because] : cases) {
    write_file(weights(), file);
    expect_model_refused({because});
    expect_refused({"inspect", path("model")}, {because});
  }
}

TEST_F(BadInput, HeadersThatDoNotFit) {
  using Change = std::function<void(json::object&)>;
  const std::pair<Change, Words> cases[] = {
      {[](auto& h) { tensor(h, kNorm)["dtype"] = "F12"; }, {kNorm, "F12"}},
      {[](auto& h) { tensor(h, kNorm)["dtype"] = "F64"; }, {kNorm}},
      {[](auto& h) { tensor(h, kNorm)["shape"] = {71}; }, {kNorm}},
      {[](auto& h) { tensor(h, kNorm)["shape"] = {-72}; }, {kNorm}},
      {[](auto& h) {
         tensor(h, kNorm)["shape"] = {1LL << 40, 1LL << 40};
       },
       {kNorm}},
      {[](auto& h) { tensor(h, kNorm)["shape"] = "72"; }, {kNorm}},
      {[](auto& h) {
         tensor(h, kNorm)["data_offsets"] = {0, 288};
       },
       {}},
      {[](auto& h) {
         tensor(h, kNorm)["data_offsets"] = {288, 0};
       },
       {kNorm}},
      {[](auto& h) {
         tensor(h, kNorm)["data_offsets"] = {1ULL << 63, (1ULL << 63) + 288};
       },
       {kNorm}},
      {[](auto& h) { tensor(h, kNorm).erase("dtype"); }, {kNorm, "dtype"}},
      {[](auto& h) { tensor(h, kNorm)["stride"] = 1; }, {kNorm, "stride"}},
      {[](auto& h) { h[kNorm] = 7; }, {kNorm}},
      {[](auto& h) { h.erase(kNorm); }, {}},
      {[](auto& h) { h.clear(); }, {}},
  };
  const std::string whole = contents(weights());
  for (const auto& [change, because] : cases) {
    write_file(weights(), whole);
    change_header(change);
    Words with_file = because;
    with_file.emplace_back("model.safetensors");
    expect_model_refused(with_file);
  }
  write_weights(R"({"x": 1)", "");
  expect_model_refused({"model.safetensors"});
  write_weights("[]", "");
  expect_model_refused({"model.safetensors"});
}

TEST_F(BadInput, TensorsThatAreNotTheModels) {
  using Change = std::function<void(json::object&)>;
  const std::pair<Change, Words> cases[] = {
      {[](auto& h) {
         tensor(h, kExpert)["shape"] = {72, 40};
       },
       {kExpert, "F32 [72, 40] in the file, but config.json asks for [40, 72]", "download"}},
      {[](auto& h) { tensor(h, kExpert)["dtype"] = "I32"; },
       {kExpert, "dtype I32; Ingot reads F32, F16, BF16", "use a checkpoint"}},
      {[](auto& h) { tensor(h, kNorm)["dtype"] = "U32"; }, {kNorm, "dtype U32; expected F32"}},
      {[](auto& h) {
         h["model.norm.scale"] = h.at(kNorm);
         h.erase(kNorm);
       },
       {"model.norm.scale: no parameter of this model has this name", "(1 further error"}},
  };
  const std::string whole = contents(weights());
  for (const auto& [change, because] : cases) {
    write_file(weights(), whole);
    change_header(change);
    expect_model_refused(because);
    EXPECT_EQ(run_ingot({"inspect", path("model")}).status, 1) << "inspect shows what is wrong";
  }
}

TEST_F(BadInput, NotANumberInAWeight) {
  std::string file = contents(weights());
  std::memset(file.data() + file.size() - 4, 0xFF, 4);
  write_file(weights(), file);  // in the MTP layer, which is not loaded
  EXPECT_EQ(run_ingot({"score", path("model"), "--token-ids", path("ids.json")}).status, 0);
  uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  std::memset(file.data() + 8 + length + 4 * 5, 0xFF, 4);
  write_file(weights(), file);
  expect_model_refused(
      {"model.safetensors: tensor model.embed_tokens.weight has NaN or infinity at "
       "element 5",
       "get it again"});
}

TEST_F(BadInput, ShardsThatAreMissing) {
  fs::rename(weights(), scratch_ / "model" / "model-00001-of-00002.safetensors");
  expect_model_refused({"neither model.safetensors nor", "download"});
  const fs::path index = scratch_ / "model" / "model.safetensors.index.json";
  json::object map{{kNorm, "model-00001-of-00002.safetensors"},
                   {"lm_head.weight", "model-00002-of-00002.safetensors"}};
  write_file(index, json::serialize(json::object{{"weight_map", map}}));
  expect_model_refused({"1 of 2 shards are missing, download them: model-00002-of-00002"});
  map.erase("lm_head.weight");
  write_file(index, json::serialize(json::object{{"weight_map", map}}));
  expect_model_refused({"model.safetensors.index.json", "the index does not list it"});
  for (const char* text :
       {"", "{}", "[]", R"({"weight_map": {}})", R"({"weight_map": {"a": "../../etc/passwd"}})",
        R"({"weight_map": {"a": 1}})"}) {
    write_file(index, text);
    expect_model_refused({"model.safetensors.index.json"});
  }
}

TEST_F(BadInput, ConfigsThatSayTooLittleOrTooMuch) {
  using Change = std::function<void(json::object&)>;
  const std::pair<Change, Words> cases[] = {
      {[](auto& c) { c.erase("kv_lora_rank"); }, {"key \"kv_lora_rank\" is missing"}},
      {[](auto& c) { c["hidden_size"] = "72"; }, {"\"hidden_size\" is \"72\""}},
      {[](auto& c) { c["hidden_size"] = 1ULL << 63; }, {"\"hidden_size\""}},
      {[](auto& c) { c["vocab_size"] = INT64_MAX; }, {"\"vocab_size\""}},
      {[](auto& c) { c["num_hidden_layers"] = -1; }, {"\"num_hidden_layers\""}},
      {[](auto& c) { c["model_type"] = "llama\nx"; }, {"\"model_type\"", "glm_moe_dsa"}},
      {[](auto& c) { c["indexer_types"] = {"full"}; }, {"\"indexer_types\""}},
      {[](auto& c) { c["hidden_act"] = "gelu"; }, {"\"hidden_act\"", "only \"silu\""}},
  };
  for (const auto& [change, because] : cases) {
    fs::copy_file(*made_ / "model" / "config.json", scratch_ / "model" / "config.json",
                  fs::copy_options::overwrite_existing);
    change_config(change);
    Words with_file = because;
    with_file.push_back(path("model/config.json"));
    expect_model_refused(with_file);
    expect_refused({"inspect", path("model")}, with_file);
    expect_refused({"synth", path("new"), "--config", path("model/config.json")}, with_file);
  }
  for (const char* text : {"", "{", "[]", "{\"a\": 1e999}", "{\"a\": 1, \"a\": 2}", "\xFF\xFE"}) {
    write_file(path("model/config.json"), text);
    expect_model_refused({path("model/config.json")});
  }
  fs::remove(path("model/config.json"));
  expect_model_refused({"no config.json in this directory"});
}

TEST_F(BadInput, ModelsThatAreElsewhere) {
  const Words ids = {"--token-ids", path("ids.json")};
  const auto score = [&](const std::string& model, const Words& because) {
    expect_refused({"score", model, ids[0], ids[1]}, because);
  };
  score(path("absent"), {path("absent"), "no such model directory"});
  score(path("model/config.json"), {"not a directory; name the one that holds config.json"});
  score(path("model/model.safetensors"), {"model.safetensors"});
  expect_refused({"inspect", path("absent")}, {"no such model directory"});
  expect_refused({"inspect", path("model/model.safetensors")}, {"model.safetensors"});
  fs::remove(weights());
  score(path("model"), {"neither model.safetensors nor", "download"});
  fs::create_directory(weights());
  score(path("model"), {"model.safetensors"});
}

TEST_F(BadInput, TokenIds) {
  expect_ids_refused("", {});
  expect_ids_refused("[]", {"no token ids; give at least one"});
  expect_ids_refused("[[]]", {"no token ids; give at least one"});
  expect_ids_refused("{\"ids\": [1]}", {"expected a JSON array of token ids"});
  expect_ids_refused("7", {"expected a JSON array of token ids"});
  expect_ids_refused("[1, \"2\"]", {"element 1 is no token id"});
  expect_ids_refused("[1.0]", {"element 0 is no token id"});
  expect_ids_refused("[null]", {"element 0 is no token id"});
  expect_ids_refused("[1, [2]]", {"element 1 is no token id"});
  expect_ids_refused("[[1], 2]", {"arrays of ids and single ids are mixed"});
  expect_ids_refused("[[[1]]]", {"sequence 0: element 0 is no token id"});
  expect_ids_refused("[-1]", {"element 0 is no token id"});
  expect_ids_refused("[160]", {"token id 160 at index 0 is out of range", "0 to 159"});
  expect_ids_refused("[2147483647]", {"out of range"});
  expect_ids_refused("[2147483648]", {"element 0 is no token id"});
  expect_ids_refused("[18446744073709551616]", {});
  expect_ids_refused("[1, 2", {});
  expect_ids_refused(std::string(100'000, '['), {});
  std::string many = "[1";
  for (int i = 0; i < 64; ++i) many += ", 1";
  expect_ids_refused(many + "]", {"65 tokens, more than the model's 64 positions"});
  expect_refused({"score", path("model"), "--token-ids", path("absent.json")}, {"absent.json"});
  expect_refused({"score", path("model"), "--token-ids", path("model")}, {path("model")});
  write_file(path("ids.json"), "[[1], [2]]");
  expect_refused({"generate", path("model"), "--token-ids", path("ids.json")},
                 {"ids.json: 2 sequences; generate continues one"});
  write_file(path("ids.json"), "[[1], [2, 999]]");
  expect_refused({"score", path("model"), "--token-ids", path("ids.json")},
                 {"sequence 1: token id 999 at index 1 is out of range"});
}

TEST_F(BadInput, CommandLines) {
  const std::string model = path("model");
  const std::string ids = path("ids.json");
  expect_refused({}, {"see ingot --help"});
  expect_refused({"quantise"}, {"quantise", "see ingot --help"});
  expect_refused({"score"}, {"MODEL"});
  expect_refused({"score", model}, {"--token-ids"});
  expect_refused({"score", model, "--token-ids", ids, "--fast"}, {"--fast"});
  expect_refused({"score", model, "--token-ids", ids, "--threads", "0"}, {"threads"});
  expect_refused({"score", model, "--token-ids", ids, "--threads", "many"}, {"threads"});
  expect_refused({"score", model, "--token-ids", ids, "--activations", "int4"}, {"activations"});
  expect_refused({"score", model, "--token-ids", ids, "--kv-dtype", "fp4"}, {"kv-dtype"});
  expect_refused({"score", model, "--token-ids", ids, "--config", path("absent.toml")},
                 {"absent.toml"});
  for (const char* value : {"-1", "nan", "warm", "1e9"}) {
    expect_refused({"generate", model, "--token-ids", ids, "--temperature", value},
                   {"temperature"});
  }
  for (const char* value : {"-1", "1e3x", "99999999999999999999"}) {
    expect_refused({"generate", model, "--token-ids", ids, "--max-tokens", value}, {"max-tokens"});
  }
  const std::vector<std::string> generate = {"generate", model, "--token-ids", ids};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), generate.begin(), generate.end());
    return more;
  };
  expect_refused(with({"--stop", "a"}), {"--stop", "--stop-token-id"});
  expect_refused(with({"--logprobs", "2"}), {"--logprobs", "--json"});
  expect_refused(with({"--prompt-logprobs", "--json"}), {"--prompt-logprobs", "--logprobs"});
  expect_refused(with({"--kv-tokens", "16", "--max-tokens", "100"}), {"--kv-tokens 16"});
  expect_refused(with({"--min-tokens", "9", "--max-tokens", "8"}), {"min_tokens is 9"});
  expect_refused(with({"--logit-bias", "3"}), {"--logit-bias", "3: expected"});
  expect_refused(with({"--speculative-tokens", "some"}), {"--speculative-tokens some"});
  expect_refused({"generate", model, "--token-ids", ids, "--seed", "-1"}, {"seed"});
  expect_refused({"synth", path("new"), "--config", "gpt-2"}, {"gpt-2", "tiny, glm-5.2"});
  expect_refused({"synth", path("new"), "--config", "tiny", "--dtype", "fp8"}, {"dtype"});
  expect_refused({"synth", path("new"), "--config", "tiny", "--mtp", "some"}, {"mtp"});
  expect_refused({"synth", path("new"), "--config", "tiny", "--layers", "0"}, {"layers"});
  expect_refused({"synth", path("new"), "--config", "tiny", "--experts", "1"},
                 {"\"num_experts_per_tok\""});
  expect_refused({"synth", model, "--config", "tiny"},
                 {"exists already; remove it or name another"});
  expect_refused({"score", model, "--token-ids", ids}, {"threads"},
                 {.environment = {{"INGOT_THREADS", "none"}}});
  expect_refused({"score", model, "--token-ids", ids}, {"INGOT_TARGETS=sse2"},
                 {.environment = {{"INGOT_TARGETS", "sse2"}}});
  write_file(path("options.toml"), "thraeds = 2\n");
  expect_refused({"score", model, "--token-ids", ids, "--config", path("options.toml")},
                 {"thraeds"});
}

TEST_F(BadInput, PlacesWhereNothingCanBeWritten) {
  const auto score = [&](const std::string& logits, const Words& because, const Start& start = {}) {
    expect_refused({"score", path("model"), "--token-ids", path("ids.json"), "--logits", logits},
                   because, start);
  };
  score(path("absent/logits.npy"), {path("absent/logits.npy"), "cannot create"});
  score(path("ids.json/logits.npy"), {"cannot create"});
  fs::create_directory(path("directory.npy"));
  score(path("directory.npy"), {path("directory.npy"), "a directory is there"});
  score(path("model/model.safetensors"), {"model.safetensors", "ends in .npy"});
  score(path("logits.npy"), {"logits.npy: write failed"}, {.file_size_bytes_max = 1000});
  fs::create_symlink("/dev/null", path("device.npy"));
  score(path("device.npy"), {path("device.npy"), "cannot create"});
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  expect_refused({"synth", path("model/config.json/new"), "--config", "tiny"}, {"cannot create"});
  expect_refused({"synth", path("model/empty"), "--config", "tiny"},
                 {"model.safetensors: write failed"}, {.file_size_bytes_max = 100'000});
  write_file(path("ids.json"), "[[1], [2]]");
  score(path("model/config.json"), {path("model/config.json"), "cannot create"});
}

TEST_F(BadInput, OutputThatCannotBePrinted) {
  const Start full{.out_file = "/dev/full"};
  for (const Words& arguments :
       {Words{"inspect", path("model")}, Words{"inspect", path("model"), "--json"},
        Words{"score", path("model"), "--token-ids", path("ids.json"), "--json"},
        Words{"generate", path("model"), "--token-ids", path("ids.json"), "--json"}}) {
    expect_refused(arguments, {"No space left on device"}, full);
  }
}

}  // namespace
}  // namespace ingot::endtoend
