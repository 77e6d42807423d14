#include "base/progress.h"

#include <limits>

#include <gtest/gtest.h>

namespace ingot::base {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(FormatBytes, ShowsThreeDigits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(12), "12 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(1000), "1.00 kB");
  EXPECT_EQ(format_bytes(1536), "1.54 kB");
  EXPECT_EQ(format_bytes(340'000'000), "340 MB");
  EXPECT_EQ(format_bytes(uint64_t{753329940480}), "753 GB");
  EXPECT_EQ(format_bytes(std::numeric_limits<uint64_t>::max()), "18.4 EB");
}

TEST(FormatBytes, RoundsIntoTheNextDigitAndUnit) {
  EXPECT_EQ(format_bytes(9'999), "10.0 kB");    // not 10.00
  EXPECT_EQ(format_bytes(99'990), "100 kB");    // not 100.0
  EXPECT_EQ(format_bytes(999'999), "1.00 MB");  // not 1000 kB
  EXPECT_EQ(format_bytes(999'499), "999 kB");
}

TEST(Progress, LineSaysShareRateAndTimeLeft) {
  using Unit = Progress::Unit;
  EXPECT_EQ(
      Progress::line("load", {.done = 512'000'000, .total = 2'048'000'000, .elapsed = seconds(2)},
                     Unit::kBytes),
      "load [######..................]  25%  256 MB/s  6s left");
  EXPECT_EQ(
      Progress::line("score", {.done = 300, .total = 1000, .elapsed = seconds(60)}, Unit::kTokens),
      "score [#######.................]  30%  5.0 tokens/s  2m20s left");
  EXPECT_EQ(Progress::line("quantize", {.done = 10, .total = 36010, .elapsed = seconds(5)},
                           Unit::kTensors),
            "quantize [........................]   0%  2 tensors/s  5h00m left");
  EXPECT_EQ(
      Progress::line("serve", {.done = 900, .total = 1000, .elapsed = seconds(3)}, Unit::kRequests),
      "serve [#####################...]  90%  300 requests/s  0s left");
  EXPECT_EQ(
      Progress::line("load", {.done = 7, .total = 7, .elapsed = milliseconds(500)}, Unit::kTensors),
      "load [########################] 100%  14 tensors/s  0s left");
}

TEST(Progress, WhatWasDoneBeforeSaysNothingOfTheRate) {
  using Unit = Progress::Unit;
  EXPECT_EQ(Progress::line("answering",
                           {.done = 60, .total = 100, .already_done = 50, .elapsed = seconds(5)},
                           Unit::kRequests, "40 tokens/s"),
            "answering [##############..........]  60%  2.0 requests/s, 40 tokens/s  20s left");
  EXPECT_TRUE(Progress::line("answering",
                             {.done = 50, .total = 100, .already_done = 50, .elapsed = seconds(5)},
                             Unit::kRequests)
                  .ends_with("? left"));
}

TEST(Progress, LineBearsTheEdges) {
  using Unit = Progress::Unit;
  EXPECT_EQ(Progress::line("x", {.done = 0, .total = 10, .elapsed = seconds(3)}, Unit::kTensors),
            "x [........................]   0%  0 tensors/s  ? left");
  EXPECT_TRUE(Progress::line("x", {.done = 0, .total = 0, .elapsed = seconds(0)}, Unit::kBytes)
                  .contains("100%"));
  EXPECT_TRUE(Progress::line("x", {.done = 11, .total = 10, .elapsed = seconds(1)}, Unit::kTokens)
                  .contains("100%"));
  const uint64_t most = std::numeric_limits<uint64_t>::max();
  EXPECT_TRUE(
      Progress::line("x", {.done = most, .total = most, .elapsed = seconds(0)}, Unit::kBytes)
          .contains("100%"));
}

}  // namespace
}  // namespace ingot::base
