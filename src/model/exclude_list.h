#pragma once

#include <vector>

#include "model/load_plan.h"

namespace ingot::model {

// Compares the list of unquantized modules in config.json with what the file holds, and adds a
// warning for every disagreement: an entry that names no module (with the nearest name that
// exists), and a listed module that the file stores quantized. The file decides in every case.
// Entries that are patterns ("re:..." or with wildcards) are not compared.
void compare_with_exclude_list(const ModelConfig& config, const std::vector<PlanRow>& rows,
                               std::vector<Finding>& findings);

// How far a name that somebody wrote is from one that exists: inserting a character costs 1,
// leaving one out 2, since a reader more often forgets a part than invents one.
size_t name_distance(std::string_view written, std::string_view existing);

}  // namespace ingot::model
