#pragma once

#include "base/result.h"
#include "cli/options.h"

namespace ingot::cli {

// ingot generate --requests IN.jsonl --out OUT.jsonl. Exit status 1: some lines have no answer, or
// it was interrupted.
base::Result<int> answer_request_file(const CommonOptions& common, const GenerateOptions& options);

}  // namespace ingot::cli
