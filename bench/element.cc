#include "element.h"

namespace talaria::bench {
namespace {

constexpr ElementType kElementTypes[] = {
    {"int8", ncclInt8, 1, true, false, 0, 0, 127},
    {"uint8", ncclUint8, 1, false, false, 0, 0, 255},
    {"int32", ncclInt32, 4, true, false, 0, 0, INT32_MAX},
    {"uint32", ncclUint32, 4, false, false, 0, 0, UINT32_MAX},
    {"int64", ncclInt64, 8, true, false, 0, 0, int64_t{1} << 62},
    {"uint64", ncclUint64, 8, false, false, 0, 0, int64_t{1} << 62},
    {"half", ncclFloat16, 2, true, true, 10, 15, 1 << 11},
    {"float", ncclFloat32, 4, true, true, 23, 127, 1 << 24},
    {"double", ncclFloat64, 8, true, true, 52, 1023, int64_t{1} << 53},
    {"bfloat16", ncclBfloat16, 2, true, true, 7, 127, 1 << 8},
    {"f8e4m3", ncclFloat8e4m3, 1, true, true, 3, 7, 1 << 4},
    {"f8e5m2", ncclFloat8e5m2, 1, true, true, 2, 15, 1 << 3},
};

constexpr Reduction kReductions[] = {
    {"sum", ncclSum}, {"prod", ncclProd}, {"max", ncclMax}, {"min", ncclMin}, {"avg", ncclAvg},
    {"mulsum", kMulSum},
};

template <typename Row>
const Row* find_by_name(std::span<const Row> rows, std::string_view name) {
  for (const Row& row : rows) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

}  // namespace

std::span<const ElementType> element_types() { return kElementTypes; }
std::span<const Reduction> reductions() { return kReductions; }
const ElementType* find_element_type(std::string_view name) { return find_by_name(element_types(), name); }
const Reduction* find_reduction(std::string_view name) { return find_by_name(reductions(), name); }

}  // namespace talaria::bench
