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
  EXPECT_EQ(Progress::line("load", 512'000'000, 2'048'000'000, Unit::kBytes, seconds(2)),
            "load [######..................]  25%  256 MB/s  6s left");
  EXPECT_EQ(Progress::line("score", 300, 1000, Unit::kTokens, seconds(60)),
            "score [#######.................]  30%  5.0 tokens/s  2m20s left");
  EXPECT_EQ(Progress::line("quantize", 10, 36010, Unit::kTensors, seconds(5)),
            "quantize [........................]   0%  2 tensors/s  5h00m left");
  EXPECT_EQ(Progress::line("serve", 900, 1000, Unit::kRequests, seconds(3)),
            "serve [#####################...]  90%  300 requests/s  0s left");
  EXPECT_EQ(Progress::line("load", 7, 7, Unit::kTensors, milliseconds(500)),
            "load [########################] 100%  14 tensors/s  0s left");
}

TEST(Progress, LineBearsTheEdges) {
  using Unit = Progress::Unit;
  EXPECT_EQ(Progress::line("x", 0, 10, Unit::kTensors, seconds(3)),
            "x [........................]   0%  0 tensors/s  ? left");
  EXPECT_TRUE(Progress::line("x", 0, 0, Unit::kBytes, seconds(0)).contains("100%"));
  EXPECT_TRUE(Progress::line("x", 11, 10, Unit::kTokens, seconds(1)).contains("100%"));
  const uint64_t most = std::numeric_limits<uint64_t>::max();
  EXPECT_TRUE(Progress::line("x", most, most, Unit::kBytes, seconds(0)).contains("100%"));
}

}  // namespace
}  // namespace ingot::base
