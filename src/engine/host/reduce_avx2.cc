#include "engine/host/reduce_simd-inl.h"

static_assert(HWY_TARGET == HWY_AVX2, "the flags of this file do not give Highway its AVX2 target");

namespace talaria {

const ReduceTable* avx2_reduce_table() {
  static const ReduceTable table = make_table("avx2");
  return &table;
}

}  // namespace talaria
