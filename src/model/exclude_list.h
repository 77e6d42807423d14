#pragma once

#include <vector>

#include "model/load_plan.h"

namespace ingot::model {

// Compares the list of unquantized modules in config.json with what the file holds, and adds a
// warning for every disagreement: an entry that names no module (with the nearest name that
// exists), a listed module that the file stores quantized, and, in a file that has quantized
// layers, a linear layer that is stored unquantized and that no entry covers. The file decides in
// every case. An entry covers the module that it names and those inside it. Wildcards are matched
// as by fnmatch(3); with an entry of the form "re:..." nothing is said of modules that no entry
// covers.
void compare_with_exclude_list(const ModelConfig& config, const std::vector<PlanRow>& rows,
                               std::vector<Finding>& findings);

// How far a name that somebody wrote is from one that exists: inserting a character costs 1,
// leaving one out 2, since a reader more often forgets a part than invents one.
size_t name_distance(std::string_view written, std::string_view existing);

}  // namespace ingot::model
