#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "model/load_plan.h"
#include "quantize/quantization_plan.h"
#include "quantize/recipe.h"

namespace ingot::quantize {

// Adds to the plan's exclude list what a program looks up under another name than the published one
// and would otherwise build quantized: sglang knows the MTP layers of DeepSeek and GLM-4.7-Flash by
// names of its own. Nothing where the published names do, as for GLM-5.2, so that the list stays
// Quark's. Errors: a config that is none.
base::Status add_names_of_loaders(const base::json::value& source_config, QuantizationPlan& plan);

// What one program makes of a quantized model.
struct Verdict {
  std::string program;    // one of kPrograms
  std::string version;    // "sglang 0.5.23", whose rules were read; "ingot"
  bool is_meant = false;  // the recipe says that it makes files for this program
  bool loads = false;     // every tensor, in the format that the file has, on one platform at least
  std::string_view where = "";  // LoaderReport::where()
  std::vector<model::Finding> findings;
};

// One verdict a program. Of files that are still to be written, from the plan alone; the source's
// config is needed for what it says of the model.
// Errors: a config that is none.
base::Result<std::vector<Verdict>> judge_plan(const base::json::value& source_config,
                                              const QuantizationPlan& plan);

// Of what stands in a directory. Errors: it holds no model.
base::Result<std::vector<Verdict>> judge_directory(const std::filesystem::path& directory,
                                                   const Recipe& recipe);

// Whether all programs that the recipe is meant for load it.
bool all_meant_load(const std::vector<Verdict>& verdicts);

// By program: `version`, `meant`, `loads`, `findings`.
base::json::object to_json(const std::vector<Verdict>& verdicts);

// For people: a line a program, and up to three findings, the worst first. `more` says where all
// of them are; the last " --for {}" in it gets the program's name, or goes where that is "ingot".
std::string describe(const std::vector<Verdict>& verdicts, std::string_view more);

}  // namespace ingot::quantize
