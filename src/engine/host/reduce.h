// Element-wise reduction of several sources on the CPU: the arithmetic half of the host engine.
//
// One rule for every instruction set, equal bit for bit to the device code and to the simulator: sources are folded
// left to right; f16 and bf16 accumulate in f32 and round once; integers wrap; Max is (a != a ? b : b != b ? a :
// a < b ? b : a), Min the same with b < a. Avg multiplies each raw source of a floating type by 1/n as it enters and
// divides integers by n, truncating, when the result is final.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/types.h"

namespace talaria {

struct Reduction {
  DataType type;
  ReduceOp op;
  uint32_t avg_ranks;  // n of Avg
  bool final;
};

// What is folded. `raw` has a byte per source: not zero where a rank's raw input enters.
struct FoldSources {
  const void* const* data;
  const uint8_t* raw;
  uint32_t size;
};

// One kernel per (type, operator): out[i] = fold over s of sources.data[s][i].
using ReduceKernel = void (*)(void* out, const FoldSources& sources, size_t count, double inverse);
enum class FoldOp : uint8_t { kSum, kProd, kMax, kMin, kScaledSum };
inline constexpr int kFoldOps = 5;
struct ReduceTable {
  const char* name;
  ReduceKernel kernels[kDataTypes][kFoldOps];  // null where this instruction set brings nothing
};

// Every table usable on this machine, best first; the last is the scalar one and is complete.
const ReduceTable* const* reduce_tables(size_t* count);

// out[i] = reduction of sources[s][i]; `out` may equal a source. Precondition: traits_of(type).reduces.
void reduce_into(const Reduction& reduction, void* out, const FoldSources& sources, size_t count);
// The same with a given table, for tests.
void reduce_with(const ReduceTable& table, const Reduction& reduction, void* out, const FoldSources& sources,
                 size_t count);

const ReduceTable* scalar_reduce_table();
const ReduceTable* avx2_reduce_table();
const ReduceTable* avx512_reduce_table();

}  // namespace talaria
