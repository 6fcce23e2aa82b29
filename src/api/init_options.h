// Reading an ncclConfig_t that a caller built with any header since NCCL 2.14.
#pragma once

#include "api/boundary.h"

namespace talaria::api {

// A field counts as given when the caller's header had it (by version: what was padding then may hold anything), its
// struct reaches that far (by size) and its value is not the undefined one. Null means nothing is given. Strings are
// copied. kInvalidArgument for an uninitialised struct or a value out of range.
Result<InitOptions> read_init_options(const ncclConfig_t* config);

}  // namespace talaria::api
