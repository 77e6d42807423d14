#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "kernels/target.h"

namespace ingot::kernels {

// What a processor can do at most, measured: the floor that speeds are held against. A probe is the
// bare instructions of a kernel without its work: loads from memory alone, or multiplications of
// what stands in registers.

// In what numbers products are formed and summed.
enum class Arithmetic : uint8_t { kF32, kBF16, kInt8 };
std::string_view name(Arithmetic arithmetic);

// Multiply-accumulates at the highest rate of one kind of instruction.
struct MacProbe {
  std::string_view name;  // "fma_f32_avx2"
  Target target;
  Arithmetic arithmetic;
  std::string_view cost_of_a_mac;  // in instructions: "1/8 vfmadd"
  bool (*runs_here)();             // whether the processor has it, beyond the target
  int64_t macs_per_round;
  void (*run)(int64_t rounds);
};

// Reads all of [data, data + size_bytes) once, in vectors. REQUIRES: `data` is aligned to 64 bytes,
// and size_bytes a multiple of 1,024.
struct ReadProbe {
  std::string_view name;
  Target target;
  void (*run)(const std::byte* data, int64_t size_bytes);
};

// Every probe of this build, fastest first; the last of each kind runs everywhere.
std::span<const MacProbe> mac_probes();
std::span<const ReadProbe> read_probes();

// The fastest probes that `allowed` and the processor leave; null where none multiplies in such
// numbers (bf16 below AVX-512).
const MacProbe* find_mac_probe(Arithmetic arithmetic, Target allowed);
const ReadProbe& find_read_probe(Target allowed);

// Runs probes in short slices, so that they can alternate with what they are compared with. Every
// member of the team reads memory of its own, going on where it stopped, so that no cache holds
// what it reads next.
class ProbeBench {
 public:
  // Memory that each member reads, where `available_bytes` allows: all members together take at
  // most a quarter of that.
  static constexpr uint64_t kReadBytesMax = uint64_t{256} << 20;

  // `team` and `clock` must outlive it; the clock is read by all members.
  // Errors: not enough memory for a buffer that a cache would not hold.
  static base::Result<std::unique_ptr<ProbeBench>> create(base::ThreadTeam& team,
                                                          const base::Clock& clock,
                                                          uint64_t available_bytes);

  // Bytes and multiply-accumulates a second of `members` threads together, measured for about
  // `slice`. REQUIRES: 1 <= members <= team size.
  double read_bytes_per_second(const ReadProbe& probe, int members, base::Duration slice);
  double macs_per_second(const MacProbe& probe, int members, base::Duration slice);

  uint64_t read_bytes_per_member() const { return read_bytes_per_member_; }

 private:
  ProbeBench(base::ThreadTeam& team, const base::Clock& clock) : team_(team), clock_(clock) {}

  // Calls work(member) -> amount on the first `members` until `slice` is over. Returns the amount a
  // second.
  template <typename Work>
  double rate(int members, base::Duration slice, const Work& work);

  base::ThreadTeam& team_;
  const base::Clock& clock_;
  base::Arena arena_;
  uint64_t read_bytes_per_member_ = 0;
  std::vector<std::byte*> buffers_;  // by member
  std::vector<uint64_t> positions_;  // by member: where in its buffer it goes on
};

}  // namespace ingot::kernels
