#include "engine/host/reduce.h"

#include <array>

namespace talaria {
namespace {

struct UsableTables {
  std::array<const ReduceTable*, 3> tables{};
  size_t count = 0;
};

UsableTables find_usable() {
  UsableTables usable;
#if defined(TALARIA_X86_SIMD)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
                    __builtin_cpu_supports("f16c") && __builtin_cpu_supports("aes") &&
                    __builtin_cpu_supports("pclmul");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512cd");
  if (avx512) usable.tables[usable.count++] = avx512_reduce_table();
  if (avx2) usable.tables[usable.count++] = avx2_reduce_table();
#endif
  usable.tables[usable.count++] = scalar_reduce_table();
  return usable;
}

const UsableTables& usable_tables() {
  static const UsableTables usable = find_usable();
  return usable;
}

template <typename T>
void divide(void* out, size_t count, uint32_t divisor) {
  T* values = static_cast<T*>(out);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<T>(values[i] / static_cast<int64_t>(divisor));
}

void divide_integers(DataType type, void* out, size_t count, uint32_t divisor) {
  switch (type) {
    case DataType::kInt8: return divide<int8_t>(out, count, divisor);
    case DataType::kUint8: return divide<uint8_t>(out, count, divisor);
    case DataType::kInt32: return divide<int32_t>(out, count, divisor);
    case DataType::kInt64: return divide<int64_t>(out, count, divisor);
    default: return;
  }
}

FoldOp fold_of(ReduceOp op, bool floating) {
  switch (op) {
    case ReduceOp::kProd: return FoldOp::kProd;
    case ReduceOp::kMax: return FoldOp::kMax;
    case ReduceOp::kMin: return FoldOp::kMin;
    case ReduceOp::kAvg: return floating ? FoldOp::kScaledSum : FoldOp::kSum;
    default: return FoldOp::kSum;
  }
}

// 1/n as the type's own sums see it.
double inverse_of(DataType type, uint32_t ranks) {
  return type == DataType::kFloat64 ? 1.0 / ranks : static_cast<double>(1.0f / static_cast<float>(ranks));
}

}  // namespace

const ReduceTable* const* reduce_tables(size_t* count) {
  *count = usable_tables().count;
  return usable_tables().tables.data();
}

void reduce_with(const ReduceTable& table, const Reduction& reduction, void* out, const FoldSources& sources,
                 size_t count) {
  const bool floating = traits_of(reduction.type).floating;
  const bool average = reduction.op == ReduceOp::kAvg;
  const FoldOp op = fold_of(reduction.op, floating);
  ReduceKernel kernel = table.kernels[static_cast<int>(reduction.type)][static_cast<int>(op)];
  if (kernel == nullptr) {
    kernel = scalar_reduce_table()->kernels[static_cast<int>(reduction.type)][static_cast<int>(op)];
  }
  const double inverse = average ? inverse_of(reduction.type, reduction.avg_ranks) : 1.0;
  kernel(out, sources, count, inverse);
  if (average && !floating && reduction.final) divide_integers(reduction.type, out, count, reduction.avg_ranks);
}

void reduce_into(const Reduction& reduction, void* out, const FoldSources& sources, size_t count) {
  reduce_with(*usable_tables().tables[0], reduction, out, sources, count);
}

}  // namespace talaria
