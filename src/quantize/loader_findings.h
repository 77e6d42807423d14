#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/load_plan.h"
#include "quantize/loader_modules.h"

namespace ingot::quantize {

// Collects what is found of single modules and makes one finding of all that share a cause.
class LoaderFindings {
 public:
  struct Cause {
    model::Severity severity = model::Severity::kError;
    std::string code;
    std::string what;    // the same for all: "sglang builds them as MXFP4 and the file has bf16"
    std::string remedy;  // the same for all
  };

  // `rows` are those of the module that the cause is about; `example` is said of the first module
  // of a cause only.
  void add(const Cause& cause, const LoaderModule& module,
           const std::vector<const model::PlanRow*>& rows, const std::string& example);

  // One finding a cause, in the order in which causes came up, with its tensors' names.
  struct Collected {
    model::Finding finding;
    std::vector<std::string> tensors;
  };
  std::vector<Collected> take();

 private:
  struct Group {
    Cause cause;
    std::string first;
    std::string example;
    int64_t num_modules = 0;
    std::vector<std::string> tensors;
  };

  std::vector<Group> groups_;
  std::map<std::string, size_t> index_;
};

// "\"a\", \"b\" and 12 more"
std::string first_of_list(const std::vector<std::string>& names);

}  // namespace ingot::quantize
