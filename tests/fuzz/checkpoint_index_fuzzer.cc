// model.safetensors.index.json: what is accepted names plain files, and agrees with the document
// that the library's own parser makes of it.

#include <algorithm>
#include <cstdint>
#include <string_view>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "base/check.h"
#include "tensor/checkpoint_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto index = ingot::tensor::parse_checkpoint_index(text, "index.json");
  if (!index) {
    const std::string& message = index.error().message;
    CHECK(message.starts_with("index.json: "), message);
    CHECK(message.find('\n') == std::string::npos, message);
    return 0;
  }
  CHECK(!index->shards.empty());
  CHECK(std::is_sorted(index->shards.begin(), index->shards.end()));
  CHECK(std::adjacent_find(index->shards.begin(), index->shards.end()) == index->shards.end());
  for (const std::string& shard : index->shards) {
    CHECK(!shard.empty() && shard != "." && shard != "..", shard);
    CHECK(shard.find('/') == std::string::npos && shard.find('\0') == std::string::npos, shard);
  }
  const boost::json::value document = boost::json::parse(text);
  const boost::json::object& map = document.as_object().at("weight_map").as_object();
  CHECK(map.size() == index->shard_of.size());
  for (const auto& [tensor, shard] : index->shard_of) {
    CHECK(map.at(tensor).as_string() == index->shards.at(shard), tensor);
  }
  return 0;
}
