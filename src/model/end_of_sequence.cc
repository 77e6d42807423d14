#include "model/end_of_sequence.h"

#include <algorithm>

#include "base/mapped_file.h"

namespace ingot::model {
namespace {

namespace json = base::json;

constexpr uint64_t kFileBytesMax = 1 << 20;

}  // namespace

base::Result<std::vector<int64_t>> read_end_of_sequence(ConfigReader& reader, int64_t vocab_size) {
  std::vector<int64_t> ids;
  const json::value* value = reader.find("eos_token_id");
  if (value == nullptr) return ids;
  const json::array single{*value};
  for (const json::value& id : value->is_array() ? value->get_array() : single) {
    const int64_t* number = id.if_int64();
    if (number == nullptr || *number < 0 || *number >= vocab_size) {
      return base::error("{}: \"eos_token_id\" has an entry that is no id below vocab_size {}",
                         reader.source(), vocab_size);
    }
    ids.push_back(*number);
  }
  return ids;
}

base::Result<std::vector<int64_t>> further_end_of_sequence(const std::filesystem::path& directory,
                                                           const std::vector<int64_t>& known,
                                                           int64_t vocab_size) {
  const std::filesystem::path path = directory / "generation_config.json";
  if (!std::filesystem::exists(path)) return std::vector<int64_t>{};
  const json::value document =
      TRY(base::parse_json(TRY(base::read_text_file(path, kFileBytesMax)), path.string()));
  if (!document.is_object()) return base::error("{}: expected a JSON object", path.string());
  ConfigReader reader(document.get_object(), path.string());
  std::vector<int64_t> ids = TRY(read_end_of_sequence(reader, vocab_size));
  std::erase_if(ids, [&](int64_t id) { return std::ranges::find(known, id) != known.end(); });
  return ids;
}

}  // namespace ingot::model
