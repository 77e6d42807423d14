#include "cli/loader_report.h"

#include <algorithm>

#include <fmt/format.h>
#include <boost/json/serialize.hpp>

#include "cli/options.h"
#include "model/inspection.h"

namespace ingot::cli {
namespace {

namespace json = base::json;

void print_exclude_to_add(const std::vector<std::string>& entries) {
  constexpr size_t kShown = 8;
  if (entries.empty()) return;
  fmt::print("  the list of unquantized modules lacks {}:\n", grouped(std::ssize(entries)));
  for (size_t i = 0; i < std::min(kShown, entries.size()); ++i) {
    fmt::print("    {:?}\n", entries[i]);
  }
  if (entries.size() > kShown) {
    fmt::print("    ... and {} more; --json lists them all\n",
               grouped(std::ssize(entries) - static_cast<int64_t>(kShown)));
  }
}

void print_verdict(const quantize::LoaderReport& report) {
  const std::string_view program = version(report.loader);
  if (report.loads_right()) {
    fmt::print(
        "  {} would load every tensor in the format that the file has{} ({} in {} modules)\n",
        program, report.where(), grouped(report.num_tensors), grouped(report.num_modules));
  } else if (report.is_complete) {
    fmt::print("  {} would not load this checkpoint right\n", program);
  } else {
    fmt::print("  whether {} would load this checkpoint right was not checked\n", program);
  }
}

}  // namespace

void print(const quantize::LoaderReport& report) {
  constexpr std::string_view kTitles[] = {"note", "warning", "ERROR"};
  fmt::print("\n  by the rules of {}:\n", version(report.loader));
  for (const model::Finding& finding : report.findings) {
    fmt::print("  {}: {}\n", kTitles[static_cast<size_t>(finding.severity)], finding.line());
  }
  print_exclude_to_add(report.exclude_to_add);
  print_verdict(report);
}

json::object to_json(const quantize::LoaderReport& report) {
  json::array findings;
  for (size_t i = 0; i < report.findings.size(); ++i) {
    json::object finding = to_json(report.findings[i]);
    const auto found = report.tensors_of_findings.find(i);
    if (found != report.tensors_of_findings.end()) {
      finding["tensors"] = json::array(found->second.begin(), found->second.end());
    }
    findings.push_back(std::move(finding));
  }
  json::array platforms;
  if (report.differs_on_cuda) platforms.push_back("cuda");
  if (report.differs_on_rocm) platforms.push_back("rocm");
  return {
      {"name", name(report.loader)},
      {"rules", version(report.loader)},
      {"loads_right", report.loads_right()},
      {"differs_on", std::move(platforms)},
      {"complete", report.is_complete},
      {"modules", report.num_modules},
      {"tensors", report.num_tensors},
      {"findings", std::move(findings)},
      {"exclude_to_add", json::array(report.exclude_to_add.begin(), report.exclude_to_add.end())}};
}

}  // namespace ingot::cli
