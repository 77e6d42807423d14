#pragma once

#include <string>

#include <boost/json/serialize.hpp>

#include "base/json.h"
#include "text/byte_level.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace ingot::text {

// A tokenizer.json for tests to damage: byte b is token b, then come "he" 256, "ll" 257, "hell" 258
// and "hello" 259, which no merge makes; markers <a> 260 (special), <b> 261 and <a><b> 262.
inline base::json::object small_tokenizer_json() {
  const base::json::value document = base::parse_json(R"({
    "version": "1.0", "truncation": null, "padding": null, "normalizer": null,
    "added_tokens": [{"id": 260, "content": "<a>", "special": true, "lstrip": false,
                      "rstrip": false, "single_word": false, "normalized": false},
                     {"id": 261, "content": "<b>", "special": false},
                     {"id": 262, "content": "<a><b>", "special": false}],
    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "Split", "pattern": {"Regex": "\\p{L}+|\\s+|[^\\s\\p{L}]+"},
       "behavior": "Isolated", "invert": false},
      {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]},
    "post_processor": null, "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "ignore_merges": true,
              "vocab": {"he": 256, "ll": 257, "hell": 258, "hello": 259},
              "merges": [["h", "e"], ["l", "l"], "he ll"]}})",
                                                      "small")
                                         .value();
  base::json::object tokenizer = document.as_object();
  for (int byte = 0; byte < 256; ++byte) {
    std::string content;
    append_utf8(content, byte_level_character(static_cast<uint8_t>(byte)));
    tokenizer["model"].at("vocab").as_object()[content] = byte;
  }
  return tokenizer;
}

// The same with GLM's markers from 260 on: <|endoftext|>, [gMASK], <sop>, <|system|> 263, <|user|>
// 264,
// <|assistant|> 265, <|observation|>, <think> 267, </think> 268, and those of tools; 277 ids.
inline base::json::object small_glm_tokenizer_json() {
  base::json::array markers;
  for (const char* marker :
       {"<|endoftext|>", "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>",
        "<|observation|>", "<think>", "</think>", "<tool_call>", "</tool_call>", "<arg_key>",
        "</arg_key>", "<arg_value>", "</arg_value>", "<tool_response>", "</tool_response>"}) {
    markers.push_back(base::json::object{{"id", 260 + markers.size()},
                                         {"content", marker},
                                         {"special", std::string_view(marker).starts_with("<|")}});
  }
  base::json::object tokenizer = small_tokenizer_json();
  tokenizer["added_tokens"] = markers;
  return tokenizer;
}

inline Tokenizer tokenizer_of(const base::json::object& description) {
  return Tokenizer::parse(base::json::serialize(description), "small").value();
}

}  // namespace ingot::text
