#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/provenance.h"
#include "base/result.h"
#include "cli/model_session.h"
#include "cli/options.h"
#include "engine/engine.h"
#include "engine/memory_plan.h"

namespace ingot::cli {

// A loaded model and an engine that serves it.
struct EngineSession {
  std::unique_ptr<ModelSession> model;
  std::unique_ptr<engine::Engine> engine;  // ends before its model does
  engine::MemoryPlan memory;
};

enum class MemoryLine : uint8_t { kSaid, kUnsaid };

// What a command says of memory, and of where threads and memory are put.
struct MemoryWords {
  MemoryLine memory_line = MemoryLine::kUnsaid;
  std::string memory_remedy = {};  // "ask for less with --OPTION", where there is too little
};

// Loads the model, plans the memory and starts the engine. `limits` without drafts and kv_tokens,
// which are in `choices`. `tokenizer`, which may be null, must outlive the session. Says on stderr
// what is worth knowing.
base::Result<std::unique_ptr<EngineSession>> open_engine(
    const CommonOptions& common, const ModelOptions& model, const EngineChoices& choices,
    engine::ServingLimits limits, const text::Tokenizer* tokenizer, const MemoryWords& words);

// For the reports of what such a session did.
base::ProvenanceInputs provenance_of(const ModelSession& session, const EngineChoices& choices,
                                     uint64_t seed);

// What may happen while a request runs, on the calling thread. Each may be empty.
struct RequestHooks {
  std::function<base::Status(const engine::EngineUpdate&)> on_update;  // an error ends it
  std::function<bool()> wants_more;  // asked at least every 50 ms; no cancels it
};

// Runs one request to its end. Errors: it is refused or fails, and the hook's.
base::Result<engine::EngineReport> run_request(engine::Engine& engine,
                                               engine::EngineRequest request,
                                               const RequestHooks& hooks);

}  // namespace ingot::cli
