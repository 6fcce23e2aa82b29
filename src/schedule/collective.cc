#include "schedule/collective.h"

namespace talaria {

const char* name_of(Operation operation) {
  static constexpr const char* kNames[kOperations] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast",
                                                      "AlltoAll",  "Reduce",    "Gather",        "Scatter",
                                                      "Send",      "Recv"};
  return kNames[static_cast<int>(operation)];
}

const char* name_of(Channel channel) { return is_packet(channel) ? "packet" : "bulk"; }

}  // namespace talaria
