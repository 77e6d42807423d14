#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quantize/loader_check.h"
#include "quantize/loader_decision.h"
#include "quantize/loader_findings.h"

namespace ingot::quantize {

// Who described the formats; it decides what the list of unquantized modules is called and how the
// scales of FP8 blocks have to be named.
enum class ConfigForm : uint8_t { kNone, kQuark, kFp8 };

// Compares what a loader would build with what the file has, module by module.
class ModuleComparison {
 public:
  // Keeps a reference to `report`, to which it adds counts and, at the end, findings.
  ModuleComparison(Loader loader, ConfigForm form, LoaderReport& report);

  // False when an entry in the list of unquantized modules would mend the module: it is stored
  // unquantized and would be built quantized, be it on one platform alone.
  [[nodiscard]] bool compare(const LoaderModule& module, const Decision& decision);

  void finish();

 private:
  void refuse(const LoaderModule& module, const Decision& decision);
  bool report_difference(const LoaderModule& module, const Decision& decision,
                         const std::vector<const model::PlanRow*>& rows);
  bool compare_index_key(const LoaderModule& module, const Decision& decision);
  void check_scales(const LoaderModule& module, BuiltFormat built);
  void add_scale_problem(const LoaderModule& module, const std::vector<const model::PlanRow*>& rows,
                         std::string code, std::string what, std::string remedy);
  std::string remedy_for(const Decision& decision, const model::PlanRow& row) const;

  Loader loader_;
  ConfigForm form_;
  LoaderReport& report_;
  LoaderFindings findings_;
};

}  // namespace ingot::quantize
