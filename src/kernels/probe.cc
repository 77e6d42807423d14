#include "kernels/probe.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/probe_avx2.h"
#include "kernels/probe_avx512.h"

namespace ingot::kernels {
namespace {

// What is read or multiplied between two looks at the clock: some 50 microseconds.
constexpr uint64_t kReadPieceBytes = uint64_t{1} << 20;
constexpr int64_t kRoundsPerLook = 4096;

bool everywhere() { return true; }

// Keeps a value alive without using it.
template <typename T>
void keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

// In plain C++, in which the compiler sees vectors of the least that the architecture has.
constexpr int kPlainLanes = 32;

void multiply_f32_plain(int64_t rounds) {
  float sums[kPlainLanes] = {};
  float factors[2] = {0.5f, 0.25f};
  for (int64_t round = 0; round < rounds; ++round) {
    asm volatile("" : "+m"(factors));
    for (float& sum : sums) sum += factors[0] * factors[1];
  }
  keep(sums);
}

void multiply_int8_plain(int64_t rounds) {
  int32_t sums[kPlainLanes] = {};
  int8_t factors[2] = {3, 5};
  for (int64_t round = 0; round < rounds; ++round) {
    asm volatile("" : "+m"(factors));
    for (int32_t& sum : sums) sum += factors[0] * factors[1];
  }
  keep(sums);
}

void read_plain(const std::byte* data, int64_t size_bytes) {
  uint64_t sums[8] = {};
  for (int64_t i = 0; i < size_bytes; i += 64) {
    uint64_t words[8];
    std::memcpy(words, data + i, sizeof words);
    for (int k = 0; k < 8; ++k) sums[k] ^= words[k];
  }
  keep(sums);
}

constexpr MacProbe kMacProbes[] = {
#if defined(__x86_64__)
    {"vpdpbusd_avx512", Target::kAvx512, Arithmetic::kInt8, "1/64 vpdpbusd", everywhere,
     kInt8MacsPerRoundAvx512, multiply_int8_avx512},
    {"vdpbf16ps_avx512", Target::kAvx512, Arithmetic::kBF16, "1/32 vdpbf16ps", has_bf16_avx512,
     kBF16MacsPerRoundAvx512, multiply_bf16_avx512},
    {"fma_f32_avx512", Target::kAvx512, Arithmetic::kF32, "1/16 vfmadd", everywhere,
     kF32MacsPerRoundAvx512, multiply_f32_avx512},
    {"maddubs_avx2", Target::kAvx2, Arithmetic::kInt8,
     "1/32 vpmaddubsw + 3/128 vpaddw + 1/128 vpmaddwd + 1/128 vpaddd", everywhere,
     kInt8MacsPerRoundAvx2, multiply_int8_avx2},
    {"fma_f32_avx2", Target::kAvx2, Arithmetic::kF32, "1/8 vfmadd", everywhere,
     kF32MacsPerRoundAvx2, multiply_f32_avx2},
#endif
    {"plain_int8", Target::kReference, Arithmetic::kInt8, "a product and a sum in C++", everywhere,
     kPlainLanes, multiply_int8_plain},
    {"plain_f32", Target::kReference, Arithmetic::kF32, "a product and a sum in C++", everywhere,
     kPlainLanes, multiply_f32_plain},
};

constexpr ReadProbe kReadProbes[] = {
#if defined(__x86_64__)
    {"read_avx2", Target::kAvx2, read_avx2},
#endif
    {"read_plain", Target::kReference, read_plain},
};

}  // namespace

std::string_view name(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::kF32:
      return "f32";
    case Arithmetic::kBF16:
      return "bf16";
    case Arithmetic::kInt8:
      return "int8";
  }
  return "";
}

std::span<const MacProbe> mac_probes() { return kMacProbes; }
std::span<const ReadProbe> read_probes() { return kReadProbes; }

const MacProbe* find_mac_probe(Arithmetic arithmetic, Target allowed) {
  for (const MacProbe& probe : kMacProbes) {
    if (probe.arithmetic == arithmetic && probe.target <= allowed && probe.runs_here()) {
      return &probe;
    }
  }
  return nullptr;
}

const ReadProbe& find_read_probe(Target allowed) {
  return *std::ranges::find_if(kReadProbes,
                               [&](const ReadProbe& probe) { return probe.target <= allowed; });
}

base::Result<std::unique_ptr<ProbeBench>> ProbeBench::create(base::ThreadTeam& team,
                                                             const base::Clock& clock,
                                                             uint64_t available_bytes) {
  const auto size = static_cast<uint64_t>(team.size());
  const uint64_t bytes = std::min(kReadBytesMax, available_bytes / 4 / size) / kReadPieceBytes;
  if (bytes == 0) {
    return base::error("a bandwidth probe needs {} MiB of memory, and {} MiB are available",
                       4 * size, available_bytes >> 20);
  }
  std::unique_ptr<ProbeBench> bench(new ProbeBench(team, clock));
  bench->read_bytes_per_member_ = bytes * kReadPieceBytes;
  bench->arena_ =
      TRY(base::Arena::create(size * bench->read_bytes_per_member_, "the bandwidth probe"));
  for (uint64_t member = 0; member < size; ++member) {
    bench->buffers_.push_back(bench->arena_.allocate(bench->read_bytes_per_member_));
  }
  bench->positions_.resize(size);
  // Each touches its own memory first: pages lie near who writes them, and unwritten ones would all
  // be the one page of zeros.
  team.run([&](int member) {
    std::memset(bench->buffers_[static_cast<size_t>(member)], 1, bench->read_bytes_per_member_);
  });
  return bench;
}

template <typename Work>
double ProbeBench::rate(int members, base::Duration slice, const Work& work) {
  CHECK(1 <= members && members <= team_.size());
  std::vector<double> rates(static_cast<size_t>(members));
  team_.run([&](int member) {
    team_.barrier(member);
    if (member >= members) return;
    const base::Instant begin = clock_.now();
    double amount = 0;
    base::Duration elapsed{};
    while (elapsed < slice) {
      amount += work(static_cast<size_t>(member));
      elapsed = clock_.now() - begin;
    }
    rates[static_cast<size_t>(member)] = amount / base::seconds(elapsed);
  });
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

double ProbeBench::read_bytes_per_second(const ReadProbe& probe, int members,
                                         base::Duration slice) {
  return rate(members, slice, [&](size_t member) {
    uint64_t& position = positions_[member];
    probe.run(buffers_[member] + position, static_cast<int64_t>(kReadPieceBytes));
    position = (position + kReadPieceBytes) % read_bytes_per_member_;
    return static_cast<double>(kReadPieceBytes);
  });
}

double ProbeBench::macs_per_second(const MacProbe& probe, int members, base::Duration slice) {
  return rate(members, slice, [&](size_t) {
    probe.run(kRoundsPerLook);
    return static_cast<double>(probe.macs_per_round * kRoundsPerLook);
  });
}

}  // namespace ingot::kernels
