#include "text/tokenizer_file.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <boost/json/serialize.hpp>

#include "base/json.h"

namespace ingot::text {
namespace {

using base::Result;
using base::Status;
namespace json = base::json;

// Ids index tables; no vocabulary has come near this.
constexpr int32_t kTokenIdMax = (1 << 24) - 1;
// Finding an added token in a text takes time by its length, at every place that looks like it.
constexpr size_t kAddedTokenBytesMax = 512;

// What the pre-tokenizer ByteLevel splits by when it is not told to leave that: GPT-2's words.
constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// An object of the file, and its name for errors. Tells each member that is asked for.
class Fields {
 public:
  static Result<Fields> of(const json::value& value, std::string name) {
    const json::object* object = value.if_object();
    if (object == nullptr) return base::error("{} is not an object; download the file again", name);
    return Fields(*object, std::move(name));
  }

  const std::string& name() const { return name_; }
  std::string name_of(std::string_view key) const { return name_ + "." + std::string(key); }

  // Null if there is no such member, or it is null.
  const json::value* find(std::string_view key) const {
    const json::value* value = object_->if_contains(key);
    return value == nullptr || value->is_null() ? nullptr : value;
  }

  Status allow_only(std::initializer_list<std::string_view> keys) const {
    for (const auto& [key, value] : *object_) {
      if (std::ranges::find(keys, std::string_view(key)) == keys.end()) {
        return base::error("{}: unknown key {:?}; Ingot follows every field or none", name_,
                           std::string_view(key));
      }
    }
    return {};
  }

  Result<const json::value*> require(std::string_view key) const {
    const json::value* value = find(key);
    if (value == nullptr)
      return base::error("{} is missing; download the file again", name_of(key));
    return value;
  }

  Result<std::string_view> text(std::string_view key) const {
    const json::value* value = TRY(require(key));
    const json::string* string = value->if_string();
    if (string == nullptr) return base::error("{} is not a string", name_of(key));
    return std::string_view(*string);
  }

  Result<bool> boolean(std::string_view key, bool absent) const {
    const json::value* value = find(key);
    if (value == nullptr) return absent;
    const bool* flag = value->if_bool();
    if (flag == nullptr) return base::error("{} is neither true nor false", name_of(key));
    return *flag;
  }

  // For those whose value does not matter.
  Status check_booleans(std::initializer_list<std::string_view> keys) const {
    for (const std::string_view key : keys) {
      const Result<bool> flag = boolean(key, false);
      if (!flag) return std::unexpected(flag.error());
    }
    return {};
  }

  Result<const json::array*> array(std::string_view key) const {
    const json::value* value = TRY(require(key));
    const json::array* array = value->if_array();
    if (array == nullptr) return base::error("{} is not an array", name_of(key));
    return array;
  }

  // The refusal of a value that this reader does not follow.
  std::unexpected<base::Error> refuse(std::string_view key, std::string_view value,
                                      std::string_view followed) const {
    return base::error("{} is {:?}, which Ingot does not run; it runs {}", name_of(key), value,
                       followed);
  }

 private:
  Fields(const json::object& object, std::string name) : object_(&object), name_(std::move(name)) {}

  const json::object* object_;
  std::string name_;
};

std::optional<int32_t> token_id(const json::value& value) {
  const int64_t* id = value.if_int64();
  if (id == nullptr || *id < 0 || *id > kTokenIdMax) return {};
  return static_cast<int32_t>(*id);
}

// "normalizer": null, NFC, NFKC, or a Sequence of at most one of them.
Result<Normalization> read_normalizer(const json::value& value, std::string name) {
  if (value.is_null()) return Normalization::kNone;
  const Fields fields = TRY(Fields::of(value, std::move(name)));
  const std::string_view type = TRY(fields.text("type"));
  if (type == "Sequence") {
    TRY(fields.allow_only({"type", "normalizers"}));
    const json::array* members = TRY(fields.array("normalizers"));
    if (members->empty()) return Normalization::kNone;
    if (members->size() > 1) {
      return base::error("{} has {} members, and Ingot runs one", fields.name_of("normalizers"),
                         members->size());
    }
    return read_normalizer(members->front(), fields.name_of("normalizers[0]"));
  }
  TRY(fields.allow_only({"type"}));
  if (type == "NFC") return Normalization::kNfc;
  if (type == "NFKC") return Normalization::kNfkc;
  return fields.refuse("type", type, "NFC, NFKC or a Sequence of one");
}

Result<std::string> read_split(const Fields& fields) {
  TRY(fields.allow_only({"type", "pattern", "behavior", "invert"}));
  const std::string_view behavior = TRY(fields.text("behavior"));
  if (behavior != "Isolated") return fields.refuse("behavior", behavior, "Isolated");
  TRY(fields.check_booleans({"invert"}));  // says what is a match; Isolated treats the rest alike
  const json::value* value = TRY(fields.require("pattern"));
  const Fields pattern = TRY(Fields::of(*value, fields.name_of("pattern")));
  TRY(pattern.allow_only({"Regex"}));
  return std::string(TRY(pattern.text("Regex")));
}

Status check_byte_level(const Fields& fields) {
  TRY(fields.allow_only({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
  return fields.check_booleans({"add_prefix_space", "trim_offsets", "use_regex"});
}

// "pre_tokenizer": ByteLevel, or a Sequence of Splits with ByteLevel at the end.
Status read_pre_tokenizer(const json::value& value, const std::string& name, TokenizerFile& file) {
  const Fields whole = TRY(Fields::of(value, name));
  std::vector<Fields> steps = {whole};
  if (TRY(whole.text("type")) == "Sequence") {
    TRY(whole.allow_only({"type", "pretokenizers"}));
    steps.clear();
    for (const json::value& step : *TRY(whole.array("pretokenizers"))) {
      const std::string key = fmt::format("pretokenizers[{}]", steps.size());
      steps.push_back(TRY(Fields::of(step, whole.name_of(key))));
    }
  }
  bool ends = false;
  for (const Fields& step : steps) {
    const std::string_view type = TRY(step.text("type"));
    if (ends) return base::error("{} follows ByteLevel, which has to be the last", step.name());
    if (type == "Split") {
      file.split_patterns.push_back(TRY(read_split(step)));
    } else if (type == "ByteLevel") {
      ends = true;
      TRY(check_byte_level(step));
      if (TRY(step.boolean("add_prefix_space", true))) {
        return step.refuse("add_prefix_space", "true", "false");
      }
      if (TRY(step.boolean("use_regex", true))) file.split_patterns.emplace_back(kGpt2Pattern);
    } else {
      return step.refuse("type", type, "Split and ByteLevel");
    }
  }
  if (!ends) return base::error("{} has no ByteLevel, and Ingot runs no other kind", name);
  return {};
}

// "decoder": ByteLevel. How it once put a space in front does not matter to what it decodes.
Status check_decoder(const json::value& value, std::string name) {
  const Fields fields = TRY(Fields::of(value, std::move(name)));
  const std::string_view type = TRY(fields.text("type"));
  if (type != "ByteLevel") return fields.refuse("type", type, "ByteLevel");
  return check_byte_level(fields);
}

// The ids that stand for a token of a TemplateProcessing: {"special_tokens": {NAME: {"ids":
// [...]}}}.
Status append_special_token(const Fields& processing, const json::value& special,
                            std::vector<int32_t>& ids) {
  const Fields item = TRY(Fields::of(special, processing.name_of("single")));
  const std::string_view name = TRY(item.text("id"));
  const Fields tokens = TRY(
      Fields::of(*TRY(processing.require("special_tokens")), processing.name_of("special_tokens")));
  const Fields token = TRY(Fields::of(*TRY(tokens.require(name)), tokens.name_of(name)));
  for (const json::value& value : *TRY(token.array("ids"))) {
    const std::optional<int32_t> id = token_id(value);
    if (!id) return base::error("{} is not an id from 0 to {}", token.name_of("ids"), kTokenIdMax);
    ids.push_back(*id);
  }
  return {};
}

// A TemplateProcessing may put tokens before the text, as older releases of Hugging Face's library
// wrote it for models with a beginning-of-text token.
Status read_template_processing(const Fields& fields, TokenizerFile& file) {
  TRY(fields.allow_only({"type", "single", "pair", "special_tokens"}));
  bool text_seen = false;
  for (const json::value& item : *TRY(fields.array("single"))) {
    const Fields piece = TRY(Fields::of(item, fields.name_of("single")));
    if (piece.find("Sequence") != nullptr) {
      text_seen = true;
    } else if (text_seen) {
      return base::error(
          "{} adds tokens behind every text, which Ingot does not do; remove them there",
          fields.name_of("single"));
    } else {
      TRY(append_special_token(fields, *TRY(piece.require("SpecialToken")), file.prefix_ids));
    }
  }
  return {};
}

// "post_processor": kinds that add no tokens or put some in front; what else they do is about
// offsets.
Status read_post_processor(const json::value& value, std::string name, TokenizerFile& file) {
  if (value.is_null()) return {};
  const Fields fields = TRY(Fields::of(value, std::move(name)));
  const std::string_view type = TRY(fields.text("type"));
  if (type == "TemplateProcessing") return read_template_processing(fields, file);
  if (type == "Sequence") {
    TRY(fields.allow_only({"type", "processors"}));
    for (const json::value& processor : *TRY(fields.array("processors"))) {
      const std::string_view kind =
          TRY(TRY(Fields::of(processor, fields.name_of("processors"))).text("type"));
      if (kind == "Sequence")
        return fields.refuse("processors", kind, "a Sequence without another");
      TRY(read_post_processor(processor, fields.name_of("processors"), file));
    }
    return {};
  }
  if (type != "ByteLevel") {
    return fields.refuse("type", type, "ByteLevel and TemplateProcessing");
  }
  return check_byte_level(fields);
}

// Options of the model that ask for another algorithm. What is done with unknown characters does
// not matter: Tokenizer sees to it that there are none.
Status check_model_options(const Fields& model) {
  TRY(model.allow_only({"type", "dropout", "unk_token", "continuing_subword_prefix",
                        "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges", "vocab",
                        "merges"}));
  const std::string_view type = TRY(model.text("type"));
  if (type != "BPE") return model.refuse("type", type, "BPE");
  const json::value* dropout = model.find("dropout");
  if (dropout != nullptr && !(dropout->is_number() && dropout->to_number<double>() == 0)) {
    return model.refuse("dropout", json::serialize(*dropout), "null");
  }
  for (const std::string_view key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (model.find(key) == nullptr) continue;
    const std::string_view affix = TRY(model.text(key));
    if (!affix.empty()) return model.refuse(key, affix, "null");
  }
  if (TRY(model.boolean("byte_fallback", false)))
    return model.refuse("byte_fallback", "true", "false");
  return {};
}

using IdOfContent = std::unordered_map<std::string_view, int32_t>;

Result<IdOfContent> read_vocabulary(const Fields& model, TokenizerFile& file) {
  const json::value* value = TRY(model.require("vocab"));
  const json::object* vocabulary = value->if_object();
  if (vocabulary == nullptr) return base::error("{} is not an object", model.name_of("vocab"));
  IdOfContent ids;
  ids.reserve(vocabulary->size());
  file.vocabulary.reserve(vocabulary->size());
  std::vector<bool> taken;
  for (const auto& [key, value_of_key] : *vocabulary) {
    const std::string_view content = key;
    const std::optional<int32_t> id = token_id(value_of_key);
    if (!id) {
      return base::error("{}[{:?}] is not an id from 0 to {}", model.name_of("vocab"), content,
                         kTokenIdMax);
    }
    const auto index = static_cast<size_t>(*id);
    if (index >= taken.size()) taken.resize(index + 1 + index / 2);
    if (taken[index]) {
      return base::error("{}[{:?}]: id {} is another token's too", model.name_of("vocab"), content,
                         *id);
    }
    taken[index] = true;
    ids.emplace(content, *id);
    file.vocabulary.push_back({std::string(content), *id});
  }
  return ids;
}

// A merge is ["a", "b"], or in older files "a b".
std::optional<std::pair<std::string_view, std::string_view>> parts_of(const json::value& merge) {
  if (const json::string* text = merge.if_string(); text != nullptr) {
    const std::string_view both = *text;
    const size_t space = both.find(' ');
    if (space == std::string_view::npos || both.find(' ', space + 1) != std::string_view::npos) {
      return {};
    }
    return std::pair(both.substr(0, space), both.substr(space + 1));
  }
  const json::array* pair = merge.if_array();
  if (pair == nullptr || pair->size() != 2) return {};
  const json::string* left = (*pair)[0].if_string();
  const json::string* right = (*pair)[1].if_string();
  if (left == nullptr || right == nullptr) return {};
  return std::pair<std::string_view, std::string_view>(*left, *right);
}

Status read_merges(const Fields& model, const IdOfContent& ids, TokenizerFile& file) {
  const json::array* merges = TRY(model.array("merges"));
  file.merges.reserve(merges->size());
  std::string whole;
  for (const json::value& merge : *merges) {
    const auto name = [&] {
      return fmt::format("{}[{}]", model.name_of("merges"), &merge - merges->data());
    };
    const auto parts = parts_of(merge);
    if (!parts) return base::error("{} is neither two strings nor \"a b\"", name());
    const auto& [left, right] = *parts;
    whole.assign(left).append(right);
    std::array<int32_t, 3> found{};
    for (size_t i = 0; const std::string_view token : {left, right, std::string_view(whole)}) {
      const auto entry = ids.find(token);
      if (entry == ids.end()) {
        return base::error(
            "{}: the vocabulary has no token {:?}; the file is damaged, download it "
            "again",
            name(), token);
      }
      found[i++] = entry->second;
    }
    file.merges.push_back({.left = found[0], .right = found[1], .merged = found[2]});
  }
  return {};
}

Result<AddedToken> read_added_token(const json::value& value, std::string name) {
  const Fields fields = TRY(Fields::of(value, std::move(name)));
  TRY(fields.allow_only(
      {"id", "content", "special", "lstrip", "rstrip", "single_word", "normalized"}));
  const std::optional<int32_t> id = token_id(*TRY(fields.require("id")));
  if (!id) return base::error("{} is not an id from 0 to {}", fields.name_of("id"), kTokenIdMax);
  AddedToken token{.id = *id};
  token.content = TRY(fields.text("content"));
  token.special = TRY(fields.boolean("special", false));
  token.lstrip = TRY(fields.boolean("lstrip", false));
  token.rstrip = TRY(fields.boolean("rstrip", false));
  token.single_word = TRY(fields.boolean("single_word", false));
  token.normalized = TRY(fields.boolean("normalized", false));
  if (token.content.empty() || token.content.size() > kAddedTokenBytesMax) {
    return base::error("{} has {} bytes; 1 to {} can be found in a text", fields.name_of("content"),
                       token.content.size(), kAddedTokenBytesMax);
  }
  return token;
}

Status read_added_tokens(const json::array& values, const std::string& name, const IdOfContent& ids,
                         TokenizerFile& file) {
  std::unordered_map<int32_t, std::string_view> content_of;
  for (const auto& [content, id] : ids) content_of.emplace(id, content);
  std::unordered_set<std::string> contents;
  for (size_t i = 0; i < values.size(); ++i) {
    AddedToken token = TRY(read_added_token(values[i], fmt::format("{}[{}]", name, i)));
    if (!contents.insert(token.content).second) {
      return base::error("{}[{}]: {:?} is added twice; remove one of them", name, i, token.content);
    }
    const auto entry = ids.find(token.content);
    if (entry != ids.end() && entry->second != token.id) {
      return base::error("{}[{}]: {:?} has id {} here and {} in the vocabulary", name, i,
                         token.content, token.id, entry->second);
    }
    const auto [other, is_new] = content_of.emplace(token.id, *contents.find(token.content));
    if (!is_new && other->second != token.content) {
      return base::error("{}[{}]: {:?} has id {}, which is that of {:?}", name, i, token.content,
                         token.id, other->second);
    }
    if (token.normalized && file.normalization != Normalization::kNone) {
      return base::error(
          "{}[{}]: {:?} is to be found in normalized text, which Ingot does not run; "
          "set its \"normalized\" to false",
          name, i, token.content);
    }
    file.added_tokens.push_back(std::move(token));
  }
  std::ranges::sort(file.added_tokens, {}, &AddedToken::id);
  return {};
}

Result<TokenizerFile> read(const json::value& document) {
  const Fields fields = TRY(Fields::of(document, "the document"));
  TRY(fields.allow_only({"version", "truncation", "padding", "added_tokens", "normalizer",
                         "pre_tokenizer", "post_processor", "decoder", "model"}));
  // "truncation" and "padding" are left over from somebody's last call; each call sets its own.
  if (fields.find("version") != nullptr && TRY(fields.text("version")) != "1.0") {
    return fields.refuse("version", TRY(fields.text("version")), "1.0");
  }
  const json::value null;
  const auto member = [&](std::string_view key) -> const json::value& {
    const json::value* value = fields.find(key);
    return value != nullptr ? *value : null;
  };
  TokenizerFile file;
  file.normalization = TRY(read_normalizer(member("normalizer"), "normalizer"));
  TRY(read_pre_tokenizer(member("pre_tokenizer"), "pre_tokenizer", file));
  TRY(read_post_processor(member("post_processor"), "post_processor", file));
  TRY(check_decoder(member("decoder"), "decoder"));
  const Fields model = TRY(Fields::of(member("model"), "model"));
  TRY(check_model_options(model));
  file.ignore_merges = TRY(model.boolean("ignore_merges", false));
  const IdOfContent ids = TRY(read_vocabulary(model, file));
  TRY(read_merges(model, ids, file));
  if (fields.find("added_tokens") != nullptr) {
    TRY(read_added_tokens(*TRY(fields.array("added_tokens")), "added_tokens", ids, file));
  }
  for (const int32_t id : file.prefix_ids) {
    if (std::ranges::find(file.added_tokens, id, &AddedToken::id) == file.added_tokens.end()) {
      return base::error("post_processor puts id {} in front, which is no added token", id);
    }
  }
  return file;
}

}  // namespace

Result<TokenizerFile> parse_tokenizer_file(std::string_view json_text, std::string_view source) {
  const json::value document = TRY(base::parse_json(json_text, source));
  Result<TokenizerFile> file = read(document);
  if (!file) return base::error("{}: {}", source, file.error().message);
  return file;
}

}  // namespace ingot::text
