#include "server/batch_output.h"

#include <fstream>

#include <gtest/gtest.h>

#include "base/mapped_file.h"
#include "base/scratch_directory.h"

namespace ingot::server {
namespace {

namespace json = base::json;

std::string request_line(int index) {
  return fmt::format("{{\"custom_id\":\"line {}\",\"method\":\"POST\"}}\n", index);
}
std::string answer_line(int index, int status = 200) {
  return fmt::format("{{\"custom_id\":\"line {}\",\"response\":{{\"status_code\":{}}}}}\n", index,
                     status);
}

class BatchOutputTest : public testing::Test {
 protected:
  BatchOutputTest() : input_path_(directory_.path() / "in.jsonl"), out_(directory_.path() / "out") {
    write(input_path_, request_line(0) + "\n  \n" + request_line(1) + request_line(2));
  }

  static void write(const std::filesystem::path& path, std::string_view text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  static std::string read(const std::filesystem::path& path) {
    return base::read_text_file(path, 1 << 20).value();
  }
  std::filesystem::path partial() const { return out_.string() + ".partial"; }

  base::Result<BatchOutput> open(int seed = 1) {
    const BatchInput input = BatchInput::open(input_path_).value();
    json::object job{{"schema", "ingot.batch_job/1"},
                     {"settings", json::object{{"model", "m"}, {"seed", seed}}}};
    job["created"] = ++num_opened_;
    BatchOutput output = TRY(BatchOutput::open(out_));
    TRY(output.begin(job, input));
    return output;
  }

  base::ScratchDirectory directory_;
  std::filesystem::path input_path_;
  std::filesystem::path out_;
  int num_opened_ = 0;
};

TEST_F(BatchOutputTest, TheInputsLinesWithoutTheEmptyOnes) {
  const BatchInput input = BatchInput::open(input_path_).value();
  ASSERT_EQ(input.num_lines(), 3);
  EXPECT_EQ(std::string(input.line(1)) + "\n", request_line(1));
  write(input_path_, " \n\n");
  EXPECT_FALSE(BatchInput::open(input_path_).has_value());
  write(input_path_, "\xEF\xBB\xBF" + request_line(0));
  EXPECT_EQ(std::string(BatchInput::open(input_path_).value().line(0)) + "\n", request_line(0));
  write(input_path_, "no line feed at the end");
  EXPECT_EQ(BatchInput::open(input_path_).value().line(0), "no line feed at the end");
  EXPECT_FALSE(BatchInput::open(directory_.path() / "missing").has_value());
}

TEST_F(BatchOutputTest, AppearsUnderItsNameWhenItIsWhole) {
  BatchOutput output = open().value();
  EXPECT_EQ(output.num_found(), 0);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(output.append(answer_line(i)));
    EXPECT_FALSE(std::filesystem::exists(out_));
  }
  ASSERT_TRUE(output.finish());
  EXPECT_EQ(read(out_), answer_line(0) + answer_line(1) + answer_line(2));
  EXPECT_FALSE(std::filesystem::exists(partial()));
  const auto again = open();
  ASSERT_FALSE(again.has_value());
  EXPECT_TRUE(again.error().message.contains("exists already"));
}

TEST_F(BatchOutputTest, GoesOnAfterTheLastWholeLine) {
  for (const std::string& torn :
       {std::string(), std::string("{\"custom_id\":\"li"), std::string("\0\0\0\n\0\0", 6),
        std::string("{\"custom_id\":\"line 2\",\"respon\n")}) {
    {
      BatchOutput output = open().value();
      ASSERT_TRUE(output.append(answer_line(0)));
      ASSERT_TRUE(output.append(answer_line(1, 400)));
    }
    write(partial(), answer_line(0) + answer_line(1, 400) + torn);
    const int begun = num_opened_;
    {
      BatchOutput output = open().value();
      EXPECT_EQ(output.num_found(), 2);
      EXPECT_EQ(output.num_found_failed(), 1);
      EXPECT_EQ(output.job().at("created"), begun) << "the job keeps its beginning";
      ASSERT_TRUE(output.append(answer_line(2)));
      ASSERT_TRUE(output.finish());
    }
    EXPECT_EQ(read(out_), answer_line(0) + answer_line(1, 400) + answer_line(2));
    std::filesystem::remove(out_);
  }
}

TEST_F(BatchOutputTest, AnotherJobIsNotGoneOnWith) {
  ASSERT_TRUE(open(1).value().append(answer_line(0)));
  const auto other = open(2);
  ASSERT_FALSE(other.has_value());
  EXPECT_TRUE(other.error().message.contains("seed = 1, and now it is 2")) << other.error().message;
  EXPECT_EQ(read(partial()), answer_line(0)) << "nothing is lost by asking";
  write(partial(), answer_line(7));
  const auto mixed = open(1);
  ASSERT_FALSE(mixed.has_value());
  EXPECT_TRUE(mixed.error().message.contains("line 1 answers \"line 7\""));
  EXPECT_EQ(read(partial()), answer_line(7));
}

// The input was cut: more answers are there than lines, and none of them goes.
TEST_F(BatchOutputTest, ARefusalLosesNothing) {
  const std::string all = answer_line(0) + answer_line(1) + "torn";
  ASSERT_TRUE(open(1).value().append(answer_line(0)));
  write(partial(), all);
  EXPECT_FALSE(open(2).has_value());
  EXPECT_EQ(read(partial()), all);
}

TEST_F(BatchOutputTest, AStrangersFileIsLeftAlone) {
  write(partial(), "precious");
  const auto refused = open();
  ASSERT_FALSE(refused.has_value());
  EXPECT_TRUE(refused.error().message.contains("not begun by this command"));
  EXPECT_EQ(read(partial()), "precious");
}

TEST_F(BatchOutputTest, NeitherIsAFileWithTheNameOfItsDocument) {
  write(out_.string() + ".job.json", "precious");
  const auto refused = open();
  ASSERT_FALSE(refused.has_value());
  EXPECT_TRUE(refused.error().message.contains("would be overwritten")) << refused.error().message;
  EXPECT_EQ(read(out_.string() + ".job.json"), "precious");
}

TEST_F(BatchOutputTest, WhatNeverBeganLeavesNothing) {
  ASSERT_TRUE(BatchOutput::open(out_));
  EXPECT_FALSE(std::filesystem::exists(partial()));
}

TEST_F(BatchOutputTest, ReplacesNothingThatCameMeanwhile) {
  BatchOutput output = open().value();
  ASSERT_TRUE(output.append(answer_line(0)));
  write(out_, "another's");
  const auto refused = output.finish();
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(read(out_), "another's");
  EXPECT_EQ(read(partial()), answer_line(0));
}

TEST_F(BatchOutputTest, LinesWithoutAnIdAreGoneOnAfter) {
  write(input_path_, "no JSON\n{\"custom_id\":\"\"}\n" + request_line(2));
  const std::string done = "{\"custom_id\":null,\"response\":null,\"error\":{}}\n";
  ASSERT_TRUE(open(1).value().append(done + done));
  const BatchOutput output = open(1).value();
  EXPECT_EQ(output.num_found(), 2);
  EXPECT_EQ(output.num_found_failed(), 2);
  EXPECT_TRUE(output.custom_ids_found().empty());
}

TEST_F(BatchOutputTest, OneProcessAtATime) {
  const BatchOutput output = open().value();
  const auto second = open();
  ASSERT_FALSE(second.has_value());
  EXPECT_TRUE(second.error().message.contains("another process"));
}

TEST_F(BatchOutputTest, ADirectoryThatIsMissingIsAnError) {
  out_ = directory_.path() / "missing" / "out";
  const auto output = open();
  ASSERT_FALSE(output.has_value());
  EXPECT_TRUE(output.error().message.contains("cannot be written"));
}

}  // namespace
}  // namespace ingot::server
