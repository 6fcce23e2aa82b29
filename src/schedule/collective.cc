#include "schedule/collective.h"

namespace talaria {

const char* name_of(Operation operation) {
  static constexpr const char* kNames[kOperations] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast",
                                                      "AlltoAll",  "Reduce",    "Gather",        "Scatter",
                                                      "Send",      "Recv"};
  return kNames[static_cast<int>(operation)];
}

}  // namespace talaria
