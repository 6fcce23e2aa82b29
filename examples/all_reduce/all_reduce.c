/* Two CPU ranks in one thread sum their buffers. Run it with TALARIA_DEVICE=host; it prints "sum ok". */
#include <nccl.h>
#include <stdio.h>

enum { kRanks = 2, kCount = 1000 };

static int failed(ncclResult_t result, const char* call) {
  if (result == ncclSuccess) return 0;
  fprintf(stderr, "%s: %s (%s)\n", call, ncclGetErrorString(result), ncclGetLastError(NULL));
  return 1;
}

int main(void) {
  static float data[kRanks][kCount];
  ncclComm_t comms[kRanks];
  if (failed(ncclCommInitAll(comms, kRanks, NULL), "ncclCommInitAll")) return 1;
  for (int r = 0; r < kRanks; ++r) {
    for (int i = 0; i < kCount; ++i) data[r][i] = (float)(i + r);
  }
  if (failed(ncclGroupStart(), "ncclGroupStart")) return 1;
  for (int r = 0; r < kRanks; ++r) {
    if (failed(ncclAllReduce(data[r], data[r], kCount, ncclFloat, ncclSum, comms[r], NULL), "ncclAllReduce")) return 1;
  }
  if (failed(ncclGroupEnd(), "ncclGroupEnd")) return 1;
  for (int r = 0; r < kRanks; ++r) {
    for (int i = 0; i < kCount; ++i) {
      if (data[r][i] == (float)(2 * i + 1)) continue;
      fprintf(stderr, "rank %d, element %d: %f\n", r, i, (double)data[r][i]);
      return 1;
    }
  }
  for (int r = 0; r < kRanks; ++r) {
    if (failed(ncclCommDestroy(comms[r]), "ncclCommDestroy")) return 1;
  }
  puts("sum ok");
  return 0;
}
