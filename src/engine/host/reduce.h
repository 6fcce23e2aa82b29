// Element-wise reduction of several sources on the CPU: the arithmetic half of the host engine.
//
// One rule for every instruction set, equal bit for bit to the device code and to the simulator: sources are folded
// left to right; 16-bit and 8-bit floating types accumulate in f32 and round once; integers wrap; Max is
// (a != a ? b : b != b ? a : a < b ? b : a), Min the same with b < a. Avg multiplies each raw source of a floating type
// by 1/n as it enters and divides integers by n, truncating, when the result is final. PreMulSum multiplies each raw
// source by its rank's scalar as it enters, and rounds the product to the type.
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

// What is folded. `raw` has a byte per source: not zero where a rank's raw input enters, to be scaled. `scalars`, read
// only by PreMulSum, has its rank's scalar for each of those: an element of the type in the lowest bytes.
struct FoldSources {
  const void* const* data;
  const uint8_t* raw;
  uint32_t size;
  const uint64_t* scalars = nullptr;
};

// One kernel per (type, operator): out[i] = fold over s of sources.data[s][i].
using ReduceKernel = void (*)(void* out, const FoldSources& sources, size_t count, double inverse);
enum class FoldOp : uint8_t { kSum, kProd, kMax, kMin, kScaledSum, kPreMulSum };
inline constexpr int kFoldOps = 6;
struct ReduceTable {
  const char* name;
  ReduceKernel kernels[kDataTypes][kFoldOps];  // null where this instruction set brings nothing
};

// Every table usable on this machine, best first; the last is the scalar one and is complete.
const ReduceTable* const* reduce_tables(size_t* count);

// out[i] = reduction of sources[s][i]; `out` may equal a source.
void reduce_into(const Reduction& reduction, void* out, const FoldSources& sources, size_t count);
// The same with a given table, for tests.
void reduce_with(const ReduceTable& table, const Reduction& reduction, void* out, const FoldSources& sources,
                 size_t count);

const ReduceTable* scalar_reduce_table();
const ReduceTable* avx2_reduce_table();
const ReduceTable* avx512_reduce_table();

}  // namespace talaria
