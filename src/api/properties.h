// ncclCommProperties, which the header only names: its layout has grown with NCCL's releases.
#pragma once

#include "api/boundary.h"

namespace talaria::api {

// As of NCCL 2.29.7; earlier ones end after gin_type. The caller fills in the first three fields.
struct CommProperties {
  size_t size;
  unsigned magic, version;
  int rank, nranks;
  int cuda_device, nvml_device;
  bool device_api, multimem;
  int gin_type;  // 0: none
  int lsa_teams;
  bool host_rma;
  int railed_gin_type;
};
static_assert(sizeof(CommProperties) == 56);

// Fills in as much of the caller's struct as its size says, and leaves the first three fields. kInvalidUsage for an
// uninitialised one.
Status write_properties(const CommProperties& properties, void* out);

}  // namespace talaria::api
