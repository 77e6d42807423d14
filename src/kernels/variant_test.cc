#include "kernels/variant.h"

#include <gtest/gtest.h>

namespace ingot::kernels {
namespace {

struct Use {
  struct Kind {
    int format;
    bool operator==(const Kind&) const = default;
  };
  Kind kind;
  int columns;
};
using Function = int (*)();

std::string needs_32(const Use& use) {
  return use.columns % 32 == 0 ? ""
                               : std::to_string(use.columns) + " columns, not a multiple of 32";
}

constexpr Variant<Function, Use> kVariants[] = {
    {"wide", Target::kAvx512, {1}, needs_32, nullptr},
    {"narrow", Target::kAvx2, {1}, needs_32, nullptr},
    {"other_format", Target::kReference, {2}, refuses_nothing<Use>, nullptr},
    {"plain", Target::kReference, {1}, refuses_nothing<Use>, nullptr},
};

std::string_view chosen(const Use& use, Target allowed, LedgerEntry& entry) {
  const auto* variant =
      select_variant(std::span<const Variant<Function, Use>>(kVariants), use, allowed, entry);
  return variant == nullptr ? "none" : variant->name;
}

TEST(SelectVariant, TakesTheFirstThatFits) {
  LedgerEntry entry;
  EXPECT_EQ(chosen({{1}, 64}, Target::kAvx512, entry), "wide");
  EXPECT_EQ(entry.why_not_faster, "");
  EXPECT_EQ(entry.target, Target::kAvx512);
}

TEST(SelectVariant, SaysWhyNothingFaster) {
  LedgerEntry entry;
  EXPECT_EQ(chosen({{1}, 40}, Target::kAvx2, entry), "plain");
  EXPECT_EQ(entry.why_not_faster, "wide: needs avx512; narrow: 40 columns, not a multiple of 32");
}

TEST(SelectVariant, LeavesOtherKindsAside) {
  LedgerEntry entry;
  EXPECT_EQ(chosen({{2}, 32}, Target::kAvx512, entry), "other_format");
  EXPECT_EQ(entry.why_not_faster, "no avx512 kernel of this kind yet");
  LedgerEntry none;
  EXPECT_EQ(chosen({{3}, 32}, Target::kAvx512, none), "none");
}

TEST(Ledger, CountsEqualChoicesTogether) {
  Ledger ledger;
  const LedgerEntry linear{.operation = "linear",
                           .formats = "f32 x f32",
                           .shape = "[2, 3]",
                           .variant = "plain",
                           .bytes_per_token = 30};
  LedgerEntry fast = linear;
  fast.shape = "[4, 4]";
  fast.target = Target::kAvx2;
  fast.bytes_per_token = 40;
  ledger.add(linear);
  ledger.add(fast);
  ledger.add(linear);
  ASSERT_EQ(ledger.entries().size(), 2u);
  EXPECT_EQ(ledger.entries()[0].uses, 2);
  EXPECT_EQ(ledger.bytes_per_token(), 100);
  EXPECT_DOUBLE_EQ(ledger.share(ledger.entries()[1]), 0.4);
  EXPECT_DOUBLE_EQ(ledger.reference_share(), 0.6);
}

TEST(Target, ForcesLowerLevelsOnly) {
  EXPECT_EQ(usable_target("").value(), std::min(detect_target(), built_targets().back()));
  EXPECT_EQ(usable_target("reference").value(), Target::kReference);
  EXPECT_EQ(usable_target("sse9").error().message,
            "INGOT_TARGETS=sse9: unknown; use reference, avx2 or avx512");
  if (detect_target() < Target::kAvx512) {
    EXPECT_FALSE(usable_target("avx512").has_value());
  }
}

}  // namespace
}  // namespace ingot::kernels
