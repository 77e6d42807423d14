#include "quantize/quantizer.h"

#include <atomic>
#include <csignal>
#include <cstring>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/directory_lock.h"
#include "kernels/dequantize.h"
#include "quantize/destination.h"
#include "quantize/quantizer_fixture.h"
#include "quantize/rounding_functions.h"

namespace ingot::quantize {
namespace {

namespace fs = std::filesystem;
using model::Parameter;
using model::StoredForm;
using tensor::DType;

// Linear layers as FP8 in blocks and per channel in turn, as no release has them.
StoredForm fp8(const Parameter& parameter) {
  if (!parameter.is_linear()) return SourceModel::bf16(parameter);
  return parameter.layer % 2 == 0 ? StoredForm::kFp8BlockScaleInv : StoredForm::kFp8ChannelColumn;
}

StoredForm f32(const Parameter&) { return StoredForm::kF32; }
StoredForm f16(const Parameter&) { return StoredForm::kF16; }

// Stops a run at the n-th question whether to stop.
QuantizerOptions stops_at(int n) {
  auto questions = std::make_shared<std::atomic<int>>(0);
  return {.interrupted = [questions, n] { return ++*questions >= n; }};
}

// Changes a byte of a file and no more.
void flip_byte(const fs::path& path, uint64_t from_end) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(-static_cast<std::streamoff>(from_end), std::ios::end);
  const int byte = file.get();
  file.seekp(-static_cast<std::streamoff>(from_end), std::ios::end);
  file.put(static_cast<char>(byte ^ 1));
  file.close();
  CHECK(file.good(), path.string());
}

class Quantizer : public ::testing::Test {
 protected:
  fs::path destination() const { return scratch_ / "quantized"; }

  // What an undisturbed run makes of a source.
  static std::map<std::string, std::string> undisturbed(const OpenedSource& source) {
    const base::ScratchDirectory scratch;
    const auto report = source.quantize_to(scratch / "reference");
    CHECK(report.has_value(), report ? "" : report.error().message);
    return snapshot(scratch / "reference");
  }

  void expect_refused(const OpenedSource& source, std::string_view words,
                      const QuantizerOptions& options = {}) const {
    const auto report = source.quantize_to(destination(), options);
    ASSERT_FALSE(report.has_value()) << words;
    EXPECT_TRUE(report.error().message.contains(words)) << report.error().message;
  }

  void interrupt(const OpenedSource& source, int at) const {
    const auto report = source.quantize_to(destination(), stops_at(at));
    CHECK(report.has_value(), report ? "" : report.error().message);
    EXPECT_FALSE(report->complete);
  }

  base::ScratchDirectory scratch_;
};

// Bytes of an output, made from the decoded source at once and by the reference.
std::vector<std::string> expected_outputs(const OpenedSource& source, const PlannedTensor& planned,
                                          Dequantization dequantization) {
  const auto read = [&](const tensor::TensorInfo& info) {
    std::string bytes(info.size_bytes, '\0');
    CHECK(source.checkpoint.read(info, 0, std::as_writable_bytes(std::span(bytes))).has_value());
    return bytes;
  };
  const std::string data = read(*planned.source.data);
  if (planned.is_copied()) return {data};
  const int64_t rows = planned.parameter.shape[0];
  const int64_t cols = planned.parameter.shape[1];
  const std::string scales = planned.source.scales == nullptr ? "" : read(*planned.source.scales);
  const kernels::Weight weight{.format = planned.source.format,
                               .rows = rows,
                               .cols = cols,
                               .data = data.data(),
                               .scales = scales.data()};
  std::vector<tensor::BFloat16> narrow(static_cast<size_t>(rows * cols));
  kernels::dequantize(weight, narrow.data());
  if (planned.treatment == Treatment::kKeep) {
    return {std::string(reinterpret_cast<const char*>(narrow.data()), narrow.size() * 2)};
  }
  // What is rounded, in the dtype that it has when it is.
  std::vector<float> wide(narrow.size());
  kernels::dequantize(weight, wide.data());
  const void* values = data.data();
  DType dtype = planned.source.data->dtype;
  if (planned.source.scales != nullptr) {
    const bool narrows = dequantization == Dequantization::kBF16;
    values = narrows ? static_cast<const void*>(narrow.data()) : wide.data();
    dtype = narrows ? DType::kBF16 : DType::kF32;
  }
  std::string codes(planned.outputs[0].shape.num_elements().value(), '\0');
  const auto functions =
      RoundingFunctions::choose(kernels::ScaleSearch::kEven, kernels::Target::kReference);
  if (planned.treatment == Treatment::kMxfp4) {
    std::string scale_bytes(planned.outputs[1].shape.num_elements().value(), '\0');
    kernels::RoundingStatistics statistics;
    CHECK(functions.mxfp4(dtype)({.values = values,
                                  .rows = rows,
                                  .cols = cols,
                                  .codes = reinterpret_cast<uint8_t*>(codes.data()),
                                  .scales = reinterpret_cast<uint8_t*>(scale_bytes.data()),
                                  .statistics = &statistics}));
    return {codes, scale_bytes};
  }
  std::string row_scales(static_cast<size_t>(rows) * sizeof(float), '\0');
  double squares = 0;
  double errors = 0;
  float error_max = 0;
  CHECK(functions.fp8(dtype)({.values = values,
                              .rows = rows,
                              .cols = cols,
                              .codes = reinterpret_cast<uint8_t*>(codes.data()),
                              .scales = reinterpret_cast<float*>(row_scales.data()),
                              .sum_squares = &squares,
                              .sum_squared_errors = &errors,
                              .error_max = &error_max}));
  return {codes, row_scales};
}

TEST_F(Quantizer, WritesWhatTheKernelsMakeOfWholeTensors) {
  for (const auto& [form, search] :
       {std::pair{model::FormOf(SourceModel::bf16), Dequantization::kF32},
        {model::FormOf(f16), Dequantization::kF32},
        {model::FormOf(f32), Dequantization::kF32},
        {model::FormOf(fp8), Dequantization::kF32},
        {model::FormOf(fp8), Dequantization::kBF16}}) {
    const SourceModel model(3, form);
    const OpenedSource source(model.path(), mixed_recipe());
    fs::remove_all(destination());
    const auto report = source.quantize_to(
        destination(), {.dequantization = search, .memory_bytes = uint64_t{48} << 10});
    ASSERT_TRUE(report.has_value()) << report.error().message;
    const auto written = tensor::Checkpoint::open(destination());
    ASSERT_TRUE(written.has_value()) << written.error().message;
    size_t num_outputs = 0;
    for (const PlannedShard& shard : source.plan.shards) {
      for (const PlannedTensor& planned : shard.tensors) {
        const auto expected = expected_outputs(source, planned, search);
        ASSERT_EQ(expected.size(), planned.outputs.size());
        for (size_t i = 0; i < expected.size(); ++i, ++num_outputs) {
          const tensor::TensorInfo* info = written->find(planned.outputs[i].name);
          ASSERT_NE(info, nullptr) << planned.outputs[i].name;
          EXPECT_EQ(info->dtype, planned.outputs[i].dtype);
          std::string bytes(info->size_bytes, '\0');
          ASSERT_TRUE(written->read(*info, 0, std::as_writable_bytes(std::span(bytes))));
          EXPECT_TRUE(bytes == expected[i]) << info->name;
        }
      }
    }
    EXPECT_EQ(written->tensors().size(), num_outputs);
  }
}

TEST_F(Quantizer, ThreadsAndMemoryChangeNothing) {
  const SourceModel model(3, fp8);
  const OpenedSource source(model.path(), mixed_recipe());
  const auto expected = undisturbed(source);
  std::string rows;
  for (const int threads : {1, 2, 5}) {
    for (const uint64_t memory_bytes :
         {uint64_t{100} << 10, uint64_t{160} << 10, uint64_t{1} << 30}) {
      fs::remove_all(destination());
      const auto report = source.quantize_to(
          destination(), {.memory_bytes = memory_bytes, .target = kernels::detect_target()},
          threads);
      ASSERT_TRUE(report.has_value()) << report.error().message;
      EXPECT_TRUE(snapshot(destination()) == expected) << threads << " threads, " << memory_bytes;
      if (rows.empty()) rows = text_of(*report);
      EXPECT_EQ(text_of(*report), rows) << threads << " threads, " << memory_bytes;
    }
  }
}

// Matrices so tall that a chunk is read in several pieces, and one that ends within a piece, beside
// buffers that hold no more than one piece.
TEST_F(Quantizer, PiecesOfAChunkChangeNothing) {
  base::json::object config = model::small_config();
  config["intermediate_size"] = 4100;
  for (const model::FormOf& form : {model::FormOf(SourceModel::bf16), model::FormOf(fp8)}) {
    const SourceModel model(1, form, config);
    for (const Treatment treatment :
         {Treatment::kKeep, Treatment::kMxfp4, Treatment::kFp8Channel}) {
      Recipe recipe = mixed_recipe();
      recipe.rules[2].treatment = treatment;
      const OpenedSource source(model.path(), std::move(recipe));
      std::map<std::string, std::string> expected;
      std::string rows;
      for (const uint64_t memory_bytes : {uint64_t{240} << 10, uint64_t{1} << 30}) {
        fs::remove_all(destination());
        const auto report = source.quantize_to(
            destination(), {.memory_bytes = memory_bytes, .target = kernels::detect_target()}, 1);
        ASSERT_TRUE(report.has_value()) << report.error().message;
        if (rows.empty()) {
          expected = snapshot(destination());
          rows = text_of(*report);
          continue;
        }
        EXPECT_TRUE(snapshot(destination()) == expected) << name(treatment);
        EXPECT_EQ(text_of(*report), rows) << name(treatment);
      }
    }
  }
}

TEST_F(Quantizer, RefusesMemoryThatHoldsNoRows) {
  const SourceModel model(2);
  const OpenedSource source(model.path(), mixed_recipe());
  expect_refused(source, "--memory of 8000 bytes is too little: ", {.memory_bytes = 8000});
  EXPECT_FALSE(fs::exists(destination()));
}

TEST_F(Quantizer, GoesOnAfterAnInterruptionAnywhere) {
  const SourceModel model(4);
  const OpenedSource source(model.path(), mixed_recipe());
  const auto expected = undisturbed(source);
  std::string rows;
  int stops = 0;
  for (int n = 1;; n += 7, ++stops) {
    fs::remove_all(destination());
    const auto stopped = source.quantize_to(destination(), stops_at(n));
    ASSERT_TRUE(stopped.has_value()) << stopped.error().message;
    if (stopped->complete) break;
    EXPECT_FALSE(fs::exists(destination() / "config.json"));
    for (const auto& [name, bytes] : snapshot(destination())) {
      EXPECT_TRUE(expected.contains(name) && expected.at(name) == bytes) << name << " at " << n;
    }
    const auto report = source.quantize_to(destination());
    ASSERT_TRUE(report.has_value()) << report.error().message;
    EXPECT_TRUE(snapshot(destination()) == expected) << "stopped at " << n;
    if (rows.empty()) rows = text_of(*report);
    EXPECT_EQ(text_of(*report), rows) << "stopped at " << n;
  }
  EXPECT_GT(stops, 8);
}

TEST_F(Quantizer, MakesNoFinishedShardAgain) {
  const SourceModel model(4);
  const OpenedSource source(model.path(), mixed_recipe());
  const auto expected = undisturbed(source);
  const int in_second = static_cast<int>(source.plan.shards[0].tensors.size()) + 2;
  interrupt(source, in_second);
  const fs::path first = destination() / source.plan.shards[0].file_name;
  ASSERT_TRUE(fs::exists(first));
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(100);
  fs::last_write_time(first, long_ago);
  ASSERT_TRUE(source.quantize_to(destination()).has_value());
  EXPECT_EQ(fs::last_write_time(first), long_ago);
  EXPECT_TRUE(snapshot(destination()) == expected);
}

TEST_F(Quantizer, MakesALostShardAgain) {
  const SourceModel model(4);
  const OpenedSource source(model.path(), mixed_recipe());
  const auto expected = undisturbed(source);
  ASSERT_TRUE(source.quantize_to(destination()).has_value());
  fs::remove(destination() / "config.json");
  fs::remove(destination() / source.plan.shards[0].file_name);
  fs::resize_file(destination() / source.plan.shards[2].file_name, 10);
  const auto report = source.quantize_to(destination());
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_TRUE(snapshot(destination()) == expected);
  EXPECT_EQ(report->tensors.front().name, source.plan.shards[0].tensors[0].source.data->name);
}

TEST_F(Quantizer, RefusesASourceThatChangedSinceTheInterruption) {
  const SourceModel model(4);
  const OpenedSource source(model.path(), mixed_recipe());
  const int in_third = static_cast<int>(source.plan.shards[0].tensors.size() +
                                        source.plan.shards[1].tensors.size()) +
                       2;
  interrupt(source, in_third);
  const auto before = snapshot(destination());
  ASSERT_EQ(before.size(), 2U);
  const fs::path file = model.path() / SourceModel::shard_name(1, 4);
  flip_byte(file, 1);
  expect_refused(OpenedSource(model.path(), mixed_recipe()), file.string() + ": changed since ");
  EXPECT_TRUE(snapshot(destination()) == before) << "nothing is destroyed";
  flip_byte(file, 1);  // as it was, at another time
  const OpenedSource again(model.path(), mixed_recipe());
  const auto report = again.quantize_to(destination());
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_TRUE(snapshot(destination()) == undisturbed(again));
}

// The third file, of which nothing was made: it has no hashes that could tell.
TEST_F(Quantizer, RefusesANewFileInPlaceOfOneThatWasNotReadYet) {
  const SourceModel model(4);
  const OpenedSource source(model.path(), mixed_recipe());
  const auto expected = undisturbed(source);
  interrupt(source, static_cast<int>(source.plan.shards[0].tensors.size()) + 2);
  const auto before = snapshot(destination());
  ASSERT_EQ(before.size(), 1U);
  const fs::path file = model.path() / SourceModel::shard_name(2, 4);
  const auto time = fs::last_write_time(file);
  flip_byte(file, 1);
  expect_refused(OpenedSource(model.path(), mixed_recipe()),
                 file.string() + ": was written anew since the run began");
  EXPECT_TRUE(snapshot(destination()) == before) << "nothing is destroyed";
  // The old file back with its time, as a copy that keeps times does it.
  flip_byte(file, 1);
  fs::copy_file(file, scratch_ / "copy");
  fs::rename(scratch_ / "copy", file);
  fs::last_write_time(file, time);
  const auto report = OpenedSource(model.path(), mixed_recipe()).quantize_to(destination());
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_TRUE(snapshot(destination()) == expected);
}

// Programs that copy with times leave the size and the time of change as they were.
TEST_F(Quantizer, ComparesHashesOfAFileThatHasItsOldTime) {
  const SourceModel model(4);
  const OpenedSource source(model.path(), mixed_recipe());
  interrupt(source, static_cast<int>(source.plan.shards[0].tensors.size()) + 2);
  const fs::path file = model.path() / SourceModel::shard_name(0, 4);
  const auto time = fs::last_write_time(file);
  flip_byte(file, 1);
  fs::last_write_time(file, time);
  expect_refused(OpenedSource(model.path(), mixed_recipe()), file.string() + ": changed since ");
}

// Killed between a shard and the manifest: the shard is not listed, and is in the way.
TEST_F(Quantizer, AShardThatIsNotListedGoesBeforeItIsMadeAgain) {
  const SourceModel model(4);
  const OpenedSource source(model.path(), mixed_recipe());
  const auto expected = undisturbed(source);
  interrupt(source, static_cast<int>(source.plan.shards[0].tensors.size()) + 2);
  const std::string second = source.plan.shards[1].file_name;
  CHECK(base::write_text_file(destination() / second, expected.at(second)).has_value());
  bool was_there = true;
  const QuantizerOptions options{.begins = [&] { was_there = fs::exists(destination() / second); }};
  ASSERT_TRUE(source.quantize_to(destination(), options).has_value());
  EXPECT_FALSE(was_there) << "when there is to be space for it";
  EXPECT_TRUE(snapshot(destination()) == expected);
}

// An interruption is a value; what else goes wrong after Ctrl-C is said.
TEST_F(Quantizer, AnErrorAfterAnInterruptionIsThatError) {
  const SourceModel model(2);
  const OpenedSource source(model.path(), mixed_recipe());
  fs::create_directory(destination());
  CHECK(base::write_text_file(destination() / "notes.txt", "mine").has_value());
  expect_refused(source, "holds notes.txt", stops_at(1));
  fs::remove(destination() / "notes.txt");
  const auto report = source.quantize_to(destination(), stops_at(3));
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_FALSE(report->complete);
}

TEST_F(Quantizer, RefusesASourceThatChangesUnderIt) {
  const SourceModel model(2);
  const OpenedSource source(model.path(), mixed_recipe());
  const fs::path file = model.path() / SourceModel::shard_name(0, 2);
  std::atomic<bool> done = false;
  const QuantizerOptions options{.interrupted = [&] {
    if (!done.exchange(true)) flip_byte(file, 1);
    return false;
  }};
  expect_refused(source, file.string() + ": changed while it was read", options);
  EXPECT_FALSE(fs::exists(destination() / source.plan.shards[0].file_name));
}

TEST_F(Quantizer, NamesWhatDiffersFromTheInterruptedRun) {
  const SourceModel model(4);
  const OpenedSource source(model.path(), mixed_recipe());
  interrupt(source, 60);
  const auto before = snapshot(destination());
  expect_refused(source, "--dequant was fp32 there and is bf16 here",
                 {.dequantization = Dequantization::kBF16});
  expect_refused(source, "--scale-search was even there and is mse here",
                 {.scale_search = kernels::ScaleSearch::kSquaredError});
  Recipe other = mixed_recipe();
  other.rules[2].treatment = Treatment::kMxfp4;
  other.name = "other";
  expect_refused(OpenedSource(model.path(), other), "the recipe differs (mixed there, other here)");
  const SourceModel three(3);
  expect_refused(OpenedSource(three.path(), mixed_recipe()), "the source's files have other names");
  const SourceModel wide(4, f32);
  expect_refused(OpenedSource(wide.path(), mixed_recipe()), "the source's files have other names");
  EXPECT_TRUE(snapshot(destination()) == before) << "nothing is destroyed";
}

TEST_F(Quantizer, TakesNoDirectoryThatIsNotItsOwn) {
  const SourceModel model(2);
  const OpenedSource source(model.path(), mixed_recipe());
  fs::create_directory(destination());
  CHECK(base::write_text_file(destination() / "notes.txt", "mine").has_value());
  expect_refused(source, "holds notes.txt and no interrupted run");
  CHECK(base::write_text_file(destination() / kManifestName, "{}").has_value());
  expect_refused(source, "remove the directory to start anew");
  CHECK(base::write_text_file(destination() / "config.json", "{}").has_value());
  expect_refused(source, "holds a model already; remove it");
  fs::remove(destination() / kManifestName);
  expect_refused(source, "holds a model already; remove it");
  EXPECT_EQ(contents(destination() / "notes.txt"), "mine");

  const auto inside = source.quantize_to(model.path() / "quantized");
  ASSERT_FALSE(inside.has_value());
  EXPECT_TRUE(inside.error().message.contains("lies in the source")) << inside.error().message;
  ASSERT_FALSE(source.quantize_to(model.path()).has_value());
  const auto file = source.quantize_to(destination() / "notes.txt");
  ASSERT_FALSE(file.has_value());
  EXPECT_TRUE(file.error().message.contains("cannot create")) << file.error().message;
}

TEST_F(Quantizer, TwoRunsDoNotMeet) {
  const SourceModel model(2);
  const OpenedSource source(model.path(), mixed_recipe());
  fs::create_directory(destination());
  {
    const auto lock = base::DirectoryLock::acquire(destination());
    ASSERT_TRUE(lock.has_value());
    expect_refused(source, "another process writes here");
  }
  EXPECT_TRUE(source.quantize_to(destination()).has_value());
}

TEST_F(Quantizer, RemovesWhatAKilledRunLeft) {
  SourceModel model(2);
  model.write("tasks/one.json", "{}");
  const OpenedSource source(model.path(), mixed_recipe());
  const std::string shard = source.plan.shards[0].file_name;
  interrupt(source, 1);
  fs::create_directory(destination() / "tasks");
  for (const std::string& name :
       {shard + ".partial-1", std::string("config.json.partial-22"),
        std::string(kManifestName) + ".partial-3", std::string("tasks/one.json.partial-4")}) {
    CHECK(base::write_text_file(destination() / name, "half").has_value());
  }
  CHECK(base::write_text_file(destination() / "mine.partial-5", "kept").has_value());
  ASSERT_TRUE(source.quantize_to(destination()).has_value());
  auto expected = undisturbed(source);
  expected["mine.partial-5"] = "kept";
  EXPECT_TRUE(snapshot(destination()) == expected);

  // Killed before there was a manifest.
  fs::remove_all(destination());
  fs::create_directory(destination());
  CHECK(base::write_text_file(destination() / (std::string(kManifestName) + ".partial-3"), "half")
            .has_value());
  EXPECT_TRUE(source.quantize_to(destination()).has_value());
}

TEST_F(Quantizer, AFullDiskIsOneLineAndTheRunGoesOn) {
  const SourceModel model(3);
  const OpenedSource source(model.path(), mixed_recipe());
  const auto expected = undisturbed(source);
  uint64_t largest = 0;
  for (const auto& [name, bytes] : expected) largest = std::max<uint64_t>(largest, bytes.size());
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{.rlim_cur = largest - 1, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  const auto report = source.quantize_to(destination());
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(report.has_value());
  EXPECT_TRUE(report.error().message.contains("no space for ")) << report.error().message;
  for (const auto& [name, bytes] : snapshot(destination())) {
    EXPECT_TRUE(expected.contains(name) && expected.at(name) == bytes) << name;
  }
  ASSERT_TRUE(source.quantize_to(destination()).has_value());
  EXPECT_TRUE(snapshot(destination()) == expected);
}

TEST(CheckSpace, SaysWhatIsMissing) {
  const base::ScratchDirectory scratch;
  EXPECT_TRUE(check_space(scratch.path(), 1).has_value());
  const uint64_t removed_bytes = uint64_t{1} << 62;
  const auto status = check_space(scratch.path(), removed_bytes);
  ASSERT_FALSE(status.has_value());
  EXPECT_TRUE(status.error().message.contains(": 4.61 EB are still to be written and "))
      << status.error().message;
  EXPECT_GE(check_space(scratch / "not" / "made", removed_bytes, removed_bytes).value_or(0),
            removed_bytes)
      << "of a directory to come, with what goes first";
}

// The tensor's data with one element of `width` bytes set.
void plant(const OpenedSource& source, const tensor::TensorInfo& info, uint64_t element,
           uint32_t bits, size_t width) {
  std::fstream file(source.checkpoint.path_of(info),
                    std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(info.offset + element * width));
  file.write(reinterpret_cast<const char*>(&bits), static_cast<std::streamsize>(width));
  file.close();
  CHECK(file.good());
}

TEST_F(Quantizer, NamesTheTensorThatIsNotFinite) {
  struct Case {
    model::FormOf form;
    std::string tensor;
    uint32_t bits;
    size_t width;
    std::string where;
  };
  const std::string kept = "model.layers.1.self_attn.o_proj.weight";
  const std::string expert = "model.layers.1.mlp.experts.2.up_proj.weight";
  const std::string dense = "model.layers.0.mlp.up_proj.weight";
  for (const Case& planted : {
           Case{SourceModel::bf16, "model.norm.weight", 0x7F80, 2, "at element 50"},
           Case{SourceModel::bf16, kept, 0x7FC0, 2, "at element 50"},
           Case{SourceModel::bf16, expert, 0xFF80, 2, "in rows 0 to 7"},
           Case{SourceModel::bf16, dense, 0x7FC1, 2, "in rows 0 to 7"},
           Case{f16, expert, 0x7C00, 2, "in rows 0 to 7"},
           Case{f32, dense, 0xFF800000, 4, "in rows 0 to 7"},
           Case{fp8, expert, 0x7F, 1, "at element 50"},
           Case{fp8, kept, 0xFF, 1, "at element 50"},
       }) {
    const SourceModel model(2, planted.form);
    const OpenedSource source(model.path(), mixed_recipe());
    const tensor::TensorInfo* info = source.checkpoint.find(planted.tensor);
    ASSERT_NE(info, nullptr);
    plant(source, *info, 50, planted.bits, planted.width);
    expect_refused(source, fmt::format("{}: tensor {} has NaN or infinity {}; ",
                                       source.checkpoint.path_of(*info).string(), planted.tensor,
                                       planted.where));
    fs::remove_all(destination());
  }
  const SourceModel model(2, fp8);
  const OpenedSource source(model.path(), mixed_recipe());
  plant(source, *source.checkpoint.find("model.layers.1.mlp.experts.2.up_proj.weight_scale"), 3,
        0x7F800000, 4);
  expect_refused(source, "tensor " + expert + " has NaN or infinity in its scales");
}

TEST_F(Quantizer, CopiesSideFiles) {
  SourceModel model(2);
  for (const char* name :
       {"tokenizer.json", "README.md", "README_zh.md", "LICENSE", ".gitattributes",
        "tasks/one.json", "tasks/README.md", ".cache/state", "original/weights.safetensors"}) {
    model.write(name, name);
  }
  fs::create_symlink("tokenizer.json", model.path() / "linked.json");
  fs::create_directory_symlink("tasks", model.path() / "linked_folder");
  const OpenedSource source(model.path(), mixed_recipe());
  ASSERT_TRUE(source.quantize_to(destination()).has_value());
  std::vector<std::string> side_files;
  for (const auto& [name, bytes] : snapshot(destination())) {
    if (name.ends_with(".safetensors") || name.ends_with(".index.json")) continue;
    if (name == "config.json") continue;
    side_files.push_back(name);
    EXPECT_EQ(bytes, name == "linked.json" ? "tokenizer.json" : name);
  }
  const std::vector<std::string> expected = {"LICENSE", "linked.json", "tasks/README.md",
                                             "tasks/one.json", "tokenizer.json"};
  EXPECT_EQ(side_files, expected);
  EXPECT_FALSE(fs::is_symlink(destination() / "linked.json"));
}

TEST_F(Quantizer, ReportCanBeReadBack) {
  const SourceModel model(3);
  const OpenedSource source(model.path(), mixed_recipe());
  const auto report = source.quantize_to(destination());
  ASSERT_TRUE(report.has_value());
  const auto read = read_report(destination(), source.checkpoint.tensors().size());
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_TRUE(read->has_value());
  EXPECT_TRUE((*read)->complete);
  EXPECT_EQ((*read)->recipe, "mixed");
  EXPECT_EQ(text_of(**read), text_of(*report));
  EXPECT_EQ(describe(**read), describe(*report));
  EXPECT_FALSE(read_report(model.path(), 1000).value().has_value());
}

TEST_F(Quantizer, WrittenModelLoads) {
  const SourceModel model(3, fp8);
  const OpenedSource source(model.path(), mixed_recipe());
  ASSERT_TRUE(source.quantize_to(destination()).has_value());
  const auto config = model::load_model_config(destination());
  ASSERT_TRUE(config.has_value()) << config.error().message;
  const auto checkpoint = tensor::Checkpoint::open(destination());
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().message;
  const auto plan = model::plan_load(*config, *checkpoint, {});
  ASSERT_TRUE(plan.has_value());
  EXPECT_TRUE(plan->check().has_value()) << plan->check().error().message;
}

}  // namespace
}  // namespace ingot::quantize
