// CallCheck: NCCL_CHECK_MODE=DEBUG_GLOBAL, in which the CPU ranks of a communicator compare each collective before any
// of them starts it.
//
// A record of the call is gathered from all ranks by the same means as any AllGather, so the check works over every
// transport and one thread can make it for many ranks. All ranks of the communicator come to the same verdict. Sends
// and receives concern two ranks only, and are not compared.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "runtime/communicator.h"

namespace talaria {

// One rank's collective, as the others see it.
struct CallRecord {
  uint64_t number;  // of the collective on its communicator
  uint64_t count;
  int32_t root;
  uint8_t operation, type, reduce;
  uint8_t reserved;
};

CallRecord record_of(const Collective& collective, uint64_t number);
// "Broadcast of 8 float from root 1", "AllReduce of 1024 int8, sum"
std::string describe(const CallRecord& record);
// kInvalidUsage if the records, one per rank, are not of one operation; the text says which ranks called what.
Status compare_calls(std::span<const CallRecord> records);

using CallList = std::vector<std::pair<Communicator*, Call>>;
using RunCalls = Status (*)(const CallList& calls);

// Carries out the calls of a group by `run`, a collective of each communicator at a time, each after its comparison.
// Sends and receives come last, as in a group that is not checked.
Status run_compared(const CallList& calls, RunCalls run);

}  // namespace talaria
