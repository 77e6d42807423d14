#include "server/answer_fields.h"

#include <charconv>
#include <limits>

namespace ingot::server {
namespace {

namespace json = base::json;

constexpr int32_t kInt32Max = std::numeric_limits<int32_t>::max();

void read_logit_bias(FieldReader& reader, std::vector<engine::TokenBias>& logit_bias) {
  const json::value* field = reader.find("logit_bias");
  if (field == nullptr) return;
  if (!field->is_object()) {
    return reader.fail("logit_bias", "logit_bias must be an object of token ids and numbers");
  }
  for (const auto& [key, bias] : field->get_object()) {
    const std::string_view digits = key;
    int32_t id = 0;
    const auto read = std::from_chars(digits.begin(), digits.end(), id);
    if (read.ec != std::errc{} || read.ptr != digits.end() || id < 0) {
      return reader.fail("logit_bias",
                         fmt::format("logit_bias has the key {}; keys must be token ids",
                                     shown(json::value(digits))));
    }
    if (!bias.is_number()) {
      return reader.fail("logit_bias", fmt::format("logit_bias of token {} is {}; it must be a "
                                                   "number",
                                                   id, shown(bias)));
    }
    logit_bias.push_back({.id = id, .bias = bias.to_number<double>()});
  }
}

// Any 64 bits, with or without a sign.
void read_seed(FieldReader& reader, std::optional<uint64_t>& seed) {
  const json::value* field = reader.find("seed");
  if (field == nullptr) return;
  const std::optional<int64_t> number = whole_number(*field);
  if (number) {
    seed = static_cast<uint64_t>(*number);
  } else if (field->is_uint64()) {
    seed = field->get_uint64();
  } else {
    reader.fail("seed",
                fmt::format("seed is {}; it must be a whole number of 64 bits", shown(*field)));
  }
}

void read_stop(FieldReader& reader, std::vector<std::string>& stop) {
  const json::value* field = reader.find("stop");
  if (field == nullptr) return;
  const json::array single{*field};
  const json::array& list = field->is_array() ? field->get_array() : single;
  if (list.size() > kStopStringsMax) {
    return reader.fail("stop", fmt::format("stop has {} strings; it may have at most {}",
                                           list.size(), kStopStringsMax));
  }
  for (const json::value& element : list) {
    const bool fits = element.is_string() && !element.get_string().empty() &&
                      element.get_string().size() <= kStopStringBytesMax;
    if (!fits) {
      return reader.fail("stop", fmt::format("stop must be a string or an array of strings, each "
                                             "of 1 to {} bytes; one is {}",
                                             kStopStringBytesMax, shown(element)));
    }
    stop.emplace_back(element.get_string());
  }
}

void read_stream(FieldReader& reader, AnswerFields& fields) {
  reader.boolean("stream", fields.stream);
  const json::value* field = reader.find("stream_options");
  if (field == nullptr) return;
  if (!field->is_object() || !fields.stream) {
    return reader.fail("stream_options",
                       "stream_options must be an object, and only with \"stream\": true");
  }
  FieldReader options(field->get_object());
  options.boolean("include_usage", fields.include_usage);
  options.only("include_obfuscation", "[false]");
  options.only("continuous_usage_stats", "[false]");
  if (auto read = options.finish(); !read) {
    read.error().param = "stream_options." + read.error().param;
    read.error().message = "stream_options." + read.error().message;
    reader.fail(std::move(read.error()));
  }
}

void pass_over(FieldReader& reader) {
  for (const char* name : {"user", "metadata", "safety_identifier"}) reader.ignore(name);
  reader.only("response_format", R"([{"type": "text"}])");
  reader.only("service_tier", R"(["auto", "default"])");
  reader.only("store", "[false]");
  reader.only("use_beam_search", "[false]");
  reader.only("include_stop_str_in_output", "[false]");
}

}  // namespace

void read_answer_fields(FieldReader& reader, AnswerFields& fields) {
  reader.string("model", fields.model);
  reader.number("temperature", fields.temperature);
  reader.number("top_p", fields.top_p);
  reader.number("min_p", fields.min_p);
  reader.integer("top_k", fields.top_k, -1, kInt32Max);
  if (fields.top_k == -1) fields.top_k = 0;
  reader.number("repetition_penalty", fields.repetition_penalty);
  reader.number("presence_penalty", fields.presence_penalty);
  reader.number("frequency_penalty", fields.frequency_penalty);
  read_logit_bias(reader, fields.logit_bias);
  read_seed(reader, fields.seed);
  reader.integer("min_tokens", fields.min_tokens, 0, kInt32Max);
  reader.boolean("ignore_eos", fields.ignore_eos);
  read_stop(reader, fields.stop);
  reader.ids("stop_token_ids", fields.stop_token_ids, kStopTokenIdsMax);
  reader.integer("n", fields.n, 1, kChoicesPerPromptMax);
  reader.integer("prompt_logprobs", fields.prompt_logprobs, 0, engine::kTopLogprobsMax);
  read_stream(reader, fields);
  if (fields.stream && fields.prompt_logprobs) {
    reader.fail("prompt_logprobs", "prompt_logprobs cannot be streamed; leave out one of the two");
  }
  reader.integer("priority", fields.priority, std::numeric_limits<int32_t>::min(), kInt32Max);
  reader.string("cache_salt", fields.cache_salt);
  pass_over(reader);
}

}  // namespace ingot::server
