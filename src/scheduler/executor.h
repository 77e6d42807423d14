#pragma once

#include "scheduler/batch.h"

namespace ingot::scheduler {

// Runs batches: a model, a model of its time, or a test that watches. Used by one thread.
class Executor {
 public:
  virtual ~Executor() = default;

  // What came of `batch`, valid until the next call. What goes wrong is an error of the sequences
  // that it hurts, of all of them if need be.
  virtual const StepResult& execute(const Batch& batch) = 0;
};

}  // namespace ingot::scheduler
