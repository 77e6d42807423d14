#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <utility>

#include "base/result.h"

namespace ingot::soak {

// The first thing that was found wrong. Any thread may use it.
class Findings {
 public:
  void add(std::string text) {
    const std::scoped_lock lock(mutex_);
    if (!any_) text_ = std::move(text);
    any_ = true;
  }
  void add(const base::Status& status) {
    if (!status) add(status.error().message);
  }

  bool any() const { return any_; }
  std::string text() const {
    const std::scoped_lock lock(mutex_);
    return text_;
  }

 private:
  std::atomic<bool> any_ = false;
  mutable std::mutex mutex_;
  std::string text_;
};

}  // namespace ingot::soak
