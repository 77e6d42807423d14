#include "base/log.h"

#include <memory>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace ingot::base {
namespace {

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto created = std::make_shared<spdlog::logger>(
        "ingot", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    created->set_pattern("ingot: %v");
    return created;
  }();
  return *instance;
}

}  // namespace

void log_info(std::string_view text) { logger().info("{}", text); }
void log_warning(std::string_view text) { logger().warn("warning: {}", text); }

}  // namespace ingot::base
