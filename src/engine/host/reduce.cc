#include "engine/host/reduce.h"

#include <array>
#include <type_traits>

#include "engine/host/elements.h"

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
  if constexpr (std::is_integral_v<T>) {
    using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
    T* values = static_cast<T*>(out);
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<T>(static_cast<Wide>(values[i]) / Wide{divisor});
  }
}

template <typename... Rows>
void divide_integers(ElementRows<Rows...>, DataType type, void* out, size_t count, uint32_t divisor) {
  static constexpr void (*kDivide[kDataTypes])(void*, size_t, uint32_t) = {divide<typename Rows::Type>...};
  static_assert(((kDivide[static_cast<int>(Rows::kType)] == divide<typename Rows::Type>) && ...), "rows in order");
  kDivide[static_cast<int>(type)](out, count, divisor);
}

FoldOp fold_of(ReduceOp op, bool floating) {
  switch (op) {
    case ReduceOp::kProd: return FoldOp::kProd;
    case ReduceOp::kMax: return FoldOp::kMax;
    case ReduceOp::kMin: return FoldOp::kMin;
    case ReduceOp::kPreMulSum: return FoldOp::kPreMulSum;
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
  if (average && !floating && reduction.final) {
    divide_integers(AllElements(), reduction.type, out, count, reduction.avg_ranks);
  }
}

void reduce_into(const Reduction& reduction, void* out, const FoldSources& sources, size_t count) {
  reduce_with(*usable_tables().tables[0], reduction, out, sources, count);
}

}  // namespace talaria
