// The release of NCCL that this library stands in for.
#pragma once

namespace talaria {

inline constexpr char kVersionText[] = "2.28.9+cuda13.0";

}  // namespace talaria
