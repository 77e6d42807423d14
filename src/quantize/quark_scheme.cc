#include "quantize/quark_scheme.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/check.h"

namespace ingot::quantize {
namespace {

namespace json = base::json;

bool is_vllm(Loader loader) { return loader == Loader::kVllm; }

// One side of an entry, weight or input_tensors: an object, or nothing.
class Side {
 public:
  explicit Side(const json::object* object) : object_(object) {}

  bool exists() const { return object_ != nullptr; }

  const json::value* find(std::string_view key) const {
    return object_ == nullptr ? nullptr : object_->if_contains(key);
  }
  bool is(std::string_view key, std::string_view text) const {
    const json::value* value = find(key);
    return value != nullptr && value->is_string() && value->get_string() == text;
  }
  bool is(std::string_view key, int64_t number) const {
    const json::value* value = find(key);
    return value != nullptr && value->is_int64() && value->get_int64() == number;
  }
  bool is_true(std::string_view key) const {
    const json::value* value = find(key);
    return value != nullptr && value->is_bool() && value->get_bool();
  }
  bool is_false(std::string_view key) const {
    const json::value* value = find(key);
    return value != nullptr && value->is_bool() && !value->get_bool();
  }
  std::string dtype() const {
    const json::value* value = find("dtype");
    return value != nullptr && value->is_string() ? std::string(value->get_string()) : "no dtype";
  }
  // The block of block_size, or {} when it is no list of two.
  bool has_block(int64_t rows, int64_t columns) const {
    const json::value* value = find("block_size");
    return value != nullptr && *value == json::value(json::array{rows, columns});
  }

 private:
  const json::object* object_;
};

// What Python takes for nothing.
bool is_empty(const json::value* value) {
  if (value == nullptr || value->is_null()) return true;
  if (value->is_object()) return value->get_object().empty();
  if (value->is_array()) return value->get_array().empty();
  return value->is_bool() && !value->get_bool();
}

// The object of a side; vLLM also takes a list of one. Error: words for what it is instead.
std::optional<Side> side_of(Loader loader, const json::object& entry, std::string_view key,
                            std::string& problem) {
  const json::value* value = entry.if_contains(key);
  if (value == nullptr || value->is_null()) return Side(nullptr);
  if (value->is_object()) return Side(&value->get_object());
  if (is_vllm(loader) && value->is_array() && value->get_array().size() == 1 &&
      value->get_array()[0].is_object()) {
    return Side(&value->get_array()[0].get_object());
  }
  problem = fmt::format("\"{}\" is neither an object nor null", key);
  return std::nullopt;
}

// What keeps a pair of sides from being MXFP4 for weights and activations; none when it is.
std::optional<std::string> sglang_mxfp4_problem(const Side& weight, const Side& input) {
  if (!weight.exists()) return "\"weight\" is null";
  if (!input.exists()) {
    return "\"input_tensors\" is null: it has no path for MXFP4 weights alone";
  }
  for (const auto& [side, name] : {std::pair{&weight, "weight"}, {&input, "input_tensors"}}) {
    if (!side->is("dtype", "fp4")) return fmt::format("{}.dtype is not \"fp4\"", name);
    if (!side->is("qscheme", "per_group")) {
      return fmt::format("{}.qscheme is not \"per_group\"", name);
    }
    if (!side->is("group_size", 32)) return fmt::format("{}.group_size is not 32", name);
    if (!side->is("scale_format", "e8m0")) {
      return fmt::format("{}.scale_format is not \"e8m0\"", name);
    }
  }
  if (weight.is_true("is_dynamic")) return "weight.is_dynamic is true";
  if (input.is_false("is_dynamic")) return "input_tensors.is_dynamic is false";
  return std::nullopt;
}

// vLLM looks at the weight alone, and at what the activations may be.
std::optional<std::string> vllm_mxfp4_problem(const Side& weight, const Side& input) {
  if (!weight.exists()) return "\"weight\" is null";
  if (!weight.is("dtype", "fp4")) return "weight.dtype is not \"fp4\"";
  if (!weight.is("qscheme", "per_group")) return "weight.qscheme is not \"per_group\"";
  if (!weight.is("group_size", 32)) return "weight.group_size is not 32";
  if (!weight.is("scale_format", "e8m0")) return "weight.scale_format is not \"e8m0\"";
  if (!input.exists()) return std::nullopt;
  if (!input.is_true("is_dynamic")) return "input_tensors.is_dynamic is not true";
  constexpr std::string_view kInputs[] = {"fp4", "fp6_e3m2", "fp6_e2m3", "fp8_e4m3"};
  if (std::ranges::find(kInputs, input.dtype()) == std::end(kInputs)) {
    return fmt::format("input_tensors.dtype is {:?}", input.dtype());
  }
  return std::nullopt;
}

bool is_fp8(const Side& side) { return side.is("dtype", "fp8_e4m3"); }

bool is_fp8_block(Loader loader, const Side& weight, const Side& input) {
  if (loader == Loader::kSglangBefore30265) return false;
  if (!weight.is("qscheme", "per_block") || !weight.has_block(128, 128)) return false;
  if (is_vllm(loader)) {
    return is_fp8(weight) && is_fp8(input) && !weight.is_true("is_dynamic") &&
           weight.is_true("symmetric") && input.is_true("is_dynamic") &&
           input.is("qscheme", "per_group") && input.is("group_size", 128) &&
           input.is_true("symmetric");
  }
  const auto any_fp8 = [](const Side& side) {
    return is_fp8(side) || side.is("dtype", "fp8_e4m3fn");
  };
  return any_fp8(weight) && any_fp8(input) && weight.is_false("is_dynamic") &&
         input.is_true("is_dynamic");
}

// Static activations need scales in the file that Ingot knows no tensor for.
std::optional<Scheme> fp8_scheme(const Side& weight, const Side& input) {
  const bool per_channel = weight.is("qscheme", "per_channel");
  if (!is_fp8(weight) || !is_fp8(input) || weight.is_true("is_dynamic")) return std::nullopt;
  if (!per_channel && !weight.is("qscheme", "per_tensor")) return std::nullopt;
  if (!per_channel) return Scheme{BuiltFormat::kOther, "FP8 with one scale a tensor"};
  if (input.is_true("is_dynamic")) return scheme(BuiltFormat::kFp8Channel);
  if (!input.is("qscheme", "per_tensor")) return std::nullopt;
  return Scheme{BuiltFormat::kOther, "FP8 with an input_scale in the file"};
}

bool is_mxfp4_with_static_fp8(const Side& weight, const Side& input) {
  return weight.is("dtype", "fp4") && weight.is("qscheme", "per_group") &&
         weight.is("group_size", 32) && weight.is("scale_format", "e8m0") &&
         !weight.is_true("is_dynamic") && is_fp8(input) && input.is("qscheme", "per_tensor") &&
         !input.is_true("is_dynamic");
}

}  // namespace

Scheme scheme(BuiltFormat format) {
  switch (format) {
    case BuiltFormat::kUnquantized:
      return {format, "unquantized"};
    case BuiltFormat::kMxfp4:
      return {format, "MXFP4"};
    case BuiltFormat::kFp8Block:
      return {format, "FP8 in blocks of 128 x 128"};
    case BuiltFormat::kFp8Channel:
      return {format, "FP8 with a scale an output row"};
    case BuiltFormat::kOther:
    case BuiltFormat::kRefused:
      break;
  }
  CHECK(false, "these have words of their own");
  return {};
}

Scheme quark_scheme(Loader loader, const json::value& entry, ModuleKind kind) {
  const auto refused = [](std::string why) {
    return Scheme{BuiltFormat::kRefused, std::move(why)};
  };
  if (!entry.is_object()) return refused("the entry is no object");
  const json::object& object = entry.get_object();
  if (!is_empty(object.if_contains("output_tensors")) || !is_empty(object.if_contains("bias"))) {
    return refused("it quantizes output_tensors or bias");
  }
  std::string problem;
  const auto weight = side_of(loader, object, "weight", problem);
  const auto input = side_of(loader, object, "input_tensors", problem);
  if (!weight || !input) return refused(problem);
  if (is_fp8_block(loader, *weight, *input)) return scheme(BuiltFormat::kFp8Block);
  if (auto fp8 = fp8_scheme(*weight, *input)) return *std::move(fp8);
  const bool takes_static_fp8 = kind == ModuleKind::kExperts || is_vllm(loader);
  if (takes_static_fp8 && is_mxfp4_with_static_fp8(*weight, *input)) {
    return {BuiltFormat::kOther, "MXFP4 with an input_scale in the file"};
  }
  if (weight->is("dtype", "fp4")) {
    const auto why = is_vllm(loader) ? vllm_mxfp4_problem(*weight, *input)
                                     : sglang_mxfp4_problem(*weight, *input);
    return why ? refused(*why) : scheme(BuiltFormat::kMxfp4);
  }
  if (is_vllm(loader) && weight->exists()) {
    // Schemes that it has and whose tensors Ingot does not read.
    for (const std::string_view dtype : {"int8", "int4", "uint4", "fp6_e3m2", "fp6_e2m3"}) {
      if (weight->is("dtype", dtype)) return {BuiltFormat::kOther, std::string(dtype)};
    }
  }
  if (!weight->exists() || !input->exists()) {
    return refused(fmt::format("\"{}\" is null", weight->exists() ? "input_tensors" : "weight"));
  }
  return refused(
      fmt::format("it knows no way to run weights of {:?} with activations of {:?} of "
                  "this granularity",
                  weight->dtype(), input->dtype()));
}

std::string_view quark_entry_for(BuiltFormat format) {
  switch (format) {
    case BuiltFormat::kMxfp4:
      return "weight and input_tensors both fp4, per_group, group_size 32, scale_format e8m0, the "
             "weight static and the input dynamic";
    case BuiltFormat::kFp8Block:
      return "weight fp8_e4m3, per_block, block_size [128, 128], symmetric, static; input_tensors "
             "fp8_e4m3, per_group, group_size 128, symmetric, dynamic";
    case BuiltFormat::kFp8Channel:
      return "weight fp8_e4m3, per_channel, static; input_tensors fp8_e4m3, per_channel, dynamic";
    case BuiltFormat::kUnquantized:
    case BuiltFormat::kOther:
    case BuiltFormat::kRefused:
      break;
  }
  return "no entry: name it in exclude";
}

}  // namespace ingot::quantize
