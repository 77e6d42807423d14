#include "kernels/ledger.h"

#include <gtest/gtest.h>

#include "kernels/ledger_json.h"

namespace ingot::kernels {
namespace {

LedgerEntry entry_of(const char* operation, Target target, double bytes, double macs) {
  return {.operation = operation,
          .formats = "mxfp4 x int8",
          .shape = "[64, 32]",
          .variant = operation,
          .target = target,
          .bytes_per_token = bytes,
          .macs_per_token = macs};
}

TEST(Ledger, ReferenceKernelsOverOnePercentAreSlow) {
  Ledger ledger;
  ledger.add(entry_of("fast", Target::kAvx2, 900, 9500));
  ledger.add(entry_of("at_the_limit", Target::kReference, 10, 100));
  ledger.add(entry_of("by_macs", Target::kReference, 0, 390));
  ledger.add(entry_of("by_bytes", Target::kReference, 90, 10));
  const auto slow = ledger.slow_entries();
  ASSERT_EQ(slow.size(), 2u);
  EXPECT_EQ(slow[0]->operation, "by_bytes");
  EXPECT_EQ(slow[1]->operation, "by_macs");
  EXPECT_DOUBLE_EQ(ledger.share(*slow[0]), 0.09);
  EXPECT_DOUBLE_EQ(ledger.mac_share(*slow[1]), 0.039);
  EXPECT_EQ(ledger.describe_slow_entries(),
            "by_bytes, mxfp4 x int8, [64, 32] runs on a reference kernel (9.0% of a token's bytes, "
            "0.1% of its multiplications), and 1 more");
}

TEST(Ledger, SaysWhyAKernelIsSlow) {
  Ledger ledger;
  LedgerEntry moe = entry_of("moe", Target::kReference, 10, 10);
  moe.why_not_faster = "moe_mxfp4_int8_avx2: needs avx2";
  ledger.add(moe);
  EXPECT_EQ(ledger.describe_slow_entries(),
            "moe, mxfp4 x int8, [64, 32] runs on a reference kernel (100.0% of a token's bytes, "
            "100.0% of its multiplications; moe_mxfp4_int8_avx2: needs avx2)");
}

TEST(Ledger, NothingSlowIsNothingSaid) {
  Ledger ledger;
  EXPECT_EQ(ledger.describe_slow_entries(), "");
  ledger.add(entry_of("fast", Target::kAvx2, 10, 10));
  EXPECT_TRUE(ledger.slow_entries().empty());
  EXPECT_EQ(ledger.describe_slow_entries(), "");
}

TEST(Ledger, AsJsonHasShares) {
  Ledger ledger;
  ledger.add(entry_of("a", Target::kAvx2, 30, 10));
  ledger.add(entry_of("b", Target::kReference, 10, 30));
  const base::json::array rows = to_json(ledger);
  ASSERT_EQ(rows.size(), 2u);
  const base::json::object& b = rows[1].as_object();
  EXPECT_EQ(b.at("operation"), "b");
  EXPECT_EQ(b.at("target"), "reference");
  EXPECT_EQ(b.at("tuning"), "heuristic");
  EXPECT_EQ(b.at("bytes_per_token"), 10.0);
  EXPECT_EQ(b.at("bytes_share"), 0.25);
  EXPECT_EQ(b.at("macs_per_token"), 30.0);
  EXPECT_EQ(b.at("macs_share"), 0.75);
}

}  // namespace
}  // namespace ingot::kernels
