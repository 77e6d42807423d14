#pragma once

#include "base/json.h"
#include "quantize/loader_check.h"

namespace ingot::cli {

// The answer of `ingot inspect --for`, to standard output: all findings, then the verdict.
void print(const quantize::LoaderReport& report);
base::json::object to_json(const quantize::LoaderReport& report);

}  // namespace ingot::cli
