#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "text/byte_level.h"
#include "text/utf8.h"

namespace ingot::text {

// The id of a marker is kFirstMarkerId and its place here.
inline constexpr int32_t kFirstMarkerId = 258;
inline const std::vector<std::string>& fixture_markers() {
  static const std::vector<std::string> markers = {
      "<|endoftext|>",   "[gMASK]",         "<sop>",      "<|system|>",  "<|user|>",
      "<|assistant|>",   "<|observation|>", "<think>",    "</think>",    "<tool_call>",
      "</tool_call>",    "<arg_key>",       "</arg_key>", "<arg_value>", "</arg_value>",
      "<tool_response>", "</tool_response>"};
  return markers;
}

// A tokenizer.json for tests: token i is byte i, 256 is "th" and 257 "the", then GLM's markers.
inline std::string fixture_tokenizer() {
  base::json::object vocabulary;
  const auto spelled = [](uint8_t byte) {
    std::string text;
    append_utf8(text, byte_level_character(byte));
    return text;
  };
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary[spelled(static_cast<uint8_t>(byte))] = byte;
  }
  vocabulary["th"] = 256;
  vocabulary["the"] = 257;
  base::json::array added;
  for (const std::string& marker : fixture_markers()) {
    added.push_back({{"id", kFirstMarkerId + static_cast<int32_t>(added.size())},
                     {"content", marker},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", marker.starts_with("<|")}});
  }
  const base::json::object split{
      {"type", "Split"},
      {"pattern", {{"Regex", R"( ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+)"}}},
      {"behavior", "Isolated"},
      {"invert", false}};
  const base::json::object bytes{{"type", "ByteLevel"},
                                 {"add_prefix_space", false},
                                 {"trim_offsets", true},
                                 {"use_regex", false}};
  return base::pretty_json(base::json::object{
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", base::json::array{split, bytes}}}},
      {"post_processor", nullptr},
      {"decoder", bytes},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", nullptr},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", false},
        {"byte_fallback", false},
        {"ignore_merges", true},
        {"vocab", vocabulary},
        {"merges",
         base::json::array{base::json::array{"t", "h"}, base::json::array{"th", "e"}}}}}});
}

}  // namespace ingot::text
