#include "tensor/checkpoint_index.h"

#include <algorithm>
#include <exception>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value.hpp>

namespace ingot::tensor {
namespace {

namespace js = boost::json;
using ErrorCode = boost::system::error_code;

bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

// Collects weight_map from the document's events. Returning false from an event stops the parser;
// refusal() then says why.
class IndexHandler {
 public:
  static constexpr size_t max_object_size = js::object::max_size();
  static constexpr size_t max_array_size = js::array::max_size();
  static constexpr size_t max_key_size = js::string::max_size();
  static constexpr size_t max_string_size = js::string::max_size();

  const std::string& refusal() const { return refusal_; }
  bool has_weight_map() const { return has_weight_map_; }

  // Shards are numbered as they are met; this puts them in ascending order.
  CheckpointIndex release() {
    std::vector<size_t> rank_of(shard_ids_.size());
    CheckpointIndex index;
    for (auto& [name, id] : shard_ids_) {
      rank_of[id] = index.shards.size();
      index.shards.push_back(name);
    }
    for (auto& [name, shard] : shard_of_) shard = rank_of[shard];
    index.shard_of = std::move(shard_of_);
    return index;
  }

  bool on_document_begin(ErrorCode&) { return true; }
  bool on_document_end(ErrorCode&) { return true; }

  bool on_object_begin(ErrorCode& code) {
    if (in_weight_map_) return refuse(code, "weight_map holds something that is not a string");
    if (++depth_ == 2 && key_ == "weight_map") {
      if (has_weight_map_) return refuse(code, "weight_map appears twice");
      has_weight_map_ = in_weight_map_ = true;
    }
    return true;
  }
  bool on_object_end(size_t, ErrorCode&) {
    --depth_;
    in_weight_map_ = false;
    return true;
  }
  bool on_array_begin(ErrorCode& code) {
    const bool allowed = on_other_value(code);
    ++depth_;
    return allowed;
  }
  bool on_array_end(size_t, ErrorCode&) {
    --depth_;
    return true;
  }

  bool on_key_part(js::string_view part, size_t, ErrorCode&) {
    append(key_, part);
    return true;
  }
  bool on_key(js::string_view part, size_t, ErrorCode&) {
    append(key_, part);
    text_ended_ = true;
    return true;
  }
  bool on_string_part(js::string_view part, size_t, ErrorCode&) {
    append(shard_, part);
    return true;
  }
  bool on_string(js::string_view part, size_t, ErrorCode& code) {
    append(shard_, part);
    text_ended_ = true;
    if (!in_weight_map_) return on_other_value(code);
    if (!is_plain_file_name(shard_)) {
      return refuse(code,
                    "tensor {:?} is in {:?}, which is not the name of a file beside the index",
                    key_, shard_);
    }
    const size_t shard = shard_ids_.try_emplace(shard_, shard_ids_.size()).first->second;
    if (!shard_of_.try_emplace(key_, shard).second) {
      return refuse(code, "tensor {:?} is listed twice", key_);
    }
    return true;
  }

  bool on_number_part(js::string_view, ErrorCode&) { return true; }
  bool on_int64(int64_t, js::string_view, ErrorCode& code) { return on_other_value(code); }
  bool on_uint64(uint64_t, js::string_view, ErrorCode& code) { return on_other_value(code); }
  bool on_double(double, js::string_view, ErrorCode& code) { return on_other_value(code); }
  bool on_bool(bool, ErrorCode& code) { return on_other_value(code); }
  bool on_null(ErrorCode& code) { return on_other_value(code); }
  bool on_comment_part(js::string_view, ErrorCode&) { return true; }
  bool on_comment(js::string_view, ErrorCode&) { return true; }

 private:
  bool on_other_value(ErrorCode& code) {
    if (in_weight_map_) return refuse(code, "weight_map holds something that is not a string");
    if (depth_ == 0) return refuse(code, "the document is not an object");
    return true;
  }

  // Keys and strings arrive in parts.
  void append(std::string& text, js::string_view part) {
    if (text_ended_) text.clear();
    text_ended_ = false;
    text.append(part.data(), part.size());
  }

  template <typename... Args>
  bool refuse(ErrorCode& code, fmt::format_string<Args...> format, Args&&... args) {
    refusal_ = fmt::format(format, std::forward<Args>(args)...);
    code = js::error::syntax;
    return false;
  }

  std::map<std::string, size_t> shard_ids_;
  std::unordered_map<std::string, size_t> shard_of_;
  std::string refusal_;
  std::string key_;
  std::string shard_;
  bool text_ended_ = true;
  bool has_weight_map_ = false;
  bool in_weight_map_ = false;
  int depth_ = 0;
};

}  // namespace

base::Result<CheckpointIndex> parse_checkpoint_index(std::string_view text,
                                                     std::string_view source) {
  js::basic_parser<IndexHandler> parser{js::parse_options{}};
  ErrorCode code;
  size_t consumed = 0;
  try {
    consumed = parser.write_some(false, text.data(), text.size(), code);
  } catch (const std::exception& failure) {
    return base::error("{}: not readable: {}", source, failure.what());
  }
  const IndexHandler& handler = parser.handler();
  if (!handler.refusal().empty()) {
    return base::error("{}: {}; download the index again", source, handler.refusal());
  }
  if (code || text.find_first_not_of(" \t\r\n", consumed) != std::string_view::npos) {
    return base::error("{}: byte {}: not valid JSON: {}; download the index again", source,
                       consumed, code ? code.message() : "text after the end");
  }
  if (!handler.has_weight_map()) {
    return base::error("{}: no weight_map in it; download the index again", source);
  }
  CheckpointIndex index = parser.handler().release();
  if (index.shard_of.empty()) {
    return base::error("{}: weight_map is empty; download the index again", source);
  }
  return index;
}

}  // namespace ingot::tensor
