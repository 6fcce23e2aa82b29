#include "operation.h"

using namespace talaria::bench;

namespace {

int rank_before(const Place& place) { return (place.rank + place.nranks - 1) % place.nranks; }
int rank_after(const Place& place) { return (place.rank + 1) % place.nranks; }

// Every rank sends to the next and receives from the one before.
ncclResult_t send_and_receive(const Call& call, const Place& place) {
  if (const ncclResult_t result = ncclGroupStart(); result != ncclSuccess) return result;
  const ncclResult_t sent =
      ncclSend(call.input, place.counts.send, call.type, rank_after(place), call.communicator, call.stream);
  const ncclResult_t received =
      ncclRecv(call.output, place.counts.receive, call.type, rank_before(place), call.communicator, call.stream);
  const ncclResult_t ended = ncclGroupEnd();
  if (sent != ncclSuccess) return sent;
  return received != ncclSuccess ? received : ended;
}

constexpr Operation kSendRecv = {
    .name = "SendRecv",
    .program = "sendrecv_perf",
    .reduces = false,
    .rooted = false,
    .in_place = false,
    .equal_outputs = false,
    .counts = [](uint64_t elements, int) { return Counts{elements, elements, elements}; },
    .input_offset = no_offset,
    .output_offset = no_offset,
    .expected = [](const Place& place) { return std::vector{Segment{rank_before(place), 0, place.counts.receive}}; },
    .bus_factor = [](int) { return 1.0; },
    .call = send_and_receive,
};

}  // namespace

int main(int argc, char** argv) { return run_program(argc, argv, kSendRecv); }
