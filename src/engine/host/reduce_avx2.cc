#include "engine/host/reduce_simd-inl.h"

namespace talaria {

const ReduceTable* avx2_reduce_table() {
  static const ReduceTable table = make_table("avx2");
  return &table;
}

}  // namespace talaria
